"""The table lookup of `fedsel.privacy.inversion` compiled by numba: the same bits.

The lookup itself is several times faster; drawing random bits and the rest around it are not, so noise as a whole
gains about a tenth. Loading numba and compiling take more than half a second: that pays in simulations of hundreds of
millions of cells, not at a client. Nothing is cached on disk, so there is no cache to go stale, be cut short or lack a
writable folder. Extra ``compiled``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedsel.errors import MissingExtraError

Lookup = Callable[
    [npt.NDArray[np.uint16], npt.NDArray[np.int64], npt.NDArray[np.int32], int],
    tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
]


def available() -> bool:
    """Whether numba is installed (it is not loaded)."""
    from importlib.util import find_spec

    return find_spec("numba") is not None


@functools.cache
def compiled_lookup() -> Lookup:
    """Return the compiled twin of `fedsel.privacy.inversion.look_up`.

    Raises
    ------
    MissingExtraError
        If numba is not installed.
    """
    try:
        import numba
    except ImportError:
        raise MissingExtraError(
            "compiled noise needs numba, which is not installed: pip install 'fedsel[compiled]'"
        ) from None

    kernel = numba.njit(_loop)

    def look_up(
        chunks: npt.NDArray[np.uint16], which: npt.NDArray[np.int64], guide: npt.NDArray[np.int32], width: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        entries = np.empty(chunks.size, dtype=np.int64)
        undecided = np.empty(chunks.size + 1, dtype=np.int64)
        count = kernel(chunks, which, guide, np.int64(width), entries, undecided)
        return entries, undecided[:count]

    return look_up


def _loop(chunks, which, guide, width, entries, undecided):  # type: ignore[no-untyped-def]
    # Every integer is an int64 before it meets another: numba would make a float of int64 + uint64. The position of
    # each sample is written down and kept only if the sample is undecided, which spares a branch.
    count = np.int64(0)
    for i in range(chunks.size):
        first = np.int64(chunks[i]) >> np.int64(1)
        entry = first + width * which[i]
        low = guide[entry]
        entries[i] = np.int64(low)
        undecided[count] = i
        if low != guide[entry + 1]:
            count += np.int64(1)
    return count
