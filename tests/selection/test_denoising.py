from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from fedsel import FederationLoss, Pool, Workload, select
from fedsel.datasets.example import load_example
from fedsel.errors import PoolError, SelectionError
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.client import release
from fedsel.selection import denoise
from fedsel.selection.consistency import make_consistent
from fedsel.selection.shrinkage import CellStatistics, shrink
from fedsel.tables import Marginals
from reference import made_pool, made_schema


def marginalise(workload):
    """Matrix from the cells of the whole joint table to the workload's cells."""
    joint = list(product(*(range(size) for size in workload.domain)))
    matrix = np.zeros((workload.cells, len(joint)))
    for t, members in enumerate(workload.sets):
        for column, codes in enumerate(joint):
            cell = np.ravel_multi_index([codes[v] for v in members], workload.shapes[t])
            matrix[workload.offsets[t] + cell, column] = 1
    return matrix


@given(
    seed=st.integers(0, 2**32),
    domain=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    drop=st.booleans(),
)
def test_consistent_tables_are_the_generalised_least_squares_estimate(seed, domain, drop):
    """Tables agree with each other exactly if they come from one joint table, signed cells allowed."""
    rng = np.random.default_rng(seed)
    schema = made_schema(domain)
    workload = Workload.pairs(schema)
    if drop and len(workload.sets) > 2:
        workload = Workload(workload.names, workload.domain, workload.sets[:-1])
    counts = rng.normal(0, 50, (3, workload.cells))
    variance = rng.uniform(0.5, 20.0, (3, len(workload.sets)))
    found = make_consistent(counts, variance, workload)
    matrix = marginalise(workload)
    for client in range(3):
        precision = np.repeat(1 / variance[client], workload.sizes)
        covariance = (
            matrix @ np.linalg.pinv(matrix.T @ (precision[:, None] * matrix), rcond=1e-10, hermitian=True) @ matrix.T
        )
        np.testing.assert_allclose(found.cells[client], covariance @ (precision * counts[client]), atol=1e-8)
        np.testing.assert_allclose(found.variance[client], np.diag(covariance), atol=1e-8)
        first = found.cells[client, : workload.sizes[0]].sum()
        assert found.totals[client] == pytest.approx(first, abs=1e-8)


def test_pure_noise_is_shrunk_to_the_pool():
    """200 clients with the same proportions: what is left of their spread is far below the noise (fixed seed)."""
    rng = np.random.default_rng(0)
    totals = np.full(200, 1000.0)
    variance = np.full((200, 12), 400.0)
    cells = 1000 * np.full(12, 1 / 12) + rng.normal(0, 20, (200, 12))
    statistics = CellStatistics.empty(12)
    for block in (slice(0, 90), slice(90, 200)):
        statistics.add(cells[block], variance[block], totals[block])
    result = shrink(cells, variance, totals, statistics.mean(), statistics.between())
    assert result.std(axis=0).max() < 0.35 * 20
    assert np.abs(result.mean(axis=0) - 1000 / 12).max() < 6 * 20 / math.sqrt(200)


def test_clear_differences_are_kept():
    rng = np.random.default_rng(1)
    truth = 1000 * rng.dirichlet(np.ones(6), 100)
    noisy = truth + rng.normal(0, 1, truth.shape)
    statistics = CellStatistics.empty(6)
    statistics.add(noisy, np.ones(truth.shape), np.full(100, 1000.0))
    spread = statistics.between()
    kept = shrink(noisy, np.ones(truth.shape), np.full(100, 1000.0), statistics.mean(), spread)
    np.testing.assert_allclose(kept, np.maximum(noisy, 0), atol=1)


def test_moments_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    cells, variance = rng.normal(100, 30, (7, 5)), rng.uniform(1, 200, (7, 5))
    totals = rng.uniform(300, 900, 7)
    statistics = CellStatistics.empty(5)
    statistics.add(cells, variance, totals)
    p, v = cells / totals[:, None], variance / totals[:, None] ** 2
    mean = cells.sum(axis=0) / totals.sum()
    weight = 1 / v
    between = np.maximum(((weight * ((p - mean) ** 2 - v)).sum(axis=0)) / weight.sum(axis=0), 0)
    np.testing.assert_allclose(statistics.mean(), mean)
    np.testing.assert_allclose(statistics.between(), between, rtol=1e-9, atol=1e-12)
    doubtful = np.maximum((weight * (p - mean) ** 2).sum(axis=0) - 7 - 2 * math.sqrt(14), 0) / weight.sum(axis=0)
    np.testing.assert_allclose(statistics.between(2.0), doubtful, rtol=1e-9, atol=1e-12)


def noisy_pool(epsilon, seed=3):
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=epsilon), seed=seed)


