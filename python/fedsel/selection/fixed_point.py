"""Pool counts as 32-bit integers, small enough that sums over any clients are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError

_LIMIT = 2**31 - 1


def to_int32(counts: npt.NDArray[np.int64], table_sizes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], int]:
    """Convert counts to int32, halving them as often as needed.

    Mutual information does not change when all counts are multiplied by one number, so counts too large for 32-bit
    sums are divided by a power of two and rounded. What that does to a client depends on its size beside the largest:
    `lost_clients` tells whom it would wipe out.

    Parameters
    ----------
    counts : ndarray of int64, shape (clients, cells)
        All tables one after another.
    table_sizes : ndarray of int64, shape (tables,)
        Cells of each table.

    Returns
    -------
    ndarray of int32, shape (clients, cells)
        Counts divided by ``2**shift``: no table's absolute counts sum to 2^31 over all clients.
    int
        The shift, 0 where nothing had to be rounded.
    """
    starts = np.concatenate([[0], np.cumsum(table_sizes)[:-1]])
    absolute = np.zeros(counts.shape[1], dtype=np.float64)
    for row in counts:  # a row at a time: the pool may be memory-mapped
        absolute += np.abs(row)
    largest = float(np.add.reduceat(absolute, starts).max())
    shift = 0
    while largest / 2**shift + counts.shape[0] * int(table_sizes.max()) * (shift > 0) > _LIMIT:
        shift += 1
    if shift == 0:
        return counts.astype(np.int32), 0
    scaled = np.empty(counts.shape, dtype=np.int32)
    for source, target in zip(counts, scaled, strict=True):
        target[:] = np.rint(source / 2.0**shift)
    return scaled, shift


def total_shift(shift: int, unit: float) -> int:
    """Return how often counts of a pool of this unit were halved altogether, `shift` of `to_int32` included."""
    return shift + max(0, round(math.log2(unit)))


LEAST = 1024
"""Records that a client must keep, in units of the rounded counts, if it had them before."""


def lost_clients(counts: npt.NDArray[np.number], table_sizes: npt.NDArray[np.int64], shift: int) -> list[int]:
    """Return the clients that dividing by ``2**shift`` would round away.

    Parameters
    ----------
    counts : ndarray, shape (clients, cells)
        All tables one after another.
    table_sizes : ndarray of int64, shape (tables,)
        Cells of each table.
    shift : int
        As `to_int32` returns it.

    Returns
    -------
    list of int
        Rows whose largest table holds some records, but fewer than LEAST units after the division.
    """
    if shift == 0:
        return []
    starts = np.concatenate([[0], np.cumsum(table_sizes)[:-1]])
    largest = [int(np.add.reduceat(np.abs(row), starts).max()) for row in counts]
    return [row for row, total in enumerate(largest) if 0 < total < LEAST * 2**shift]


def refuse_lost(
    counts: npt.NDArray[np.number], table_sizes: npt.NDArray[np.int64], shift: int, clients: Sequence[str]
) -> None:
    """Refuse a division by ``2**shift`` that would round clients away, with a `SelectionError` that names the cause."""
    lost = lost_clients(counts, table_sizes, shift)
    if lost:
        huge = clients[int(np.argmax([np.abs(row).max() for row in counts]))]
        raise SelectionError(
            f"client {huge!r} states so many records that sums with it round {clients[lost[0]]!r} away "
            f"({len(lost)} of {len(clients)} clients); leave {huge!r} out of the pool"
        )
