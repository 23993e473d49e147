"""The second-order model: a move beside other annealers, and certificates beside full enumeration.

pytest benchmarks/test_model.py --benchmark-group-by=group --benchmark-columns=min,median,rounds
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dwave.samplers import SimulatedAnnealingSampler
from simanneal import Annealer

from fedsel import FederationLoss, GeometricSchedule, select
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise, methods
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Effort, Task

MOVES = 2_000_000


@pytest.fixture(scope="module")
def pool():
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf), seed=0)


@pytest.mark.benchmark(group="2,000,000 moves of an annealer")
def test_model_moves(benchmark, pool):
    """Swaps among 46 clients under the second-order model, random numbers and acceptance included."""
    task = Task.of(FederationLoss(pool), 10, Ruleset((), (), ()))
    effort = Effort(seed=0, threads=1, time_limit=math.inf, keep=1, progress=None)
    schedule = GeometricSchedule(initial=0.05, final=1e-4, cooling=0.9, evaluations_per_level=34_000)
    found = benchmark(methods.anneal_model, task, effort, schedule=schedule, chains=1)
    assert MOVES <= found.evaluations < MOVES * 1.05


@pytest.mark.benchmark(group="2,000,000 moves of an annealer")
def test_dwave_flips(benchmark):
    """Flips of 46 coupled spins."""
    rng = np.random.default_rng(0)
    couplings = {(i, j): rng.normal() for i in range(46) for j in range(i)}
    sampler = SimulatedAnnealingSampler()
    sweeps = MOVES // 46
    benchmark(sampler.sample_ising, {}, couplings, num_reads=1, num_sweeps=sweeps, seed=1)


class Trivial(Annealer):
    """Swaps two entries; the energy is the first."""

    Tmax, Tmin, steps, updates = 1.0, 0.01, 2_000, 0
    copy_strategy = "slice"

    def move(self):
        self.state[0], self.state[1] = self.state[1], self.state[0]

    def energy(self):
        return self.state[0]


@pytest.mark.benchmark(group="2,000 moves of an annealer")
def test_simanneal_moves(benchmark):
    benchmark(lambda: Trivial([0.0, 1.0]).anneal())


@pytest.mark.benchmark(group="certificates")
@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
@pytest.mark.parametrize("k", [5, 6, 8, 10, 12, 15, 20])
def test_model_certificate(benchmark, k, epsilon):
    example = load_example()
    pool = example.pool(plan_noise(len(example.workload.sets), epsilon=epsilon), seed=0)
    found = benchmark.pedantic(select, (pool, k), {"certificate": "model"}, rounds=3, iterations=1)
    assert found.certificate.kind == "model"
    benchmark.extra_info["statement"] = found.certificate.statement


@pytest.mark.benchmark(group="certificates")
@pytest.mark.parametrize("k", [5, 6])
def test_enumeration(benchmark, pool, k):
    found = benchmark.pedantic(select, (pool, k), {"certificate": "enumerate"}, rounds=1, iterations=1)
    assert found.certificate.kind == "proof"


@pytest.mark.benchmark(group="certificates")
@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
@pytest.mark.parametrize("k", [5, 6, 8, 10, 15, 20, 30])
def test_branch_and_bound(benchmark, k, epsilon):
    """Denoised, since tables must agree."""
    example = load_example()
    pool = denoise(example.pool(plan_noise(len(example.workload.sets), epsilon=epsilon), seed=0))
    found = benchmark.pedantic(select, (pool, k), {"certificate": "bound"}, rounds=3, iterations=1)
    assert found.certificate.kind == "proof"
    benchmark.extra_info["statement"] = found.certificate.statement
