"""Temperatures of simulated annealing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError

MAX_LEVELS = 10_000_000


class Schedule(Protocol):
    """What annealing needs to know: a temperature a level and the length of levels and chains."""

    @property
    def evaluations_per_level(self) -> int:
        """Evaluations at one temperature."""
        ...

    @property
    def max_evaluations(self) -> int | None:
        """Most evaluations of a chain, None for as many as the levels hold."""
        ...

    def temperatures(self) -> npt.NDArray[np.float64]:
        """Temperature of every level in bits, (levels,)."""
        ...


def _check(value: float, name: str, *, upper: float = math.inf) -> None:
    if not 0 < value < upper or math.isinf(value):
        bound = "finite and positive" if math.isinf(upper) else f"between 0 and {upper:g} (exclusive)"
        raise SelectionError(f"schedule: {name} must be {bound}, got {value}")


def _check_lengths(evaluations_per_level: int, max_evaluations: int | None) -> None:
    if evaluations_per_level < 1:
        raise SelectionError(f"schedule: evaluations_per_level must be at least 1, got {evaluations_per_level}")
    if max_evaluations is not None and max_evaluations < 1:
        raise SelectionError(f"schedule: max_evaluations must be at least 1, got {max_evaluations}")


@dataclass(frozen=True)
class GeometricSchedule:
    """Cooling by a constant factor; the defaults are those of PCS (arXiv 2605.20975, algorithm 2).

    From 1.0 by 0.98 down to 1e-4 there are 456 levels, hence 6,840 evaluations a chain. The paper speaks of about
    5,100 evaluations, which is ``final=1e-3`` (342 levels).

    Parameters
    ----------
    initial, final : float
        First temperature, and the bound below which no level starts, in bits.
    cooling : float
        Factor from a level to the next, between 0 and 1.
    evaluations_per_level : int
        Evaluations at one temperature.
    max_evaluations : int or None
        Most evaluations of a chain.
    """

    initial: float = 1.0
    cooling: float = 0.98
    final: float = 1e-4
    evaluations_per_level: int = 15
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        _check(self.initial, "initial")
        _check(self.cooling, "cooling", upper=1)
        _check(self.final, "final")
        _check_lengths(self.evaluations_per_level, self.max_evaluations)
        if self.final > self.initial:
            raise SelectionError(f"schedule: final must not exceed initial {self.initial}, got {self.final}")
        if math.log(self.final / self.initial) / math.log(self.cooling) > MAX_LEVELS:
            raise SelectionError(f"schedule: cooling {self.cooling} needs more than {MAX_LEVELS} levels")

    def temperatures(self) -> npt.NDArray[np.float64]:
        """Temperature of every level in bits, (levels,)."""
        levels = int(math.log(self.final / self.initial) / math.log(self.cooling)) + 2
        values = self.initial * np.power(self.cooling, np.arange(levels, dtype=np.float64))
        return values[values >= self.final]


FITTED_LEVELS = 100
FITTED_SWEEPS = 20  # evaluations of a fitted chain, in numbers of possible swaps
_FIRST, _LAST = 1.0, 0.002  # temperatures, in mean gaps


def fitted_schedule(gaps: npt.NDArray[np.float64], *, neighbours: int) -> GeometricSchedule:
    """Fit a geometric schedule to the losses of a task.

    A worse swap of gap g is accepted with probability exp(-g / tau). At the mean gap of random swaps, the first
    temperature, that is 37 per cent for a typical gap: the chain forgets its start. At the last temperature a gap of a
    hundredth of the mean is refused 99 times in a hundred: the chain has come to rest. The length of a chain grows with
    the number of swaps a federation allows.

    Parameters
    ----------
    gaps : ndarray of float64, shape (swaps,)
        Absolute loss differences of random swaps, in bits; may be empty.
    neighbours : int
        Number of swaps a federation allows.

    Returns
    -------
    GeometricSchedule
    """
    mean = float(gaps.mean()) if gaps.size else 0.0
    if mean <= 0:
        return GeometricSchedule(initial=1.0, final=1.0, evaluations_per_level=1)
    return GeometricSchedule(
        initial=_FIRST * mean,
        final=_LAST * mean,
        cooling=(_LAST / _FIRST) ** (1 / FITTED_LEVELS),
        evaluations_per_level=max(10, math.ceil(FITTED_SWEEPS * neighbours / FITTED_LEVELS)),
    )


@dataclass(frozen=True)
class LogarithmicSchedule:
    """tau_t = c / log(t + d): slow enough to converge in probability (Hajek 1988) if c reaches the deepest barrier.

    Parameters
    ----------
    c : float
        Scale in bits.
    d : float
        Offset of the level number t = 0, 1, ...; above 1.
    levels : int
        Number of levels.
    evaluations_per_level, max_evaluations
        As in `GeometricSchedule`.
    """

    c: float = 1.0
    d: float = 2.0
    levels: int = 10_000
    evaluations_per_level: int = 1
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        _check(self.c, "c")
        if not 1 < self.d < math.inf:
            raise SelectionError(f"schedule: d must be finite and above 1, got {self.d}")
        if not 1 <= self.levels <= MAX_LEVELS:
            raise SelectionError(f"schedule: levels must be between 1 and {MAX_LEVELS}, got {self.levels}")
        _check_lengths(self.evaluations_per_level, self.max_evaluations)

    def temperatures(self) -> npt.NDArray[np.float64]:
        """Temperature of every level in bits, (levels,)."""
        values: npt.NDArray[np.float64] = self.c / np.log(np.arange(self.levels) + self.d)
        return values
