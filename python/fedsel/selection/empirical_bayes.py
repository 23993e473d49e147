"""Noisy measurements of many clients, each pulled towards what the clients have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Posterior(NamedTuple):
    """Posterior mean and variance of each client's value, (clients,), and what the clients have in common.

    Parameters
    ----------
    mean, variance : ndarray of float64, shape (clients,)
        Of each client's true value.
    centre : float
        Mean of the true values over clients.
    between : float
        Variance of the true values between clients.
    """

    mean: Array
    variance: Array
    centre: float
    between: float


def posterior(values: Array, variance: Array) -> Posterior:
    """Estimate normal means of unequal known variance by empirical Bayes.

    The variance between clients is the one at which the weighted sum of squares around the weighted mean has its
    expectation (Paule and Mandel 1982), 0 where noise alone explains the spread.

    Parameters
    ----------
    values : ndarray of float64, shape (clients,)
        Measurements.
    variance : ndarray of float64, shape (clients,)
        Their noise variances, not negative; where all are 0 the values are returned as they are.

    Returns
    -------
    Posterior
    """
    from scipy.optimize import brentq

    def centre_at(between: float) -> float:
        weight = 1.0 / (variance + between)
        return float((weight * values).sum() / weight.sum())

    def excess(between: float) -> float:
        return float(((values - centre_at(between)) ** 2 / (variance + between)).sum()) - (len(values) - 1)

    spread = float(values.var())
    if not variance.any():
        return Posterior(values, variance, float(values.mean()), spread)
    least = 1e-12 * max(spread, float(variance.max()))  # keeps every weight finite
    if len(values) < 2 or excess(least) <= 0:
        between = least
    else:
        # At len(values) times the spread every term is below 1 / len(values).
        between = float(brentq(excess, least, len(values) * spread + least))
    centre = centre_at(between)
    kept = between / (between + variance)
    return Posterior(centre + kept * (values - centre), kept * variance, centre, between)
