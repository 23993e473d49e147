"""Columns as category codes, and the conditions on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError
from fedsel.subgroups.bins import Binning, check_count, check_cuts, cut_points
from fedsel.subgroups.conditions import CodeRange, Condition

Intervals = Literal["bins", "thresholds", "all"]
MissingValues = Literal["exclude", "condition"]
Codes32 = npt.NDArray[np.int32]

_FEW = 1000  # values looked at to see that a column has many


@dataclass(frozen=True)
class AttributeRules:
    """How columns become attributes.

    Parameters
    ----------
    bins : int
        Number of bins of numeric columns. A column of as many distinct values or fewer is taken by value instead.
    cuts : mapping of str to sequence of float
        Cut points of numeric columns that shall be cut there. A cut point is the least value of the bin above it; the
        outer bins are open.
    binning : {'quantile', 'width'}
        How bins are cut where no cut points are given.
    intervals : {'bins', 'thresholds', 'all'}
        Conditions on a numeric column: one a bin, one at each side of every cut point, or every run of bins.
    set_size : int
        Largest number of categories that a condition joins by "or"; 1 for plain equality.
    missing : {'exclude', 'condition'}
        Whether a missing value meets no condition of its column (its row still counts everywhere else), or the
        condition "is missing".
    max_categories : int
        Largest number of distinct values a column may have that is not cut into bins.
    categorical : tuple of str
        Numeric columns to take by value, such as codes.
    """

    bins: int = 5
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    binning: Binning = "quantile"
    intervals: Intervals = "bins"
    set_size: int = 1
    missing: MissingValues = "exclude"
    max_categories: int = 1000
    categorical: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, options in (("binning", Binning), ("intervals", Intervals), ("missing", MissingValues)):
            if getattr(self, name) not in get_args(options):
                raise DataError(f"{name} must be one of {', '.join(get_args(options))}, got {getattr(self, name)!r}")
        for name, least in (("set_size", 1), ("max_categories", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise DataError(f"{name} must be a whole number of at least {least}, got {value!r}")
        check_count(self.bins)
        for name, points in self.cuts.items():
            check_cuts(points, f"cuts of {name}")


@dataclass(frozen=True)
class Attribute:
    """A column's categories or bins, by code.

    The code after the last category or bin stands for a missing value.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple, optional
        Values in code order; None for a column cut into bins.
    cuts : tuple of float
        Cut points of the bins: bin i holds ``cuts[i - 1] <= value < cuts[i]``.
    """

    name: str
    categories: tuple[Any, ...] | None
    cuts: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of categories or bins, without the code for missing values."""
        return len(self.cuts) + 1 if self.categories is None else len(self.categories)

    def encode(self, column: Any) -> Codes32:
        """Return the code of every value of a pandas Series, (rows,); -1 for a category not seen before.

        Raises
        ------
        DataError
            If the attribute is numeric and the column is not.
        """
        import pandas as pd

        if self.categories is not None and isinstance(column.dtype, pd.CategoricalDtype):
            known = pd.Index(self.categories).get_indexer(column.cat.categories)
            by_position = np.append(known, self.size).astype(np.int32)
            codes: Codes32 = by_position[column.cat.codes.to_numpy()]  # -1, a missing value, picks the last
            return codes
        gone = column.isna().to_numpy()
        if self.categories is None:
            values = _numbers(column)
            if values is None:
                raise DataError(f"X: column {self.name} was numeric when its bins were cut, got {column.dtype}")
            codes = np.searchsorted(np.array(self.cuts), values, side="right").astype(np.int32)
        else:
            codes = pd.Index(self.categories).get_indexer(column).astype(np.int32)
        codes[gone] = self.size
        return codes

    def conditions(self, rules: AttributeRules) -> list[Condition]:
        """Return all conditions that the rules ask for, whether or not a row meets them."""
        if self.categories is None:
            texts = _cut_texts(self.cuts)
            result = [self._interval(first, last, texts) for first, last in self._runs(rules.intervals)]
        else:
            result = [
                self._set(codes)
                for size in range(1, self._largest_set(rules) + 1)
                for codes in combinations(range(self.size), size)
            ]
        if rules.missing == "condition":
            result.append(Condition(self.name, f"{self.name} is missing", ((self.size, self.size),)))
        return result

    def count_conditions(self, rules: AttributeRules) -> int:
        """Return how many `conditions` there would be."""
        if self.categories is None:
            number = len(self._runs(rules.intervals))
        else:
            number = sum(math.comb(self.size, size) for size in range(1, self._largest_set(rules) + 1))
        return number + (rules.missing == "condition")

    def _largest_set(self, rules: AttributeRules) -> int:
        """Return the largest number of categories to join: never all, unless there is one only."""
        return min(rules.set_size, max(self.size - 1, min(self.size, 1)))

    def _runs(self, intervals: Intervals) -> list[CodeRange]:
        last = self.size - 1
        if intervals == "bins":
            return [(code, code) for code in range(self.size)]
        if intervals == "thresholds":
            return [(0, code) for code in range(last)] + [(code, last) for code in range(1, self.size)]
        return [(a, b) for a in range(self.size) for b in range(a, self.size) if (a, b) != (0, last)]

    def _interval(self, first: int, last: int, texts: Sequence[str]) -> Condition:
        low = texts[first - 1] if first > 0 else None
        high = texts[last] if last < self.size - 1 else None
        if low is None and high is None:
            text = f"{self.name} is a number"
        elif low is None:
            text = f"{self.name} < {high}"
        elif high is None:
            text = f"{self.name} >= {low}"
        else:
            text = f"{self.name} in [{low}, {high})"
        return Condition(self.name, text, ((first, last),))

    def _set(self, codes: tuple[int, ...]) -> Condition:
        assert self.categories is not None
        shown = [_shown(self.categories[code]) for code in codes]
        text = f"{self.name} = {shown[0]}" if len(shown) == 1 else f"{self.name} in {{{', '.join(shown)}}}"
        starts = [code for i, code in enumerate(codes) if i == 0 or code != codes[i - 1] + 1]
        ends = [code for code, following in pairwise((*codes, -1)) if following != code + 1]
        return Condition(self.name, text, tuple(zip(starts, ends, strict=True)))


