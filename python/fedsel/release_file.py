"""Release files: Parquet in long form, a row per cell, written atomically and read as untrusted input."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel.atomic_file import AtomicFile
from fedsel.errors import FedselError, ReleaseError
from fedsel.parquet_footer import Footer, read_footer
from fedsel.privacy.limits import COUNT_BOUND
from fedsel.release import Release
from fedsel.release_consistency import ConsistencyCheck
from fedsel.release_fields import shown
from fedsel.release_layout import COLUMNS, COUNT, LABEL_COLUMNS, LabelColumn, label_columns
from fedsel.release_metadata import KEY, MAX_METADATA, MetadataReader, ReleaseHeader, write_metadata

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_FILE = 256 * 2**20
"""Largest release file that is opened, in bytes; a file of the largest workload stays below."""

_MAX_FOOTER = MAX_METADATA + 2**20
_MAGIC = b"PAR1"
_MAX_LIST = 1000  # of the footer: columns, encodings, row groups; a release has 8, 3 and 1


def encode_release(release: Release) -> bytes:
    """Return the release as the content of a Parquet file.

    The same release and the same pyarrow give the same bytes; their number does not depend on the counts. Nothing is
    compressed, so that a reader can refuse whatever is: a small file can then not expand into a large one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = label_columns(release.schema, release.workload, release.score_names)
    arrays = [_dictionary_array(columns[name]) for name in LABEL_COLUMNS]
    # Through buffers, not `pa.array`: that would import pandas where it is installed.
    arrays.append(pa.Array.from_buffers(pa.int64(), release.counts.size, [None, pa.py_buffer(release.counts)]))
    filled = 2 if release.scores is None else 1  # a score is of no variable
    fields = [
        pa.field(name, array.type, nullable=name in LABEL_COLUMNS[filled:])
        for name, array in zip(COLUMNS, arrays, strict=True)
    ]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        version="2.6",
        compression="NONE",
        use_dictionary=list(LABEL_COLUMNS),
        dictionary_pagesize_limit=2**28,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=table.num_rows)
        writer.add_key_value_metadata({KEY: write_metadata(release)})
    return bytes(sink.getvalue().to_pybytes())


