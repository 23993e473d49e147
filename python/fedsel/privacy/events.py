"""Mechanisms that read rows, as events: what ran, apart from how its privacy is accounted for.

The unit is one record of one client. An event is stated relative to how far one record can move the mechanism's
queries, so it belongs to the adjacency under which those sensitivities hold; events of different adjacencies must not
be composed. `event_of` uses the plan's adjacency. Poisson sampling is add-remove.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from fedsel.errors import PrivacyError
from fedsel.privacy.adjacency import moved
from fedsel.privacy.plan import NoisePlan

SelectionMechanism = Literal["exponential", "permute-and-flip"]


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise on real numbers.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over L2 sensitivity, positive.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_positive("noise_multiplier", self.noise_multiplier)


@dataclass(frozen=True)
class LaplaceEvent:
    """Laplace noise on one real number.

    Parameters
    ----------
    noise_multiplier : float
        Scale b over sensitivity, positive: the event is 1 / noise_multiplier-differentially private.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_positive("noise_multiplier", self.noise_multiplier)


@dataclass(frozen=True)
class DiscreteGaussianEvent:
    """Joint release of integers with discrete Gaussian noise.

    Parameters
    ----------
    numerator : int
        P; coordinate j has sigma_j^2 = P / w_j.
    weights, shifts : tuple of int
        w_j and the largest change of each coordinate that one record moves, (coordinates,); see
        `fedsel.privacy.adjacency.moved`.
    """

    numerator: int
    weights: tuple[int, ...]
    shifts: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_integers(self.numerator, self.weights, self.shifts)


@dataclass(frozen=True)
class DiscreteLaplaceEvent:
    """Joint release of integers with discrete Laplace noise; b_j = P / w_j, else as `DiscreteGaussianEvent`."""

    numerator: int
    weights: tuple[int, ...]
    shifts: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_integers(self.numerator, self.weights, self.shifts)


@dataclass(frozen=True)
class SubsampledGaussianEvent:
    """Steps of DP-SGD: each takes every record independently and adds Gaussian noise to a clipped sum. Add-remove.

    Parameters
    ----------
    probability : float
        Of a record to take part in a step, above 0, at most 1.
    noise_multiplier : float
        Standard deviation over the clipping norm, positive.
    steps : int
        At least 1.
    """

    probability: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise PrivacyError(f"probability must be above 0 and at most 1, got {self.probability}")
        _check_positive("noise_multiplier", self.noise_multiplier)
        if isinstance(self.steps, bool) or not isinstance(self.steps, (int, np.integer)) or self.steps < 1:
            raise PrivacyError(f"steps must be a positive integer, got {self.steps}")


@dataclass(frozen=True)
class PureSelectionEvent:
    """One candidate out of many by its score, epsilon-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    mechanism : {"exponential", "permute-and-flip"}
        The exponential mechanism (probabilities proportional to exp(epsilon score / (2 sensitivity))) has a bounded
        range of epsilon, which is epsilon^2 / 8 zCDP (Cesar and Rogers 2021). Permute-and-flip (McKenna and Sheldon
        2020) has not: with two candidates, tied in one data set, its log-ratios span more than epsilon, and its zCDP
        parameter comes as close to epsilon^2 / 2 as that of any epsilon-differentially private mechanism.
    """

    epsilon: float
    mechanism: SelectionMechanism = "exponential"

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        if self.mechanism not in get_args(SelectionMechanism):
            known = ", ".join(get_args(SelectionMechanism))
            raise PrivacyError(f"mechanism must be one of {known}, got {self.mechanism!r}")


@dataclass(frozen=True)
class ComposedEvent:
    """Several events on the same records.

    Their parameters are fixed in advance; what each asks may depend on what the earlier ones published. Where the
    parameters too depend on it, a `fedsel.privacy.budget.Budget` is what bounds the cost.

    Parameters
    ----------
    events : tuple of events
        At least one.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not self.events:
            raise PrivacyError("a composed event must hold at least one event, got none")


BasicEvent: TypeAlias = (
    GaussianEvent
    | LaplaceEvent
    | DiscreteGaussianEvent
    | DiscreteLaplaceEvent
    | SubsampledGaussianEvent
    | PureSelectionEvent
)
Event: TypeAlias = BasicEvent | ComposedEvent


def event_of(plan: NoisePlan) -> DiscreteGaussianEvent | DiscreteLaplaceEvent:
    """Return the event that releasing all queries of a plan is, under the plan's adjacency.

    Raises
    ------
    PrivacyError
        If the plan has no noise: that is not an event of any privacy.
    """
    if plan.mechanism == "none":
        raise PrivacyError("a plan must have noise to be an event, got an exact release (epsilon = inf)")
    kind = DiscreteGaussianEvent if plan.mechanism == "discrete-gaussian" else DiscreteLaplaceEvent
    weights, shifts = moved(plan.weights, plan.scores, plan.adjacency)
    return kind(plan.numerator, tuple(weights), tuple(shifts))


def basic_events(event: Event) -> Iterator[BasicEvent]:
    """Iterate over the events that an event is composed of, itself if it is basic."""
    if isinstance(event, ComposedEvent):
        for part in event.events:
            yield from basic_events(part)
    else:
        yield event


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise PrivacyError(f"{name} must be a positive number, got {value}")


def _check_integers(numerator: int, weights: Sequence[int], shifts: Sequence[int]) -> None:
    if numerator < 1:
        raise PrivacyError(f"numerator must be a positive integer, got {numerator}")
    if not weights or len(weights) != len(shifts) or min(*weights, *shifts) < 1:
        raise PrivacyError("weights and shifts must be positive integers, one of each per coordinate")
