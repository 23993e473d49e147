"""Tests of paired results over seeds: those the FedPSD manuscript reports, and one that minds overlapping samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats


def corrected_t_test(differences: Sequence[float], *, test_share: float) -> float:
    """Return the two-sided p-value of the mean of paired differences over overlapping resamples.

    Samples drawn from one corpus share records, so their differences are correlated and a plain t test is too sure. The
    variance of the mean is taken as (1/J + n_test/n_train) times that of the differences (Nadeau and Bengio 2003).

    Parameters
    ----------
    differences : sequence of float
        One a seed, at least 2.
    test_share : float
        n_test / n_train.
    """
    d = np.asarray(differences, dtype=np.float64)
    spread = d.std(ddof=1)
    if spread == 0:
        return 1.0 if d.mean() == 0 else 0.0
    statistic = d.mean() / (spread * math.sqrt(1 / len(d) + test_share))
    return float(2 * stats.t.sf(abs(statistic), len(d) - 1))


def wilcoxon(differences: Sequence[float]) -> tuple[float, float]:
    """Return statistic and two-sided p-value of Wilcoxon's signed-rank test; p = 1 where all differences are 0."""
    d = np.asarray(differences, dtype=np.float64)
    if not np.any(d != 0):
        return 0.0, 1.0
    found = stats.wilcoxon(d)
    return float(found.statistic), float(found.pvalue)


def friedman(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return statistic and p-value of Friedman's test over blocks, a sequence a method; at least three methods."""
    found = stats.friedmanchisquare(*columns)
    return float(found.statistic), float(found.pvalue)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values of several contrasts so that none is wrongly called with more than the level (Holm 1979)."""
    adjusted: dict[str, float] = {}
    running = 0.0
    ordered = sorted(p_values, key=lambda name: p_values[name])
    for rank, name in enumerate(ordered):
        running = max(running, min(1.0, (len(ordered) - rank) * p_values[name]))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}
