"""A pool laid out for searches in one file, to be mapped into memory: what large pools are searched from.

The file: the line ``fedsel prepared`` padded to 16 bytes, the length of the header (8 bytes, little-endian), the header
(JSON), zeros up to a multiple of 4,096 bytes, then a row a client as the core reads it: 32-bit integers in the byte
order of the machine, in the core's layout.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.atomic_file import AtomicFile
from fedsel.errors import SelectionError
from fedsel.selection.fixed_point import refuse_lost, to_int32, total_shift
from fedsel.selection.loss_tables import LossTables

if TYPE_CHECKING:
    from fedsel.pool import Pool

FORMAT = 1
"""Rises whenever the core's layout of rows changes."""

_MAGIC = b"fedsel prepared\n"
_ALIGN = 4096
_BLOCK_BYTES = 2**24  # rows are read and written in blocks, so that a pool is never held whole
_MOST_HEADER = 2**26
_LIMIT = 2**31 - 1
_FIELDS = {
    "format": int,
    "byteorder": str,
    "clients": int,
    "stride": int,
    "consistent": bool,
    "shift": int,
    "denoise": str,
    "tables": list,
    "pool": str,
    "rows": str,
}


@dataclass(frozen=True)
class PreparedFile:
    """A prepared file whose rows are whole.

    Parameters
    ----------
    path : Path
        Where it is.
    header : dict
        What it says of itself.
    offset : int
        Where its rows start, in bytes.
    """

    path: Path
    header: dict[str, Any]
    offset: int

    @classmethod
    def open(cls, path: Path) -> PreparedFile:
        """Read the header of a file and check its rows, one pass over the file.

        Raises
        ------
        SelectionError
            If the file cannot be read, is none of this kind, or is damaged.
        """
        try:
            with path.open("rb") as stream:
                header, offset = _read_header(path, stream.read(len(_MAGIC) + 8), stream)
                expected = offset + 4 * header["clients"] * header["stride"]
                size = os.fstat(stream.fileno()).st_size
                if size != expected:
                    raise SelectionError(f"{path}: expected {expected} bytes, got {size} (cut?)")
                stream.seek(offset)
                digest = hashlib.sha256()
                while block := stream.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            raise SelectionError(f"{path}: cannot be read: {error.strerror or error}") from None
        if digest.hexdigest() != header["rows"]:
            raise SelectionError(
                f"{path}: the rows are damaged: expected digest {header['rows'][:12]}, got {digest.hexdigest()[:12]}"
            )
        return cls(path, header, offset)

    @property
    def shift(self) -> int:
        """How many times the counts were halved to fit the search's sums."""
        return int(self.header["shift"])

    @property
    def denoise(self) -> str:
        """How the tables were denoised before."""
        return str(self.header["denoise"])

    def check_pool(self, pool: Pool, tables: LossTables, denoise: str) -> None:
        """Refuse a pool, tables or a denoising that the file was not made from.

        Raises
        ------
        SelectionError
            If so.
        """
        if self.header["tables"] != [list(spec) for spec in tables.specs]:
            raise SelectionError(
                f"{self.path}: was prepared for other tables; prepare it with the same sensitive attributes and schema"
            )
        if self.header["denoise"] != denoise:
            raise SelectionError(f"{self.path}: was prepared with denoise {self.denoise[:80]}, expected {denoise}")
        if self.header["clients"] != len(pool):
            raise SelectionError(
                f"{self.path}: expected {len(pool)} clients, those of the pool, got {self.header['clients']}"
            )
        if self.header["pool"] != pool_digest(pool):
            raise SelectionError(f"{self.path}: was prepared from another pool; prepare it again")

    def map_model(self, tables: LossTables, weights: list[float], level: str) -> _core.LossModel:
        """Return a model over the mapped rows.

        Raises
        ------
        SelectionError
            If the file cannot be mapped.
        """
        try:
            if _core.row_stride(tables.specs, self.header["consistent"]) != self.header["stride"]:
                raise SelectionError(
                    f"{self.path}: header: stride: got {self.header['stride']}, which does not fit the tables"
                )
            return _core.map_model(
                str(self.path),
                self.offset,
                self.header["clients"],
                tables.specs,
                self.header["consistent"],
                weights,
                level,
            )
        except SelectionError:
            raise
        except ValueError as error:
            raise SelectionError(f"{self.path}: {error}") from None


