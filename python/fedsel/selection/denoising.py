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
from fedsel.selection.consistency import Consistent, make_consistent
from fedsel.selection.fixed_point import refuse_lost
from fedsel.selection.reference import make_reference, positive_sizes
from fedsel.selection.score_tilt import check_rule, mean_scores, target_scores, tilt_to
from fedsel.selection.shrinkage import CellStatistics, shrink

DenoiseMethod = Literal["auto", "none", "clip", "consistent", "shrink", "reference"]

SIGNIFICANCE = 5.0
"""Standard deviations by which a cell's spread between clients must stand out of the noise before ``reference``
believes any of it. Chosen on made pools: among thousands of cells, spreads that are noise otherwise add up."""

_BLOCK = 2**21  # cells looked at together, about 16 MB an array
_FIXED_POINT = 2**30  # the largest table of the pool, summed over clients, in units of the result


def denoise(pool: Pool, *, method: DenoiseMethod = "auto") -> Pool:
    """Return the pool with denoised counts.

    Parameters
    ----------
    pool : Pool
        Noisy tables, and scores if the clients have released any.
    method : {"auto", "none", "clip", "consistent", "shrink", "reference"}
        ``none``: as released. ``clip``: each client's negative cells become 0 before anything is summed, as in PCS
        (arXiv 2605.20975); this adds a positive bias to every rare cell. ``consistent``: all tables of a client are
        made to agree on its total and one-way marginals, by generalised least squares. ``shrink``: consistent, then
        each client's cells are pulled towards the pool's by empirical Bayes. ``reference``: the same, towards the
        pool's distribution with its associations denoised (see `fedsel.selection.reference`), and only cells whose
        spread between clients is beyond doubt keep any of it; scores, if there are any, then correct the tables.
        ``auto``: where every count is noisy and all tables are two-way, ``reference`` with scores and ``shrink``
        without; else ``none``.

    Returns
    -------
    Pool
        For ``consistent``, ``shrink`` and ``reference``, counts in fixed point: `Pool.unit` records each.

    Raises
    ------
    SelectionError
        If the method is unknown, or needs noisy two-way tables and has others, or would ignore scores.
    """
    if method not in get_args(DenoiseMethod):
        raise SelectionError(f"denoise must be one of {', '.join(get_args(DenoiseMethod))}, got {method!r}")
    chosen = resolve_method(pool, method)
    if pool.scores is not None and pool.unit == 1.0 and chosen != "reference":
        raise SelectionError(f"scores go with denoise reference, got {chosen}")
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
    estimate = {"consistent": _consistent, "shrink": _shrunk, "reference": _referred}[chosen]
    return _in_fixed_point(pool, estimate(pool))


def resolve_method(pool: Pool, method: DenoiseMethod) -> DenoiseMethod:
    """Return what ``auto`` means for a pool; other methods as they are."""
    if method != "auto":
        return method
    noisy = all(plan.mechanism != "none" for plan in pool.plans)
    pairs = all(len(members) == 2 for members in pool.workload.sets)
    if not (noisy and pairs and pool.unit == 1.0):
        return "none"
    if pool.scores is not None:
        return "reference"
    return "shrink" if len(pool) > 1 else "none"


def _slices(pool: Pool) -> Iterator[slice]:
    step = max(1, _BLOCK // pool.workload.cells)
    return (slice(first, first + step) for first in range(0, len(pool), step))


def _blocks(pool: Pool) -> Iterator[tuple[slice, Consistent]]:
    """Consistent tables of some clients at a time, so that the pool is never held whole in floats."""
    for block in _slices(pool):
        counts = pool.counts[block].astype(np.float64)
        yield block, make_consistent(counts, pool.variance[block], pool.workload)


def _consistent(pool: Pool) -> npt.NDArray[np.float32]:
    """Denoised counts in records, (clients, cells)."""
    result = np.empty(pool.counts.shape, dtype=np.float32)
    for block, fitted in _blocks(pool):
        result[block] = fitted.cells
    return result


def _shrunk(pool: Pool) -> npt.NDArray[np.float32]:
    """Denoised counts in records, (clients, cells)."""
    statistics = CellStatistics.empty(pool.workload.cells)
    for _, fitted in _blocks(pool):
        statistics.add(fitted.cells, fitted.variance, fitted.totals)
    mean, between = statistics.mean(), statistics.between()
    result = np.empty(pool.counts.shape, dtype=np.float32)
    for block, fitted in _blocks(pool):
        result[block] = shrink(fitted.cells, fitted.variance, fitted.totals, mean, between)
    return result


def _referred(pool: Pool) -> npt.NDArray[np.float32]:
    """Denoised counts in records, (clients, cells)."""
    scores = pool.scores
    if scores is not None:
        check_rule(scores.rule, pool.workload)
    sizes = positive_sizes(pool)
    # A score rule brings its reference: that of these tables, or of public ones.
    mean = make_reference(pool, sizes).proportions if scores is None else scores.rule.proportions
    statistics = CellStatistics.empty(pool.workload.cells)
    for block, fitted in _blocks(pool):
        statistics.add(fitted.cells, fitted.variance, sizes[block])
    between = statistics.between(SIGNIFICANCE)
    result = np.empty(pool.counts.shape, dtype=np.float32)
    found = []
    for block, fitted in _blocks(pool):
        result[block] = shrink(fitted.cells, fitted.variance, sizes[block], mean, between)
        if scores is not None:
            found.append(mean_scores(result[block].astype(np.float64), scores.rule))
    if scores is not None:
        target = target_scores(np.concatenate(found), sizes, scores)
        for block in _slices(pool):
            result[block] = tilt_to(target[block], result[block].astype(np.float64), sizes[block], scores.rule)
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
