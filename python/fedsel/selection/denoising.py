"""What the coordinator does to noisy tables before it searches; post-processing, so free of privacy cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.consistency import make_consistent
from fedsel.selection.fixed_point import refuse_lost
from fedsel.selection.shrinkage import CellStatistics, shrink

DenoiseMethod = Literal["auto", "none", "clip", "consistent", "shrink"]

_BLOCK = 2**21  # cells looked at together, about 16 MB an array
_FIXED_POINT = 2**30  # the largest table of the pool, summed over clients, in units of the result


def denoise(pool: Pool, *, method: DenoiseMethod = "auto") -> Pool:
    """Return the pool with denoised counts.

    Parameters
    ----------
    pool : Pool
        Noisy tables.
    method : {"auto", "none", "clip", "consistent", "shrink"}
        ``none``: as released. ``clip``: each client's negative cells become 0 before anything is summed, as in PCS
        (arXiv 2605.20975); this adds a positive bias to every rare cell. ``consistent``: all tables of a client are
        made to agree on its total and one-way marginals, by generalised least squares. ``shrink``: consistent, then
        each client's cells are pulled towards the pool's by empirical Bayes. ``auto``: ``shrink`` where every count is
        noisy and all tables are two-way, else ``none``.

    Returns
    -------
    Pool
        For ``consistent`` and ``shrink``, counts in fixed point: `Pool.unit` records each.

    Raises
    ------
    SelectionError
        If the method is unknown, or needs noisy two-way tables and has others.
    """
    if method not in get_args(DenoiseMethod):
        raise SelectionError(f"denoise must be one of {', '.join(get_args(DenoiseMethod))}, got {method!r}")
    chosen = resolve_method(pool, method)
    if chosen == "none":
        return pool
    if chosen == "clip":
        return replace(pool, counts=np.maximum(pool.counts, 0))
    if pool.unit != 1.0:
        raise SelectionError(f"denoise {chosen} needs counts as released; the pool is denoised already")
    if any(plan.mechanism == "none" for plan in pool.plans):
        raise SelectionError(f"denoise {chosen} needs noisy counts; the pool has exact ones")
    if any(len(members) != 2 for members in pool.workload.sets):
        raise SelectionError(f"denoise {chosen} needs two-way tables only")
    return _in_fixed_point(pool, _estimate(pool, shrinking=chosen == "shrink"))


def resolve_method(pool: Pool, method: DenoiseMethod) -> DenoiseMethod:
    """Return what ``auto`` means for a pool; other methods as they are."""
    if method != "auto":
        return method
    noisy = all(plan.mechanism != "none" for plan in pool.plans)
    pairs = all(len(members) == 2 for members in pool.workload.sets)
    return "shrink" if noisy and pairs and len(pool) > 1 and pool.unit == 1.0 else "none"


def _blocks(pool: Pool) -> Iterator[slice]:
    step = max(1, _BLOCK // pool.workload.cells)
    for first in range(0, len(pool), step):
        yield slice(first, first + step)


def _estimate(pool: Pool, *, shrinking: bool) -> npt.NDArray[np.float32]:
    """Denoised counts in records, (clients, cells). Two passes, so that only the result is held whole."""
    result = np.empty(pool.counts.shape, dtype=np.float32)
    statistics = CellStatistics.empty(pool.workload.cells)
    for _ in range(1 + shrinking):
        first_pass = statistics.clients < len(pool)
        for block in _blocks(pool):
            counts = pool.counts[block].astype(np.float64)
            fitted = make_consistent(counts, pool.variance[block], pool.workload)
            if first_pass:
                statistics.add(fitted.cells, fitted.variance, fitted.totals)
                result[block] = fitted.cells
            else:
                result[block] = shrink(fitted.cells, fitted.variance, fitted.totals, statistics)
    return result


def _in_fixed_point(pool: Pool, counts: npt.NDArray[np.float32]) -> Pool:
    absolute = np.zeros(counts.shape[1])
    for row in counts:
        absolute += np.abs(row)
    largest = float(np.add.reduceat(absolute, pool.workload.offsets[:-1]).max())
    exponent = math.floor(math.log2(_FIXED_POINT / max(largest, 1.0)))
    refuse_lost(counts, pool.workload.sizes, max(0, -exponent), pool.clients)
    fixed = np.empty(counts.shape, dtype=np.int64)
    for source, target in zip(counts, fixed, strict=True):
        target[:] = np.rint(source * 2.0**exponent)
    return replace(pool, counts=fixed, unit=2.0**-exponent)
