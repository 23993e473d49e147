"""Pool counts as 32-bit integers, small enough that sums over any clients are exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_LIMIT = 2**31 - 1


def to_int32(counts: npt.NDArray[np.int64], table_sizes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], int]:
    """Convert counts to int32, halving them as often as needed.

    Mutual information does not change when all counts are multiplied by one number, so counts too large for 32-bit
    sums are divided by a power of two and rounded: an error below 2^-31 of the pool's records.

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
