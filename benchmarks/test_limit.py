"""One swap evaluation beside the arithmetic limit and beside numpy, on tables that agree: 46 states, 11 variables.

    pytest benchmarks/test_limit.py -s --benchmark-disable

prints the ratios, all taken in this process, each time the least of many rounds. The limit is a sum of x log2 x of the
same length on counts that stay in the L1 cache, in intrinsics (benchmarks/cpp/limit.cpp, built here with cmake); ours
also reads two clients' rows and writes the new sums. numpy is the fused form: one dot product over all values.
"""

from __future__ import annotations

import ctypes
import math
import platform
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from fedsel import FederationLoss, _core
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Task

ROUNDS, SWAPS = 30, 1_000
SCALAR, CODES = 1, {"avx2": 2, "avx512": 512}


@pytest.fixture(scope="module")
def limit(tmp_path_factory):
    if shutil.which("cmake") is None or platform.machine() != "x86_64":
        pytest.skip("the limit needs cmake and an x86-64 processor")
    build = tmp_path_factory.mktemp("limit")
    source = Path(__file__).with_name("cpp")
    subprocess.run(["cmake", "-S", source, "-B", build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    library = ctypes.CDLL(str(next(build.glob("liblimit.*"))))
    library.limit_sum.restype = library.limit_nanoseconds.restype = ctypes.c_double
    library.limit_sum.argtypes = [ctypes.c_int, ctypes.c_size_t]
    library.limit_nanoseconds.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
    return library


@pytest.fixture(scope="module")
def pool():
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf), seed=0)


class DotProduct:
    """The loss as one dot product in numpy, evaluated in place."""

    def __init__(self, pool):
        workload, loss = pool.workload, FederationLoss(pool)
        assert loss.model.consistent
        names, target, sensitive = pool.schema.names, pool.schema.target, set(loss.sensitive)
        weights, margins, joint = np.zeros(len(names)), {}, []
        for t, (i, j) in enumerate(workload.sets):
            pair = {names[i], names[j]}
            kind = (0 if target in pair else 1) if pair & sensitive else 3 if target in pair else 2
            weight = loss.weights.signed[kind]
            table = pool.table(t)
            joint.append(np.full(table[0].size, weight))
            weights[[i, j]] -= weight
            margins[i], margins[j] = table.sum(axis=2), table.sum(axis=1)
        columns = [margins[v] for v in range(len(names))]
        self.rows = np.hstack([pool.counts, *columns]).astype(np.float64)
        self.weights = np.concatenate(
            [*joint, *(np.full(c.shape[1], w) for c, w in zip(columns, weights, strict=True))]
        )
        self.total_weight = np.concatenate(joint)[workload.offsets[:-1]].sum()
        self.first = slice(0, int(workload.offsets[1]))
        self.sums, self.logs = np.empty(self.rows.shape[1]), np.empty(self.rows.shape[1])

    def __call__(self, current, out, in_):
        np.subtract(current, self.rows[out], out=self.sums)
        np.add(self.sums, self.rows[in_], out=self.sums)
        np.maximum(self.sums, 1.0, out=self.logs)
        np.log2(self.logs, out=self.logs)
        np.multiply(self.logs, self.sums, out=self.logs)
        n = self.sums[self.first].sum()
        return (self.logs @ self.weights) / n + self.total_weight * math.log2(n)


def annealing(pool, level, screen):
    """Return a function that takes the seconds of a step of annealing."""
    task = Task.of(FederationLoss(pool, level=level), 5, Ruleset((), (), ()))
    options = {"temperatures": [0.01], "evaluations_per_level": SWAPS, "max_evaluations": 2**62, "chains": 1, "seed": 0}
    effort = {"keep": 1, "threads": 1, "initial_states": [], "time_limit": math.inf, "progress": None}

    def step_seconds():
        started = time.perf_counter()
        _core.anneal(task.problem, **options, **effort, screen=screen)
        return (time.perf_counter() - started) / (SWAPS + 1)

    return step_seconds


def compiled():
    """Return the swap evaluation as a plain loop that numba compiles."""
    import numba

    @numba.njit(fastmath=True)
    def evaluate(current, leaving, entering, weights, first, total_weight):
        n, total = 0.0, 0.0
        for c in range(current.size):
            x = current[c] - leaving[c] + entering[c]
            total += weights[c] * x * math.log2(max(x, 1.0))
            if c < first:
                n += x
        return total / n + total_weight * math.log2(n)

    return evaluate


@pytest.mark.parametrize("level", [level for level in CODES if level in _core.levels()])
def test_the_limit_computes_the_sum(limit, level):
    values = 1 + 37 * np.arange(1024.0)
    expected = 3 * float(values @ np.log2(values))
    assert limit.limit_sum(CODES[level], 3072) == pytest.approx(expected, rel=1e-13)


def test_ratios(limit, pool, record_property):
    numpy_loss = DotProduct(pool)
    length = -(-numpy_loss.rows.shape[1] // 16) * 16
    members, loss = [3, 11, 20, 31, 45], FederationLoss(pool)
    current = numpy_loss.rows[members].sum(axis=0)
    assert numpy_loss(current, 11, 7) == pytest.approx(loss([3, 7, 20, 31, 45]), abs=1e-11)

    def numpy_seconds():
        started = time.perf_counter()
        for step in range(SWAPS):
            numpy_loss(current, members[step % 5], step % 46)
        return (time.perf_counter() - started) / SWAPS

    evaluate = compiled()

    def numba_seconds():
        started = time.perf_counter()
        for step in range(SWAPS):
            rows = numpy_loss.rows[members[step % 5]], numpy_loss.rows[step % 46]
            evaluate(current, *rows, numpy_loss.weights, numpy_loss.first.stop, numpy_loss.total_weight)
        return (time.perf_counter() - started) / SWAPS

    theirs = min(numpy_seconds() for _ in range(ROUNDS))
    print(f"\nnumpy, one dot product of {numpy_loss.rows.shape[1]:,} values: {theirs * 1e6:.2f} us")
    print(f"numba, one loop: {min(numba_seconds() for _ in range(ROUNDS)) * 1e6:.2f} us")
    print(f"C++ with std::log2, the sum alone: {limit.limit_nanoseconds(SCALAR, length, 3) * 1e-3:.2f} us")
    for level in CODES:
        if level not in _core.levels():
            continue
        exact, screened = annealing(pool, level, False), annealing(pool, level, True)
        ours, cheaper = (min(run() for _ in range(ROUNDS)) for run in (exact, screened))
        least = limit.limit_nanoseconds(CODES[level], length, ROUNDS) * 1e-9
        print(
            f"{level}: {ours * 1e6:.2f} us; limit {least * 1e6:.2f} us; ours / limit {ours / least:.2f}; "
            f"numpy / ours {theirs / ours:.1f}; numpy / limit {theirs / least:.1f}; "
            f"with proposals screened in single precision {cheaper * 1e6:.2f} us"
        )
        record_property(f"{level} over limit", ours / least)
        record_property(f"numpy over {level}", theirs / ours)
