"""Cut points of numeric attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError

Binning = Literal["quantile", "width"]

MOST_BINS = 1000


def check_cuts(cuts: Sequence[float], where: str) -> tuple[float, ...]:
    """Return given cut points as a tuple of increasing finite numbers.

    Raises
    ------
    DataError
        If there is none, one is not a finite number, or they do not increase.
    """
    try:
        values = tuple(float(cut) for cut in cuts)
    except (TypeError, ValueError):
        raise DataError(f"{where}: cut points must be numbers, got {cuts!r}") from None
    if not values or not all(map(math.isfinite, values)):
        raise DataError(f"{where}: at least one cut point is needed and all must be finite, got {list(values)}")
    if any(a >= b for a, b in pairwise(values)):
        raise DataError(f"{where}: cut points must increase, got {list(values)}")
    return values


def check_count(bins: Any) -> None:
    """Raise unless this is a number of bins.

    Raises
    ------
    DataError
        If it is no whole number between 2 and 1,000.
    """
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 2 <= bins <= MOST_BINS:
        raise DataError(f"bins must be a whole number between 2 and {MOST_BINS:,}, got {bins!r}")


def cut_points(values: npt.NDArray[Any], bins: int, binning: Binning) -> tuple[float, ...]:
    """Return at most ``bins - 1`` cut points, increasing, each above the least value.

    Parameters
    ----------
    values : ndarray of numbers, shape (rows,)
        Without missing ones.
    bins : int
        Number of bins wanted; ties, or few distinct values, may give fewer.
    binning : {'quantile', 'width'}
        Bins of about as many rows each (cut at the value of rank ``i rows / bins``), or of the same width between the
        least and the largest finite value. Where so many rows share the least value that no quantile is above it, the
        one cut is the next value.

    Returns
    -------
    tuple of float
    """
    if binning not in get_args(Binning):
        raise DataError(f"binning must be quantile or width, got {binning!r}")
    finite = values[np.isfinite(values)]
    if not finite.size:
        return ()
    if binning == "width":
        low, high = float(finite.min()), float(finite.max())
        cuts = low + (high - low) * np.arange(1, bins) / bins
    else:
        ranks = np.arange(1, bins) * values.size // bins
        cuts = np.partition(values, ranks)[ranks].astype(np.float64)
    least = values.min()
    above = values[values > least]
    if binning == "quantile" and above.size and not (cuts > least).any():
        cuts = np.array([above.min()], dtype=np.float64)
    return tuple(float(cut) for cut in np.unique(cuts) if math.isfinite(cut) and cut > float(least))
