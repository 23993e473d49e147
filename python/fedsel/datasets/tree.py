"""Rows that look like a client's, drawn from its pair tables by a tree-structured model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError
from fedsel.tables import Marginals


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A joint distribution in which every variable depends on one other (Chow & Liu 1968).

    Parameters
    ----------
    order : tuple of int
        Variables, parents before children.
    parent : tuple of int
        Parent of each variable; -1 for the root.
    tables : tuple of ndarray, one per variable
        Probabilities of the variable's categories given its parent's, (parent categories, categories); one row for the
        root.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]
    tables: tuple[npt.NDArray[np.float64], ...]

    def sample(self, rows: int, *, seed: int) -> tuple[npt.NDArray[np.int32], ...]:
        """Draw rows.

        Parameters
        ----------
        rows : int
            How many.
        seed : int
            Seed of the draw.

        Returns
        -------
        tuple of ndarray of int32, each of shape (rows,)
            Category codes, one column per variable.
        """
        rng = np.random.default_rng(seed)
        columns: list[npt.NDArray[np.int32]] = [np.zeros(rows, dtype=np.int32)] * len(self.order)
        for variable in self.order:
            parent = self.parent[variable]
            given = np.zeros(rows, dtype=np.int32) if parent < 0 else columns[parent]
            steps = np.cumsum(self.tables[variable], axis=1)[:, :-1]  # the last step is 1: nothing lies beyond it
            uniform = rng.random(rows)
            columns[variable] = (uniform[:, None] >= steps[given]).sum(axis=1, dtype=np.int32)
        return tuple(columns)


def fit_tree(marginals: Marginals) -> TreeModel:
    """Fit the tree whose pairs share the most information (Chow & Liu 1968).

    Parameters
    ----------
    marginals : Marginals
        Exact tables of all pairs of variables.

    Returns
    -------
    TreeModel

    Raises
    ------
    DataError
        If a pair is not tabulated, or the tables hold no rows.
    """
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    workload = marginals.workload
    size = len(workload.names)
    tables = {members: marginals.table(t).astype(float) for t, members in enumerate(workload.sets) if len(members) == 2}
    if len(tables) < size * (size - 1) // 2 or size < 2:
        raise DataError("a tree needs the tables of all pairs of at least two variables")
    if not next(iter(tables.values())).sum() > 0:
        raise DataError("a tree needs at least one row, the tables hold none")
    # A minimum tree is wanted of lengths that fall with information; 0 would mean "no edge" to scipy.
    information = {pair: _information(table) for pair, table in tables.items()}
    longest = max(information.values()) + 1.0
    lengths = np.zeros((size, size))
    for (i, j), value in information.items():
        lengths[i, j] = longest - value
    tree = minimum_spanning_tree(lengths)
    order, parents = breadth_first_order(tree, 0, directed=False)
    parent = tuple(-1 if p < 0 else int(p) for p in parents)
    conditional = []
    for variable in range(size):
        if parent[variable] < 0:
            other = 1 if variable == 0 else 0
            joint = tables[min(variable, other), max(variable, other)]
            conditional.append(_normalise(joint.sum(axis=1 if variable < other else 0)[None, :]))
        else:
            pair = (min(variable, parent[variable]), max(variable, parent[variable]))
            joint = tables[pair] if pair[1] == variable else tables[pair].T
            conditional.append(_normalise(joint))
    return TreeModel(tuple(int(v) for v in order), parent, tuple(conditional))


def _information(table: npt.NDArray[np.float64]) -> float:
    p = table / table.sum()
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    held = p > 0
    return float((p[held] * np.log2(p[held] / expected[held])).sum())


def _normalise(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rows as probabilities; a parent category that never occurs gets a uniform row, which is never used."""
    totals = table.sum(axis=1, keepdims=True)
    return np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), 1.0 / table.shape[1])
