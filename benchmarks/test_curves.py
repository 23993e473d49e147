"""Proposals a second in annealing, by clients, members, cells and threads, beside numpy on the same pools.

    pytest benchmarks/test_curves.py --benchmark-json=curves.json
    python scripts/draw_benchmarks.py curves.json docs/scale.svg

The second command draws docs/scale.svg and prints the table of docs/performance.md. Takes about three minutes and 5 GB.

Pools are made: every client is the sum of three of a few hundred clients whose rows are drawn, so exact tables agree. A
chain starts from the end of a short expansion search and walks at so low a temperature that nearly every proposal is
refused, which is where searches spend their time. ``exact``: every proposal is evaluated in full, in double precision;
``screened``: refused by a bound where that suffices, with the same walk.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest

from fedsel import _core
from fedsel.datasets.example import load_example
from fedsel.selection.weights import LossWeights
from fedsel.tables import Workload, count

STEPS, NUMPY_STEPS, ROUNDS = 50_000, 300, 3
STATES = tuple(load_example().workload.domain)  # 2,958 cells
BY_CLIENTS = [(clients, 20) for clients in (46, 300, 1_000, 3_000, 10_000, 30_000, 100_000)]
BY_MEMBERS = [(10_000, k) for k in (5, 50, 200, 500, 1_000)]
BY_CELLS = [(6,) * variables for variables in (4, 6, 8, 16, 32, 60)]


@lru_cache(maxsize=1)  # one pool at a time
def made(clients, domain):
    """Counts, (clients, cells), and what the core wants to know of the tables."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(len(domain)) for j in range(i + 1, len(domain))]
    workload = Workload(tuple(f"v{i}" for i in range(len(domain))), domain, tuple(pairs))
    base = []
    for _ in range(min(200, 4 * clients)):
        n, tilt = int(rng.integers(200, 2_000)), rng.uniform(0.5, 2.0, len(domain))
        latent = rng.random(n)
        draws = [0.7 * rng.random(n) + 0.3 * latent for _ in domain]
        columns = [(size * draw**power).astype(np.uint8) for size, draw, power in zip(domain, draws, tilt, strict=True)]
        base.append(count(tuple(columns), workload).counts)
    base = np.array(base, dtype=np.int32)
    parts = rng.integers(0, len(base), (3, clients))
    counts = base[parts[0]]
    for part in parts[1:]:
        counts += base[part]
    last = len(domain) - 1  # the target; the first is the sensitive attribute
    kind = {(True, True): 0, (True, False): 1, (False, False): 2, (False, True): 3}
    specs = [(domain[i], domain[j], kind[i == 0, j == last], i, j) for i, j in pairs]
    return counts, specs


@lru_cache(maxsize=1)
def model_of(clients, domain):
    """Model of a made pool."""
    counts, specs = made(clients, domain)
    model = _core.LossModel(counts, specs, list(LossWeights().signed))
    assert model.consistent
    return model


@lru_cache(maxsize=1)
def task_of(clients, k, domain):
    """A problem, and a federation to start from."""
    free = list(range(clients))
    problem = _core.Problem(model_of(clients, domain), k, fixed=[], free=free, constraints=[], fallback=[])
    found = _core.expand(problem, random_starts=0, keep=1, threads=2, seed=0, time_limit=2.0, progress=None)
    return problem, list(found["best"][0][1])


def run(benchmark, clients, k, domain, screen, threads):
    problem, start = task_of(clients, k, domain)
    options = {"temperatures": [1e-9], "evaluations_per_level": STEPS, "max_evaluations": 2**62, "keep": 1, "seed": 0}
    effort = {"time_limit": math.inf, "progress": None, "chains": threads, "threads": threads}
    benchmark.extra_info.update(
        clients=clients,
        k=k,
        cells=sum(spec[0] * spec[1] for spec in made(clients, domain)[1]),
        threads=threads,
        kind="screened" if screen else "exact",
        steps=STEPS * threads,
    )
    benchmark.pedantic(
        lambda: _core.anneal(problem, initial_states=[start] * threads, screen=screen, **options, **effort),
        rounds=ROUNDS,
        iterations=1,
        warmup_rounds=1,
    )


KINDS = [(True, 1), (False, 1), (True, 2)]


@pytest.mark.benchmark(group="clients")
@pytest.mark.parametrize(("clients", "k"), BY_CLIENTS)
@pytest.mark.parametrize(("screen", "threads"), KINDS)
def test_clients(benchmark, clients, k, screen, threads):
    run(benchmark, clients, k, STATES, screen, threads)


