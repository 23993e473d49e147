"""Global fairness as a sum of one term per client (FairFed, arXiv 2110.00857, section 3.3).

The printed equations hold two slips, corrected here: the local difference repeats one of its terms, and the second term
of the global statistical parity difference conditions on Y = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.training.fairness import Counts

FairnessMetric = Literal["eod", "spd"]
Values = npt.NDArray[np.float64]


def two_groups(counts: Counts, privileged: int) -> Counts:
    """Return counts of the unprivileged groups together and of the privileged one, (..., 2, 2, 2)."""
    favoured = counts[..., privileged, :, :]
    return np.stack([counts.sum(axis=-3) - favoured, favoured], axis=-3)


def base_counts(counts: Counts, metric: FairnessMetric, privileged: int) -> Counts:
    """Return the rows that the metric's rates are about, (..., 2): of each group, the positive ones for EOD."""
    pair = two_groups(counts, privileged)
    rows: Counts = pair[..., 1, :].sum(axis=-1) if metric == "eod" else pair.sum(axis=(-1, -2))
    return rows


def selected_counts(counts: Counts, metric: FairnessMetric, privileged: int) -> Counts:
    """Return how many of those rows are predicted positive, (..., 2)."""
    pair = two_groups(counts, privileged)
    rows: Counts = pair[..., 1, 1] if metric == "eod" else pair[..., :, 1].sum(axis=-1)
    return rows


def local_difference(counts: Counts, metric: FairnessMetric, privileged: int) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Each client's own difference F_k, (clients,), and where it is defined; it is 0 elsewhere."""
    base = base_counts(counts, metric, privileged)
    rates = selected_counts(counts, metric, privileged) / np.maximum(base, 1)
    defined = np.asarray((base > 0).all(axis=-1))
    return np.where(defined, rates[..., 0] - rates[..., 1], 0.0), defined


def global_terms(counts: Counts, totals: Sequence[float], metric: FairnessMetric, privileged: int) -> Values:
    """Each client's term of the global difference, (clients,); their sum is the pooled difference.

    Parameters
    ----------
    counts : ndarray of int64, shape (clients, groups, 2, 2)
        Each client's own counts.
    totals : sequence of 2 float
        Sums over all clients of `base_counts`, both positive: n P(Y = 1, A = a) for EOD, n P(A = a) for SPD.
    metric : {"eod", "spd"}
        Which difference.
    privileged : int
        Number of the privileged group.

    Notes
    -----
    (n_k / n) P(Yhat = 1 | A, Y = 1, C = k) P(A, Y = 1 | C = k) / P(Y = 1, A) is a client's true positives in group A
    over all positive rows in group A. A client without such rows contributes 0.
    """
    shares = selected_counts(counts, metric, privileged) / np.asarray(totals, dtype=np.float64)
    return np.asarray(shares[..., 0] - shares[..., 1])
