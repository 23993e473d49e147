"""What the releases of all rounds say about every description of one or two conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fedsel.pool import Pool
from fedsel.subgroups.federated.evidence import Evidence, FloatArray, check_rounds, fuse, read_round
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.shares import onto_simplex, overdispersion, pooled_shares
from fedsel.subgroups.federated.sizes import Sizes, estimate_sizes

LEAST_INTERACTION = 0.002
"""Least variance of a pair's share around that of independence, relative to share times (1 - share)."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Shares of the negatives and of the positives that fall into the cells of one table.

    Parameters
    ----------
    shares, variance : ndarray of float64, shape (*categories, 2)
        Of negatives and positives; the variance is that of the estimate given the model.
    measured : bool
        Whether the table was released, or is predicted from its margins.
    """

    shares: FloatArray
    variance: FloatArray
    measured: bool


@dataclass(frozen=True, eq=False)
class Belief:
    """Estimates of all tables of one or two attributes.

    Parameters
    ----------
    sizes : Sizes
        Negatives and positives by client.
    tables : mapping of tuple of int to Estimate
        By the attributes' positions among the schema's variables, single ones first.
    evidence : mapping of tuple of int to Evidence
        What was measured, all rounds fused.
    """

    sizes: Sizes
    tables: Mapping[tuple[int, ...], Estimate]
    evidence: Mapping[tuple[int, ...], Evidence]

    @property
    def records(self) -> float:
        """Number of records of all clients, at least 1."""
        return max(1.0, float(self.sizes.totals.sum()))

    @property
    def base(self) -> float:
        """Share of positives among them, between 0 and 1."""
        return float(np.clip(self.sizes.totals[1] / self.records, 0.0, 1.0))

    @property
    def base_error(self) -> float:
        """Standard error of the share of positives."""
        return float(np.sqrt(self.sizes.of_difference(self.base).sum()) / self.records)

    @property
    def varies(self) -> bool:
        """Whether both outcomes stand out from the noise by a standard error: else there is nothing to compare."""
        return bool(np.all(self.sizes.totals > np.sqrt(self.sizes.totals_variance)))


def believe(protocol: SubgroupProtocol, rounds: Sequence[Pool]) -> Belief:
    """Estimate every table from those that were released.

    Parameters
    ----------
    protocol : SubgroupProtocol
        What was agreed.
    rounds : sequence of Pool
        Releases of each round so far, in order. Clients may be missing from later ones.

    Raises
    ------
    SubgroupError
        If the rounds do not fit the protocol.
    """
    check_rounds(protocol, rounds)
    clients = rounds[0].clients
    evidence = [table for pool in rounds for table in read_round(protocol, pool, clients)]
    by_set: dict[tuple[int, ...], list[Evidence]] = {}
    for table in evidence:
        by_set.setdefault(table.attributes, []).append(table)
    fused = {attributes: fuse(parts) for attributes, parts in by_set.items()}
    sizes = estimate_sizes(list(fused.values()), rounds[0].rows)
    weights = sizes.weights()
    tables: dict[tuple[int, ...], Estimate] = {}
    for attribute in protocol.attributes:
        own = [table.margin((attribute,)) for members, table in fused.items() if attribute in members]
        tables[attribute,] = _single(fuse(own), sizes, weights)
    measured = {members: _pooled(table, sizes, weights) for members, table in fused.items() if len(members) == 2}
    expected = {(a, b): _independent(tables[a,], tables[b,]) for a, b in combinations(protocol.attributes, 2)}
    strength = _interaction({members: (expected[members], found) for members, found in measured.items()})
    for members, guess in expected.items():
        found = measured.get(members)
        tables[members] = _predicted(guess, strength) if found is None else _corrected(guess, found, strength)
    return Belief(sizes, tables, fused)


def _pooled(table: Evidence, sizes: Sizes, weights: FloatArray) -> Estimate:
    """Pool a table over clients, cell by cell."""
    clients, shape = len(table.counts), table.counts.shape[1:]
    flat = table.counts.reshape(clients, -1, 2)
    shares, variance = np.empty(flat.shape[1:]), np.empty(flat.shape[1:])
    for outcome in (0, 1):
        counts, noise, own = flat[:, :, outcome], table.variance[:, outcome], weights[:, outcome]
        there = np.isfinite(noise)
        phi = overdispersion(counts[there], noise[there], own[there], sizes.variance[there, outcome])
        square = float((own[there] ** 2).sum())
        rough = onto_simplex(own @ counts / square) if square > 0 else np.full(flat.shape[1], 1 / flat.shape[1])
        shares[:, outcome], variance[:, outcome] = pooled_shares(counts, noise, own, rough, phi)
    return Estimate(shares.reshape(shape), variance.reshape(shape), measured=True)


def _single(table: Evidence, sizes: Sizes, weights: FloatArray) -> Estimate:
    pooled = _pooled(table, sizes, weights)
    shares = np.stack([onto_simplex(pooled.shares[:, outcome]) for outcome in (0, 1)], axis=-1)
    return Estimate(shares, pooled.variance, measured=True)


def _independent(first: Estimate, second: Estimate) -> Estimate:
    """Predict a pair as if its attributes were independent among negatives and among positives."""
    a, b = first.shares[:, None], second.shares[None]
    va, vb = first.variance[:, None], second.variance[None]
    return Estimate(a * b, a**2 * vb + b**2 * va, measured=False)


def _interaction(pairs: Mapping[tuple[int, ...], tuple[Estimate, Estimate]]) -> float:
    """Estimate, by moments, the variance of shares around independence, relative to share times (1 - share).

    One number for all tables that were measured, since noise would dominate one a table.
    """
    excess = possible = 0.0
    for expected, found in pairs.values():
        excess += float(((found.shares - expected.shares) ** 2 - found.variance - expected.variance).sum())
        possible += float((expected.shares * (1 - expected.shares)).sum())
    return max(excess / possible, LEAST_INTERACTION) if possible > 0 else LEAST_INTERACTION


def _predicted(expected: Estimate, strength: float) -> Estimate:
    """Count the interaction that was not measured as an error: what `_corrected` says of a table of endless noise."""
    prior = strength * expected.shares * (1 - expected.shares)
    return Estimate(expected.shares, expected.variance + prior, measured=False)


def _corrected(expected: Estimate, found: Estimate, strength: float) -> Estimate:
    """Pull what was measured towards independence as far as its noise says (empirical Bayes)."""
    prior = strength * expected.shares * (1 - expected.shares)
    noise = found.variance
    trust = np.where(noise > 0, prior / np.where(noise > 0, prior + noise, 1.0), 1.0)
    shares = expected.shares + trust * (found.shares - expected.shares)
    variance = trust * noise + (1 - trust) ** 2 * expected.variance
    return Estimate(shares, variance, measured=True)