@pytest.mark.benchmark(group="members")
@pytest.mark.parametrize(("clients", "k"), BY_MEMBERS)
@pytest.mark.parametrize(("screen", "threads"), KINDS)
def test_members(benchmark, clients, k, screen, threads):
    run(benchmark, clients, k, STATES, screen, threads)


@pytest.mark.benchmark(group="cells")
@pytest.mark.parametrize("domain", BY_CELLS, ids=len)
@pytest.mark.parametrize(("screen", "threads"), KINDS)
def test_cells(benchmark, domain, screen, threads):
    run(benchmark, 1_000, 20, domain, screen, threads)


class NumpySwaps:
    """The same evaluation in numpy: one dot product over joint cells and margins, in place."""

    def __init__(self, clients, domain):
        counts, specs = made(clients, domain)
        signed = LossWeights().signed
        margins, weights, joint, first = {}, np.zeros(len(domain)), [], 0
        for rows, columns, component, i, j in specs:
            table = counts[:, first : first + rows * columns].reshape(clients, rows, columns)
            first += rows * columns
            joint.append(np.full(rows * columns, signed[component]))
            weights[[i, j]] -= signed[component]
            margins[i], margins[j] = table.sum(axis=2), table.sum(axis=1)
        ones = [np.full(size, weight) for size, weight in zip(domain, weights, strict=True)]
        self.rows = np.hstack([counts, *(margins[v] for v in range(len(domain)))]).astype(np.int32)
        self.weights, self.total_weight = np.concatenate([*joint, *ones]), sum(signed[spec[2]] for spec in specs)
        self.first = slice(0, specs[0][0] * specs[0][1])
        # Longer products would be shared among threads; the comparison is of one.
        self.parts = [slice(first, first + 8_192) for first in range(0, self.rows.shape[1], 8_192)]
        self.sums, self.logs = np.empty(self.rows.shape[1]), np.empty(self.rows.shape[1])

    def __call__(self, current, out, in_):
        np.subtract(current, self.rows[out], out=self.sums)
        np.add(self.sums, self.rows[in_], out=self.sums)
        np.maximum(self.sums, 1.0, out=self.logs)
        np.log2(self.logs, out=self.logs)
        np.multiply(self.logs, self.sums, out=self.logs)
        n = self.sums[self.first].sum()
        total = sum(self.logs[part] @ self.weights[part] for part in self.parts)
        return total / n + self.total_weight * math.log2(n)


def run_numpy(benchmark, clients, k, domain):
    loss, rng = NumpySwaps(clients, domain), np.random.default_rng(0)
    members = rng.choice(clients, k, replace=False)
    current = loss.rows[members].sum(axis=0).astype(np.float64)
    swaps = list(zip(rng.choice(members, NUMPY_STEPS), rng.integers(0, clients, NUMPY_STEPS), strict=True))
    swapped = [member for member in members if member != swaps[0][0]] + [swaps[0][1]]
    if len(set(swapped)) == k:
        federation = np.array([swapped], dtype=np.uint32)
        expected = model_of(clients, domain).components(federation)[0] @ LossWeights().signed
        assert loss(current, *swaps[0]) == pytest.approx(expected, abs=1e-9)
    benchmark.extra_info.update(
        clients=clients,
        k=k,
        cells=len(loss.weights) - sum(domain),
        threads=1,
        kind="numpy",
        steps=NUMPY_STEPS,
    )
    benchmark.pedantic(lambda: [loss(current, out, in_) for out, in_ in swaps], rounds=ROUNDS, iterations=1)


@pytest.mark.benchmark(group="clients")
@pytest.mark.parametrize(("clients", "k"), BY_CLIENTS[:-2])
def test_numpy_clients(benchmark, clients, k):
    run_numpy(benchmark, clients, k, STATES)


@pytest.mark.benchmark(group="members")
@pytest.mark.parametrize(("clients", "k"), BY_MEMBERS)
def test_numpy_members(benchmark, clients, k):
    run_numpy(benchmark, clients, k, STATES)


@pytest.mark.benchmark(group="cells")
@pytest.mark.parametrize("domain", BY_CELLS, ids=len)
def test_numpy_cells(benchmark, domain):
    run_numpy(benchmark, 1_000, 20, domain)
