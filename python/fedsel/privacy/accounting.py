"""From an event to its guarantee: epsilon at a delta, or delta at an epsilon, by any of several accountings.

All results are upper bounds. The unit is one record of one client; the adjacency is the event's own (see
`fedsel.privacy.events`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, get_args

from fedsel.errors import PrivacyError
from fedsel.privacy.events import DiscreteGaussianEvent, Event, GaussianEvent, basic_events
from fedsel.privacy.gaussian import gaussian_delta
from fedsel.privacy.lattice import discrete_gaussian_delta
from fedsel.privacy.limits import LARGEST_EPSILON
from fedsel.privacy.pld import pld_delta, pld_epsilon
from fedsel.privacy.rdp import least_epsilon, renyi_delta, renyi_epsilon, zcdp_delta, zcdp_epsilon
from fedsel.privacy.renyi import concentration, pure_epsilon, renyi_bound, rounded_up

EventAccounting = Literal["auto", "exact", "pure", "zcdp", "rdp", "pld"]

ORDERS = (
    *(1 + 2.0 ** (k / 16) for k in range(-96, 96)),  # 1.016 to 62
    *(float(round(2.0 ** (k / 8))) for k in range(48, 113)),  # 64 to 16,384
)
"""Renyi orders that ``accounting="rdp"`` minimises over."""


def delta_of(event: Event, epsilon: float, *, accounting: EventAccounting = "auto") -> float:
    """Delta for which an event is (epsilon, delta)-differentially private.

    Parameters
    ----------
    event : Event
        What ran, under its own adjacency; one record of one client is protected.
    epsilon : float
        Between 0 and 1e6, or infinite.
    accounting : {"auto", "exact", "pure", "zcdp", "rdp", "pld"}
        ``"exact"``: the hockey-stick divergence, of discrete Gaussians (`discrete_gaussian_delta`) or of continuous
        ones (Balle and Wang 2018), also composed. ``"pure"``: basic composition of pure guarantees. ``"zcdp"``,
        ``"rdp"``: sums of the parameters, converted by Canonne, Kamath and Steinke (2020), corollary 13 and proposition
        12. ``"pld"``: privacy-loss distributions of dp-accounting. ``"auto"``: exact where it exists, else the least of
        pure, zcdp and rdp; deterministic, and known without any data.

    Returns
    -------
    float
        Of [0, 1], rounded up.

    Raises
    ------
    PrivacyError
        If epsilon is out of range, or the accounting does not cover the event.
    MissingExtraError
        If dp-accounting is needed and not installed.
    """
    _check_accounting(accounting)
    if not 0 <= epsilon <= LARGEST_EPSILON and epsilon != math.inf:
        raise PrivacyError(f"epsilon must be between 0 and {LARGEST_EPSILON:g}, or infinite, got {epsilon}")
    if epsilon == math.inf:
        return 0.0
    if accounting == "auto":
        if _is_exact(event):
            try:
                return _exact_delta(event, epsilon)
            except PrivacyError:  # a lattice too long
                pass
        return min(_delta(event, epsilon, choice) for choice in _applicable(event))
    return _delta(event, epsilon, accounting)


def epsilon_of(event: Event, delta: float, *, accounting: EventAccounting = "auto") -> float:
    """Epsilon for which an event is (epsilon, delta)-differentially private.

    Parameters
    ----------
    event : Event
        What ran, under its own adjacency; one record of one client is protected.
    delta : float
        Above 0, below 1; 0 is allowed for pure events.
    accounting : {"auto", "exact", "pure", "zcdp", "rdp", "pld"}
        As for `delta_of`.

    Returns
    -------
    float
        Not negative, rounded up; infinite if more than 1e6.

    Raises
    ------
    PrivacyError
        If delta is out of range, or the accounting does not cover the event.
    MissingExtraError
        If dp-accounting is needed and not installed.
    """
    _check_accounting(accounting)
    if not 0 <= delta < 1:
        raise PrivacyError(f"delta must be at least 0 and below 1, got {delta}")
    if delta == 0:
        epsilon = pure_epsilon(event)
        if accounting not in ("auto", "pure") or epsilon == math.inf:
            raise PrivacyError("delta must be positive unless the event is pure and accounted for as such, got 0")
        return epsilon
    if accounting == "auto":
        if _is_exact(event):
            try:
                return least_epsilon(lambda epsilon: _exact_delta(event, epsilon), delta)
            except PrivacyError:  # a lattice too long
                pass
        return min(_epsilon(event, delta, choice) for choice in _applicable(event))
    return _epsilon(event, delta, accounting)


def _delta(event: Event, epsilon: float, accounting: EventAccounting) -> float:
    if accounting == "exact":
        return _exact_delta(event, epsilon)
    if accounting == "zcdp":
        return min(1.0, zcdp_delta(epsilon, concentration(event)) * (1 + 1e-11))
    if accounting == "rdp":
        return min(renyi_delta(renyi_bound(event, order), order, epsilon) for order in ORDERS)
    if accounting == "pld":
        return pld_delta(event, epsilon)
    excess = _pure(event) - epsilon
    # (e, 0) implies (epsilon, 1 - exp(epsilon - e)) for every epsilon < e
    return 0.0 if excess <= 0 else min(1.0, math.nextafter(-math.expm1(-excess), 1.0))


def _epsilon(event: Event, delta: float, accounting: EventAccounting) -> float:
    if accounting == "exact":
        return least_epsilon(lambda epsilon: _exact_delta(event, epsilon), delta)
    if accounting == "zcdp":
        return zcdp_epsilon(concentration(event), delta)
    if accounting == "rdp":
        return min(renyi_epsilon(renyi_bound(event, order), order, delta) for order in ORDERS)
    if accounting == "pld":
        return pld_epsilon(event, delta)
    return max(0.0, math.nextafter(_pure(event) + math.log1p(-delta), math.inf))


def _exact_delta(event: Event, epsilon: float) -> float:
    parts = list(basic_events(event))
    gaussian = [part for part in parts if isinstance(part, GaussianEvent)]
    if len(gaussian) == len(parts):
        squared = sum((1 / Fraction(part.noise_multiplier) ** 2 for part in gaussian), Fraction(0))
        return gaussian_delta(epsilon, math.nextafter(math.sqrt(rounded_up(squared)), math.inf))
    discrete = [part for part in parts if isinstance(part, DiscreteGaussianEvent)]
    if len(discrete) != len(parts):
        raise PrivacyError("accounting 'exact' covers Gaussian events, all discrete or all continuous; got others")
    # one joint release: all variances over the same numerator
    numerator = math.lcm(*(part.numerator for part in discrete))
    weights = [w * (numerator // part.numerator) for part in discrete for w in part.weights]
    shifts = [d for part in discrete for d in part.shifts]
    return discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights, shifts=shifts)


def _is_exact(event: Event) -> bool:
    return len({type(part) for part in basic_events(event)} & {GaussianEvent, DiscreteGaussianEvent}) == 1 and all(
        isinstance(part, (GaussianEvent, DiscreteGaussianEvent)) for part in basic_events(event)
    )


def _applicable(event: Event) -> list[EventAccounting]:
    """Accountings of all events that "auto" takes the least of."""
    pure: list[EventAccounting] = [] if pure_epsilon(event) == math.inf else ["pure"]
    return [*pure, "zcdp", "rdp"]


def _pure(event: Event) -> float:
    epsilon = pure_epsilon(event)
    if epsilon == math.inf:
        raise PrivacyError("accounting 'pure' covers events that are private with delta = 0, got others")
    return epsilon


def _check_accounting(accounting: str) -> None:
    if accounting not in get_args(EventAccounting):
        raise PrivacyError(f"accounting must be one of {', '.join(get_args(EventAccounting))}, got {accounting!r}")
