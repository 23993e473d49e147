"""The search space: attributes, the conditions on them, and the rows as codes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.encode import code_dtype
from fedsel.errors import DataError
from fedsel.subgroups.attributes import Attribute, AttributeRules, fit_attribute
from fedsel.subgroups.conditions import Condition
from fedsel.subgroups.frames import hashed
from fedsel.subgroups.outcome import TargetValues

MOST_CONDITIONS = 5_000_000


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """What descriptions can be made of.

    Parameters
    ----------
    attributes : tuple of Attribute
        The columns.
    codes : tuple of ndarray of uint8, uint16 or int32, each of shape (rows,)
        Their codes.
    conditions : tuple of Condition
        In the order that breaks ties: by column, then by code.
    owners : tuple of int
        Position of each condition's attribute.
    """

    attributes: tuple[Attribute, ...]
    codes: tuple[npt.NDArray[np.generic], ...]
    conditions: tuple[Condition, ...]
    owners: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes[0])

    @cached_property
    def disjoint(self) -> bool:
        """Whether no two conditions on one attribute can hold together."""
        return all(condition.single for condition in self.conditions)

    def descriptions(self, depth: int) -> int:
        """Return the number of descriptions of at most `depth` conditions that could cover a row."""
        depth = min(depth, len(self.attributes) if self.disjoint else len(self.conditions))
        if not self.disjoint:
            return sum(math.comb(len(self.conditions), size) for size in range(1, depth + 1))
        return sum(_symmetric(np.bincount(self.owners).tolist(), depth)[1:])

    def cells(self, depth: int) -> int:
        """Return the number of cells of all tables of at most `depth` attributes by a yes/no outcome."""
        return 2 * sum(_symmetric([attribute.size + 1 for attribute in self.attributes], depth)[1:])

    def category_conditions(self) -> list[list[int]]:
        """Return the number of each category code's condition by attribute, -1 for none; for disjoint conditions."""
        numbers = [[-1] * (attribute.size + 1) for attribute in self.attributes]
        for number, (owner, condition) in enumerate(zip(self.owners, self.conditions, strict=True)):
            numbers[owner][condition.ranges[0][0]] = number
        return numbers

    def bit_table(self, target: TargetValues, threads: int) -> _core.BitTable:
        """Return the rows as bit sets."""
        conditions = [
            (owner, list(condition.ranges)) for owner, condition in zip(self.owners, self.conditions, strict=True)
        ]
        return _core.BitTable(list(self.codes), conditions, target.steps, unit=target.unit, threads=threads)

    def cover(self, description: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Return which rows a description covers, (rows,)."""
        result = np.ones(self.rows, dtype=np.bool_)
        for number in description:
            result &= self.conditions[number].holds(self.codes[self.owners[number]])
        return result


def build_space(
    columns: Mapping[str, Any], rules: AttributeRules, *, least_rows: int, max_memory: float
) -> SearchSpace:
    """Find the attributes of columns and the conditions on them.

    A condition that holds for fewer than `least_rows` rows, or for every row, is left out.

    Parameters
    ----------
    columns : mapping of str to pandas Series
        The rows.
    rules : AttributeRules
        What to make of them.
    least_rows : int
        Least number of rows of a subgroup, at least 1.
    max_memory : float
        Most bytes that the conditions' bit sets may take.

    Returns
    -------
    SearchSpace

    Raises
    ------
    DataError
        If a column cannot be used, or there are no or too many conditions.
    """
    attributes: list[Attribute] = []
    codes: list[npt.NDArray[Any]] = []
    conditions: list[Condition] = []
    owners: list[int] = []
    for name, given in columns.items():
        column = hashed(given)
        attribute = fit_attribute(name, column, rules)
        wanted = attribute.count_conditions(rules)
        if wanted > MOST_CONDITIONS:
            raise DataError(
                f"X: column {name} gives {wanted:,} conditions, more than the {MOST_CONDITIONS:,} of one column that "
                "can be looked at; use smaller sets, fewer bins or no intervals"
            )
        encoded = attribute.encode(column).astype(code_dtype(attribute.size + 1))
        kept = _supported(attribute.conditions(rules), encoded, attribute.size + 1, least_rows)
        if kept:
            owners += [len(attributes)] * len(kept)
            attributes.append(attribute)
            codes.append(encoded)
            conditions += kept
    rows = len(next(iter(columns.values())))
    if not conditions:
        raise DataError(
            f"X: no column gives a condition that covers some of the {rows:,} rows but not all; "
            f"at least {least_rows:,} are needed"
        )
    needed = len(conditions) * rows / 8
    if needed > max_memory:
        raise DataError(
            f"X: {len(conditions):,} conditions on {rows:,} rows take {needed / 1e9:.1f} GB as bit sets, more than "
            f"max_memory = {max_memory / 1e9:g} GB; leave columns out, or raise min_support or the limit"
        )
    return SearchSpace(tuple(attributes), tuple(codes), tuple(conditions), tuple(owners))


def encode_as(space: SearchSpace, columns: Mapping[str, Any]) -> SearchSpace:
    """Return the same attributes and conditions with other rows; their order and other columns do not matter.

    Raises
    ------
    DataError
        If a column is missing or of another kind.
    """
    codes = []
    for attribute in space.attributes:
        if attribute.name not in columns:
            raise DataError(f"X: no column {attribute.name}; it has {', '.join(list(columns)[:10])}")
        codes.append(attribute.encode(hashed(columns[attribute.name])))  # int32, as -1 stands for new categories
    return SearchSpace(space.attributes, tuple(codes), space.conditions, space.owners)


def _supported(
    conditions: Sequence[Condition], codes: npt.NDArray[np.generic], size: int, least_rows: int
) -> list[Condition]:
    before = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=size))])  # rows of lower codes
    counts = (sum(int(before[last + 1] - before[first]) for first, last in c.ranges) for c in conditions)
    return [c for c, count in zip(conditions, counts, strict=True) if least_rows <= count < len(codes)]


def _symmetric(sizes: Sequence[int], degree: int) -> list[int]:
    """Return the elementary symmetric polynomials of degree 0 to `degree` in the sizes."""
    result = [1] + [0] * degree
    for size in sizes:
        for d in range(degree, 0, -1):
            result[d] += size * result[d - 1]
    return result
