"""One estimate of what several noisy tables of a client measure together: totals and one-way marginals.

A two-way table splits orthogonally into its total, a row effect, a column effect and an interaction (two-way analysis
of variance). Noise that is independent and of one variance in every cell of a table stays independent between the four
parts, so each part can be estimated by itself: totals and effects as means of all tables that hold them, weighted by
inverse variance, interactions as they are. Rebuilt, this is the generalised least-squares estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.tables import Workload

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Consistent:
    """Tables that agree with each other.

    Parameters
    ----------
    cells : ndarray of float64, shape (clients, cells)
        Rebuilt counts, in records; may be negative.
    variance : ndarray of float64, shape (clients, cells)
        Noise variance of each, in records squared.
    totals : ndarray of float64, shape (clients,)
        Number of records of each client.
    margins, margin_variance : ndarray of float64, shape (clients, categories)
        One-way marginals that the tables agree on, one variable after another, and their noise variances; 0 for a
        variable that no table holds.
    """

    cells: Array
    variance: Array
    totals: Array
    margins: Array
    margin_variance: Array


def make_consistent(counts: Array, variance: Array, workload: Workload) -> Consistent:
    """Rebuild two-way tables so that all tables of a client agree on its total and one-way marginals.

    Parameters
    ----------
    counts : ndarray of float64, shape (clients, cells)
        Noisy counts, in records.
    variance : ndarray of float64, shape (clients, tables)
        Noise variance of a cell of each table, positive, in records squared.
    workload : Workload
        Two-way tables only.

    Returns
    -------
    Consistent
    """
    clients = len(counts)
    sizes = workload.sizes.astype(np.float64)
    offsets = workload.offsets
    tables = [
        counts[:, offsets[t] : offsets[t + 1]].reshape(clients, *workload.shapes[t]) for t in range(len(workload.sets))
    ]

    weight = 1.0 / (variance * sizes)  # of a table's total
    total_variance = 1.0 / weight.sum(axis=1)
    totals = np.asarray((np.add.reduceat(counts, offsets[:-1], axis=1) * weight).sum(axis=1) * total_variance)

    # Row and column sums of each table, centred, are estimates of the variables' effects.
    effects: dict[int, Array] = {}
    precisions: dict[int, Array] = {}
    for t, (first, second) in enumerate(workload.sets):
        rows, columns = workload.shapes[t]
        for variable, sums, summed in (
            (first, tables[t].sum(axis=2), columns),
            (second, tables[t].sum(axis=1), rows),
        ):
            precision = 1.0 / (variance[:, t] * summed)
            centred = (sums - sums.mean(axis=1, keepdims=True)) * precision[:, None]
            effects[variable] = effects.get(variable, 0.0) + centred
            precisions[variable] = precisions.get(variable, 0.0) + precision
    for variable, precision in precisions.items():
        effects[variable] = effects[variable] / precision[:, None]

    cells = np.empty_like(counts)
    spread = np.empty_like(counts)
    for t, (first, second) in enumerate(workload.sets):
        rows, columns = workload.shapes[t]
        table = tables[t]
        interaction = table - table.mean(axis=2, keepdims=True) - table.mean(axis=1, keepdims=True)
        interaction += table.mean(axis=(1, 2), keepdims=True)
        rebuilt = interaction + effects[first][:, :, None] / columns + effects[second][:, None, :] / rows
        rebuilt += totals[:, None, None] / (rows * columns)
        cells[:, offsets[t] : offsets[t + 1]] = rebuilt.reshape(clients, -1)
        inner, outer = 1.0 - 1.0 / rows, 1.0 - 1.0 / columns  # share of the cells' space that an effect takes
        spread[:, offsets[t] : offsets[t + 1]] = (
            variance[:, t] * inner * outer
            + inner / (precisions[first] * columns**2)
            + outer / (precisions[second] * rows**2)
            + total_variance / (rows * columns) ** 2
        )[:, None]

    margins, margin_variance = (np.zeros((clients, sum(workload.domain))) for _ in range(2))
    for variable, effect in effects.items():
        size = workload.domain[variable]
        start = sum(workload.domain[:variable])
        here = slice(start, start + size)
        margins[:, here] = effect + totals[:, None] / size
        variance_of = (1.0 - 1.0 / size) / precisions[variable] + total_variance / size**2
        margin_variance[:, here] = variance_of[:, None]
    return Consistent(cells, spread, totals, margins, margin_variance)
