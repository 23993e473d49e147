"""Renyi and zero-concentrated differential privacy of the joint release.

Both hold for the discrete Gaussian exactly as for the continuous one: rho = mu^2 / 2, where mu^2 is the sum of
sensitivity^2 / sigma^2 over the tables (Canonne, Kamath & Steinke 2020, theorem 4). They are bounds on delta, looser
than the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fedsel.privacy.limits import LARGEST_EPSILON


def classic_distance(epsilon: float, delta: float) -> float:
    """Largest mu that Renyi accounting with the classic conversion allows, minimised over real orders.

    The calibration of proactive client selection (arXiv 2605.20975): the least over alpha of alpha mu^2 / 2 plus
    log(1 / delta) / (alpha - 1), which is mu^2 / 2 + mu sqrt(2 log(1 / delta)), is at most epsilon.
    """
    log_term = -2 * math.log(delta)
    return 2 * epsilon / (math.sqrt(log_term) + math.sqrt(log_term + 2 * epsilon))


def zcdp_delta(epsilon: float, rho: float) -> float:
    """Delta implied by rho-zCDP, minimised over the order.

    Canonne, Kamath & Steinke (2020), corollary 13:
    delta = exp((a - 1) (a rho - epsilon)) / (a - 1) * (1 - 1 / a)^a for every a > 1. Any order gives a valid bound, so
    an inexact minimum stays valid.
    """
    if rho == 0:
        return 0.0

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - log_excess

    # Golden section on log(a - 1): the bound has one minimum, at or near a = (epsilon + rho) / (2 rho).
    low, high = -20.0, max(5.0, math.log((epsilon + rho) / (2 * rho)) + 5.0)
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    f_left, f_right = log_delta(left), log_delta(right)
    for _ in range(80):
        if f_left < f_right:
            high, right, f_right = right, left, f_left
            left = high - golden * (high - low)
            f_left = log_delta(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + golden * (high - low)
            f_right = log_delta(right)
    return min(1.0, math.exp(min(f_left, f_right)))


def zcdp_distance(epsilon: float, delta: float) -> float:
    """Largest mu whose mu^2 / 2 zCDP gives (epsilon, delta), to one part in 10^12, from below."""
    low = classic_distance(epsilon, delta)  # the classic conversion is never better
    high = 2 * low
    while zcdp_delta(epsilon, high * high / 2) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if zcdp_delta(epsilon, middle * middle / 2) <= delta:
            low = middle
        else:
            high = middle
    return low


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon implied by rho-zCDP at a delta in (0, 1), to one part in 10^12, from above."""
    return least_epsilon(lambda epsilon: zcdp_delta(epsilon, rho) * (1 + 1e-11), delta)


def renyi_delta(divergence: float, order: float, epsilon: float) -> float:
    """Delta implied by a Renyi divergence of one order (Canonne, Kamath & Steinke 2020, proposition 12)."""
    excess = order - 1
    terms = (excess * divergence, -excess * epsilon, -order * math.log1p(1 / excess), -math.log(excess))
    log_delta = math.fsum(terms) + 1e-15 * sum(map(abs, terms))
    return min(1.0, math.exp(min(0.0, log_delta)) + math.ulp(0.0))


def renyi_epsilon(divergence: float, order: float, delta: float) -> float:
    """Epsilon implied by a Renyi divergence of one order at a delta in (0, 1): `renyi_delta` solved for epsilon."""
    excess = order - 1
    gain = math.log(delta) + order * math.log1p(1 / excess) + math.log(excess)
    return max(0.0, divergence * (1 + 1e-12) - gain / excess + abs(gain / excess) * 1e-12)


def least_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """Epsilon at which a decreasing bound on delta reaches `delta`, to one part in 10^12, from above.

    Returns
    -------
    float
        Infinite if no epsilon up to 10^6 suffices.
    """
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        if high >= LARGEST_EPSILON:
            return math.inf
        low, high = high, min(2 * high, LARGEST_EPSILON)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if delta_at(middle) <= delta:
            high = middle
        else:
            low = middle
    return high
