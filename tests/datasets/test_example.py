from __future__ import annotations

import math

import numpy as np
import pytest

from fedsel import FedselError
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise


@pytest.fixture(scope="module")
def example():
    return load_example()


def test_figures_of_the_example(example):
    assert len(example.clients) == 46
    assert example.workload.cells == 2958
    assert len(example.workload.sets) == 55
    assert sum(example.records(client) for client in example.clients) == 1_121_894
    assert example.records("WY") == 3_064
    assert example.records("PA") == 68_308


def test_tables_of_a_client_agree_with_each_other(example):
    for client in ("WY", "PA"):
        marginals = example.marginals(client)
        for variable in range(len(example.schema.names)):
            margins = []
            for t, members in enumerate(example.workload.sets):
                if variable in members:
                    table = marginals.table(t)
                    margins.append(table.sum(axis=1 - members.index(variable)))
            assert all(np.array_equal(margin, margins[0]) for margin in margins[1:])


def test_a_seeded_pool_repeats_and_differs_between_clients(example):
    plan = plan_noise(len(example.workload.sets), epsilon=1.0)
    a, b, c = (example.pool(plan, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(a.counts, b.counts)
    assert not np.array_equal(a.counts, c.counts)
    noise = a.counts - example.counts
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.1
    assert a.private.seeded == 46
    assert example.pool(plan).private.seeded == 0


def test_an_exact_pool_holds_the_counts(example):
    pool = example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf))
    assert np.array_equal(pool.counts, example.counts)
    assert not pool.private.private


def test_unknown_examples_are_refused():
    with pytest.raises(FedselError, match="example must be one of acs-income, got 'mars'"):
        load_example("mars")