def write_prepared(
    path: Path, released: Pool, ready: Pool, tables: LossTables, *, denoise: str, overwrite: bool = False
) -> PreparedFile:
    """Lay out a pool in a file that appears whole or not at all.

    The counts are read twice, a block of clients at a time: once to see how large their sums get and whether the tables
    agree, once to write them. Only where sums reach 2^31 are they held whole, once, in 32 bits.

    Parameters
    ----------
    path : Path
        Target.
    released : Pool
        The pool as released, to which the file will belong.
    ready : Pool
        What to lay out: the same, or denoised.
    tables : LossTables
        The tables of the loss.
    denoise : str
        How `ready` was made, for the header.
    overwrite : bool
        Replace a file that exists.

    Returns
    -------
    PreparedFile

    Raises
    ------
    SelectionError
        If the file cannot be written, or counts are so large that clients would be rounded away.
    """
    blocks = _Blocks.of(ready, tables)
    consistent = all(_core.tables_agree(block, tables.specs) for block in blocks)
    stride = _core.row_stride(tables.specs, consistent)
    header = {
        "format": FORMAT,
        "byteorder": sys.byteorder,
        "clients": len(ready),
        "stride": stride,
        "consistent": consistent,
        "shift": total_shift(blocks.shift, ready.unit),
        "denoise": denoise,
        "tables": [list(spec) for spec in tables.specs],
        "pool": pool_digest(released),
        "rows": "0" * 64,  # known when they are written
    }
    offset = len(_encode(header))
    digest = hashlib.sha256()
    with AtomicFile(
        path, overwrite=overwrite, reserve=offset + 4 * len(ready) * stride, error=SelectionError
    ) as target:
        position = offset
        for block in blocks:
            rows = _core.lay_out(block, tables.specs, consistent).data.cast("B")
            digest.update(rows)
            target.write(rows, offset=position)
            position += len(rows)
        header["rows"] = digest.hexdigest()
        target.write(_encode(header), offset=0)
        target.publish(size=position)
    return PreparedFile(path, header, offset)


def pool_digest(pool: Pool) -> str:
    """SHA-256 over all that the denoised tables of a pool depend on, a block of its counts at a time."""
    described = (
        pool.schema.fingerprint,
        pool.workload.sets,
        pool.clients,
        pool.plans,
        pool.plan_index,
        pool.rows,
        pool.unit,
        None if pool.scores is None else (pool.scores.rule.identity, pool.scores.plans, pool.scores.plan_index),
    )
    digest = hashlib.sha256(repr(described).encode())
    if pool.scores is not None:
        digest.update(np.ascontiguousarray(pool.scores.counts).tobytes())
    step = _clients_a_block(pool.workload.cells)
    for first in range(0, len(pool), step):
        digest.update(pool.counts[first : first + step].data.cast("B"))
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A pool's counts for the core, some clients at a time."""

    pool: Pool
    tables: LossTables
    scaled: npt.NDArray[np.int32] | None  # where they had to be scaled
    shift: int

    @classmethod
    def of(cls, pool: Pool, tables: LossTables) -> _Blocks:
        starts = np.concatenate([[0], np.cumsum(tables.sizes)[:-1]])
        absolute = np.zeros(int(tables.sizes.sum()), dtype=np.int64)
        step = _clients_a_block(pool.workload.cells)
        for first in range(0, len(pool), step):
            absolute += np.abs(tables.of_counts(pool.counts[first : first + step])).sum(axis=0)
        if np.add.reduceat(absolute, starts).max() <= _LIMIT:
            return cls(pool, tables, None, 0)
        counts = tables.of_counts(pool.counts)
        scaled, shift = to_int32(counts, tables.sizes)
        refuse_lost(counts, tables.sizes, shift, pool.clients)
        return cls(pool, tables, scaled, shift)

    def __iter__(self) -> Iterator[npt.NDArray[np.int32]]:
        step = _clients_a_block(self.pool.workload.cells)
        for first in range(0, len(self.pool), step):
            block = slice(first, first + step)
            if self.scaled is not None:
                yield self.scaled[block]
            else:
                yield self.tables.of_counts(self.pool.counts[block]).astype(np.int32)


def _clients_a_block(cells: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * cells))


def _encode(header: dict[str, Any]) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    start = _MAGIC + len(text).to_bytes(8, "little") + text
    return start + bytes(-len(start) % _ALIGN)


def _read_header(path: Path, start: bytes, stream: Any) -> tuple[dict[str, Any], int]:
    """Return the header, and where the rows start."""
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    if start[: len(_MAGIC)] != _MAGIC or not 0 < length <= _MOST_HEADER:
        raise SelectionError(f"{path}: expected a prepared pool, got another kind of file")
    try:
        header = json.loads(stream.read(length))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise SelectionError(f"{path}: header: expected JSON, got damaged text")
    if header.get("format") != FORMAT:
        raise SelectionError(
            f"{path}: format: expected {FORMAT}, got {str(header.get('format'))[:80]}; prepare it again"
        )
    for name, kind in _FIELDS.items():
        if type(header.get(name)) is not kind:
            raise SelectionError(
                f"{path}: header: {name}: expected {kind.__name__}, got {type(header.get(name)).__name__}"
            )
    if header["byteorder"] != sys.byteorder:
        raise SelectionError(
            f"{path}: byte order: expected {sys.byteorder}, got {header['byteorder'][:80]}; prepare it again"
        )
    for name in ("clients", "stride"):
        if not 0 < header[name] < 2**40:
            raise SelectionError(f"{path}: header: {name}: got {header[name]}, which is out of range")
    end = len(start) + length
    return header, end + -end % _ALIGN
