"""Privacy-loss distributions of events, through the library dp-accounting (extra ``accounting``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from fedsel.errors import MissingExtraError
from fedsel.privacy.events import (
    BasicEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    SubsampledGaussianEvent,
    basic_events,
)

_COARSEST = 1e-3
_REFINEMENTS = 8  # by a factor of four each, 1.5e-8 at the last
_SETTLED = 0.01  # relative change at which the grid is fine enough


def pld_delta(event: Event, epsilon: float) -> float:
    """Delta at a given epsilon, from above, on a grid refined until delta moves by less than one per cent.

    Parameters
    ----------
    event : Event
        Under its own adjacency; one record of one client.
    epsilon : float

    Returns
    -------
    float

    Raises
    ------
    MissingExtraError
        If dp-accounting is not installed.
    """
    return _settled(event, lambda loss: float(loss.get_delta_for_epsilon(epsilon)))


def pld_epsilon(event: Event, delta: float) -> float:
    """Epsilon at a given delta, from above; else as `pld_delta`.

    Raises
    ------
    MissingExtraError
        If dp-accounting is not installed.
    """
    return _settled(event, lambda loss: float(loss.get_epsilon_for_delta(delta)))


def _settled(event: Event, read: Callable[[Any], float]) -> float:
    interval = _COARSEST
    coarse = read(_distribution(event, interval))
    for _ in range(_REFINEMENTS):
        interval /= 4
        fine = read(_distribution(event, interval))
        if abs(coarse - fine) <= _SETTLED * fine:
            return fine
        coarse = fine
    return coarse


def _distribution(event: Event, interval: float) -> Any:
    total = None
    for part, times in Counter(basic_events(event)).items():
        one = _one(part, interval)
        several = one.self_compose(times) if times > 1 else one
        total = several if total is None else total.compose(several)
    return total


def _one(event: BasicEvent, interval: float) -> Any:
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        raise MissingExtraError(
            "accounting='pld' needs dp-accounting, which is not installed: pip install 'fedsel[accounting]'"
        ) from None
    grid = {"value_discretization_interval": interval}
    if isinstance(event, GaussianEvent):
        return pld.from_gaussian_mechanism(event.noise_multiplier, **grid)
    if isinstance(event, LaplaceEvent):
        return pld.from_laplace_mechanism(event.noise_multiplier, **grid)
    if isinstance(event, SubsampledGaussianEvent):
        step = pld.from_gaussian_mechanism(event.noise_multiplier, sampling_prob=event.probability, **grid)
        return step.self_compose(event.steps)
    if isinstance(event, (DiscreteGaussianEvent, DiscreteLaplaceEvent)):
        total = None
        for (weight, shift), count in Counter(zip(event.weights, event.shifts, strict=True)).items():
            if isinstance(event, DiscreteGaussianEvent):
                sigma = (event.numerator / weight) ** 0.5
                one = pld.from_discrete_gaussian_mechanism(sigma, sensitivity=shift, **grid)
            else:
                one = pld.from_discrete_laplace_mechanism(weight / event.numerator, sensitivity=shift, **grid)
            several = one.self_compose(count) if count > 1 else one
            total = several if total is None else total.compose(several)
        return total
    return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(event.epsilon, 0.0), **grid)
