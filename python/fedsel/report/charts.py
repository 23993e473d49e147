"""Geometry of the charts: fractions of their width and height, drawn by the page's templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 40
MOST_POINTS = 240
_ROOM = 0.04  # of the range, left free at both ends


@dataclass(frozen=True)
class Axis:
    """A linear axis.

    Parameters
    ----------
    low, high : float
        Values at its ends.
    ticks : tuple of float
        Round values within.
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    def percent(self, value: float) -> float:
        """Position of a value, in per cent of the axis from its low end."""
        return round(100.0 * (value - self.low) / (self.high - self.low), 3)


def axis(low: float, high: float, *, ticks: int = 5) -> Axis:
    """Return an axis that holds both values with some room, with about the given number of round ticks."""
    if high - low < 1e-9:  # one value only: a scale around it
        low, high = low - 0.01, high + 0.01
    room = (high - low) * _ROOM
    low, high = low - room, high + room
    rough = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return Axis(low, high, tuple(round(i * step, 12) for i in range(first, last + 1)))


@dataclass(frozen=True)
class Bar:
    """A bar: left end and width in per cent of the axis, height in per cent of the tallest, and its count."""

    left: float
    width: float
    height: float
    count: int


@dataclass(frozen=True)
class Histogram:
    """Bars over an axis, and where the marked value is."""

    axis: Axis
    bars: tuple[Bar, ...]
    mark: float


def histogram(values: npt.NDArray[np.float64], mark: float) -> Histogram:
    """Count values in `BINS` bins of an axis that holds the marked value too.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        At least one.
    mark : float
        The value to mark.

    Returns
    -------
    Histogram
    """
    scale = axis(min(float(values.min()), mark), max(float(values.max()), mark))
    counts, edges = np.histogram(values, bins=BINS, range=(scale.low, scale.high))
    width = 100.0 / BINS
    bars = tuple(
        Bar(scale.percent(float(edge)), width, round(100.0 * count / counts.max(), 3), int(count))
        for edge, count in zip(edges[:-1], counts, strict=True)
        if count
    )
    return Histogram(scale, bars, scale.percent(mark))


@dataclass(frozen=True)
class Traces:
    """Lines over a common vertical axis: each a list of "x,y" points in per cent, y from the top."""

    axis: Axis
    lines: tuple[str, ...]
    longest: int


def traces(series: Sequence[Sequence[float]]) -> Traces:
    """Lay out lines, each thinned to at most `MOST_POINTS` evenly spaced points, its last among them.

    Parameters
    ----------
    series : sequence of sequence of float
        At least one, none empty.

    Returns
    -------
    Traces
    """
    longest = max(map(len, series))
    picked = [
        np.unique(np.linspace(0, len(line) - 1, min(len(line), MOST_POINTS)).round().astype(int)) for line in series
    ]
    values = [[line[i] for i in chosen] for line, chosen in zip(series, picked, strict=True)]
    scale = axis(min(map(min, values)), max(map(max, values)))
    span = max(1, longest - 1)
    lines = tuple(
        " ".join(f"{100 * i / span:.2f},{100 - scale.percent(y):.2f}" for i, y in zip(chosen, line, strict=True))
        for chosen, line in zip(picked, values, strict=True)
    )
    return Traces(scale, lines, longest)
