"""Time per noise sample, bits from the operating system included; OpenDP beside us in the same run.

    pytest benchmarks/test_noise.py --benchmark-columns=min,median,rounds

One "client" is the 2,958 cells of 55 tables at epsilon 1 (sigma 27.7). ``extra_info`` holds nanoseconds per sample.
"""

import numpy as np
import pytest

from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import SystemEntropy
from fedsel.privacy.noise import add_noise

pytest.importorskip("pytest_benchmark")

TABLES, CELLS = 55, 2958
SIZES = np.full(TABLES, CELLS // TABLES, dtype=np.int64)
SIZES[: CELLS % TABLES] += 1


def per_sample(benchmark, samples):
    benchmark.extra_info["ns_per_sample"] = benchmark.stats.stats.median / samples * 1e9
    return benchmark.extra_info["ns_per_sample"]


@pytest.mark.parametrize("clients", [1, 46])
@pytest.mark.parametrize(
    ("mechanism", "weights"),
    [
        ("discrete-gaussian", None),
        ("discrete-gaussian", [1 + t % 4 for t in range(TABLES)]),
        ("discrete-gaussian", [20 + t for t in range(TABLES)]),
        ("discrete-laplace", None),
    ],
    ids=["gaussian", "gaussian-4-scales", "gaussian-55-scales", "laplace"],
)
def test_fedsel(benchmark, mechanism, weights, clients):
    plan = plan_noise(TABLES, epsilon=1.0, mechanism=mechanism, weights=weights)
    counts = np.zeros((clients, CELLS), dtype=np.int64)
    benchmark.group = f"noise, {mechanism}"
    benchmark.pedantic(
        add_noise, args=(counts, SIZES, plan), kwargs={"entropy": SystemEntropy()}, rounds=30, warmup_rounds=2
    )
    per_sample(benchmark, counts.size)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_thousand_clients(benchmark, compiled):
    plan = plan_noise(TABLES, epsilon=1.0)
    counts = np.zeros((1000, CELLS), dtype=np.int64)
    benchmark.group = "noise of 1,000 clients"
    benchmark.pedantic(
        add_noise,
        args=(counts, SIZES, plan),
        kwargs={"entropy": SystemEntropy(), "compiled": compiled},
        rounds=5,
        warmup_rounds=1,
    )
    per_sample(benchmark, counts.size)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_opendp(benchmark, mechanism):
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    scale = float(plan_noise(TABLES, epsilon=1.0, mechanism=mechanism).scale[0])
    space = opendp.vector_domain(opendp.atom_domain(T=opendp.i64))
    if mechanism == "discrete-gaussian":
        measurement = opendp.m.make_gaussian(space, opendp.l2_distance(T=float), scale=scale)
    else:
        measurement = opendp.m.make_laplace(space, opendp.l1_distance(T=opendp.i64), scale=scale)
    benchmark.group = f"noise, {mechanism}"
    benchmark.pedantic(measurement, args=([0] * CELLS,), rounds=10, warmup_rounds=1)
    per_sample(benchmark, CELLS)


@pytest.mark.parametrize("scales", [1, 55])
def test_first_use_of_a_plan(benchmark, scales):
    """Tables of digits, made once per plan and process."""
    from fedsel.privacy import inversion

    weights = None if scales == 1 else [20 + t for t in range(TABLES)]
    plan = plan_noise(TABLES, epsilon=1.0, weights=weights)
    counts = np.zeros(CELLS, dtype=np.int64)

    def forget():
        inversion.tabulate.cache_clear()
        inversion._cumulative_digits.cache_clear()

    benchmark.group = "noise, first use"
    benchmark.pedantic(
        add_noise, args=(counts, SIZES, plan), kwargs={"entropy": SystemEntropy()}, setup=forget, rounds=10
    )


@pytest.mark.parametrize("weights", [None, [1 + t % 4 for t in range(TABLES)]], ids=["equal", "4-weights"])
def test_calibration(benchmark, weights):
    benchmark.group = "calibration, 55 tables"
    benchmark.pedantic(plan_noise, args=(TABLES,), kwargs={"epsilon": 1.0, "weights": weights}, rounds=10)
