r"""Renyi divergence of one step of the Poisson-subsampled Gaussian mechanism.

With z standard deviation sigma, P0 = N(0, sigma^2) and the likelihood ratio :math:`r(z) = e^{(2 z - 1) / (2 \sigma^2)}`
of N(1, sigma^2) to it, the divergence of order alpha is :math:`\log A / (\alpha - 1)` with
:math:`A = E_{P_0} [(1 - q + q r)^\alpha]`; that direction is the larger one (Mironov, Talwar and Zhang 2019, theorem
5). Since E[r] = 1, also :math:`A - 1 = E[(1 + u)^\alpha - 1 - \alpha u]` with :math:`u = q (r - 1)`, whose integrand is
not negative: small divergences keep their relative precision.

References
----------
I. Mironov, K. Talwar and L. Zhang, "Renyi differential privacy of the sampled Gaussian mechanism", arXiv 1908.10530.
"""

from __future__ import annotations

import math

import numpy as np

_MARGIN = 1 + 1e-8  # far above the relative error of either sum


def subsampled_gaussian_renyi(probability: float, noise_multiplier: float, order: float) -> float:
    """Renyi divergence of one step, for add-remove adjacency, rounded up.

    Parameters
    ----------
    probability : float
        q, above 0, at most 1.
    noise_multiplier : float
        sigma over sensitivity, positive.
    order : float
        alpha, above 1.

    Returns
    -------
    float
        Not negative; infinite where it does not fit a float.
    """
    if probability == 1:
        return order / (2 * noise_multiplier**2) * _MARGIN
    log_excess = _log_excess_integer if float(order).is_integer() else _log_excess
    log_moment = float(np.logaddexp(0.0, log_excess(probability, noise_multiplier, order)))
    return log_moment / (order - 1) * _MARGIN


def _log_excess_integer(q: float, sigma: float, order: float) -> float:
    """Log of A - 1 by the binomial sum of section 3.3: terms k = 0 and 1 contribute nothing."""
    k = np.arange(1, int(order) + 1)
    log_binomial = np.cumsum(np.log((order - k + 1) / k))
    exponent = k[1:] * (k[1:] - 1.0) / (2 * sigma * sigma)
    log_grown = np.where(exponent > 50, exponent, np.log(np.expm1(np.minimum(exponent, 50.0))))
    terms = log_binomial[1:] + k[1:] * math.log(q) + (order - k[1:]) * math.log1p(-q) + log_grown
    return float(np.logaddexp.reduce(terms))


def _log_excess(q: float, sigma: float, order: float) -> float:
    """Log of A - 1 by the trapezoidal rule.

    The integrand is analytic in a strip of half width pi sigma^2 and falls like a Gaussian, centred at most at alpha,
    so the rule converges exponentially; eight points to the shorter of sigma and sigma^2 leave less than rounding does.
    """
    step = min(sigma, sigma * sigma) / 8
    z = np.arange(-14 * sigma, order + 14 * sigma + step, step)
    log_ratio = (2 * z - 1) / (2 * sigma * sigma)
    log_mixture = np.logaddexp(math.log1p(-q), math.log(q) + log_ratio)
    u = q * np.expm1(np.minimum(log_ratio, 690.0))
    small = np.abs(order * u) < 1e-3
    # the power less its tangent, by its series where the difference would cancel
    v = np.where(small, u, 0.0)
    higher = 1 + (order - 2) / 3 * v * (1 + (order - 3) / 4 * v * (1 + (order - 4) / 5 * v))
    series = order * (order - 1) / 2 * v * v * higher
    large = order * log_mixture > 50
    direct = np.expm1(np.where(large, 0.0, order * log_mixture)) - order * u
    with np.errstate(divide="ignore"):
        log_value = np.where(large, order * log_mixture, np.log(np.maximum(np.where(small, series, direct), 0.0)))
    log_density = -z * z / (2 * sigma * sigma) - math.log(sigma * math.sqrt(2 * math.pi))
    return float(np.logaddexp.reduce(log_value + log_density)) + math.log(step)
