"""Exact delta of the continuous Gaussian mechanism."""

from __future__ import annotations

import math


def gaussian_delta(epsilon: float, distance: float) -> float:
    """Delta at a given epsilon, rounded up.

    Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (ICML 2018), theorem 8:
    Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

    Parameters
    ----------
    epsilon : float
        At least 0.
    distance : float
        mu, the L2 sensitivity in standard deviations, positive; of several releases, the root of the sum of squares.

    Returns
    -------
    float
    """
    gain, loss = distance / 2 - epsilon / distance, -distance / 2 - epsilon / distance
    there, back = _normal_cdf(gain), _normal_cdf(loss)
    # e^epsilon and the second probability may leave the range of a float where their product does not; 0 is a bound
    back = math.exp(epsilon + math.log(back)) if back > 0 else 0.0
    # an argument is off by a few units in its last place, which moves the log of a tail by the argument squared
    rounding = 4e-16 * (8 + gain * gain + loss * loss + epsilon) * there
    return min(1.0, max(0.0, there - back) + rounding + math.ulp(0.0))


def _normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
