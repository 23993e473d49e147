"""What the coordinator does to noisy tables before it searches; post-processing, so free of privacy cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.agreement import Agreed, rake, round_to
from fedsel.selection.consistency import Consistent, make_consistent
from fedsel.selection.fixed_point import refuse_lost
from fedsel.selection.reference import make_reference, positive_sizes
from fedsel.selection.score_tilt import check_rule, mean_scores, target_scores, tilt_to
from fedsel.selection.shrinkage import LEAST_RECORDS, CellStatistics, shrink

DenoiseMethod = Literal["auto", "none", "clip", "consistent", "shrink", "reference"]

SIGNIFICANCE = 5.0
"""Standard deviations by which a cell's spread between clients must stand out of the noise before ``reference``
believes any of it. Chosen on made pools: among thousands of cells, spreads that are noise otherwise add up."""

_BLOCK = 2**21  # cells looked at together, about 16 MB an array
_FIXED_POINT = 2**30  # where cells are rounded one by one: the largest table of the pool, summed over clients, in units
_TURNS = 3  # tables are tilted to their scores and raked to their margins so many times


@dataclass(frozen=True, eq=False)
class Estimate:
    """Denoised counts in records, (clients, cells), and what all tables of a client are to agree on, if anything."""

    cells: npt.NDArray[np.float32]
    agreed: Agreed | None = None


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
        each client's cells and one-way marginals are pulled towards the pool's by empirical Bayes, and tables are
        raked to their marginals. ``reference``: the same, towards the
        pool's distribution with its associations denoised (see `fedsel.selection.reference`), and only cells whose
        spread between clients is beyond doubt keep any of it; scores, if there are any, then correct the tables.
        ``auto``: where every count is noisy and all tables are two-way, ``reference`` with scores and ``shrink``
        without; else ``none``.

    Returns
    -------
    Pool
        For ``consistent``, ``shrink`` and ``reference``, counts in fixed point: `Pool.unit` records each. After the
        latter two, all tables of a client are not negative and agree exactly on its total and one-way marginals.

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


def _consistent(pool: Pool) -> Estimate:
    cells = np.empty(pool.counts.shape, dtype=np.float32)
    for block, fitted in _blocks(pool):
        cells[block] = fitted.cells
    return Estimate(cells)


def _shrunk(pool: Pool) -> Estimate:
    """Pull tables and one-way marginals towards the pool's."""
    statistics, of_margins = CellStatistics.empty(pool.workload.cells), CellStatistics.empty(sum(pool.workload.domain))
    for _, fitted in _blocks(pool):
        statistics.add(fitted.cells, fitted.variance, fitted.totals)
        of_margins.add(fitted.margins, fitted.margin_variance, fitted.totals)
    mean, between = statistics.mean(), statistics.between()
    cells, agreed, sizes = _empty(pool)
    for block, fitted in _blocks(pool):
        sizes[block] = np.maximum(fitted.totals, LEAST_RECORDS)
        cells[block] = shrink(fitted.cells, fitted.variance, sizes[block], mean, between)
        agreed[block] = of_margins.shrink(fitted.margins, fitted.margin_variance, sizes[block])
    return Estimate(cells, Agreed(agreed, sizes))


def _referred(pool: Pool) -> Estimate:
    """Pull towards the pool's denoised distribution, and correct by scores if there are any."""
    scores, workload = pool.scores, pool.workload
    if scores is not None:
        check_rule(scores.rule, workload)
    cells, agreed, sizes = _empty(pool)
    sizes[:] = positive_sizes(pool)
    # A score rule brings its reference: that of these tables, or of public ones.
    mean = make_reference(pool, sizes).proportions if scores is None else scores.rule.proportions
    statistics, of_margins = CellStatistics.empty(workload.cells), CellStatistics.empty(sum(workload.domain))
    for block, fitted in _blocks(pool):
        statistics.add(fitted.cells, fitted.variance, sizes[block])
        of_margins.add(fitted.margins, fitted.margin_variance, sizes[block])
    between = statistics.between(SIGNIFICANCE)
    doubt = 0.0 if scores is None else SIGNIFICANCE  # what scores will tell need not be guessed
    found = []
    for block, fitted in _blocks(pool):
        cells[block] = shrink(fitted.cells, fitted.variance, sizes[block], mean, between)
        agreed[block] = of_margins.shrink(fitted.margins, fitted.margin_variance, sizes[block], significance=doubt)
        if scores is not None:
            found.append(mean_scores(cells[block].astype(np.float64), scores.rule))
    if scores is not None:
        target = target_scores(np.concatenate(found), sizes, scores)
        for block in _slices(pool):
            tables = cells[block].astype(np.float64)
            for turn in range(_TURNS):  # rounding ends the last one by raking
                tables = rake(tables, agreed[block], workload) if turn else tables
                tables = tilt_to(target[block], tables, sizes[block], scores.rule)
            cells[block] = tables
    return Estimate(cells, Agreed(agreed, sizes))


def _empty(pool: Pool) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return room for cells, one-way marginals and sizes."""
    clients = len(pool)
    cells = np.empty(pool.counts.shape, dtype=np.float32)
    return cells, np.empty((clients, sum(pool.workload.domain))), np.empty(clients)


def _in_fixed_point(pool: Pool, estimate: Estimate) -> Pool:
    cells, agreed = estimate.cells, estimate.agreed
    exponent = _exponent(pool, estimate)
    refuse_lost(cells, pool.workload.sizes, max(0, -exponent), pool.clients)
    fixed = np.empty(cells.shape, dtype=np.int64)
    for block in _slices(pool):
        if agreed is None:
            fixed[block] = np.rint(cells[block] * 2.0**exponent)
        else:
            units = np.rint(agreed.sizes[block] * 2.0**exponent).astype(np.int64)
            fixed[block] = round_to(cells[block].astype(np.float64), agreed.margins[block], units, pool.workload)
    return replace(pool, counts=fixed, unit=2.0**-exponent)


def _exponent(pool: Pool, estimate: Estimate) -> int:
    """Return the largest power of two at which no sum over clients of a table's absolute counts reaches 2^31."""
    if estimate.agreed is not None:
        # Each client's number of records is rounded: by half a unit at most.
        return math.floor(math.log2((2**31 - 1 - len(pool)) / float(estimate.agreed.sizes.sum())))
    absolute = np.zeros(estimate.cells.shape[1])
    for row in estimate.cells:
        absolute += np.abs(row)
    largest = float(np.add.reduceat(absolute, pool.workload.offsets[:-1]).max())
    return math.floor(math.log2(_FIXED_POINT / max(largest, 1.0)))
