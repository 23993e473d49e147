"""Noisy measurements of many clients, each pulled towards what the clients have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEAST_SPREAD = 1e-3
"""Smallest variance between clients, in median noise variances: however little is believed, its order is kept."""


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


def posterior(values: Array, variance: Array, *, centred: bool = False) -> Posterior:
    """Estimate normal means of unequal known variance by empirical Bayes.

    The variance between clients is the one at which the weighted sum of squares around the weighted mean has its
    expectation (Paule and Mandel 1982), next to nothing where noise alone explains the spread.

    Parameters
    ----------
    values : ndarray of float64, shape (clients,)
        Measurements.
    variance : ndarray of float64, shape (clients,)
        Their noise variances, not negative; where all are 0 the values are returned as they are.
    centred : bool
        Whether 0 is the likely centre: the estimated one is then pulled towards it by its own variance (James and Stein
        1961, positive part).

    Returns
    -------
    Posterior
    """
    from scipy.optimize import brentq

    def centre_at(between: float) -> float:
        weight = 1.0 / (variance + between)
        return float((weight * values).sum() / weight.sum())

    def pulled(centre: float, between: float) -> float:
        own = 1.0 / float((1.0 / (variance + between)).sum())
        return centre * max(0.0, 1.0 - own / centre**2) if centre else centre

    def excess(between: float) -> float:
        return float(((values - centre_at(between)) ** 2 / (variance + between)).sum()) - (len(values) - 1)

    spread = float(values.var())
    if not variance.any():
        return Posterior(values, variance, float(values.mean()), spread)
    least = LEAST_SPREAD * float(np.median(variance)) + 1e-12 * float(variance.max())  # the latter keeps weights finite
    if len(values) < 2 or excess(least) <= 0:
        between = least
    else:
        high = spread + least
        while excess(high) > 0:  # every term falls like 1 / high
            high *= 2.0
        between = float(brentq(excess, least, high))
    centre = centre_at(between)
    if centred:
        centre = pulled(centre, between)
    kept = between / (between + variance)
    return Posterior(centre + kept * (values - centre), kept * variance, centre, between)
