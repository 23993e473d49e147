"""Empirical Bayes across clients: what the pool knows about a cell helps each client's noisy count of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEAST_RECORDS = 1.0
"""Smallest number of records a client is taken to have: noise can make the estimate negative."""


@dataclass(eq=False)
class CellStatistics:
    """Running sums over clients, from which each cell's mean and spread between clients follow.

    For the proportions p_i of a cell with noise variances v_i and weights w_i = 1 / v_i: sums of w, w p and w p^2, and
    of the counts themselves. Blocks of clients are added one after another, so the pool is never held whole.
    """

    records: float
    counts: Array
    weight: Array
    weighted: Array
    squared: Array
    clients: int

    @classmethod
    def empty(cls, cells: int) -> CellStatistics:
        """Start with no client."""
        zero = np.zeros(cells)
        return cls(0.0, zero.copy(), zero.copy(), zero.copy(), zero.copy(), 0)

    def add(self, cells: Array, variance: Array, totals: Array) -> None:
        """Add clients: counts and their noise variances (clients, cells), numbers of records (clients,)."""
        n = np.maximum(totals, LEAST_RECORDS)[:, None]
        proportion, precision = cells / n, n**2 / variance
        self.records += float(n.sum())
        self.counts += cells.sum(axis=0)
        self.weight += precision.sum(axis=0)
        self.weighted += (precision * proportion).sum(axis=0)
        self.squared += (precision * proportion**2).sum(axis=0)
        self.clients += len(cells)

    def mean(self) -> Array:
        """Proportion of each cell in the pool, (cells,), not negative."""
        return np.maximum(self.counts / self.records, 0.0)

    def between(self, significance: float = 0.0) -> Array:
        """Variance of the clients' true proportions around the pool's, (cells,); 0 where noise explains it all.

        By moments: sum w (p - m)^2 has expectation sum w (tau^2 + v) = tau^2 sum w + (number of clients); under noise
        alone its variance is twice the number of clients. `significance` standard deviations are taken off first.
        """
        mean = self.counts / self.records
        spread = self.squared - 2.0 * mean * self.weighted + mean**2 * self.weight
        noise = self.clients + significance * (2.0 * self.clients) ** 0.5
        return np.asarray(np.maximum((spread - noise) / self.weight, 0.0))

    def shrink(self, cells: Array, variance: Array, totals: Array, *, significance: float = 0.0) -> Array:
        """Pull clients towards the pool; see `shrink` and `between`."""
        return shrink(cells, variance, totals, self.mean(), self.between(significance))


def shrink(cells: Array, variance: Array, totals: Array, mean: Array, between: Array) -> Array:
    """Pull each client's proportions towards a common distribution, by how much of their spread is noise.

    Parameters
    ----------
    cells, variance : ndarray of float64, shape (clients, cells)
        Counts in records and their noise variances.
    totals : ndarray of float64, shape (clients,)
        Numbers of records.
    mean, between : ndarray of float64, shape (cells,)
        The common proportions, not negative, and the variance of the clients' around them.

    Returns
    -------
    ndarray of float64, shape (clients, cells)
        Counts in records, not negative.
    """
    n = np.maximum(totals, LEAST_RECORDS)[:, None]
    noise = variance / n**2
    kept = between / (between + noise)
    return np.asarray(np.maximum(n * (mean + kept * (cells / n - mean)), 0.0))
