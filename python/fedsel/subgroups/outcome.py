"""What subgroups are judged by: a yes/no outcome, or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError
from fedsel.subgroups.frames import series

_DIGITS = 32  # binary digits of an outcome that is no whole number
_MOST_WHOLE = 2**40
_MOST_SUM = 2**61
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class TargetValues:
    """The outcome of every row.

    Parameters
    ----------
    kind : {'yes/no', 'number'}
        Whether the share of positive rows counts, or the mean.
    name : str
        What it is called.
    values : ndarray, shape (rows,)
        0 and 1 (int64), or the numbers (float64).
    steps : ndarray of int64, shape (rows,)
        The outcome in whole numbers of at least 0, which the search adds up.
    unit : float
        What a step is worth.
    """

    kind: Literal["yes/no", "number"]
    name: str
    values: npt.NDArray[Any]
    steps: npt.NDArray[np.int64]
    unit: float

    @property
    def mean(self) -> float:
        """Share of positive rows, or mean."""
        return float(self.values.mean())


def read_target(y: Any, positive: Any = None) -> TargetValues:
    """Read an outcome column.

    Parameters
    ----------
    y : pandas Series, array or list, of length rows
        True/false, numbers 0 and 1, or anything with `positive` given: a yes/no outcome. Other numbers: their mean
        counts. Whole numbers of a range below 2^40 are added up exactly; others to 32 binary digits of their range.
    positive : optional
        The value that counts as yes; all others are no.

    Returns
    -------
    TargetValues

    Raises
    ------
    DataError
        If a value is missing or not finite, all rows have the same outcome, or it is text and `positive` is not given.
    """
    import pandas as pd

    column = series(y, "y")
    name = str(column.name) if column.name is not None else "y"
    missing = int(column.isna().sum())
    if missing:
        raise DataError(f"y: every row needs an outcome, got {missing:,} missing of {len(column):,}")
    if positive is not None:
        return _yes_no(_equal(column, positive), f"{name} = {positive}", column)
    if pd.api.types.is_bool_dtype(column.dtype):
        return _yes_no(column.to_numpy(dtype=np.bool_), name, column)
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
        raise DataError(f"y holds neither numbers nor true/false: say which value counts as positive; {_has(column)}")
    values = column.to_numpy(dtype=np.float64)
    if ((values == 0) | (values == 1)).all():
        return _yes_no(values == 1, name, column)
    return _number(values, name)


def _equal(column: Any, positive: Any) -> npt.NDArray[np.bool_]:
    equal = np.asarray(column.to_numpy() == positive, dtype=np.bool_)
    if equal.shape == (len(column),) and equal.any():
        return equal
    text = str(positive).strip()  # "1" for 1.0 or "true" for True, as typed on a command line
    if column.dtype.kind in "iuf":
        try:
            return np.asarray(column.to_numpy() == float(text), dtype=np.bool_)
        except ValueError:
            return np.zeros(len(column), dtype=np.bool_)
    shown = column.astype(str).str.strip()
    if column.dtype.kind == "b":
        shown, text = shown.str.lower(), text.lower()
    return np.asarray(shown.to_numpy() == text, dtype=np.bool_)


def _yes_no(positive: npt.NDArray[np.bool_], name: str, column: Any) -> TargetValues:
    positives = int(positive.sum())
    if not 0 < positives < len(positive):
        raise DataError(
            f"y: positive and negative rows are needed, got {positives:,} positive of {len(positive):,}; {_has(column)}"
        )
    steps = positive.astype(np.int64)
    return TargetValues("yes/no", name, steps, steps, 1.0)


def _number(values: npt.NDArray[np.float64], name: str) -> TargetValues:
    if not np.isfinite(values).all():
        raise DataError(f"y: numbers must be finite, got {values[~np.isfinite(values)][0]}")
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(f"y: the outcome must differ between rows, got {low:g} throughout")
    whole = bool((values == np.round(values)).all()) and max(abs(low), abs(high)) < 2**53
    if whole and high - low < _MOST_WHOLE and (high - low) * len(values) < _MOST_SUM:
        return TargetValues("number", name, values, (values - low).astype(np.int64), 1.0)
    unit = (high - low) / 2**_DIGITS
    if not (np.isfinite(high - low) and unit > 0.0):
        raise DataError(f"y: the range of the numbers is too small or too large, got {low:g} to {high:g}")
    return TargetValues("number", name, values, np.round((values - low) / unit).astype(np.int64), unit)


def _has(column: Any) -> str:
    distinct = [str(value) for value in column.unique()[: _SHOWN + 1]]
    return f"y has {', '.join(distinct[:_SHOWN])}{' and more' if len(distinct) > _SHOWN else ''}"
