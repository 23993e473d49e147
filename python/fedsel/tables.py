"""Workloads (which variable sets are tabulated) and the marginals counted for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.errors import DataError, SchemaError

if TYPE_CHECKING:
    from fedsel.schema import Schema

MAX_ORDER = 3


@dataclass(frozen=True)
class Workload:
    """The variable sets that are tabulated, and the layout of their cells.

    The cells of all tables lie one after another in one flat vector; within a table the last variable runs fastest
    (C order). Every cell of every table is present, also those that never occur.

    Parameters
    ----------
    names : tuple of str
        Variable names, in schema order.
    domain : tuple of int
        Number of categories of each variable.
    sets : tuple of tuple of int
        One tuple of strictly increasing variable positions per table, of length 1 to 3. None at all where a release
        holds scores only.

    Raises
    ------
    SchemaError
        If the sets are repeated, unordered, too long or out of range.
    """

    names: tuple[str, ...]
    domain: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.domain):
            raise SchemaError(f"workload: {len(self.names)} names but {len(self.domain)} domain sizes")
        if any(size < 1 for size in self.domain):
            raise SchemaError(f"workload: every domain size must be at least 1, got {self.domain}")
        if len(set(self.sets)) != len(self.sets):
            raise SchemaError("workload: a variable set occurs twice")
        for members in self.sets:
            if not 1 <= len(members) <= MAX_ORDER:
                raise SchemaError(f"workload: a set must hold 1 to {MAX_ORDER} variables, got {len(members)}")
            if any(a >= b for a, b in pairwise(members)):
                raise SchemaError(f"workload: positions in a set must increase, got {members}")
            if members[0] < 0 or members[-1] >= len(self.names):
                raise SchemaError(f"workload: positions must be between 0 and {len(self.names) - 1}, got {members}")

    @classmethod
    def pairs(cls, schema: Schema) -> Workload:
        """All pairs of the schema's variables, in lexicographic order."""
        return cls.marginals(schema, order=2)

    @classmethod
    def marginals(cls, schema: Schema, *, order: int) -> Workload:
        """All sets of exactly `order` variables (1 to 3), in lexicographic order."""
        if not 1 <= order <= min(MAX_ORDER, len(schema.names)):
            raise SchemaError(f"order must be between 1 and {min(MAX_ORDER, len(schema.names))}, got {order}")
        return cls(schema.names, schema.domain, tuple(combinations(range(len(schema.names)), order)))

    @classmethod
    def of(cls, schema: Schema, sets: Iterable[Sequence[str]]) -> Workload:
        """Build a workload of the given sets of variable names; names within a set may come in any order."""
        position = {name: i for i, name in enumerate(schema.names)}
        resolved = []
        for members in sets:
            unknown = [name for name in members if name not in position]
            if unknown:
                raise SchemaError(f"workload: the schema has no variable {unknown[0]!r}; it has {list(schema.names)}")
            resolved.append(tuple(sorted(position[name] for name in members)))
        return cls(schema.names, schema.domain, tuple(resolved))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        return tuple(tuple(self.domain[v] for v in members) for members in self.sets)

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of cells of each table, (tables,)."""
        return np.array([math.prod(shape) for shape in self.shapes], dtype=np.int64)

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """First cell of each table, and the number of all cells at the end, (tables + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def cells(self) -> int:
        """Number of cells of all tables."""
        return int(self.offsets[-1])

    def label(self, table: int) -> str:
        """Names of a table's variables, such as ``"SEX x PINCP"``."""
        return " x ".join(self.names[v] for v in self.sets[table])


@dataclass(frozen=True, eq=False)
class Marginals:
    """Exact counts of one client's rows in the tables of a workload. Never leaves the client.

    Parameters
    ----------
    workload : Workload
        The tables.
    counts : ndarray of int64, shape (cells,)
        Rows per cell, all tables one after another.
    """

    workload: Workload
    counts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.counts.shape != (self.workload.cells,):
            raise DataError(f"marginals: expected {self.workload.cells} cells, got shape {self.counts.shape}")

    def table(self, index: int) -> npt.NDArray[np.int64]:
        """Return the counts of one table, in its own shape."""
        first, last = self.workload.offsets[index : index + 2]
        return self.counts[first:last].reshape(self.workload.shapes[index])

    def __add__(self, other: Marginals) -> Marginals:
        if self.workload != other.workload:
            raise DataError("marginals of different workloads cannot be added")
        return Marginals(self.workload, self.counts + other.counts)


def count(columns: Sequence[npt.NDArray[np.generic]], workload: Workload) -> Marginals:
    """Count all tables of a workload in one pass over the rows.

    Parameters
    ----------
    columns : sequence of ndarray, each of shape (rows,)
        Category codes, one column per variable of the workload, in its order: uint8, uint16 or int32 (read in place,
        strides included), every code in ``[0, domain)``.
    workload : Workload
        The tables to count.

    Returns
    -------
    Marginals

    Raises
    ------
    DataError
        If the number of columns, their lengths or types, or a code does not fit.
    """
    if not workload.sets:
        raise DataError("count: a workload of at least one variable set is needed, got none")
    if len(columns) != len(workload.names):
        raise DataError(f"count: expected {len(workload.names)} columns, one per variable, got {len(columns)}")
    try:
        counts = _core.count_marginals(list(columns), list(workload.domain), [list(s) for s in workload.sets])
    except ValueError as error:
        raise DataError(f"count: {error}") from None
    return Marginals(workload, counts)
