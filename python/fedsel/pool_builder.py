"""Gathering releases into one array, refusing what does not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel.errors import PoolError
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.tables import Workload


class PoolBuilder:
    """Takes releases one after another into a preallocated array.

    Parameters
    ----------
    clients : int
        Number of releases to come.
    allow_mixed : bool
        Accept releases that differ in budget, noise, adjacency, round or seeding.

    Attributes
    ----------
    protocols : dict of str to (NoisePlan or None)
        For every client so far, the plan of several rounds that its tables are a part of, if any.
    promises : dict of str to NoisePlan
        For every client so far, the plan whose guarantee its release states.
    """

    def __init__(self, clients: int, *, allow_mixed: bool = False) -> None:
        if clients < 1:
            raise PoolError("a pool needs at least one release, got none")
        self._expected = clients
        self._allow_mixed = allow_mixed
        self._first: Release | None = None
        self._first_source = ""
        self._counts: npt.NDArray[np.int64] = np.empty((0, 0), dtype=np.int64)
        self._sources: dict[str, str] = {}
        self.protocols: dict[str, NoisePlan | None] = {}
        self.promises: dict[str, NoisePlan] = {}
        self._plans: dict[NoisePlan, int] = {}
        self._plan_index: list[int] = []
        self._seeded: list[bool] = []
        self._rounds: list[int] = []
        self._rows: list[int | None] = []

    def add(self, release: Release, *, source: str) -> None:
        """Take one release; `source` (a file, or the client) names it in messages.

        Raises
        ------
        PoolError
            If it does not go with those before it.
        """
        if self._first is None:
            self._first, self._first_source = release, source
            # Pages are touched only as rows are filled, so a wrong first file costs nothing.
            self._counts = np.empty((self._expected, release.workload.cells), dtype=np.int64)
        else:
            self._compare(self._first, release, source)
        if release.client in self._sources:
            raise PoolError(
                f"{source}: client {release.client!r} occurs twice, first in {self._sources[release.client]}"
            )
        self._counts[len(self._sources)] = release.table_counts
        self._sources[release.client] = source
        self.protocols[release.client] = release.protocol
        self.promises[release.client] = release.protocol or release.plan
        self._plan_index.append(self._plans.setdefault(release.table_plan, len(self._plans)))
        self._seeded.append(release.seeded)
        self._rounds.append(release.round)
        self._rows.append(release.rows)

    def _compare(self, first: Release, release: Release, source: str) -> None:
        if release.schema.fingerprint != first.schema.fingerprint:
            what = first.schema.difference(release.schema) or "fingerprints differ"
            raise PoolError(f"{source}: schema differs from that of {self._first_source}: {what}")
        if release.workload != first.workload:
            what = workload_difference(first.workload, release.workload)
            raise PoolError(f"{source}: workload differs from that of {self._first_source}: {what}")
        if not self._allow_mixed:
            pairs = (first.table_plan, release.table_plan), (first.round, release.round), (first.seeded, release.seeded)
            found = differences(*pairs)
            if found:
                raise PoolError(
                    f"{source}: release differs from that of {self._first_source} in {'; '.join(found)}; "
                    "mixed releases must be allowed explicitly"
                )

    def finish(self, *, partial: bool = False) -> dict[str, Any]:
        """Return the fields of the pool; unless `partial`, every expected release must have come."""
        held = len(self._sources)
        if self._first is None or (held != self._expected and not partial):
            raise PoolError(f"expected {self._expected} releases, got {held}")
        return {
            "clients": tuple(self._sources),
            "schema": self._first.schema,
            "workload": self._first.workload,
            "counts": self._counts[:held],
            "plans": tuple(self._plans),
            "plan_index": tuple(self._plan_index),
            "seeded": tuple(self._seeded),
            "rounds": tuple(self._rounds),
            "rows": tuple(self._rows),
        }


def workload_difference(first: Workload, second: Workload) -> str:
    """Say in which table two workloads over the same variables first differ."""
    for table in range(min(len(first.sets), len(second.sets))):
        if first.sets[table] != second.sets[table]:
            return f"table {table + 1} is {second.label(table)!r}, expected {first.label(table)!r}"
    return f"it has {len(second.sets)} tables, expected {len(first.sets)}"


def differences(plans: Sequence[NoisePlan], rounds: Sequence[int], seeded: Sequence[bool]) -> list[str]:
    """List in what releases differ, such as ``"epsilon (0.5, 1)"``; empty if in nothing."""
    found = []
    for field in ("mechanism", "adjacency", "epsilon", "delta", "accounting"):
        values = {getattr(plan, field) for plan in plans}
        if len(values) > 1:
            shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in sorted(values)]
            found.append(f"{field} ({some(shown)})")
    if not found and len(set(plans)) > 1:
        found.append("noise scale")
    if len(set(rounds)) > 1:
        found.append(f"round ({some([str(number) for number in sorted(set(rounds))])})")
    if len(set(seeded)) > 1:
        found.append(f"seeded noise ({sum(seeded)} of {len(seeded)} clients)")
    return found


def some(values: Sequence[str]) -> str:
    """List at most five of the values, and how many there are."""
    shown = ", ".join(values[:5])
    return shown if len(values) <= 5 else f"{shown}, ... ({len(values)} in all)"
