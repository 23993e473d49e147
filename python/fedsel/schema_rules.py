"""What the fields of a schema may hold, and how categories and bins are written as text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from fedsel.errors import SchemaError

Category = int | str | bool
Kind = Literal["int", "str", "bool", "bins"]

MISSING_LABEL = "missing/other"

# Taken off both ends of every text before it is compared: ASCII blanks and the no-break space of spreadsheets.
BLANKS = " \t\r\n\f\v\u00a0"

# Beyond this a float no longer tells neighbouring integers apart, and a column with one gap arrives as floats.
LARGEST_INT = 2**53 - 1

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse_number(text: str) -> float | None:
    """Return the number a text denotes, or None: decimal notation in ASCII, no infinities."""
    return float(text) if _NUMBER.fullmatch(text) else None


def number_text(value: float) -> str:
    """Return the shortest text of a finite number; integers lose their point."""
    return str(int(value)) if value == int(value) and abs(value) <= LARGEST_INT else repr(float(value))


def denoted_number(text: str) -> float | None:
    """Return the number for which a text category stands in a numeric column, or None.

    Only plain forms count, ``"1"``, ``"1.0"`` or ``"1.5"``: a code such as ``"01"`` is text that looks like a number.
    """
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        return None
    return value if text in (number_text(value), repr(value)) else None


def kind_of(category: Category) -> Kind:
    """Return the kind of one category by its exact type."""
    if isinstance(category, bool):  # before int, of which bool is a subclass
        return "bool"
    return "int" if isinstance(category, int) else "str"


def category_text(category: Category) -> str:
    """Return a category as text; booleans as in TOML."""
    return str(category).lower() if isinstance(category, bool) else str(category)


def bin_texts(bins: Sequence[float]) -> tuple[str, ...]:
    """Return one interval per bin, such as ``[0, 18)``; the last is closed."""
    texts = [number_text(edge) for edge in bins]
    last = len(texts) - 2
    return tuple(f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(pairwise(texts)))


def check_text(text: object, what: str) -> None:
    """Refuse anything but text that can be written as UTF-8."""
    if not isinstance(text, str):
        raise SchemaError(f"{what} must be text, got {type(text).__name__}")
    if any(unicodedata.category(c) == "Cs" for c in text):
        raise SchemaError(f"{what} is not valid Unicode: {text!r}")


def check_name(name: object, what: str) -> None:
    """Refuse anything but non-empty text without control characters or surrounding blanks."""
    check_text(name, what)
    assert isinstance(name, str)
    if not name:
        raise SchemaError(f"{what} must not be empty")
    # Line and paragraph separators break one-line messages as control characters do.
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        raise SchemaError(f"{what} must not hold control characters, got {name!r}")
    if name != name.strip(BLANKS):
        raise SchemaError(f"{what} must not begin or end with a blank, got {name!r}")


def one_line(text: str) -> str:
    """Return foreign text fit for a message or comment: escaped if some of it cannot be printed."""
    return text if text.isprintable() else ascii(text)[1:-1]


def name_key(name: str) -> str:
    """Return the form in which two names that look the same are the same."""
    return unicodedata.normalize("NFC", name)


def check_choice(value: object, choices: Sequence[str], what: str) -> None:
    """Refuse anything but one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise SchemaError(f"{what} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _items(values: object, what: str) -> list[object]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise SchemaError(f"{what} must be a list, got {type(values).__name__}")
    # numpy scalars become the Python values they stand for
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def checked_categories(values: object, where: str) -> tuple[Category, ...]:
    """Return the categories as a tuple, or refuse them.

    All must be of one type. That settles what ``[1, true, "1"]`` would mean, three spellings of one value.
    """
    items = _items(values, f"{where}: categories")
    if not items:
        raise SchemaError(f"{where}: at least one category is needed, got none")
    categories: list[Category] = []
    for item in items:
        if not isinstance(item, (int, str)):
            hint = "; use bins, or text" if isinstance(item, float) else ""
            raise SchemaError(f"{where}: a category must be an integer, text or true/false, got {item!r}{hint}")
        if kind_of(item) != kind_of(categories[0] if categories else item):
            raise SchemaError(
                f"{where}: categories must all be of one type, got {_toml_like(categories[0])} and {_toml_like(item)}"
            )
        if isinstance(item, str):
            check_name(item, f"{where}: a category")
        elif abs(item) > LARGEST_INT:
            raise SchemaError(f"{where}: integer categories must lie within +-(2^53 - 1), got {item}; write it as text")
        categories.append(item)
    seen: dict[object, Category] = {}
    for category in categories:
        key = _matched(category)
        if key in seen:
            if seen[key] == category:
                raise SchemaError(f"{where}: the category {_toml_like(category)} occurs twice")
            first, second = _toml_like(seen[key]), _toml_like(category)
            raise SchemaError(f"{where}: the categories {first} and {second} cannot be told apart")
        seen[key] = category
    return tuple(categories)


def _matched(category: Category) -> object:
    """Return a key that two categories share exactly if some value could match both."""
    if not isinstance(category, str):
        return category
    number = denoted_number(category)
    if number is not None:
        return number
    return category.lower() if category.lower() in ("true", "false") else name_key(category)


def _toml_like(category: Category) -> str:
    return repr(category) if isinstance(category, str) else category_text(category)


def checked_bins(values: object, where: str) -> tuple[float, ...]:
    """Return the edges as a tuple of floats, or refuse them."""
    items = _items(values, f"{where}: bins")
    edges: list[float] = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            raise SchemaError(f"{where}: bins must be numbers, got {item!r}")
        try:
            edge = float(item)
        except OverflowError:
            edge = math.inf
        if not math.isfinite(edge):
            raise SchemaError(
                f"{where}: bins must be finite, got {item if isinstance(item, float) else 'a huge integer'}"
            )
        edges.append(edge + 0.0)  # -0.0 becomes 0.0
    listing = "[" + ", ".join(number_text(edge) for edge in edges) + "]"
    if len(edges) < 2:
        raise SchemaError(f"{where}: bins need at least 2 edges, got {listing}")
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(f"{where}: bins must strictly increase, got {listing}")
    return tuple(edges)


def checked_labels(values: object, count: int, *, reserved: bool, where: str) -> tuple[str, ...]:
    """Return the labels as a tuple, or refuse them; `reserved` says that ``missing/other`` is taken."""
    labels: dict[str, None] = {}
    for item in _items(values, f"{where}: labels"):
        check_name(item, f"{where}: a label")
        assert isinstance(item, str)
        if item in labels:
            raise SchemaError(f"{where}: the label {item!r} occurs twice")
        if reserved and item == MISSING_LABEL:
            raise SchemaError(f"{where}: the label {item!r} clashes with the one that missing='category' adds")
        labels[item] = None
    if len(labels) != count:
        raise SchemaError(f"{where}: expected {count} labels, one per category or bin, got {len(labels)}")
    return tuple(labels)


def checked_missing_values(values: object, where: str) -> tuple[str, ...]:
    """Return the texts that stand for missing values as a tuple, or refuse them."""
    texts: dict[str, None] = {}  # a set that keeps the order
    for item in _items(values, f"{where}: missing_values"):
        if not isinstance(item, str):
            raise SchemaError(f"{where}: missing_values must be texts, got {item!r}; write it in quotes")
        check_name(item, f"{where}: a missing value")
        if item in texts:
            raise SchemaError(f"{where}: the missing value {item!r} occurs twice")
        texts[item] = None
    return tuple(texts)


def check_apart(missing_values: Sequence[str], categories: Sequence[Category] | None, where: str) -> None:
    """Refuse a category that also stands for a missing value."""
    for text in missing_values:
        number = parse_number(text)
        for category in categories or ():
            if isinstance(category, str):
                same = category == text or (number is not None and denoted_number(category) == number)
            else:
                same = category == number or (isinstance(category, bool) and category_text(category) == text.lower())
            if same:
                raise SchemaError(f"{where}: {_toml_like(category)} is both a category and a missing value")
