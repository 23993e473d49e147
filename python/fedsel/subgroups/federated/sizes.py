"""How many negatives and positives each client has, as far as its releases tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsel.subgroups.federated.evidence import Evidence, FloatArray, fuse


@dataclass(frozen=True, eq=False)
class Sizes:
    """Records of each client by outcome.

    Parameters
    ----------
    estimate : ndarray of float64, shape (clients, 2)
        Negatives and positives, unbiased, perhaps negative.
    variance : ndarray of float64, shape (clients, 2)
        Of the estimate.
    covariance : ndarray of float64, shape (clients,)
        Of negatives and positives: 0 unless their sum is public, in which case what one has too many the other lacks.
    """

    estimate: FloatArray
    variance: FloatArray
    covariance: FloatArray

    @property
    def totals(self) -> FloatArray:
        """Negatives and positives of all clients, (2,)."""
        totals: FloatArray = self.estimate.sum(axis=0)
        return totals

    @property
    def totals_variance(self) -> FloatArray:
        """Variance of the totals, (2,)."""
        variance: FloatArray = self.variance.sum(axis=0)
        return variance

    @property
    def records_variance(self) -> float:
        """Variance of the number of records of all clients; 0 where all are public."""
        return max(0.0, float(self.variance.sum() + 2 * self.covariance.sum()))

    def of_difference(self, share: FloatArray | float) -> FloatArray:
        """Return the variance of (1 - share) positives - share negatives of each client, (clients,)."""
        negative, positive = self.variance.T
        own = (1 - share) ** 2 * positive + share**2 * negative
        result: FloatArray = own - 2 * share * (1 - share) * self.covariance
        return result

    def weights(self) -> FloatArray:
        """Return sizes that may serve as weights, (clients, 2): none negative, and with the totals of the estimates.

        A client whose number of records does not stand out from its noise by a standard deviation counts as empty. That
        costs at most the little it could have said, and keeps noise from being taken for size.
        """
        kept = np.where(self.estimate**2 > self.variance, np.maximum(self.estimate, 0.0), 0.0)
        sums = kept.sum(axis=0)
        scale = np.where(sums > 0, np.maximum(self.totals, 0.0) / np.where(sums > 0, sums, 1.0), 0.0)
        result: FloatArray = kept * scale
        return result


def estimate_sizes(tables: Sequence[Evidence], rows: Sequence[int | None]) -> Sizes:
    """Combine the totals of all tables by inverse variance.

    Parameters
    ----------
    tables : sequence of Evidence
        Every table counts every record.
    rows : sequence of (int or None)
        Public number of records of each client, where there is one: what it leaves over is divided between negatives
        and positives in proportion to their variances, the least-squares solution.
    """
    fused = fuse([table.margin(()) for table in tables])
    estimate, variance, covariance = fused.counts.copy(), fused.variance.copy(), np.zeros(len(rows))
    for client, known in enumerate(rows):
        both = variance[client].sum()
        if known is not None and both > 0:
            estimate[client] += variance[client] / both * (known - estimate[client].sum())
            variance[client] = variance[client].prod() / both
            covariance[client] = -variance[client, 0]
    return Sizes(estimate, variance, covariance)
