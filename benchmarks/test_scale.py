"""Expansion search on large made pools: mixtures of the example's states, with Poisson counts.

pytest benchmarks/test_scale.py --benchmark-columns=min,median
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedsel import select
from fedsel.datasets.example import load_example
from fedsel.experiments.population import Population
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise


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


@pytest.mark.benchmark(group="denoising")
@pytest.mark.parametrize("clients", [46, 2000])
def test_shrink(benchmark, clients):
    pool = made_pool(clients)
    noisy = replace(pool, plans=(plan_noise(55, epsilon=1.0),))
    benchmark.pedantic(denoise, (noisy,), {"method": "shrink"}, rounds=3, iterations=1)
