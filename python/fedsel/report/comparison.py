"""The chosen federation among others of its size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedsel.report.frame import Frame

RANDOM = 1_000
"""Random federations to compare with."""

ATTEMPTS = 50
"""Under constraints: at most this many times as many are drawn, and those that keep the rules are used."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Other federations of the size.

    Parameters
    ----------
    complete : bool
        Whether these are all federations of the size, each once, rather than random ones.
    federations : ndarray of int64, shape (federations, k)
        Pool rows.
    components : ndarray of float64, shape (federations, 4)
        Component sums in bits.
    losses : ndarray of float64, shape (federations,)
        In bits.
    chosen : float
        Loss of the selection, in bits.
    """

    complete: bool
    federations: npt.NDArray[np.int64]
    components: npt.NDArray[np.float64]
    losses: npt.NDArray[np.float64]
    chosen: float

    @property
    def mean(self) -> float:
        """Mean loss in bits; NaN of no federation."""
        return float(self.losses.mean()) if len(self.losses) else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of the losses in bits; 0 for a single federation."""
        return float(self.losses.std(ddof=1)) if len(self.losses) > 1 else 0.0

    @property
    def distance(self) -> float | None:
        """How many standard deviations the selection lies below the mean; None where they all coincide."""
        # Losses that differ only by rounding do not spread.
        return (self.mean - self.chosen) / self.deviation if self.deviation > 1e-12 else None

    @property
    def better(self) -> int:
        """How many have a lower loss than the selection, by more than rounding."""
        return int((self.losses < self.chosen - 1e-12).sum())

    @property
    def percentile(self) -> float:
        """Share, in per cent, of the federations whose loss is lower than the selection's; 0 is best."""
        return 100.0 * self.better / max(1, len(self.losses))


def compare(frame: Frame, *, seed: int) -> Comparison:
    """Evaluate all federations of the size, if there are at most `RANDOM`, or else that many random ones.

    Random federations are drawn independently and uniformly among those that keep the constraints. Where the rules are
    so narrow that few draws keep them, there are fewer than `RANDOM`, perhaps none.

    Parameters
    ----------
    frame : Frame
        The chosen federation in its pool.
    seed : int
        Seed of the draws.

    Returns
    -------
    Comparison
    """
    complete = frame.total <= RANDOM
    federations = _all(frame) if complete else _drawn(frame, np.random.default_rng([seed, 0]))
    components = frame.components(federations)
    return Comparison(
        complete=complete,
        federations=federations,
        components=components,
        losses=components @ frame.loss.weights.signed,
        chosen=frame.selection.loss,
    )


def _all(frame: Frame) -> npt.NDArray[np.int64]:
    fixed, size = frame.ruleset.fixed, frame.k - len(frame.ruleset.fixed)
    federations = np.array([[*fixed, *rest] for rest in combinations(frame.free.tolist(), size)], dtype=np.int64)
    federations.sort(axis=1)
    return federations[frame.allowed(federations)]


def _drawn(frame: Frame, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    fixed, size = frame.ruleset.fixed, frame.k - len(frame.ruleset.fixed)
    kept = np.empty((0, frame.k), dtype=np.int64)
    for _ in range(ATTEMPTS if frame.ruleset.rules else 1):
        drawn = [[*fixed, *rng.choice(frame.free, size, replace=False, shuffle=False)] for _ in range(RANDOM)]
        federations = np.sort(np.array(drawn, dtype=np.int64), axis=1)
        kept = np.concatenate([kept, federations[frame.allowed(federations)]])[:RANDOM]
        if len(kept) == RANDOM:
            break
    return kept
