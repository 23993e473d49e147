"""Expansion search on large made pools: mixtures of the example's states, with Poisson counts.

pytest benchmarks/test_scale.py --benchmark-columns=min,median
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedsel import FederationLoss, _core, select
from fedsel.datasets.example import load_example
from fedsel.experiments.population import Population
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Task


def made_pool(clients):
    example, rng = load_example(), np.random.default_rng(0)
    mixture = rng.dirichlet(np.full(46, 0.1), clients)
    means = mixture @ example.counts * rng.uniform(0.02, 0.2, (clients, 1))
    counts = rng.poisson(means).astype(np.int64)
    return Population(example.schema, example.workload, tuple(f"c{i}" for i in range(clients)), counts).pool()


@pytest.mark.benchmark(group="expansion search")
@pytest.mark.parametrize(("clients", "k"), [(200, 10), (1000, 30), (5000, 50)])
def test_expand(benchmark, clients, k):
    pool = made_pool(clients)
    found = benchmark.pedantic(select, (pool, k), {"certificate": "none"}, rounds=3, iterations=1)
    benchmark.extra_info["evaluations"] = found.evaluations
    assert found.certificate.kind == "swap-optimal"


def exact_made_pool(clients):
    """Clients that are sums of two states: their exact tables agree."""
    example, rng = load_example(), np.random.default_rng(0)
    pairs = rng.integers(0, 46, (clients, 2))
    counts = example.counts[pairs[:, 0]].astype(np.int64) + example.counts[pairs[:, 1]]
    return Population(example.schema, example.workload, tuple(f"c{i}" for i in range(clients)), counts).pool()


@pytest.mark.benchmark(group="100,000 annealing steps")
@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize(("clients", "k"), [(46, 5), (46, 23), (1_000, 50), (5_000, 50), (5_000, 500)])
def test_steps(benchmark, clients, k, chains):
    """Steps a second, one thread a chain; exact tables, proposals not screened."""
    loss = FederationLoss(exact_made_pool(clients))
    assert loss.model.consistent
    task = Task.of(loss, k, Ruleset((), (), ()))
    options = {"evaluations_per_level": 100_000, "max_evaluations": 2**62, "initial_states": [], "screen": False}
    effort = {"keep": 1, "seed": 0, "time_limit": math.inf, "progress": None}
    benchmark.extra_info.update(clients=clients, k=k, threads=chains)
    benchmark.pedantic(
        lambda: _core.anneal(task.problem, temperatures=[1e-3], chains=chains, threads=chains, **options, **effort),
        rounds=3,
        iterations=1,
    )


@pytest.mark.benchmark(group="denoising")
@pytest.mark.parametrize("clients", [46, 2000])
def test_shrink(benchmark, clients):
    pool = made_pool(clients)
    noisy = replace(pool, plans=(plan_noise(55, epsilon=1.0),))
    benchmark.pedantic(denoise, (noisy,), {"method": "shrink"}, rounds=3, iterations=1)
