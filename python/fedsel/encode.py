"""Rows to category codes: the first step at a client, before anything is counted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel.columns import column_codes, column_value
from fedsel.errors import DataError
from fedsel.matching import Codes32, Matcher, matchers
from fedsel.readers import BATCH_ROWS, read_batches
from fedsel.schema_rules import name_key, one_line

if TYPE_CHECKING:
    from fedsel.schema import Schema

_SHOWN_COLUMNS = 10

Place = Callable[[int], str]
"""Says where a row of a batch, counted from 0, stands in the data."""


@dataclass(frozen=True, eq=False)
class Codes:
    """Encoded rows. They are as private as the rows themselves and never leave the client.

    Parameters
    ----------
    columns : tuple of ndarray, each of shape (rows,)
        Category codes, one column per variable in schema order, each of the smallest of uint8, uint16 and int32 that
        holds its domain.
    rows : int
        Number of rows kept.
    dropped : int
        Number of rows dropped because a variable with ``missing = "drop"`` had no category for its value.
    unmatched : tuple of int
        Per variable, in how many of the rows that came in its value was missing or fitted no category.
    """

    columns: tuple[npt.NDArray[np.generic], ...]
    rows: int
    dropped: int
    unmatched: tuple[int, ...]

    @classmethod
    def join(cls, parts: Iterable[Codes]) -> Codes:
        """Return several batches as one.

        Raises
        ------
        DataError
            If there is no batch, or the batches have different columns.
        """
        batches = list(parts)
        if not batches:
            raise DataError("codes: at least one batch is needed, got none")
        if len({tuple(column.dtype for column in batch.columns) for batch in batches}) > 1:
            raise DataError("codes: batches of different schemas cannot be joined")
        columns = tuple(np.concatenate(parts) for parts in zip(*(batch.columns for batch in batches), strict=True))
        unmatched = tuple(map(sum, zip(*(batch.unmatched for batch in batches), strict=True)))
        return cls(columns, sum(batch.rows for batch in batches), sum(batch.dropped for batch in batches), unmatched)


def code_dtype(size: int) -> np.dtype[Any]:
    """Return the smallest of uint8, uint16 and int32 that holds the codes of a domain of this size."""
    if size <= 1 << 8:
        return np.dtype(np.uint8)
    return np.dtype(np.uint16 if size <= 1 << 16 else np.int32)


def encode(schema: Schema, data: Any, *, source: str = "data", first_row: int = 1) -> Codes:
    """Encode rows held in memory.

    Columns are found by name; others are ignored, and the order does not matter. How a value finds its category is
    described in `fedsel.matching`.

    Parameters
    ----------
    schema : Schema
        The variables to encode.
    data : pandas DataFrame, pyarrow Table or RecordBatch, or mapping of names to arrays
        The rows. A mapping may hold numpy arrays (masked ones too), lists, pandas Series or pyarrow arrays.
    source : str
        What opens an error message, such as a file name.
    first_row : int
        Number of the first row in error messages.

    Returns
    -------
    Codes

    Raises
    ------
    DataError
        If a column is missing or there twice, columns differ in length, a column cannot be encoded, or a value finds no
        category under ``missing = "error"``; that message names row, variable and value.
    """
    rules = matchers(schema)
    columns = _find_columns(data, schema.names, source)
    return kept_codes(rules, *match_columns(rules, columns, source=source, place=_numbered(source, first_row)))


def encode_file(
    schema: Schema,
    path: str | os.PathLike[str],
    *,
    batch_rows: int = BATCH_ROWS,
    delimiter: str | None = None,
) -> Iterator[Codes]:
    """Encode a CSV or Parquet file batch by batch, in memory that does not grow with the file.

    Parameters
    ----------
    schema : Schema
        The variables to encode.
    path : path
        A Parquet file, or a CSV file in UTF-8 with a header line (``.csv.gz`` is unpacked on the way). Blank lines are
        skipped. Every CSV field is read as text and matched by the schema, whatever it looks like.
    batch_rows : int
        Largest number of rows in a batch.
    delimiter : str, optional
        Separates CSV fields; by default a tab where the name ends in ``.tsv``, else a comma.

    Yields
    ------
    Codes
        One per batch; row numbers in errors count the data rows of the whole file from 1.

    Raises
    ------
    DataError
        If the file cannot be read or holds no rows, and as `encode` does.
    """
    source = os.fspath(path)
    if batch_rows < 1:
        raise DataError(f"batch_rows must be at least 1, got {batch_rows}")
    rules = matchers(schema)

    def find(names: Sequence[str]) -> list[int]:
        return positions(names, schema.names, source)

    def encoded() -> Iterator[Codes]:
        first_row = 1
        for columns in read_batches(path, find, batch_rows=batch_rows, delimiter=delimiter):
            place = _numbered(source, first_row)
            yield kept_codes(rules, *match_columns(rules, columns, source=source, place=place))
            first_row += len(columns[0])
        if first_row == 1:
            raise DataError(f"{source}: holds a header but no rows")

    return encoded()


def _numbered(source: str, first_row: int) -> Place:
    return lambda row: f"{source}: row {first_row + row}"


def match_columns(
    rules: Sequence[Matcher], columns: Sequence[Any], *, source: str, place: Place
) -> tuple[list[Codes32], list[npt.NDArray[np.bool_]]]:
    """Find the code of every value of a batch, and refuse what a variable with ``missing = "error"`` refuses.

    Parameters
    ----------
    rules : sequence of Matcher
        One per variable.
    columns : sequence of arrays, each of shape (rows,)
        Raw values, one column per variable.
    source : str
        What opens a message about a whole column.
    place : callable
        What opens a message about a row.

    Returns
    -------
    codes : list of ndarray of int32, each of shape (rows,)
        One column per variable; -1 where a value is missing or fits no category.
    lost : list of ndarray of bool, each of shape (rows,)
        Where that is so.

    Raises
    ------
    DataError
        As `encode`.
    """
    lengths = [len(column) for column in columns]
    for rule, length in zip(rules, lengths, strict=True):
        if length != lengths[0]:
            first = rules[0].variable.name
            raise DataError(
                f"{source}: columns differ in length: {first} has {lengths[0]} rows, {rule.variable.name} has {length}"
            )
    coded = [_codes_of(rule, column, source) for rule, column in zip(rules, columns, strict=True)]
    lost = [codes < 0 for codes in coded]
    _refuse(rules, columns, lost, place)
    return coded, lost


def kept_codes(rules: Sequence[Matcher], coded: Sequence[Codes32], lost: Sequence[npt.NDArray[np.bool_]]) -> Codes:
    """Apply the missing policies to what `match_columns` found; the arrays given stay as they are."""
    came = len(coded[0])
    keep = np.ones(came, dtype=np.bool_)
    for rule, bad in zip(rules, lost, strict=True):
        if rule.variable.missing == "drop":
            keep &= ~bad
    rows = int(keep.sum())
    result = []
    for rule, codes, bad in zip(rules, coded, lost, strict=True):
        if rule.variable.missing == "category":
            codes = np.where(bad, np.int32(rule.variable.size - 1), codes)
        kept = codes if rows == came else codes[keep]
        result.append(kept.astype(code_dtype(rule.variable.size)))
    return Codes(tuple(result), rows, came - rows, tuple(int(bad.sum()) for bad in lost))


def _codes_of(rule: Matcher, column: Any, source: str) -> Codes32:
    try:
        return column_codes(rule, column)
    except DataError as error:
        raise DataError(f"{source}: {rule.variable.name} {error}") from None


def _refuse(
    rules: Sequence[Matcher], columns: Sequence[Any], lost: Sequence[npt.NDArray[np.bool_]], place: Place
) -> None:
    """Raise for the first row, and in it the first variable, whose value the policy ``error`` refuses."""
    strict = [i for i, rule in enumerate(rules) if rule.variable.missing == "error" and lost[i].any()]
    if not strict:
        return
    row, i = min((int(lost[i].argmax()), i) for i in strict)
    reason = rules[i].explain(column_value(columns[i], row))
    raise DataError(f'{place(row)}: {rules[i].variable.name}: missing="error" but {reason}')


def _find_columns(data: Any, wanted: Sequence[str], source: str) -> list[Any]:
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return [data.iloc[:, position] for position in positions(list(data.columns), wanted, source)]
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        return [data.column(position) for position in positions(data.schema.names, wanted, source)]
    if isinstance(data, Mapping):
        names = list(data)
        return [data[names[position]] for position in positions(names, wanted, source)]
    raise DataError(
        f"{source}: expected a DataFrame, a pyarrow table or a mapping of arrays, got {type(data).__name__}"
    )


def positions(names: Sequence[object], wanted: Sequence[str], source: str) -> list[int]:
    """Return where each wanted column stands; names match whichever way accents are composed."""
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        if isinstance(name, str):
            found.setdefault(name_key(name), []).append(position)
    for name in wanted:
        there = found.get(name_key(name), [])
        if not there:
            shown = ", ".join(one_line(str(other)) for other in names[:_SHOWN_COLUMNS])
            more = f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
            raise DataError(f"{source}: no column {name}; it has {shown or 'none'}{more}")
        if len(there) > 1:
            raise DataError(f"{source}: column {name} is there {len(there)} times")
    return [found[name_key(name)][0] for name in wanted]
