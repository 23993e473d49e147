"""First drafts of schemas, from a public sample or a codebook. Never from private data."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from fedsel.errors import DataError, SchemaError
from fedsel.matching import is_missing
from fedsel.readers import read_batches
from fedsel.schema import Category, Missing, Role, Schema, Variable
from fedsel.schema_rules import BLANKS, LARGEST_INT, MISSING_LABEL, check_choice, name_key, one_line, parse_number

# Texts that stand for a missing value almost everywhere. "None" and "unknown" are not among them: both are answers.
MISSING_TOKENS = ("?", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", ".", "#N/A")

SAMPLE_ROWS = 200_000

_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")

WARNING = (
    "Read every line before use: only you know whether these categories are complete.",
    "Categories, bins and missing values must come from public knowledge. Never infer them from private data:",
    "which values occur already tells something about the people in it.",
)


@dataclass(frozen=True)
class Draft:
    """A drafted schema and what its reader should know.

    Parameters
    ----------
    schema : Schema
        The draft.
    comments : tuple of str
        Lines on where it came from and what was left out.
    """

    schema: Schema
    comments: tuple[str, ...]

    def to_toml(self) -> str:
        """Return the schema as TOML, opened by the comments."""
        lines = [f"# {comment}" if comment else "#" for comment in self.comments]
        return "\n".join([*lines, "", self.schema.to_toml()])


def draft_from_sample(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    sensitive: Sequence[str] = (),
    exclude: Sequence[str] = (),
    name: str | None = None,
    max_categories: int = 20,
    bins: int = 8,
    missing: Missing | None = None,
    delimiter: str | None = None,
) -> Draft:
    """Draft a schema from a public sample.

    Numbers with few distinct integers become categories, other numbers bins of about equal counts with round edges;
    texts with few distinct values become categories. Columns that fit none of these are left out, and named in the
    comments. A variable that has missing values in the sample gets a category for them (the target: its row is
    dropped); the others refuse them.

    Parameters
    ----------
    path : path
        CSV or Parquet file of *public* rows; the first 200,000 are read.
    target : str, optional
        Name of the target.
    sensitive : sequence of str
        Names of the sensitive variables.
    exclude : sequence of str
        Columns to leave out, such as the client's name.
    name : str, optional
        Name of the schema; by default the file's, without its ending.
    max_categories : int
        Most distinct values a variable may have to become categories.
    bins : int
        Most bins of a numeric variable.
    missing : {'error', 'drop', 'category'}, optional
        Policy of every variable but the target, whose rows are dropped unless it is ``'error'``. By default as
        described above.
    delimiter : str, optional
        Separates CSV fields.

    Returns
    -------
    Draft

    Raises
    ------
    DataError
        If the file cannot be read, or a named column is missing or cannot be drafted.
    SchemaError
        If an option is out of range, or a name has two roles.
    """
    source = os.fspath(path)
    checked_policy(missing)
    for option, value in (("max_categories", max_categories), ("bins", bins)):
        if value < 1:
            raise SchemaError(f"{option} must be at least 1, got {value}")
    roles = roles_of(target, sensitive)
    for column in exclude:
        if column in roles:
            raise SchemaError(f"variable {column}: excluded, but named as {roles[column]}")
    names, columns, complete = _read_sample(source, delimiter)
    for column in (*roles, *exclude):
        if column not in names:
            raise DataError(f"{source}: no column {column}; it has {', '.join(map(one_line, names))}")
    rows = len(columns[0])
    part = "" if complete else f"the first {rows:,} rows of "
    comments = [f"Drafted from {part}the public sample {one_line(Path(path).name)}.", *WARNING]
    variables = []
    tokens: set[str] = set()
    for column, values in zip(names, columns, strict=True):
        if column in exclude:
            continue
        role = roles.get(column, "feature")
        try:
            variable, found = _draft_variable(column, role, values, max_categories, bins, missing)
        except DataError as error:
            if role != "feature":
                raise DataError(f"{source}: column {column} cannot be the {role} variable: {error}") from None
            comments.append(f"Left out: {one_line(column)}: {error}")
            continue
        variables.append(variable)
        tokens |= found
    if not variables:
        raise DataError(f"{source}: no column can be drafted")
    schema = Schema(schema_name(name, path), tuple(variables), missing_values=tuple(sorted(tokens)))
    return Draft(schema, tuple(comments))


def roles_of(target: str | None, sensitive: Sequence[str]) -> dict[str, Role]:
    """Return the role of each variable named; a name with two roles is refused."""
    roles: dict[str, Role] = {} if target is None else {target: "target"}
    for column in sensitive:
        if column == target:
            raise SchemaError(f"variable {column}: one variable cannot be both target and sensitive")
        roles[column] = "sensitive"
    return roles


def checked_policy(missing: str | None) -> Missing | None:
    """Return a policy by its name, or refuse it."""
    if missing is not None:
        check_choice(missing, get_args(Missing), "missing")
    return cast("Missing | None", missing)


def policy(role: Role, missing: Missing) -> Missing:
    """Return the policy for a variable of this role: a row without an outcome is of no use."""
    return "drop" if role == "target" and missing == "category" else missing


def _read_sample(source: str, delimiter: str | None) -> tuple[list[str], list[list[object]], bool]:
    names: list[str] = []

    def find(found: Sequence[str]) -> list[int]:
        keys = [name_key(column) for column in found]
        for column, key in zip(found, keys, strict=True):
            if keys.count(key) > 1:
                raise DataError(f"{source}: column {one_line(column)} is there {keys.count(key)} times")
        names.extend(found)
        return list(range(len(found)))

    columns: list[list[object]] = []
    complete = True
    for batch in read_batches(source, find, delimiter=delimiter):
        room = SAMPLE_ROWS - (len(columns[0]) if columns else 0)
        if not room:
            complete = False
            break
        complete = len(batch[0]) <= room
        parts = [column.slice(0, room).to_pylist() for column in batch]
        columns = [old + new for old, new in zip(columns, parts, strict=True)] if columns else parts
        if not complete:
            break
    if not columns:
        raise DataError(f"{source}: holds a header but no rows")
    return names, columns, complete


def _draft_variable(
    name: str, role: Role, values: Sequence[object], max_categories: int, bins: int, missing: Missing | None
) -> tuple[Variable, set[str]]:
    """Return the variable and the missing tokens seen; DataError says why a column cannot be one."""
    present: list[Any] = [value.strip(BLANKS) if isinstance(value, str) else value for value in values]
    tokens = {value for value in present if isinstance(value, str) and value in MISSING_TOKENS}
    present = [value for value in present if not is_missing(value) and value != "" and value not in MISSING_TOKENS]
    if not present:
        raise DataError("no value in any row")
    strange = next((value for value in present if not isinstance(value, (str, bool, int, float))), None)
    if strange is not None:
        raise DataError(f"values of type {type(strange).__name__}")
    missing = policy(role, missing or ("error" if len(present) == len(values) else "category"))
    try:
        if all(isinstance(value, bool) or str(value).lower() in ("true", "false") for value in present):
            return Variable(name, role, categories=(False, True), missing=missing), tokens
        numbers = _as_numbers(present)
        if numbers is None:
            return Variable(name, role, categories=_text_categories(present, max_categories), missing=missing), tokens
        distinct = np.unique(numbers)
        integral = bool((distinct == np.floor(distinct)).all()) and abs(distinct).max() <= LARGEST_INT
        if integral and len(distinct) <= max_categories:
            return Variable(name, role, categories=tuple(map(int, distinct)), missing=missing), tokens
        return Variable(name, role, bins=_round_bins(numbers, bins, integral), missing=missing), tokens
    except SchemaError as error:
        raise DataError(str(error)) from None


def _as_numbers(values: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return the values as numbers, or None if one is not a finite number or is a code such as ``01``."""
    numbers = []
    for value in values:
        if isinstance(value, str):
            number = None if _LEADING_ZERO.match(value) else parse_number(value)
        else:
            number = float(value)
        if number is None or not np.isfinite(number):
            return None
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def _text_categories(values: Sequence[Any], max_categories: int) -> tuple[Category, ...]:
    distinct = sorted({str(value) for value in values})
    if len(distinct) > max_categories:
        raise DataError(f"{len(distinct):,} distinct texts, more than {max_categories}")
    if MISSING_LABEL in distinct:
        raise DataError(f"the text {MISSING_LABEL!r} is reserved")
    return tuple(distinct)


