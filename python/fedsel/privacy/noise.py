"""Adding noise to counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError
from fedsel.privacy import kernels, rejection
from fedsel.privacy.entropy import ChunkReader, Entropy
from fedsel.privacy.inversion import draw, look_up, tabulable
from fedsel.privacy.kernels import Lookup
from fedsel.privacy.plan import NoisePlan
from fedsel.privacy.scale import Scale

_COMPILED_FROM = 1 << 29  # cells from which loading numba takes less time than it saves
_BLOCK = 1 << 14  # cells drawn at once: what is in work stays in the second-level cache

IntArray = npt.NDArray[np.int64]


def add_noise(
    counts: IntArray, sizes: IntArray, plan: NoisePlan, *, entropy: Entropy, compiled: bool | None = None
) -> IntArray:
    """Add a plan's noise to every cell of every table.

    Exact: no floating point takes part in sampling, so the output distribution is the one accounted for.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,) or (clients, cells)
        Counts, all tables one after another.
    sizes : ndarray of int64, shape (tables,)
        Cells of each table.
    plan : NoisePlan
        Mechanism and scale of each table.
    entropy : Entropy
        Source of random words. For two-dimensional counts, client i draws from the i-th source it spawns.
    compiled : bool, optional
        Use the numba kernel, which draws the same noise. By default where it pays: from 2^29 cells on, if installed.

    Returns
    -------
    ndarray of int64, same shape as `counts`
        Noisy counts, possibly negative; a copy of the counts for a plan without noise.

    Raises
    ------
    PrivacyError
        If shapes or types do not fit the plan.
    MissingExtraError
        If `compiled` is true and numba is not installed.

    References
    ----------
    C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """
    counts, sizes = np.asarray(counts), np.asarray(sizes)
    if sizes.shape != (len(plan.weights),):
        raise PrivacyError(f"sizes must hold one entry per table of the plan ({len(plan.weights)}), got {sizes.shape}")
    if counts.dtype != np.int64:
        raise PrivacyError(f"counts must be int64, got {counts.dtype}")
    if counts.ndim not in (1, 2) or counts.shape[-1] != sizes.sum():
        raise PrivacyError(f"counts must have {sizes.sum()} cells, one per cell of the tables, got {counts.shape}")
    out = np.array(counts, order="C")
    if plan.mechanism == "none" or out.size == 0:
        return out
    scales, which = _cell_scales(sizes, plan)
    if compiled is None:
        compiled = out.size >= _COMPILED_FROM and kernels.available()
    lookup = kernels.compiled_lookup() if compiled else look_up
    if out.ndim == 1:
        _perturb(out, scales, which, entropy, lookup)
    elif entropy.secure:
        # All the operating system's words are alike, so short rows may share a block.
        step = max(1, _BLOCK // out.shape[1])
        repeated = np.tile(which, step)
        for first in range(0, len(out), step):
            block = out[first : first + step].reshape(-1)
            _perturb(block, scales, repeated[: block.size], entropy, lookup)
    else:
        for row, source in zip(out, entropy.spawn(len(out)), strict=True):
            _perturb(row, scales, which, source, lookup)
    return out


def _cell_scales(sizes: IntArray, plan: NoisePlan) -> tuple[tuple[Scale, ...], IntArray]:
    """Distinct scales, and the position of each cell's scale among them, (cells,)."""
    position = {weight: index for index, weight in enumerate(sorted(set(plan.weights)))}
    scales = tuple(Scale.of(plan, plan.weights.index(weight)) for weight in position)
    return scales, np.repeat([position[weight] for weight in plan.weights], sizes)


def _perturb(out: IntArray, scales: tuple[Scale, ...], which: IntArray, entropy: Entropy, lookup: Lookup) -> None:
    """Add noise to one client's counts, in place."""
    # a little more than a chunk a sample, four chunks to a word
    reader = ChunkReader(entropy, words=min(_BLOCK // 4, out.size * 9 // 32 + 16))
    narrow = tuple(scale for scale in scales if tabulable(scale))
    if len(narrow) == len(scales):
        for begin in range(0, out.size, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            out[block] += draw(reader, scales, which[block], lookup=lookup)
        return
    for index, scale in enumerate(scales):
        cells = np.flatnonzero(which == index)
        if scale in narrow:
            out[cells] += draw(reader, (scale,), np.zeros(cells.size, dtype=np.int64), lookup=lookup)
        else:
            out[cells] += [rejection.sample(reader, scale) for _ in range(cells.size)]
