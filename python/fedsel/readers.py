"""CSV and Parquet files as batches of arrow columns, in bounded memory."""

from __future__ import annotations

import codecs
import csv
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fedsel.errors import DataError
from fedsel.schema_rules import BLANKS

BATCH_ROWS = 65_536

# One block is the largest passage that must fit whole: a row, or a quoted field with line breaks. Arrow reads up to 32
# blocks ahead, which bounds the memory.
_CSV_BLOCK = 1 << 20
_HEADER_LIMIT = 1 << 20
_LONG_ROW = f"a row is longer than {_CSV_BLOCK >> 20} MiB: is a quote left open, or are there too many columns?"
_PARQUET_BUFFER = 1 << 20
_PARQUET_MAGIC = b"PAR1"

Find = Callable[[Sequence[str]], list[int]]


def read_batches(
    path: str | os.PathLike[str], find: Find, *, batch_rows: int = BATCH_ROWS, delimiter: str | None = None
) -> Iterator[list[Any]]:
    """Read some columns of a CSV or Parquet file, batch by batch.

    Parameters
    ----------
    path : path
        The file; a Parquet file is known by its first bytes.
    find : callable
        Gets the column names in the file and returns the positions of those to read; may raise DataError.
    batch_rows : int
        Largest number of rows in a batch.
    delimiter : str, optional
        Separates CSV fields; by default a tab where the name ends in ``.tsv``, else a comma.

    Yields
    ------
    list of pyarrow Array, each of shape (rows,), rows > 0
        The columns in the order `find` gave. CSV columns are text, null where the field is empty.

    Raises
    ------
    DataError
        If the file cannot be read, is damaged or empty.
    """
    source = os.fspath(path)
    if _is_parquet(source):
        yield from _parquet_batches(source, find, batch_rows)
        return
    for columns in _csv_batches(source, find, delimiter):
        for start in range(0, len(columns[0]), batch_rows):
            yield [column.slice(start, batch_rows) for column in columns]


def _is_parquet(source: str) -> bool:
    try:
        mode = os.stat(source).st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{source}: is a directory; expected a CSV or Parquet file")
        if not stat.S_ISREG(mode):  # a pipe could be read only once, and its header is looked at first
            raise DataError(f"{source}: is not a regular file; expected a CSV or Parquet file")
        with open(source, "rb") as file:
            magic = file.read(len(_PARQUET_MAGIC))
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        if isinstance(error, DataError):
            raise
        raise DataError(f"{source!r}: cannot be read: {error}") from None
    if not magic:
        raise DataError(f"{source}: is empty")
    if magic == _PARQUET_MAGIC:
        return True
    if source.lower().endswith((".parquet", ".pq")):
        raise DataError(f"{source}: is not a Parquet file")
    return False


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet_batches(source: str, find: Find, batch_rows: int) -> Iterator[list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A buffer size makes column chunks stream; without it each row group's chunks are read whole.
        with pq.ParquetFile(source, buffer_size=_PARQUET_BUFFER, pre_buffer=False) as file:
            names = file.schema_arrow.names
            positions = find(names)
            wanted = [names[position] for position in positions]
            for batch in file.iter_batches(batch_size=batch_rows, columns=wanted, use_threads=False):
                if batch.num_rows:
                    yield [batch.column(name) for name in wanted]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{source}: damaged or truncated Parquet file: {_first_line(error)}") from None
    except UnicodeDecodeError:
        raise DataError(f"{source}: damaged Parquet file: a column's name is not UTF-8 text") from None


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_batches(source: str, find: Find, delimiter: str | None) -> Iterator[list[Any]]:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    plain = source.lower().removesuffix(".gz")
    mark = delimiter if delimiter is not None else "\t" if plain.endswith(".tsv") else ","
    if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
        raise DataError(f"delimiter must be one ASCII character, no quote or line break, got {mark!r}")
    ragged: list[Any] = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        with pa.input_stream(source) as file:
            names = _csv_header(file, source, mark)
        positions = find(names)
        keys = [str(position) for position in range(len(names))]  # own names, so that any header will do
        wanted = [keys[position] for position in positions]
        with (
            pa.input_stream(source) as file,
            pacsv.open_csv(
                file,
                # One thread, so that rows are numbered in errors.
                read_options=pacsv.ReadOptions(column_names=keys, block_size=_CSV_BLOCK, use_threads=False),
                parse_options=pacsv.ParseOptions(
                    delimiter=mark, newlines_in_values=True, invalid_row_handler=note, ignore_empty_lines=True
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()),
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            ) as reader,
        ):
            header = True  # comes as the first row
            for batch in reader:
                columns = [batch.column(i).slice(1) if header else batch.column(i) for i in range(len(wanted))]
                header = header and not batch.num_rows
                if len(columns[0]):
                    yield columns
    except (pa.ArrowException, OSError) as error:
        if ragged:
            row = ragged[0]
            where = f"row {row.number - 1}: " if row.number else ""
            raise DataError(
                f"{source}: {where}expected {row.expected_columns} fields, got {row.actual_columns}"
            ) from None
        raise DataError(f"{source}: {_csv_reason(error)}") from None


def _csv_header(file: Any, source: str, delimiter: str) -> list[str]:
    """Return the names in the first line that is not blank, without surrounding blanks."""
    start = file.read(_HEADER_LIMIT)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start, final=len(start) < _HEADER_LIMIT)
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is not UTF-8 text (byte {error.start})") from None
    if not text.strip(BLANKS):
        raise DataError(f"{source}: is empty")
    if len(start) == _HEADER_LIMIT and not {"\n", "\r"} & set(text.lstrip(BLANKS)):
        raise DataError(f"{source}: {_LONG_ROW}")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(line for line in lines if line)
    except csv.Error as error:
        raise DataError(f"{source}: unreadable header line: {error}") from None
    return [name.strip(BLANKS) for name in header]


def _csv_reason(error: Exception) -> str:
    text = _first_line(error)
    if "straddling" in text:
        return _LONG_ROW
    if "UTF8" in text:
        return "is not UTF-8 text" + (f" (line {text.split('Row #')[1].split(':')[0]})" if "Row #" in text else "")
    return f"unreadable CSV file: {text}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
