"""Evaluating and searching federations of the 46 example states, beside numpy.

    pytest benchmarks/test_search.py --benchmark-group-by=group --benchmark-sort=min

A swap evaluation is: sums minus one client's row plus another's, then the loss of the new sums.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score

from fedsel import FederationLoss, GeometricSchedule, _core, select
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise, methods
from fedsel.selection.constraints import Ruleset
from fedsel.selection.methods import Effort, Task

SWAPS = 1_000


@pytest.fixture(scope="module")
def pool():
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=1.0), seed=0)


class NumpyLoss:
    """Vectorised numpy, all tables at once: marginals by `np.add.reduceat` and fancy indexing, one log2 over all."""

    def __init__(self, pool):
        workload = pool.workload
        self.counts = pool.counts.astype(np.float64)
        self.starts = workload.offsets[:-1]
        row_of, column_of, rows, columns = [], [], 0, 0
        for r, c in workload.shapes:
            row_of.append(rows + np.repeat(np.arange(r), c))
            column_of.append(columns + np.tile(np.arange(c), r))
            rows, columns = rows + r, columns + c
        self.row_of, self.column_of = np.concatenate(row_of), np.concatenate(column_of)
        self.row_starts = np.concatenate([[0], np.cumsum([r for r, _ in workload.shapes])[:-1]])
        self.column_starts = np.concatenate([[0], np.cumsum([c for _, c in workload.shapes])[:-1]])
        loss = FederationLoss(pool)
        target, sensitive = pool.schema.target, loss.sensitive[0]
        kind = [
            0 if {sensitive, target} == set(p) else 1 if sensitive in p else 3 if target in p else 2 for p in loss.pairs
        ]
        self.weights = loss.weights.signed[kind]

    @staticmethod
    def f(x):
        return x * np.log2(np.maximum(x, 1.0))

    def __call__(self, sums):
        x = np.maximum(sums, 0.0)
        rows = np.bincount(self.row_of, x)
        columns = np.bincount(self.column_of, x)
        totals = np.add.reduceat(x, self.starts)
        information = (
            np.add.reduceat(self.f(x), self.starts)
            - np.add.reduceat(self.f(rows), self.row_starts)
            - np.add.reduceat(self.f(columns), self.column_starts)
            + self.f(totals)
        ) / totals
        return information @ self.weights


@pytest.mark.benchmark(group="1,000 swap evaluations")
@pytest.mark.parametrize("level", _core.levels())
def test_fedsel_swaps(benchmark, pool, level):
    task = Task.of(FederationLoss(pool, level=level), 5, Ruleset((), (), ()))
    one_level = GeometricSchedule(initial=0.01, final=0.01, evaluations_per_level=SWAPS)
    effort = Effort(seed=0, threads=1, time_limit=math.inf, keep=1, progress=None)
    found = benchmark(methods.anneal, task, effort, schedule=one_level, chains=1)
    assert found.evaluations == SWAPS + 1


@pytest.mark.benchmark(group="1,000 swap evaluations")
def test_numpy_swaps(benchmark, pool):
    loss = NumpyLoss(pool)
    rng = np.random.default_rng(0)
    members = rng.choice(46, 5, replace=False)
    sums = loss.counts[members].sum(axis=0)
    swaps = [(rng.choice(members), rng.choice(np.setdiff1d(np.arange(46), members))) for _ in range(SWAPS)]
    assert loss(sums) == pytest.approx(FederationLoss(pool)(members.tolist()), abs=1e-9)
    benchmark(lambda: [loss(sums - loss.counts[out] + loss.counts[in_]) for out, in_ in swaps])


@pytest.mark.benchmark(group="one evaluation")
@pytest.mark.parametrize("level", _core.levels())
def test_fedsel_evaluation(benchmark, pool, level):
    """Sums of five clients from scratch, then the loss: what the peers of this group do too."""
    loss = FederationLoss(pool, level=level)
    members = [3, 11, 20, 31, 45]
    benchmark(loss.losses_of, np.array([members]))


@pytest.mark.benchmark(group="one evaluation")
def test_scikit_learn_evaluation(benchmark, pool):
    members = [3, 11, 20, 31, 45]
    weights = NumpyLoss(pool).weights
    tables = [np.maximum(pool.table(t), 0) for t in range(len(pool.workload.sets))]

    def evaluate():
        information = [mutual_info_score(None, None, contingency=table[members].sum(axis=0)) for table in tables]
        return np.array(information) / math.log(2) @ weights

    benchmark(evaluate)


@pytest.mark.benchmark(group="one evaluation")
def test_pandas_evaluation(benchmark, pool):
    """As the published method is written: a data frame a client and table, added up, probabilities cell by cell."""
    schema, workload = pool.schema, pool.workload
    members = [3, 11, 20, 31, 45]
    weights = NumpyLoss(pool).weights
    frames = {
        (client, t): pd.DataFrame(
            np.maximum(pool.table(t)[client], 0),
            index=schema.labels(schema.names[i]),
            columns=schema.labels(schema.names[j]),
        )
        for client in members
        for t, (i, j) in enumerate(workload.sets)
    }

    def information(table):
        total = table.to_numpy().sum()
        rows, columns = table.sum(axis=1) / total, table.sum(axis=0) / total
        result = 0.0
        for x in table.index:
            for y in table.columns:
                p = table.loc[x, y] / total
                if p > 0:
                    result += p * math.log2(p / (rows[x] * columns[y]))
        return result

    def evaluate():
        loss = 0.0
        for t, weight in enumerate(weights):
            table = frames[members[0], t]
            for client in members[1:]:
                table = table.add(frames[client, t], fill_value=0)
            loss += weight * information(table)
        return loss

    value = benchmark.pedantic(evaluate, rounds=3, iterations=1)
    clipped = denoise(pool, method="clip")
    assert value == pytest.approx(FederationLoss(clipped)(members), abs=1e-9)


@pytest.mark.benchmark(group="whole searches, k = 5")
@pytest.mark.parametrize("search", ["expand", "anneal"])
def test_searches(benchmark, pool, search):
    benchmark(select, pool, 5, search=search, certificate="none", schedule=GeometricSchedule())


@pytest.mark.benchmark(group="all 1,370,754 federations of 5 of 46")
@pytest.mark.parametrize("threads", [1, 2])
def test_enumeration(benchmark, pool, threads):
    result = benchmark.pedantic(select, (pool, 5), {"search": "exhaustive", "threads": threads}, rounds=3, iterations=1)
    assert result.certificate.kind == "proof"
