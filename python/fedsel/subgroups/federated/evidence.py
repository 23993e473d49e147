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
        Of the noise of a cell of each; independent between cells.
    """

    attributes: tuple[int, ...]
    counts: FloatArray
    variance: FloatArray

    def margin(self, kept: tuple[int, ...]) -> Evidence:
        """Add up the cells over the attributes that are not kept."""
        gone = tuple(1 + axis for axis, position in enumerate(self.attributes) if position not in kept)
        cells = int(np.prod([self.counts.shape[axis] for axis in gone]))
        return Evidence(kept, self.counts.sum(axis=gone), self.variance * cells)

    @property
    def total(self) -> tuple[FloatArray, FloatArray]:
        """Sum of counts over clients, (*categories, 2), and its variance, (2,)."""
        return self.counts.sum(axis=0), self.variance.sum(axis=0)


def read_round(protocol: SubgroupProtocol, pool: Pool) -> list[Evidence]:
    """Return the tables of a pool, negatives of several categories added up."""
    found = []
    for index, members in enumerate(pool.workload.sets):
        attributes = tuple(position for position in members if position != protocol.target)
        table = np.moveaxis(pool.table(index), 1 + members.index(protocol.target), -1) * pool.unit
        positive = table[..., protocol.positive]
        counts = np.stack([table.sum(axis=-1) - positive, positive], axis=-1).astype(np.float64)
        variance = pool.variance[:, index, None] * np.array([protocol.negatives, 1.0])
        found.append(Evidence(attributes, counts, variance))
    return found


def check_rounds(protocol: SubgroupProtocol, rounds: Sequence[Pool]) -> None:
    """Refuse pools that are not the first rounds of a protocol, in order, of the same clients.

    Raises
    ------
    SubgroupError
        If schema, tables, plans or clients do not fit.
    """
    if not 1 <= len(rounds) <= protocol.rounds:
        raise SubgroupError(f"expected releases of 1 to {protocol.rounds} rounds, got {len(rounds)}")
    first = rounds[0]
    for number, pool in enumerate(rounds, start=1):
        where = f"round {number}"
        if pool.schema.fingerprint != protocol.schema.fingerprint:
            what = protocol.schema.difference(pool.schema)
            raise SubgroupError(f"{where}: schema differs from that of the protocol: {what}")
        if pool.clients != first.clients:
            odd = sorted(set(pool.clients) ^ set(first.clients))
            raise SubgroupError(f"{where}: expected the clients of round 1, in their order; {odd[:3]} differ")
        if len(pool.workload.sets) != protocol.tables[number - 1]:
            raise SubgroupError(
                f"{where}: expected {protocol.tables[number - 1]} tables, got {len(pool.workload.sets)}"
            )
        for members in pool.workload.sets:
            attributes = [position for position in members if position != protocol.target]
            if len(attributes) == len(members) or any(a not in protocol.attributes for a in attributes):
                raise SubgroupError(f"{where}: expected tables of attributes by the outcome, got {members}")
        for plan in pool.plans:
            if plan.weights != _expected_weights(protocol, number, plan.weights[0]):
                raise SubgroupError(f"{where}: expected tables of equal precision, as the protocol says")
    if first.workload.sets != protocol.first().sets:
        raise SubgroupError("round 1: expected the outcome and every attribute by the outcome")


def _expected_weights(protocol: SubgroupProtocol, number: int, weight: int) -> tuple[int, ...]:
    return (weight,) * protocol.tables[number - 1]


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
    weight /= weight.sum(axis=0)
    spread = parts[0].counts.ndim - 2
    shaped = weight.reshape(*weight.shape[:2], *(1,) * spread, 2)
    counts = (shaped * np.stack([part.counts for part in parts])).sum(axis=0)
    return Evidence(parts[0].attributes, counts, (weight**2 * variance).sum(axis=0))