def _round_bins(numbers: np.ndarray[Any, np.dtype[np.float64]], bins: int, integral: bool) -> tuple[float, ...]:
    """Return edges of bins with about equal counts, rounded to what the spread makes sensible."""
    low, high = float(numbers.min()), float(numbers.max())
    spread = high - low
    step = 10.0 ** (np.floor(np.log10(spread)) - 2) if 0 < spread < np.inf else 1.0
    if integral:
        step = max(step, 1.0)
    inner = np.quantile(numbers, np.arange(1, bins) / bins)
    # Twelve digits take off what the multiplication leaves behind, such as 0.30000000000000004.
    first, *middle, last = (
        float(f"{edge:.12g}")
        for edge in (np.floor(low / step) * step, *np.round(inner / step) * step, np.ceil(high / step) * step)
    )
    # Where the numbers are large and close together, rounding must not push the outer edges inwards.
    first, last = min(first, low), max(last, high)
    if first == last:
        last = max(first + step, float(np.nextafter(first, np.inf)))
    return (first, *sorted({edge for edge in middle if first < edge < last}), last)


def schema_name(name: str | None, path: str | os.PathLike[str]) -> str:
    """Return the name given, or else one made from the file's."""
    return name if name is not None else one_line(Path(path).name.split(".")[0]).strip(BLANKS) or "draft"
