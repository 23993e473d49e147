"""Whether the tables of one release can come from the same records: shared marginals agree within their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedsel.errors import ReleaseError
from fedsel.privacy.noise_tail import deviation_bound
from fedsel.privacy.plan import NoisePlan
from fedsel.schema import Schema
from fedsel.tables import Workload

FALSE_ALARM = 1e-9
"""Bound on the probability that an honest release is refused, over all comparisons within it."""


@dataclass(frozen=True, eq=False)
class _Margin:
    """One marginal as one table measures it: where its cells start, how many cells of the table go into each."""

    table: int
    start: int
    cells: int
    summed: int


class ConsistencyCheck:
    """Compares every marginal that several tables measure; built once for a workload.

    Parameters
    ----------
    schema : Schema
        Names the categories in messages.
    workload : Workload
        The tables.

    Notes
    -----
    Every table's version of a marginal (the total of all records among them) is compared with the one that carries the
    least noise. The bound on each difference is Chernoff's, with probability `FALSE_ALARM` shared equally by all
    comparisons, so it holds for the true noise and not only for its normal approximation.
    """

    def __init__(self, schema: Schema, workload: Workload) -> None:
        self._schema = schema
        self._workload = workload
        self._margins: dict[tuple[int, ...], list[_Margin]] = {}
        # A marginal's cells are sums of consecutive entries of counts[order], as `reduceat` wants them.
        orders: list[npt.NDArray[np.int32]] = []
        starts: list[npt.NDArray[np.int64]] = []
        entries = cells = 0
        for variables, table in _shared_marginals(workload):
            members, shape = workload.sets[table], workload.shapes[table]
            kept = [place for place, variable in enumerate(members) if variable in variables]
            rest = [place for place in range(len(members)) if place not in kept]
            size = math.prod(shape[place] for place in kept)
            positions = np.arange(math.prod(shape), dtype=np.int32).reshape(shape) + np.int32(workload.offsets[table])
            orders.append(positions.transpose(kept + rest).ravel())
            summed = math.prod(shape) // size
            starts.append(entries + summed * np.arange(size, dtype=np.int64))
            self._margins.setdefault(variables, []).append(_Margin(table, cells, size, summed))
            entries += math.prod(shape)
            cells += size
        self._order = np.concatenate(orders) if orders else np.empty(0, dtype=np.int32)
        self._starts = np.concatenate(starts) if starts else np.empty(0, dtype=np.int64)
        self._plan: NoisePlan | None = None
        self._left = self._right = np.empty(0, dtype=np.int64)
        self._bound = np.empty(0, dtype=np.float64)

    def check(self, counts: npt.NDArray[np.int64], plan: NoisePlan, rows: int | None = None) -> None:
        """Refuse counts whose tables contradict each other, or a public number of records.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            Its tables, in records.
        plan : NoisePlan
            Its noise.
        rows : int, optional
            Public number of records.

        Raises
        ------
        ReleaseError
            Naming the two tables, the marginal's cell, what they give and how far apart they may be.
        """
        if plan != self._plan:
            self._set_bounds(plan)
            self._plan = plan
        if self._left.size:
            sums = np.add.reduceat(counts[self._order], self._starts)
            off = np.abs(sums[self._left] - sums[self._right]) - self._bound
            worst = int(np.argmax(off))
            if off[worst] > 0:
                raise ReleaseError(
                    self._describe(sums, int(self._left[worst]), int(self._right[worst]), self._bound[worst])
                )
        if rows is not None:
            self._check_rows(counts, plan, rows)

    def _set_bounds(self, plan: NoisePlan) -> None:
        scale = plan.scale
        left, right, bound = [], [], []
        comparisons = sum(group[0].cells * (len(group) - 1) for group in self._margins.values())
        log_inverse = math.log(2.0 * max(comparisons, 1) / FALSE_ALARM)
        for group in self._margins.values():
            energies = [float(margin.summed * scale[margin.table] ** 2) for margin in group]
            best = int(np.argmin(energies))
            for number, margin in enumerate(group):
                if number == best:
                    continue
                largest = float(max(scale[margin.table], scale[group[best].table]))
                apart = deviation_bound(plan.mechanism, energies[number] + energies[best], largest, log_inverse)
                left.append(np.arange(margin.start, margin.start + margin.cells))
                right.append(np.arange(group[best].start, group[best].start + margin.cells))
                bound.append(np.full(margin.cells, apart))
        if left:
            self._left, self._right = np.concatenate(left), np.concatenate(right)
            self._bound = np.concatenate(bound)

    def _check_rows(self, counts: npt.NDArray[np.int64], plan: NoisePlan, rows: int) -> None:
        scale, workload = plan.scale, self._workload
        log_inverse = math.log(2.0 * len(workload.sets) / FALSE_ALARM)
        sums = np.add.reduceat(counts, workload.offsets[:-1])
        for table, total in enumerate(sums.tolist()):
            energy = float(workload.sizes[table] * scale[table] ** 2)
            apart = deviation_bound(plan.mechanism, energy, float(scale[table]), log_inverse)
            if abs(total - rows) > apart:
                raise ReleaseError(
                    f"rows: {rows} records are stated, but table {workload.label(table)!r} counts {total}; "
                    f"expected at most {apart:.0f} apart"
                )

    def _describe(self, sums: npt.NDArray[np.int64], left: int, right: int, bound: float) -> str:
        for variables, group in self._margins.items():
            for margin in group:
                if margin.start <= left < margin.start + margin.cells:
                    other = next(m for m in group if m.start <= right < m.start + m.cells)
                    shape = [self._workload.domain[variable] for variable in variables]
                    index = np.unravel_index(left - margin.start, shape) if shape else ()
                    cell = " and ".join(
                        f"{self._workload.names[v]} = {self._schema.labels(self._workload.names[v])[int(i)]!r}"
                        for v, i in zip(variables, index, strict=True)
                    )
                    first, second = (self._workload.label(m.table) for m in (margin, other))
                    return (
                        f"count: tables {first!r} and {second!r} disagree on the number of records"
                        f"{' with ' + cell if cell else ''}: {sums[left]} and {sums[right]}, "
                        f"expected at most {bound:.0f} apart"
                    )
        raise AssertionError("every compared cell belongs to a marginal")


def _shared_marginals(workload: Workload) -> list[tuple[tuple[int, ...], int]]:
    """List (variables, table) for every marginal, the empty one for the total, that at least two tables measure."""
    measured: dict[tuple[int, ...], list[int]] = {}
    for table, members in enumerate(workload.sets):
        for order in range(len(members) + 1):
            for variables in combinations(members, order):
                measured.setdefault(variables, []).append(table)
    return [(variables, table) for variables, tables in measured.items() if len(tables) > 1 for table in tables]
