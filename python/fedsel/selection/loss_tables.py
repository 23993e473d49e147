"""Which tables of a pool the federation loss reads, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.schema import Schema

if TYPE_CHECKING:
    from fedsel.pool import Pool

Sensitive = str | Sequence[str] | None
"""Which sensitive attributes a loss guards: one, several, or the schema's first."""


def active_sensitive(schema: Schema, sensitive: Sensitive) -> tuple[str, ...]:
    """Return the sensitive attributes a loss guards.

    Raises
    ------
    SelectionError
        If the schema lacks a target or a sensitive attribute, or a named one is not sensitive or named twice.
    """
    if schema.target is None:
        raise SelectionError(f"schema {schema.name!r}: the loss needs a variable of role target, it has none")
    if not schema.sensitive:
        raise SelectionError(f"schema {schema.name!r}: the loss needs a variable of role sensitive, it has none")
    if sensitive is None:
        return schema.sensitive[:1]
    names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    for name in names:
        if name not in schema.sensitive:
            raise SelectionError(f"sensitive must be one of {list(schema.sensitive)}, got {name!r}")
    if not names or len(set(names)) != len(names):
        raise SelectionError(f"sensitive must name different attributes, at least one, got {list(names)}")
    return names


def component_of(pair: tuple[str, str], sensitive: tuple[str, ...], target: str) -> int | None:
    """Return the position of a pair's sum among the components; None for two active sensitive attributes."""
    guarded = sum(name in sensitive for name in pair)
    if guarded == 2:
        return None
    if guarded:
        return 0 if target in pair else 1
    return 3 if target in pair else 2


@dataclass(frozen=True, eq=False)
class LossTables:
    """The tables of a loss.

    Parameters
    ----------
    sensitive : tuple of str
        The active sensitive attributes.
    pairs : tuple of (str, str)
        The variables of each table.
    specs : list of (int, int, int, int, int)
        For the core: rows, columns, component, row variable and column variable of each table.
    sizes : ndarray of int64, shape (tables,)
        Cells of each table.
    columns : ndarray of int64, or None
        Which cells of the pool these are, None for all of them in order.
    """

    sensitive: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    specs: list[tuple[int, int, int, int, int]]
    sizes: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, pool: Pool, sensitive: Sensitive) -> LossTables:
        """Find the tables of a loss in a pool.

        Raises
        ------
        SelectionError
            If the schema lacks a target or a sensitive attribute, or the pool lacks a pair.
        """
        schema, workload = pool.schema, pool.workload
        active = active_sensitive(schema, sensitive)
        names, domain = schema.names, workload.domain
        position = {members: t for t, members in enumerate(workload.sets) if len(members) == 2}
        assert schema.target is not None  # active_sensitive has checked
        tables: list[int] = []
        pairs: list[tuple[str, str]] = []
        specs: list[tuple[int, int, int, int, int]] = []
        for i in range(len(names)):
            for j in range(i + 1, len(names)):
                component = component_of((names[i], names[j]), active, schema.target)
                if component is None:
                    continue
                if (i, j) not in position:
                    raise SelectionError(
                        f"the loss needs the table of every pair of variables; the pool lacks {names[i]} x {names[j]}"
                    )
                tables.append(position[i, j])
                pairs.append((names[i], names[j]))
                specs.append((domain[i], domain[j], component, i, j))
        columns = None
        if tables != list(range(len(workload.sets))):
            columns = np.concatenate([np.arange(*workload.offsets[t : t + 2]) for t in tables])
        return cls(active, tuple(pairs), specs, workload.sizes[tables], columns)

    def of_counts(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return these tables' cells, (clients, cells); copied only where the pool has other tables too."""
        return counts if self.columns is None else np.ascontiguousarray(counts[:, self.columns])
