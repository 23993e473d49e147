"""What a data file looks like to a schema, for the client who holds it: exact and private."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsel.encode import kept_codes, match_columns, positions
from fedsel.encode_clients import arrow_positions
from fedsel.errors import DataError
from fedsel.matching import Matcher, matchers
from fedsel.readers import BATCH_ROWS, read_batches
from fedsel.schema import Schema
from fedsel.schema_rules import BLANKS, one_line

_SHOWN_CHARACTERS = 40
_MOST_DISTINCT = 1000  # unlisted values told apart per variable; a free text may have millions


@dataclass(frozen=True)
class FileCheck:
    """How the rows of a file fit a schema. As private as the rows.

    Parameters
    ----------
    rows : int
        Number of rows that encode.
    dropped : int
        Number of rows that the missing policies drop.
    missing : dict of str to int
        Number of missing values of each variable that has any.
    unlisted : dict of str to Counter
        Values that are there but fit no category or bin, as text, and how often each comes up; at most about 1,000
        per variable are told apart, the rest are under ``"..."``. Many of them mean that the file is coded in another
        way.
    """

    rows: int
    dropped: int
    missing: dict[str, int]
    unlisted: dict[str, Counter[str]]


def check_file(schema: Schema, path: str | os.PathLike[str], *, delimiter: str | None = None) -> FileCheck:
    """Encode a file and count what fits no category.

    Parameters
    ----------
    schema : Schema
        The variables to encode.
    path : path
        CSV or Parquet file, as in `encode_file`.
    delimiter : str, optional
        Separates CSV fields.

    Returns
    -------
    FileCheck

    Raises
    ------
    DataError
        As `encode_file`.
    """
    source = os.fspath(path)
    rules = matchers(schema)
    rows = dropped = 0
    missing: Counter[str] = Counter()
    unlisted: dict[str, Counter[str]] = {}

    def find(names: Sequence[str]) -> list[int]:
        return positions(names, schema.names, source)

    first_row = 1
    for columns in read_batches(path, find, batch_rows=BATCH_ROWS, delimiter=delimiter):
        start = first_row

        def place(row: int, start: int = start) -> str:
            return f"{source}: row {start + row}"

        coded, lost = match_columns(rules, columns, source=source, place=place)
        for rule, column, bad in zip(rules, columns, lost, strict=True):
            if bad.any():
                values = column.take(arrow_positions(np.flatnonzero(bad))).to_pylist()
                _tell_apart(rule, values, missing, unlisted)
        codes = kept_codes(rules, coded, lost)
        rows, dropped = rows + codes.rows, dropped + codes.dropped
        first_row += len(columns[0])
    if first_row == 1:
        raise DataError(f"{source}: holds a header but no rows")
    return FileCheck(rows, dropped, dict(missing), unlisted)


def _tell_apart(
    rule: Matcher, values: Sequence[object], missing: Counter[str], unlisted: dict[str, Counter[str]]
) -> None:
    name = rule.variable.name
    for value, number in Counter(values).items():
        if rule.explain(value).endswith(("value is missing", "for a missing value")):
            missing[name] += number
            continue
        found = unlisted.setdefault(name, Counter())
        text = one_line(str(value).strip(BLANKS))[:_SHOWN_CHARACTERS]
        found[text if text in found or len(found) < _MOST_DISTINCT else "..."] += number
