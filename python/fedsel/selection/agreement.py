"""Tables of a client that agree, exactly, on its number of records and on the one-way marginals they share.

Empirical Bayes pulls every cell by another amount, so shrunk tables of one client disagree a little. One estimate of
each one-way marginal is better than what ten tables say of it after that, and where all tables have it the loss is one
dot product (see docs/architecture.md): each table is fitted to the marginals (raking), and rounded to whole numbers
without losing a unit of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.tables import Workload

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Agreed:
    """What all tables of a client agree on.

    Parameters
    ----------
    margins : ndarray of float64, shape (clients, categories)
        In records, one variable after another, not negative; only proportions count.
    sizes : ndarray of float64, shape (clients,)
        Number of records of each client, positive.
    """

    margins: Array
    sizes: Array


def rake(cells: Array, margins: Array, workload: Workload) -> Array:
    """Fit two-way tables to one-way marginals (iterative proportional fitting, Deming and Stephan 1940).

    Parameters
    ----------
    cells : ndarray of float64, shape (clients, cells)
        Counts, not negative. A table without any stands for independence.
    margins : ndarray of float64, shape (clients, categories)
        One variable after another, not negative.
    workload : Workload
        Two-way tables only.

    Returns
    -------
    ndarray of float64, shape (clients, cells)
        The closest tables, in relative entropy, whose marginals are in these proportions; each adds up to 1.
    """
    return _core.rake_tables(cells, _proportions(margins, workload), workload.domain, _pairs(workload))


def round_to(cells: Array, margins: Array, totals: npt.NDArray[np.int64], workload: Workload) -> npt.NDArray[np.int32]:
    """Fit two-way tables to one-way marginals in whole numbers: marginals and totals of all tables agree exactly.

    Marginals are rounded to the totals by largest remainder; tables are raked to them and rounded down, and what is
    missing goes to the largest remainders of cells whose row and column both miss some (controlled rounding).

    Parameters
    ----------
    cells : ndarray of float64, shape (clients, cells)
        Counts, not negative.
    margins : ndarray of float64, shape (clients, categories)
        One variable after another, not negative; only proportions count.
    totals : ndarray of int64, shape (clients,)
        What every table is to add up to, 0 to 2^31 - 1.
    workload : Workload
        Two-way tables only.

    Returns
    -------
    ndarray of int32, shape (clients, cells)
    """
    return _core.round_tables(cells, margins, totals.tolist(), workload.domain, _pairs(workload))


def _pairs(workload: Workload) -> list[tuple[int, int]]:
    return [(first, second) for first, second in workload.sets]


def _proportions(margins: Array, workload: Workload) -> Array:
    """Each variable's marginal, adding up to 1; even where nothing is known."""
    sizes = np.array(workload.domain)
    sums = np.repeat(np.add.reduceat(margins, np.cumsum(sizes) - sizes, axis=1), sizes, axis=1)
    return np.where(sums > 0, margins / np.where(sums > 0, sums, 1.0), 1.0 / np.repeat(sizes, sizes))