def write_release(release: Release, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release file in one step: it is there whole or not at all.

    Parameters
    ----------
    release : Release
        What to write.
    path : path
        Target, usually ``NAME.parquet``.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    ReleaseError
        If the file exists or cannot be written.
    """
    with AtomicFile(Path(path), overwrite=overwrite, error=ReleaseError) as output:
        output.publish(encode_release(release))


def read_release(path: str | os.PathLike[str]) -> Release:
    """Read and check a release file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Release

    Raises
    ------
    ReleaseError
        If the file is not a valid release; one line that names file, field, expected and got. An honest release is
        refused with probability at most 1e-9 (see `fedsel.release_consistency`).
    """
    return ReleaseReader().read(path)


class ReleaseReader:
    """Reads many release files, working out what equal schemas and workloads share only once."""

    def __init__(self) -> None:
        self._metadata = MetadataReader()
        self._prepared: ReleaseHeader | None = None
        self._columns: dict[str, LabelColumn] = {}
        self._dictionaries: dict[str, Any] = {}
        self._consistency: ConsistencyCheck | None = None

    def read(self, path: str | os.PathLike[str]) -> Release:
        """Read one file; see `read_release`."""
        import pyarrow as pa

        try:
            return self._read(_content(Path(path)))
        except FedselError as error:
            raise ReleaseError(f"{path}: {error}") from None
        except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ReleaseError(f"{path}: expected a release file, got damaged Parquet: {reason}") from None

    def _read(self, content: bytes) -> Release:
        import pyarrow as pa
        import pyarrow.parquet as pq

        footer = read_footer(_footer(content))
        metadata = footer.metadata.get(KEY)
        if not isinstance(metadata, bytes):
            raise ReleaseError(f"metadata: expected the key {KEY.decode()!r}, got none: not a release file")
        # Asked before anything else: pyarrow must not even look at a codec that it does not know.
        if not all(column.uncompressed for group in footer.groups for column in group.columns):
            raise ReleaseError("columns: expected no compression, got compressed or unknown content")
        limits = {"thrift_string_size_limit": _MAX_FOOTER, "thrift_container_size_limit": _MAX_LIST}
        file = pq.ParquetFile(pa.BufferReader(content), **limits)
        header = self._metadata.read(metadata)
        _check_columns(file)
        _check_size(footer, header.cells, len(content))
        self._prepare(header)
        # As codes: a text that a hostile file repeats in every row is then held once.
        coded = pq.ParquetFile(
            pa.BufferReader(content), metadata=file.metadata, read_dictionary=list(LABEL_COLUMNS), **limits
        )
        table = coded.read_row_group(0, use_threads=False)
        table.validate(full=True)
        if table.num_rows != header.cells:
            raise ReleaseError(f"rows of the file: expected {header.cells}, got {table.num_rows}")
        self._check_labels(table)
        counts = _counts(table.column(COUNT))
        assert self._consistency is not None
        release = Release(
            client=header.client,
            schema=header.schema,
            workload=header.workload,
            counts=counts,
            plan=header.plan,
            round=header.round,
            seeded=header.seeded,
            rows=header.rows,
            scores=header.scores,
            protocol=header.protocol,
        )
        self._consistency.check(release.table_counts, release.plan, release.rows)
        return release

    def _prepare(self, header: ReleaseHeader) -> None:
        known = self._prepared
        if (
            known is not None
            and known.schema is header.schema
            and known.workload is header.workload
            and known.score_names == header.score_names
        ):
            return
        self._prepared = header
        self._columns = label_columns(header.schema, header.workload, header.score_names)
        self._dictionaries = {name: _string_array(column.values) for name, column in self._columns.items()}
        self._consistency = ConsistencyCheck(header.schema, header.workload)

    def _check_labels(self, table: pa.Table) -> None:
        """Refuse a text that is not where it belongs, and name the first row with one."""
        found: list[tuple[int, str, object]] = []
        for name, expected in self._columns.items():
            array = table.column(name).combine_chunks()
            chunk = array if not hasattr(array, "chunks") else array.chunk(0)
            codes = _dictionary_codes(chunk)
            if not chunk.dictionary.equals(self._dictionaries[name]):
                codes = _translated(name, codes, chunk.dictionary, expected)
            wrong = np.flatnonzero(codes != expected.codes)
            if wrong.size:
                row = int(wrong[0])
                found.append((row, name, chunk[row].as_py()))
        if found:
            row, name, got = min(found, key=lambda fault: fault[0])
            expected_text = self._columns[name].text(row)
            raise ReleaseError(f"column {name}: row {row + 1}: expected {shown(expected_text)}, got {shown(got)}")


def _translated(
    name: str, codes: npt.NDArray[np.int32], dictionary: pa.Array, expected: LabelColumn
) -> npt.NDArray[np.int32]:
    """Turn codes of a file's own dictionary into ours: another order is no fault. -2 for texts that do not belong."""
    if len(dictionary) > expected.codes.size:
        raise ReleaseError(f"column {name}: expected at most {expected.codes.size} texts, got {len(dictionary)}")
    place = {text: code for code, text in enumerate(expected.values)}
    own = [-2 if text is None else place.get(text, -2) for text in dictionary.to_pylist()]
    # the last entry keeps the -1 of a null
    return np.array([*own, -1], dtype=np.int32)[codes]


def _content(path: Path) -> bytes:
    """Read a regular file of sensible size; sizes are checked on the open file, so that it cannot change between."""
    try:
        # Not blocking: a pipe instead of a file must be refused, not waited for.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ReleaseError(f"cannot be read: {error.strerror or error}") from None
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ReleaseError("expected a file, got something else")
        if state.st_size > MAX_FILE:
            raise ReleaseError(f"size: expected at most {MAX_FILE} bytes, got {state.st_size}")
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as stream:
        return stream.read(MAX_FILE)


def _footer(content: bytes) -> bytes:
    """Return the footer of a Parquet file, after a look at what surrounds it."""
    if len(content) < 12 or not content.startswith(_MAGIC):
        raise ReleaseError(f"expected a Parquet file, got {len(content)} bytes that start with {shown(content[:4])}")
    if not content.endswith(_MAGIC):
        raise ReleaseError("expected a whole Parquet file, got one whose end is missing (truncated?)")
    size = int.from_bytes(content[-8:-4], "little")
    if not 0 < size <= len(content) - 12:
        raise ReleaseError(f"footer: expected at most {len(content) - 12} bytes, got {size} (truncated?)")
    if size > _MAX_FOOTER:
        raise ReleaseError(f"footer: expected at most {_MAX_FOOTER} bytes, got {size}")
    return content[-8 - size : -8]


def _check_columns(file: pq.ParquetFile) -> None:
    import pyarrow as pa

    names = file.schema_arrow.names
    if len(names) > len(COLUMNS) or file.metadata.num_columns != len(names):
        raise ReleaseError(f"columns: expected the {len(COLUMNS)} of a release, got {file.metadata.num_columns}")
    for name in COLUMNS:
        if name not in names:
            raise ReleaseError(f"column {name}: expected, got none; the file has {shown(names)}")
    if tuple(names) != COLUMNS:
        raise ReleaseError(f"columns: expected the order {', '.join(COLUMNS)}, got {shown(names)}")
    for name in COLUMNS:
        kind = file.schema_arrow.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if kind != (pa.int64() if name == COUNT else pa.string()):
            raise ReleaseError(
                f"column {name}: expected {'int64' if name == COUNT else 'string'}, got {shown(str(kind))}"
            )


def _check_size(footer: Footer, cells: int, length: int) -> None:
    """Refuse a file that would grow on reading, before any column is read."""
    if footer.rows != cells:
        raise ReleaseError(f"rows of the file: expected {cells}, one per cell of the workload, got {footer.rows}")
    if len(footer.groups) != 1 or footer.groups[0].rows != cells:
        raise ReleaseError(f"row groups: expected 1 of {cells} rows, got {len(footer.groups)}")
    for name, column in zip(COLUMNS, footer.groups[0].columns, strict=True):
        if column.values != cells or not 0 <= column.stored_size <= length or not 0 <= column.decoded_size <= length:
            raise ReleaseError(
                f"column {name}: expected {cells} values in at most {length} bytes, "
                f"got {column.values} in {column.decoded_size}"
            )


def _counts(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if column.null_count:
        raise ReleaseError(f"column {COUNT}: expected no nulls, got {column.null_count}")
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=np.int64, count=len(chunk), offset=8 * chunk.offset)
        for chunk in column.chunks
        if len(chunk)
    ]
    counts = np.concatenate(parts)
    wrong = np.flatnonzero((counts < -COUNT_BOUND) | (counts > COUNT_BOUND))
    if wrong.size:
        row = int(wrong[0])
        raise ReleaseError(f"column {COUNT}: row {row + 1}: expected between -2**40 and 2**40, got {counts[row]}")
    return counts


def _string_array(texts: tuple[str, ...]) -> pa.Array:
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def _dictionary_array(column: LabelColumn) -> pa.DictionaryArray:
    import pyarrow as pa

    valid = column.codes >= 0
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    codes = np.where(valid, column.codes, 0).astype(np.int32)
    indices = pa.Array.from_buffers(pa.int32(), codes.size, [bitmap, pa.py_buffer(codes)])
    # A column of nulls only still needs a text for its dictionary.
    return pa.DictionaryArray.from_arrays(indices, _string_array(column.values or ("",)))


def _dictionary_codes(array: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return the codes of a dictionary column, -1 for null."""
    indices = array.indices
    validity, values = indices.buffers()
    stop = indices.offset + len(indices)
    codes = np.frombuffer(values, dtype=np.int32, count=stop)[indices.offset :].copy()
    if indices.null_count and validity is not None:
        bits = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), count=stop, bitorder="little")[indices.offset :]
        codes[bits == 0] = -1
    return codes
