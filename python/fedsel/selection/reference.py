"""What the tables of a whole pool say together: the pooled distribution and how its variables are associated.

Single cells of noisy tables are poor estimates, and so are logarithms of them. What holds is structure: margins that
ten tables measure together, and associations of low rank. A reference is the pool's distribution with every table's
association reduced to the singular values that stand out of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.pool import Pool
from fedsel.selection.consistency import make_consistent
from fedsel.selection.empirical_bayes import posterior
from fedsel.tables import Workload

Array = npt.NDArray[np.float64]

SIZE_EXPONENT = 0.5
"""Counts of a client of n records are pooled with weight n^this: all carry the same noise, so large ones tell more."""

LEAST_SHARE = 1e-4
"""Smallest proportion that a category is taken to have."""

SINGULAR_EXPONENT, SINGULAR_FLOOR = 0.25, 0.02
"""Rows and columns of a table are scaled by max(proportion, floor)^-exponent before its singular values are taken:
between counts, where noise is even, and correlations, where what is sought is."""

STRENGTH_EXPONENT = 0.25
"""Power of the cell-wise shrinkage factor that is applied on top of the singular values'."""

RATIO_BOUNDS = 0.02, 50.0
"""Smallest and largest ratio of a cell to what independence expects."""

LEAST_SIZE = 0.05
"""Smallest size that a client is taken to have, in typical sizes, where its size is lost in the noise."""

_BLOCK = 2**21  # cells looked at together

# All constants above were chosen on made pools (latent classes; 46 clients of 2,500 to 200,000 rows, and a tenth).


@dataclass(frozen=True, eq=False)
class Reference:
    """Distribution of a pool, and pointwise mutual information of every pair of categories.

    Parameters
    ----------
    workload : Workload
        Two-way tables.
    proportions : ndarray of float64, shape (cells,)
        Each table adds up to 1; positive.
    information : ndarray of float64, shape (cells,)
        log2 of a cell's ratio to the product of its margins, in bits.
    """

    workload: Workload
    proportions: Array
    information: Array


def positive_sizes(pool: Pool) -> Array:
    """Estimate the number of records of each client, (clients,), pulled towards each other and positive."""
    totals = pool.totals()
    estimate = posterior(totals.estimate, totals.standard_error**2)
    # a floor only as far up as the noise could hide: a size known to be small is small
    doubtful = np.minimum(LEAST_SIZE * estimate.centre, 2.0 * totals.standard_error)
    return np.maximum(estimate.mean, np.maximum(doubtful, 1.0))


def make_reference(pool: Pool, sizes: Array) -> Reference:
    """Estimate the distribution of a pool of two-way tables.

    Parameters
    ----------
    pool : Pool
        Noisy or exact two-way tables.
    sizes : ndarray of float64, shape (clients,)
        Number of records of each client, positive.

    Returns
    -------
    Reference
    """
    workload = pool.workload
    weight = sizes**SIZE_EXPONENT
    weight /= (weight * sizes).sum()
    counts = np.zeros(workload.cells)
    step = max(1, _BLOCK // workload.cells)
    for first in range(0, len(pool), step):
        counts += weight[first : first + step] @ (pool.unit * pool.counts[first : first + step])
    variance = weight**2 @ pool.variance
    if variance.min() > 0:
        counts = make_consistent(counts[None], variance[None], workload).cells[0]
    margins = _margins(counts, workload)
    strengths = _strengths(counts, variance, margins, workload)
    proportions, information = np.empty_like(counts), np.empty_like(counts)
    for t, (first, second) in enumerate(workload.sets):
        here = slice(*workload.offsets[t : t + 2])
        expected = np.outer(margins[first], margins[second])
        ratio = 1.0 + _association(
            counts[here].reshape(expected.shape) - expected, expected, float(variance[t]), strengths[t]
        )
        ratio = np.clip(ratio, *RATIO_BOUNDS)
        joint = expected * ratio
        proportions[here] = (joint / joint.sum()).ravel()
        information[here] = np.log2(ratio).ravel()
    return Reference(workload, proportions, information)


def _margins(counts: Array, workload: Workload) -> dict[int, Array]:
    """Return proportions of each variable's categories, from the first table that holds it: all of them agree."""
    margins: dict[int, Array] = {}
    for t, members in enumerate(workload.sets):
        table = counts[slice(*workload.offsets[t : t + 2])].reshape(workload.shapes[t])
        for axis, variable in enumerate(members):
            if variable not in margins:
                share = np.maximum(table.sum(axis=1 - axis), LEAST_SHARE)
                margins[variable] = share / share.sum()
    return margins


def _strengths(counts: Array, variance: Array, margins: dict[int, Array], workload: Workload) -> Array:
    """Estimate the mean square of ratio - 1 in each table, (tables,), pulled towards that of all tables.

    By moments: (cell - expected)^2 has expectation strength expected^2 + noise variance. Cells are weighted by the
    precision of their square at a strength of 0.3.
    """
    number, precision = np.empty(len(variance)), np.empty(len(variance))
    for t, (first, second) in enumerate(workload.sets):
        expected = np.outer(margins[first], margins[second]).ravel()
        residual = counts[slice(*workload.offsets[t : t + 2])] - expected
        weight = expected**2 / (variance[t] + 0.3 * expected**2) ** 2
        number[t] = ((residual**2 - variance[t]) * weight).sum()
        precision[t] = (expected**2 * weight).sum()
    common = max(float(number.sum() / precision.sum()), 0.0)
    typical = float(np.median(precision))
    return np.maximum((number + typical * common) / (precision + typical), 0.0)


def _association(residual: Array, expected: Array, variance: float, strength: float) -> Array:
    """Estimate a table's ratios to independence, minus 1, from its noisy residuals (cell - expected)."""
    if variance == 0:
        return np.asarray(residual / expected)
    rows = _scaling(expected.sum(axis=1))
    columns = _scaling(expected.sum(axis=0))
    left, singular, right = np.linalg.svd(rows[:, None] * residual * columns, full_matrices=False)
    # A residual has one row and one column fewer than its table: they sum to 0.
    short, long = sorted((max(expected.shape[0] - 1, 1), max(expected.shape[1] - 1, 1)))
    kept = _shrunk_singular_values(singular, short / long, (variance * long) ** 0.5)
    low_rank = (left * kept) @ right / rows[:, None] / columns
    certain = strength * expected**2 / (strength * expected**2 + variance)
    return np.asarray(certain**STRENGTH_EXPONENT * low_rank / expected)


def _scaling(share: Array) -> Array:
    scale = np.maximum(share, SINGULAR_FLOOR) ** -SINGULAR_EXPONENT
    return np.asarray(scale / np.sqrt((scale**2).mean()))


def _shrunk_singular_values(singular: Array, shape: float, noise: float) -> Array:
    """Shrink singular values of signal plus white noise, optimally in squared error (Gavish and Donoho 2017, eq. 7).

    `shape` is the ratio of the matrix's sides, at most 1; `noise` the standard deviation of an entry times the root of
    the longer side. Values below 1 + sqrt(shape) times that are noise.
    """
    scaled = singular / noise
    inner = (scaled**2 - shape - 1.0) ** 2 - 4.0 * shape
    stands_out = scaled > 1.0 + shape**0.5
    shrunk = np.sqrt(np.where(stands_out, inner, 0.0)) / np.where(stands_out, scaled, 1.0)
    return np.asarray(noise * shrunk)