def test_denoising_brings_cells_and_losses_closer_to_the_truth():
    example = load_example()
    exact = example.pool(plan_noise(55, epsilon=math.inf))
    noisy = noisy_pool(1.0)
    rng = np.random.default_rng(0)
    federations = np.array([rng.choice(46, 5, replace=False) for _ in range(200)])
    truth = FederationLoss(exact).losses_of(federations)
    errors = {}
    for method in ("none", "clip", "consistent", "shrink", "reference"):
        pool = denoise(noisy, method=method)
        cells = pool.counts * pool.unit - example.counts
        losses = FederationLoss(pool).losses_of(federations)
        errors[method] = (np.sqrt((cells**2).mean()), np.std(losses - truth))
    assert errors["shrink"][0] < 0.7 * errors["none"][0]
    assert errors["consistent"][0] < errors["none"][0]
    assert errors["shrink"][1] < 0.5 * min(errors["none"][1], errors["clip"][1])
    assert errors["reference"][1] < 0.5 * min(errors["none"][1], errors["clip"][1])


def test_denoising_orders_federations_that_clipping_confuses():
    """At epsilon = 0.05 most of a cell is noise (seeded noise)."""
    exact = load_example().pool(plan_noise(55, epsilon=math.inf))
    rng = np.random.default_rng(0)
    federations = np.array([rng.choice(46, 15, replace=False) for _ in range(300)])
    truth = FederationLoss(exact).losses_of(federations)
    rho = {
        method: spearmanr(
            truth, FederationLoss(denoise(noisy_pool(0.05), method=method)).losses_of(federations)
        ).statistic
        for method in ("clip", "shrink", "reference")
    }
    assert min(rho["reference"], rho["shrink"]) > rho["clip"] + 0.05


def test_consistent_tables_agree_after_rounding():
    pool = denoise(noisy_pool(0.5), method="consistent")
    for variable in range(len(pool.schema.names)):
        margins = [
            pool.unit * pool.table(t).sum(axis=2 if members[0] == variable else 1)
            for t, members in enumerate(pool.workload.sets)
            if variable in members
        ]
        for margin in margins[1:]:
            np.testing.assert_allclose(margin, margins[0], atol=40 * pool.unit)


def test_blocks_do_not_change_the_result(monkeypatch):
    pool = noisy_pool(1.0)
    whole = {method: denoise(pool, method=method) for method in ("shrink", "reference")}
    for module in ("denoising", "reference"):
        monkeypatch.setattr(f"fedsel.selection.{module}._BLOCK", 3 * pool.workload.cells)
    for method, one in whole.items():
        parts = denoise(pool, method=method)
        assert parts.unit == one.unit
        assert np.abs(parts.counts - one.counts).max() <= 2


def test_what_auto_means():
    assert denoise(noisy_pool(1.0)).unit < 1
    exact = made_pool(1, clients=4, domain=[3, 4, 2])
    assert denoise(exact) is exact
    alone = noisy_pool(1.0).subset(["WY"])
    assert denoise(alone) is alone
    assert select(noisy_pool(1.0), 2).denoise == "shrink"
    assert select(exact, 2).denoise == "none"


def test_a_pool_with_other_tables_or_exact_counts_is_not_shrunk():
    exact = made_pool(1, clients=4, domain=[3, 4, 2])
    with pytest.raises(SelectionError, match="denoise shrink needs noisy counts; the pool has exact ones"):
        denoise(exact, method="shrink")
    schema = made_schema([3, 4, 2])
    workload = Workload(schema.names, schema.domain, (*combinations(range(3), 2), (0, 1, 2)))
    plan = plan_noise(4, epsilon=1.0)
    marginals = Marginals(workload, np.full(workload.cells, 10, dtype=np.int64))
    wide = Pool.from_releases(release(marginals, schema, plan, client=name, seed=1) for name in ("a", "b"))
    assert denoise(wide) is wide
    with pytest.raises(SelectionError, match="denoise consistent needs two-way tables only"):
        denoise(wide, method="consistent")


def test_a_denoised_pool_is_not_stored(tmp_path):
    with pytest.raises(PoolError, match="a denoised pool is not stored"):
        denoise(noisy_pool(1.0)).save(tmp_path / "pool")
    assert not (tmp_path / "pool").exists()


def test_totals_keep_their_unit():
    noisy = noisy_pool(1.0)
    estimate = denoise(noisy, method="consistent").totals().estimate
    np.testing.assert_allclose(estimate, noisy.totals().estimate, atol=0.05)


@pytest.mark.parametrize("method", ["auto", "consistent", "shrink"])
def test_a_client_that_would_wipe_out_others_is_refused(method):
    noisy = noisy_pool(1.0).subset(["AK", "AL", "AR", "AZ"])
    counts = noisy.counts.copy()
    counts[0] = 2**39
    with pytest.raises(SelectionError, match="client 'AK' states so many records"):
        denoise(replace(noisy, counts=counts), method=method)


def test_large_counts_that_must_be_rounded_prove_nothing():
    noisy = noisy_pool(1.0).subset(["AK", "AL", "AR", "AZ"])
    found = select(replace(noisy, counts=noisy.counts * 100_000), 2)
    assert found.certificate.kind == "none"
    assert any("divided by" in note for note in found.notes)


def test_denoising_twice_is_refused_and_auto_leaves_it_alone():
    once = denoise(noisy_pool(1.0))
    assert denoise(once) is once
    with pytest.raises(SelectionError, match="the pool is denoised already"):
        denoise(once, method="shrink")
    assert select(once, 3).names == select(noisy_pool(1.0), 3).names
