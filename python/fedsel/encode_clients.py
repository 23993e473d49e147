"""Rows of several clients in one file, told apart by a column with the client's name."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel.columns import arrow_numbers
from fedsel.encode import Codes, kept_codes, match_columns, positions
from fedsel.errors import DataError, ReleaseError
from fedsel.matching import Matcher, is_missing, matchers
from fedsel.readers import BATCH_ROWS, read_batches
from fedsel.release import check_client_name
from fedsel.schema_rules import BLANKS, number_text, one_line

if TYPE_CHECKING:
    from fedsel.schema import Schema


def encode_clients(
    schema: Schema,
    path: str | os.PathLike[str],
    client_column: str,
    *,
    client: str | None = None,
    batch_rows: int = BATCH_ROWS,
    delimiter: str | None = None,
) -> Iterator[tuple[str, Codes]]:
    """Encode a file that holds the rows of several clients, in one pass and in memory that does not grow with it.

    A client's name is the text in its column without blanks at the ends, in Unicode normal form C; a number is written
    plainly, so that 6 and 6.0 name the same client.

    Parameters
    ----------
    schema : Schema
        The variables to encode; the client's column may be one of them, but need not be.
    path : path
        CSV or Parquet file, as in `encode_file`.
    client_column : str
        Column with the client's name, in every row.
    client : str, optional
        Encode this client's rows only; those of the others are skipped and need not fit the schema.
    batch_rows : int
        Largest number of rows read at a time.
    delimiter : str, optional
        Separates CSV fields.

    Yields
    ------
    tuple of str and Codes
        A client's name and its rows of one batch. A client comes up once for every batch that holds rows of it.

    Raises
    ------
    DataError
        If a row has no client name or one that `check_client_name` refuses, there is no such column, `client` has no
        row, and as `encode_file` does; messages about a row name its client.
    """
    source = os.fspath(path)
    if batch_rows < 1:
        raise DataError(f"batch_rows must be at least 1, got {batch_rows}")
    rules = matchers(schema)
    slots: list[int] = []  # where each wanted column is among those read, since one may be wanted twice

    def find(names: Sequence[str]) -> list[int]:
        wanted = positions(names, (*schema.names, client_column), source)
        read = list(dict.fromkeys(wanted))
        slots[:] = [read.index(position) for position in wanted]
        return read

    def encoded() -> Iterator[tuple[str, Codes]]:
        first_row = 1
        clients = _Clients(source, client_column)
        for read in read_batches(path, find, batch_rows=batch_rows, delimiter=delimiter):
            *columns, names = (read[slot] for slot in slots)
            ids = clients.ids(names, first_row)
            if client is None:
                yield from _split(rules, columns, ids, clients, first_row)
            elif client in clients.number:
                at = np.flatnonzero(ids == clients.number[client])
                if len(at):
                    yield from _split(rules, columns, ids, clients, first_row, at)
            first_row += len(ids)
        if first_row == 1:
            raise DataError(f"{source}: holds a header but no rows")
        if client is not None and client not in clients.number:
            raise DataError(f"{source}: no row has {client_column} = {client!r}; it has {_some(clients.names)}")

    return encoded()


def client_columns(
    path: str | os.PathLike[str],
    client_column: str,
    names: Sequence[str],
    *,
    batch_rows: int = BATCH_ROWS,
    delimiter: str | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read raw columns of a file that holds the rows of several clients, in one pass.

    Parameters
    ----------
    path, client_column, batch_rows, delimiter
        As in `encode_clients`.
    names : sequence of str
        Columns to read, all different.

    Yields
    ------
    tuple of str and dict of str to pyarrow Array
        A client's name and its rows of one batch, in their order; CSV columns are text.

    Raises
    ------
    DataError
        If the file cannot be read or lacks a column, or a row has no client name that `check_client_name` accepts.
    """
    source = os.fspath(path)

    def find(columns: Sequence[str]) -> list[int]:
        return positions(columns, (*names, client_column), source)

    first_row = 1
    clients = _Clients(source, client_column)
    for *columns, owners in read_batches(path, find, batch_rows=batch_rows, delimiter=delimiter):
        ids = clients.ids(owners, first_row)
        for number in np.unique(ids):
            rows = arrow_positions(np.flatnonzero(ids == number))
            yield (
                clients.names[number],
                {name: column.take(rows) for name, column in zip(names, columns, strict=True)},
            )
        first_row += len(ids)


def _split(
    rules: Sequence[Matcher],
    columns: Sequence[Any],
    ids: npt.NDArray[np.int64],
    clients: _Clients,
    first_row: int,
    at: npt.NDArray[np.int64] | None = None,
) -> Iterator[tuple[str, Codes]]:
    """Encode a batch, or its rows `at` some positions, and yield the rows of one client after another."""
    if at is not None:
        ids = ids[at]
        columns = [column.take(arrow_positions(at)) for column in columns]

    def place(row: int) -> str:
        number = first_row + (row if at is None else int(at[row]))
        return f"{clients.source}: row {number} (client {clients.names[ids[row]]!r})"

    coded, lost = match_columns(rules, columns, source=clients.source, place=place)
    order = np.argsort(ids, kind="stable")
    coded = [codes[order] for codes in coded]
    lost = [bad[order] for bad in lost]
    present, first = np.unique(ids[order], return_index=True)
    for number, start, stop in zip(present, first, [*first[1:], len(ids)], strict=True):
        rows = slice(int(start), int(stop))
        yield clients.names[number], kept_codes(rules, [codes[rows] for codes in coded], [bad[rows] for bad in lost])


def arrow_positions(positions: npt.NDArray[np.int64]) -> Any:
    """Return row positions as an arrow array, built from the buffer: ``pa.array`` would import pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])


class _Clients:
    """The clients met so far, numbered in the order in which they came up."""

    def __init__(self, source: str, column: str) -> None:
        self.source = source
        self.names: list[str] = []
        self.number: dict[str, int] = {}
        self._column = column

    def ids(self, column: Any, first_row: int) -> npt.NDArray[np.int64]:
        """Return the number of each row's client, (rows,)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        codes = arrow_numbers(column.indices).astype(np.int64)
        codes[arrow_numbers(pc.is_null(column.indices)).astype(np.bool_)] = -1
        try:
            values = column.dictionary.to_pylist()
        except UnicodeDecodeError:
            raise DataError(f"{self.source}: {self._column} holds text that is not UTF-8") from None
        # A dictionary may list values that no row has, and those need not be names.
        used = np.unique(codes)
        table = np.full(len(values) + 1, -1, dtype=np.int64)  # the last one is what -1 picks
        for code in used:
            value = None if code < 0 else values[code]
            try:
                table[code] = self._id(value)
            except (DataError, ReleaseError) as error:
                row = first_row + int(np.argmax(codes == code))
                raise DataError(f"{self.source}: row {row}: {self._column}: {error}") from None
        ids: npt.NDArray[np.int64] = table[codes]
        return ids

    def _id(self, value: object) -> int:
        name = check_client_name(unicodedata.normalize("NFC", _text(value)))
        if name not in self.number:
            self.number[name] = len(self.names)
            self.names.append(name)
        return self.number[name]


def _text(value: object) -> str:
    if isinstance(value, str):
        text = value.strip(BLANKS)
    elif is_missing(value):
        text = ""
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        text = number_text(value)
    else:
        raise DataError(f"a client's name must be text or a number, got {type(value).__name__}")
    if not text:
        raise DataError("the client's name is missing")
    return text


def _some(names: Sequence[str], most: int = 10) -> str:
    shown = ", ".join(map(one_line, sorted(names)[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
