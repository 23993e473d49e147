"""What clients released, as counts of negatives and positives in every table, with the variance of their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.errors import SubgroupError
from fedsel.pool import Pool
from fedsel.subgroups.federated.protocol import SubgroupProtocol

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Noisy counts of one table by client.

    Parameters
    ----------
    attributes : tuple of int
        Positions of its attributes among the schema's variables, at most two.
    counts : ndarray of float64, shape (clients, *categories, 2)
        Negatives and positives, in records.
    variance : ndarray of float64, shape (clients, 2)
        Of the noise of a cell of each; independent between cells. Infinite where a client did not release the table,
        whose counts are then 0.
    """

    attributes: tuple[int, ...]
    counts: FloatArray
    variance: FloatArray

    def margin(self, kept: tuple[int, ...]) -> Evidence:
        """Add up the cells over the attributes that are not kept."""
        gone = tuple(1 + axis for axis, position in enumerate(self.attributes) if position not in kept)
        cells = int(np.prod([self.counts.shape[axis] for axis in gone]))
        return Evidence(kept, self.counts.sum(axis=gone), self.variance * cells)

    def cell(self, codes: tuple[int, ...]) -> FloatArray:
        """Return the counts of one cell, (clients, 2)."""
        place = int(np.ravel_multi_index(codes, self.counts.shape[1:-1])) if codes else 0
        cell: FloatArray = self.counts.reshape(len(self.counts), -1, 2)[:, place]
        return cell

    @property
    def total(self) -> tuple[FloatArray, FloatArray]:
        """Sum of counts over clients, (*categories, 2), and its variance, (2,)."""
        return self.counts.sum(axis=0), self.variance.sum(axis=0)


def read_round(protocol: SubgroupProtocol, pool: Pool, clients: Sequence[str]) -> list[Evidence]:
    """Return the tables of a round, negatives of several categories added up.

    Parameters
    ----------
    protocol : SubgroupProtocol
        Tells outcome from attributes.
    pool : Pool
        The releases of the round.
    clients : sequence of str
        Those of the first round, in the order wanted; some may be missing from the pool.
    """
    rows = [clients.index(name) for name in pool.clients]
    found = []
    for index, members in enumerate(pool.workload.sets):
        attributes = tuple(position for position in members if position != protocol.target)
        table = np.moveaxis(pool.table(index), 1 + members.index(protocol.target), -1) * pool.unit
        positive = table[..., protocol.positive]
        counts = np.zeros((len(clients), *table.shape[1:-1], 2))
        counts[rows] = np.stack([table.sum(axis=-1) - positive, positive], axis=-1)
        variance = np.full((len(clients), 2), np.inf)
        variance[rows] = pool.variance[:, index, None] * np.array([protocol.negatives, 1.0])
        found.append(Evidence(attributes, counts, variance))
    return found


def check_rounds(protocol: SubgroupProtocol, rounds: Sequence[Pool]) -> None:
    """Refuse pools that are not the first rounds of a protocol, in order, of clients of the first.

    Raises
    ------
    SubgroupError
        If schema, tables, noise or clients do not fit.
    """
    if not 1 <= len(rounds) <= protocol.rounds:
        raise SubgroupError(f"expected releases of 1 to {protocol.rounds} rounds, got {len(rounds)}")
    for number, pool in enumerate(rounds, start=1):
        where = f"round {number}"
        if pool.schema.fingerprint != protocol.schema.fingerprint:
            what = protocol.schema.difference(pool.schema)
            raise SubgroupError(f"{where}: schema differs from that of the protocol: {what}")
        unknown = sorted(set(pool.clients) - set(rounds[0].clients))
        if unknown:
            raise SubgroupError(f"{where}: client {unknown[0]!r} has not released round 1")
        expected = protocol.tables[number - 1]
        if len(pool.workload.sets) != expected:
            raise SubgroupError(f"{where}: expected {expected} tables, got {len(pool.workload.sets)}")
        for members in pool.workload.sets:
            attributes = [position for position in members if position != protocol.target]
            if len(attributes) == len(members) or any(a not in protocol.attributes for a in attributes):
                raise SubgroupError(f"{where}: expected tables of attributes by the outcome, got {members}")
        if any(len(set(plan.weights)) > 1 for plan in pool.plans):
            raise SubgroupError(f"{where}: expected tables of equal precision, as the protocol says")
    if rounds[0].workload.sets != protocol.first().sets:
        raise SubgroupError("round 1: expected the outcome and every attribute by the outcome")


def fuse(parts: Sequence[Evidence]) -> Evidence:
    """Combine measurements of one table by inverse variance; exact ones win.

    Parameters
    ----------
    parts : sequence of Evidence
        Of the same attributes and clients, with independent noise; at least one.
    """
    if len(parts) == 1:
        return parts[0]
    variance = np.stack([part.variance for part in parts])
    exact = variance == 0
    weight = np.where(exact.any(axis=0), exact.astype(np.float64), 1 / np.where(exact, 1.0, variance))
    sums = weight.sum(axis=0)
    weight /= np.where(sums > 0, sums, 1.0)
    spread = parts[0].counts.ndim - 2
    shaped = weight.reshape(*weight.shape[:2], *(1,) * spread, 2)
    counts = (shaped * np.stack([part.counts for part in parts])).sum(axis=0)
    fused = (weight**2 * np.where(weight > 0, variance, 0.0)).sum(axis=0)
    return Evidence(parts[0].attributes, counts, np.where(sums > 0, fused, np.inf))
