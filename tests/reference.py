"""Plain numpy versions of what the core computes fast, and made pools to compare on."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from fedsel import Pool, Schema, Variable, Workload
from fedsel.privacy.plan import NoisePlan


def mutual_information(cells):
    """In bits, of a table that may hold negative cells: they count as 0."""
    x = np.maximum(np.asarray(cells, dtype=float), 0)
    n = x.sum()
    if n == 0:
        return 0.0
    p = x / n
    expected = np.outer(p.sum(1), p.sum(0))
    where = p > 0
    return float((p[where] * np.log2(p[where] / expected[where])).sum())


def components(pool, members, sensitive, target):
    """The four sums of the federation loss, in bits."""
    result = np.zeros(4)
    for t, pair in enumerate(pool.workload.sets):
        names = {pool.schema.names[v] for v in pair}
        kind = {(True, True): 0, (True, False): 1, (False, False): 2, (False, True): 3}
        result[kind[sensitive in names, target in names]] += mutual_information(
            pool.table(t)[list(members)].sum(axis=0)
        )
    return result


def made_schema(domain, *, sensitive=(0,), target=-1):
    target %= len(domain)
    roles = ["sensitive" if i in sensitive else "target" if i == target else "feature" for i in range(len(domain))]
    return Schema(
        name="made",
        variables=tuple(
            Variable(name=f"v{i}", role=role, categories=tuple(range(size)))
            for i, (size, role) in enumerate(zip(domain, roles, strict=True))
        ),
    )


def made_pool(seed, *, clients, domain, low=-200, high=3000, empty=0.3, **roles):
    """A pool of random tables that need not agree with one another, as noisy ones do not."""
    rng = np.random.default_rng(seed)
    schema = made_schema(domain, **roles)
    workload = Workload.pairs(schema)
    counts = rng.integers(low, high, size=(clients, workload.cells))
    counts[rng.random(counts.shape) < empty] = 0
    plan = NoisePlan("none", "add-remove", math.inf, 0.0, 0, (1,) * len(workload.sets), "none")
    return Pool(
        clients=tuple(f"c{i:03}" for i in range(clients)),
        schema=schema,
        workload=workload,
        counts=np.ascontiguousarray(counts, dtype=np.int64),
        plans=(plan,),
        plan_index=(0,) * clients,
        seeded=(False,) * clients,
        rounds=(1,) * clients,
        rows=(None,) * clients,
    )


def made_exact_pool(seed, *, clients, domain, rows=(0, 400), **roles):
    """A pool of exact tables of made rows: all tables of a client agree. Numbers of rows are drawn from a range."""
    rng = np.random.default_rng(seed)
    pool = made_pool(seed, clients=clients, domain=domain, **roles)
    counts = np.zeros_like(pool.counts)
    for client in range(clients):
        n = int(rng.integers(*rows))
        # The smaller of two draws: skewed, and by another client's amount.
        columns = [np.minimum(rng.integers(0, size, n), rng.integers(0, size + client % 3, n)) for size in domain]
        for t, (i, j) in enumerate(pool.workload.sets):
            cells = np.bincount(columns[i] * domain[j] + columns[j], minlength=domain[i] * domain[j])
            counts[client, pool.workload.offsets[t] : pool.workload.offsets[t + 1]] = cells
    return replace(pool, counts=counts)


def best_by_enumeration(pool, k, weights, sensitive, target):
    """(loss, members) of the best federation, by trying all."""
    return min(
        (float(components(pool, members, sensitive, target) @ weights), members)
        for members in combinations(range(len(pool)), k)
    )
