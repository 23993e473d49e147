"""Renyi, zero-concentrated and pure differential privacy of events: three bounds that add up under composition.

References
----------
I. Mironov, "Renyi differential privacy", CSF 2017: the Laplace mechanism.
M. Bun and T. Steinke, "Concentrated differential privacy", TCC 2016: zCDP; randomised response is the worst of all
epsilon-differentially private mechanisms at every order.
C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
M. Cesar and R. Rogers, "Bounding, concentrating, and truncating", ALT 2021: bounded range eta is eta^2 / 8 zCDP.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from fedsel.privacy.events import (
    BasicEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
    basic_events,
)
from fedsel.privacy.subsampled import subsampled_gaussian_renyi

_MARGIN = 1 + 1e-9  # more than the rounding of any formula here


def renyi_bound(event: Event, order: float) -> float:
    """Upper bound on the Renyi divergence between neighbours.

    Parameters
    ----------
    event : Event
        Under its own adjacency; one record of one client.
    order : float
        Real, above 1.

    Returns
    -------
    float
        In nats, rounded up.
    """
    return math.fsum(_renyi(part, order) for part in basic_events(event)) * _MARGIN


def concentration(event: Event) -> float:
    """Least rho known for which the event is rho-zCDP, rounded up.

    Subsampling is ignored: a subsampled Gaussian is charged as if every record took part in every step, since no
    smaller rho bounds its divergence at all orders.

    Parameters
    ----------
    event : Event
        Under its own adjacency; one record of one client.

    Returns
    -------
    float
    """
    return rounded_up(sum((_rho(part) for part in basic_events(event)), Fraction(0)))


def pure_epsilon(event: Event) -> float:
    """Least epsilon known for which the event is purely epsilon-differentially private, rounded up; else infinity.

    Parameters
    ----------
    event : Event
        Under its own adjacency; one record of one client.

    Returns
    -------
    float
    """
    parts = [_pure(part) for part in basic_events(event)]
    return rounded_up(sum((e for e in parts if e is not None), Fraction(0))) if None not in parts else math.inf


def rounded_up(value: Fraction) -> float:
    """Return the least float that is not below a fraction."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _renyi(event: BasicEvent, order: float) -> float:
    if isinstance(event, LaplaceEvent):
        return _laplace_renyi(1 / event.noise_multiplier, order)
    if isinstance(event, DiscreteLaplaceEvent):
        steps = Counter(w * d for w, d in zip(event.weights, event.shifts, strict=True))
        return math.fsum(n * _pure_renyi(step / event.numerator, order) for step, n in steps.items())
    if isinstance(event, SubsampledGaussianEvent):
        return event.steps * subsampled_gaussian_renyi(event.probability, event.noise_multiplier, order)
    if isinstance(event, PureSelectionEvent):
        return min(order * float(_rho(event)), _pure_renyi(event.epsilon, order))
    return order * float(_rho(event))


def _rho(event: BasicEvent) -> Fraction:
    if isinstance(event, GaussianEvent):
        return 1 / (2 * Fraction(event.noise_multiplier) ** 2)
    if isinstance(event, SubsampledGaussianEvent):
        return int(event.steps) / (2 * Fraction(event.noise_multiplier) ** 2)
    if isinstance(event, LaplaceEvent):
        return 1 / (2 * Fraction(event.noise_multiplier) ** 2)
    if isinstance(event, PureSelectionEvent):
        return Fraction(event.epsilon) ** 2 / (8 if event.mechanism == "exponential" else 2)
    pairs = zip(event.weights, event.shifts, strict=True)
    if isinstance(event, DiscreteGaussianEvent):
        return Fraction(sum(w * d * d for w, d in pairs), 2 * event.numerator)
    return Fraction(sum((w * d) ** 2 for w, d in pairs), 2 * event.numerator**2)


def _pure(event: BasicEvent) -> Fraction | None:
    if isinstance(event, LaplaceEvent):
        return 1 / Fraction(event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceEvent):
        return Fraction(sum(w * d for w, d in zip(event.weights, event.shifts, strict=True)), event.numerator)
    if isinstance(event, PureSelectionEvent):
        return Fraction(event.epsilon)
    return None


def _pure_renyi(epsilon: float, order: float) -> float:
    """Divergence of randomised response with log-odds epsilon (Bun and Steinke 2016, proposition 3.3).

    Its moment is (e^(a x) + e^((1 - a) x)) / (1 + e^x), that is 1 + (e^(a x) - 1) (1 - e^((1 - a) x)) / (1 + e^x), of
    which every factor is precise for small x too.
    """
    if order * epsilon > 30:
        # the second term of the moment is below 1e-13 of the first
        return min(epsilon, (order * epsilon - math.log1p(math.exp(-epsilon)) - epsilon + 1e-12) / (order - 1))
    excess = math.expm1(order * epsilon) * -math.expm1((1 - order) * epsilon) / (1 + math.exp(epsilon))
    return min(epsilon, math.log1p(excess) / (order - 1))


def _laplace_renyi(step: float, order: float) -> float:
    """Divergence of the Laplace distribution shifted by `step` of its scales (Mironov 2017, proposition 6)."""
    if (order - 1) * step > 30:
        return min(step, step + (math.log(order / (2 * order - 1)) + 1e-12) / (order - 1))
    excess = (order * math.expm1((order - 1) * step) + (order - 1) * math.expm1(-order * step)) / (2 * order - 1)
    return min(step, math.log1p(max(0.0, excess)) / (order - 1))