def fit_attribute(name: str, column: Any, rules: AttributeRules) -> Attribute:
    """Find the categories or cut points of a column; categories are sorted unless the column orders them itself.

    Parameters
    ----------
    name : str
        Its name.
    column : pandas Series
        Numbers, text, true/false or a categorical, some perhaps missing.
    rules : AttributeRules
        What to make of it.

    Returns
    -------
    Attribute

    Raises
    ------
    DataError
        If it holds neither numbers nor categories, or too many different ones.
    """
    import pandas as pd

    values = _numbers(column)
    if values is None and name in rules.cuts:
        raise DataError(f"X: column {name} has cut points but is not numeric, got {column.dtype}")
    if values is None:
        if not isinstance(column.dtype, pd.CategoricalDtype):
            return _categorical(name, _distinct(name, column), rules)
        listed = column.cat.categories
        return _categorical(name, list(listed) if column.cat.ordered else _distinct(name, listed), rules)
    present = values[~column.isna().to_numpy()]
    if name in rules.cuts:
        return Attribute(name, None, check_cuts(rules.cuts[name], f"cuts of {name}"))
    by_value = name in rules.categorical
    many = not by_value and len(pd.unique(present[:_FEW])) > rules.bins
    distinct = None if many else pd.unique(present)
    if distinct is not None and (by_value or len(distinct) <= rules.bins):
        return _categorical(name, sorted(distinct.tolist()), rules)
    return Attribute(name, None, cut_points(present, rules.bins, rules.binning))


def _distinct(name: str, column: Any) -> list[Any]:
    """Return distinct values in a stated order: sorted, by type first where types mix."""
    try:
        found = list(column.dropna().unique())
    except TypeError:  # something that cannot be compared by value, such as a list
        found = [next(value for value in column.dropna() if isinstance(value, (dict, list, set, np.ndarray)))]
    for value in found:
        if not isinstance(value, (str, bytes, bool, int, float, np.bool_, np.number)) or isinstance(value, complex):
            raise DataError(
                f"X: column {name} must hold numbers, text, true/false or categories, got {type(value).__name__}"
            )
    return sorted(found, key=lambda value: (type(value).__name__, value))


def _categorical(name: str, categories: Sequence[Any], rules: AttributeRules) -> Attribute:
    if len(categories) > rules.max_categories:
        raise DataError(
            f"X: column {name} has {len(categories):,} distinct values, more than max_categories = "
            f"{rules.max_categories:,}; leave it out or raise the limit"
        )
    return Attribute(name, tuple(categories))


def _numbers(column: Any) -> npt.NDArray[Any] | None:
    """Return a numeric column as an array, NaN or 0 where a value is missing; None if it is not numeric."""
    import pandas as pd

    types = pd.api.types
    numeric = types.is_numeric_dtype(column.dtype)
    if not numeric or types.is_bool_dtype(column.dtype) or types.is_complex_dtype(column.dtype):
        return None
    if isinstance(column.dtype, np.dtype):
        values: npt.NDArray[Any] = column.to_numpy()
        return values.astype(np.float64) if values.dtype == np.float16 else values
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _shown(value: Any) -> str:
    """Return a category as text on one line."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return " ".join(str(value).split()) or "(blank)"


def _cut_texts(cuts: Sequence[float]) -> list[str]:
    """Return cut points with six digits, or as many more as tell them apart."""
    for digits in range(6, 17):
        texts = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(cut) for cut in cuts]
