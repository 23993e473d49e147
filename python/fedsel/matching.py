"""The rules by which one raw value finds its category code.

They hold for every source of rows alike:

- Numbers match by value: ``1``, ``1.0``, ``"1"``, ``"1.0"`` and ``True`` all match the integer category 1, and
  ``0``/``1`` match ``false``/``true``.
- Text matches a text category exactly, once surrounding blanks are off. A number matches the text category that writes
  it plainly (``1`` or ``1.0`` for the number 1, never ``01``), so that a column read as numbers finds such categories.
- ``true`` and ``false`` in any case match booleans, and booleans match text categories that spell them.
- None, NaN, NaT, the empty text and whatever `missing_values` lists are missing. Infinities lie outside all bins.

A value that finds no category gets the code -1; what becomes of it is the variable's `missing` policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError
from fedsel.schema_rules import BLANKS, LARGEST_INT, category_text, denoted_number, number_text, parse_number

if TYPE_CHECKING:
    from fedsel.schema import Schema, Variable

Codes32 = npt.NDArray[np.int32]

_BOOLEANS = {"false": 0.0, "true": 1.0}
_SHOWN_CATEGORIES = 12
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class Matcher:
    """Look-up tables of one variable.

    Parameters
    ----------
    variable : Variable
        The variable.
    missing_values : tuple of str
        Texts that stand for a missing value, the schema's and the variable's own.
    """

    variable: Variable
    missing_values: tuple[str, ...]

    @cached_property
    def _categories(self) -> tuple[npt.NDArray[np.float64], Codes32]:
        """Numbers that the categories match, ascending, and their codes."""
        found: dict[float, int] = {}
        for code, category in enumerate(self.variable.categories or ()):
            number = denoted_number(category) if isinstance(category, str) else float(category)
            if number is not None:
                found[number] = code
        keys = sorted(found)
        return np.array(keys, dtype=np.float64), np.array([found[key] for key in keys], dtype=np.int32)

    @cached_property
    def _spelt_booleans(self) -> Codes32:
        """Codes of the text categories that spell false and true, -1 where there is none."""
        codes = {str(category).lower(): code for code, category in enumerate(self.variable.categories or ())}
        return np.array([codes.get("false", -1), codes.get("true", -1)], dtype=np.int32)

    @cached_property
    def text_codes(self) -> dict[str, int]:
        """Code of each text category, empty where categories are not text."""
        if self.variable.kind != "str":
            return {}
        return {str(category): code for code, category in enumerate(self.variable.categories or ())}

    @cached_property
    def _missing_numbers(self) -> npt.NDArray[np.float64]:
        numbers = [parse_number(text) for text in self.missing_values]
        return np.array([number for number in numbers if number is not None], dtype=np.float64)

    def numbers(self, values: npt.NDArray[Any]) -> Codes32:
        """Return the codes of a numeric or boolean array, -1 where nothing matches; all shapes (rows,)."""
        kind = self.variable.kind
        if values.dtype.kind == "b":
            if kind == "str":
                return self._spelt_booleans[values.astype(np.uint8)]
            values = values.astype(np.uint8)
        if kind == "bins":
            return self._binned(values)
        keys, codes = self._categories
        if not len(keys):
            return np.full(len(values), -1, dtype=np.int32)
        at = np.searchsorted(keys, values)
        np.minimum(at, len(keys) - 1, out=at)
        matched = keys[at] == values
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            # Where int64 turns into float64 neighbours fall together; no integer category lies out there.
            matched &= (values <= LARGEST_INT) & (values >= -LARGEST_INT if values.dtype.kind == "i" else True)
        return np.where(matched, codes[at], np.int32(-1))

    def _binned(self, values: npt.NDArray[Any]) -> Codes32:
        edges = np.array(self.variable.bins, dtype=np.float64)
        codes = np.searchsorted(edges, values, side="right").astype(np.int32)
        codes -= 1
        beyond = codes == len(edges) - 1  # NaN and inf sort here as well
        if beyond.any():
            codes[beyond] = np.where(values[beyond] == edges[-1], np.int32(len(edges) - 2), np.int32(-1))
        if len(self._missing_numbers):
            codes[np.isin(values, self._missing_numbers)] = -1
        return codes

    def text(self, value: str) -> int:
        """Return the code of one text, -1 if nothing matches."""
        value = value.strip(BLANKS)
        if self.variable.kind == "str":
            return self.text_codes.get(value, -1)
        number = parse_number(value)
        if number is None and self.variable.kind == "bool":
            number = _BOOLEANS.get(value.lower())
        return -1 if number is None else int(self.numbers(np.array([number]))[0])

    def value(self, value: object) -> int:
        """Return the code of one Python object, -1 if it is missing or nothing matches.

        Raises
        ------
        DataError
            If it is neither missing nor a number, text or boolean.
        """
        if is_missing(value):
            return -1
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(decoded(value))
        if isinstance(value, (bool, np.bool_)):
            return int(self.numbers(np.array([value], dtype=np.bool_))[0])
        if isinstance(value, (int, float, Decimal, np.integer, np.floating)):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            # An integer that a float cannot hold matches no category; inf says so.
            exact = isinstance(value, float) or self.variable.kind == "bins" or abs(number) <= LARGEST_INT
            return int(self.numbers(np.array([number if exact else math.inf]))[0])
        raise DataError(f"holds a value of type {type(value).__name__}; expected numbers, text or true/false")

    def explain(self, value: object) -> str:
        """Say why a value has no code, as in ``the value is 212, outside the bins 0..100``."""
        if is_missing(value):
            return "the value is missing"
        variable = self.variable
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        if isinstance(text, str):
            text = text.strip(BLANKS)
            if not text:
                return "the value is missing"
            number = parse_number(text) if variable.kind != "str" else None
            shown = repr(text) if number is None else text
        else:
            number = float(text) if isinstance(text, (int, float, Decimal, np.integer, np.floating)) else None
            shown = str(text).lower() if isinstance(text, (bool, np.bool_)) else str(text)
        if len(shown) > _SHOWN_CHARACTERS:
            shown = shown[:_SHOWN_CHARACTERS] + "..."
        if text in self.missing_values or (number is not None and number in self._missing_numbers):
            return f"the value is {shown}, which stands for a missing value"
        if variable.bins is not None:
            if number is None:
                return f"the value is {shown}, not a number"
            low, high = number_text(variable.bins[0]), number_text(variable.bins[-1])
            return f"the value is {shown}, outside the bins {low}..{high}"
        categories = [category_text(category) for category in variable.categories or ()]
        more = f", ... ({len(categories)} in all)" if len(categories) > _SHOWN_CATEGORIES else ""
        return f"the value is {shown}, not among the categories {', '.join(categories[:_SHOWN_CATEGORIES])}{more}"


def matchers(schema: Schema) -> tuple[Matcher, ...]:
    """Return one matcher per variable of the schema."""
    return tuple(Matcher(v, (*schema.missing_values, *v.missing_values)) for v in schema.variables)


def is_missing(value: object) -> bool:
    """Tell whether a Python object stands for no value: None, NaN, NaT or pandas' NA."""
    # By name, so that pandas need not be imported; pandas.NA refuses every comparison.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, Decimal, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return False


def decoded(value: bytes) -> str:
    """Return bytes as text.

    Raises
    ------
    DataError
        If they are not UTF-8.
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DataError(f"holds text that is not UTF-8: {value[:_SHOWN_CHARACTERS]!r}") from None
