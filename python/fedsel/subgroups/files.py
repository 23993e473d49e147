"""Rows of a file as columns, for discovery: nothing but the file says what its columns hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fedsel.errors import DataError
from fedsel.readers import read_batches
from fedsel.schema_rules import BLANKS

_LEADING_ZERO = r"^[+-]?0[0-9]"  # an identifier or a code, not a number


def read_rows(
    path: str | os.PathLike[str], *, missing_values: Sequence[str] = (), delimiter: str | None = None
) -> dict[str, Any]:
    """Read all columns of a CSV or Parquet file.

    A CSV column of nothing but numbers is numeric, unless some have leading zeros; one of nothing but true and false
    is that; any other is text, without surrounding blanks. The columns of a Parquet file have their types.

    Parameters
    ----------
    path : path
        The file.
    missing_values : sequence of str
        Texts that stand for a missing value, besides the empty one.
    delimiter : str, optional
        Separates CSV fields; by default a tab where the name ends in ``.tsv``, else a comma.

    Returns
    -------
    dict of str to pandas Series
        Columns by name, in the order of the file.

    Raises
    ------
    DataError
        If the file cannot be read, holds no rows, or names a column twice.
    """
    import pyarrow as pa

    source = os.fspath(path)
    names: list[str] = []

    def find(found: Sequence[str]) -> list[int]:
        for name in found:
            if list(found).count(name) > 1:
                raise DataError(f"{source}: column {name} is there {list(found).count(name)} times")
        names.extend(found)
        return list(range(len(found)))

    parts = list(read_batches(path, find, delimiter=delimiter))
    if not parts:
        raise DataError(f"{source}: holds a header but no rows")
    columns = (pa.chunked_array(chunks) for chunks in zip(*parts, strict=True))
    return {
        name: _typed(column, missing_values, source, name).to_pandas()
        for name, column in zip(names, columns, strict=True)
    }


def _typed(column: Any, missing_values: Sequence[str], source: str, name: str) -> Any:
    """Return an arrow column with text made numbers or a dictionary, and missing values null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    try:
        column = pc.utf8_trim(column, characters=BLANKS)
    except pa.ArrowInvalid:  # arrow trusts what calls itself text
        raise DataError(f"{source}: column {name} holds text that is not UTF-8") from None
    lost = pc.is_in(column, value_set=pa.array(["", *missing_values], column.type))
    column = pc.if_else(lost, pa.scalar(None, column.type), column)
    if not pc.any(pc.match_substring_regex(column, _LEADING_ZERO)).as_py():
        for kind in (pa.int64(), pa.float64(), pa.bool_()):
            try:
                return pc.cast(column, kind)
            except pa.ArrowInvalid:
                continue
    return pc.dictionary_encode(column)
