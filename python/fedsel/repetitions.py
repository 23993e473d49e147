"""Means over repetitions, with intervals and tests that allow for shared rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions.

    Parameters
    ----------
    mean : float or None
        None where there is no value.
    half_width : float or None
        Of the 95 % confidence interval; None for fewer than two values.
    p_value : float or None
        Two-sided, of a mean of 0; None for fewer than two values.
    count : int
        Values.
    """

    mean: float | None
    half_width: float | None
    p_value: float | None
    count: int


def corrected_mean(values: Sequence[float], *, test_share: float) -> Estimate:
    """Return the mean of repetitions whose training rows overlap, by the corrected resampled t-test.

    The variance of the mean is s^2 (1 / J + test rows / training rows) instead of s^2 / J, since J repetitions on rows
    of one corpus are not independent (Nadeau & Bengio 2003, section 3).

    Parameters
    ----------
    values : sequence of float
        One per repetition.
    test_share : float
        Test rows by training rows.
    """
    from scipy.stats import t

    count = len(values)
    if count == 0:
        return Estimate(None, None, None, 0)
    mean = float(np.mean(values))
    if count == 1:
        return Estimate(mean, None, None, 1)
    error = float(np.std(values, ddof=1)) * math.sqrt(1 / count + test_share)
    half_width = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    if error == 0:
        return Estimate(mean, 0.0, 1.0 if mean == 0 else 0.0, count)
    return Estimate(mean, half_width, float(2 * t.sf(abs(mean) / error, count - 1)), count)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down method (1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = highest
    return adjusted
