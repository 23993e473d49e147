from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsel import FederationLoss, Workload, _core, select
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise
from fedsel.selection.agreement import rake, round_to
from fedsel.selection.consistency import make_consistent
from fedsel.selection.loss_tables import component_of
from reference import made_schema


def margins_of(cells, workload):
    """One-way marginals by every table: {variable: list of (clients, categories)}."""
    found = {}
    for t, members in enumerate(workload.sets):
        table = cells[:, workload.offsets[t] : workload.offsets[t + 1]].reshape(len(cells), *workload.shapes[t])
        for axis, variable in enumerate(members):
            found.setdefault(variable, []).append(table.sum(axis=2 - axis))
    return found


def made(seed, domain, clients=3):
    rng = np.random.default_rng(seed)
    schema = made_schema(domain)
    workload = Workload.pairs(schema)
    cells = rng.gamma(0.3, 100.0, (clients, workload.cells)) * (rng.random((clients, workload.cells)) < 0.7)
    margins = rng.gamma(0.5, 1.0, (clients, sum(domain))) * (rng.random((clients, sum(domain))) < 0.9)
    return workload, cells, margins


@given(
    seed=st.integers(0, 2**32),
    domain=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    totals=st.lists(st.one_of(st.integers(0, 30), st.integers(0, 2**31 - 1)), min_size=3, max_size=3),
)
def test_rounded_tables_agree_exactly(seed, domain, totals):
    workload, cells, margins = made(seed, domain)
    result = round_to(cells, margins, np.array(totals), workload).astype(np.int64)
    assert result.min() >= 0
    start = 0
    for variable, (first, *others) in sorted(margins_of(result, workload).items()):
        for other in others:
            np.testing.assert_array_equal(first, other)
        np.testing.assert_array_equal(first.sum(axis=1), totals)
        share = margins[:, start : start + domain[variable]]
        start += domain[variable]
        known = share.sum(axis=1) > 0
        expected = np.array(totals)[known, None] * share[known] / share[known].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(first[known], expected, atol=1 + 1e-6)


def test_raking_reaches_the_margins_and_keeps_interactions():
    workload, _, margins = made(3, [3, 4, 2])
    rng = np.random.default_rng(0)
    cells = rng.uniform(1, 100, (3, workload.cells))
    margins = margins + 0.1
    raked = rake(cells, margins, workload)
    start = 0
    for variable, found in sorted(margins_of(raked, workload).items()):
        share = margins[:, start : start + workload.domain[variable]]
        start += workload.domain[variable]
        for margin in found:
            np.testing.assert_allclose(margin, share / share.sum(axis=1, keepdims=True), atol=1e-8)
    for t, shape in enumerate(workload.shapes):
        before, after = (x[:, workload.offsets[t] : workload.offsets[t + 1]].reshape(3, *shape) for x in (cells, raked))
        for table in (before, after):
            ratios = table * table[:, :1, :1] / (table[:, :, :1] * table[:, :1, :])
            table[:] = ratios
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_rounding_moves_cells_by_about_a_unit():
    workload, cells, margins = made(5, [5, 9, 2, 3])
    cells = cells + 1.0  # where zeros leave no table with the margins, raking ends somewhere between
    total = 2**20
    real = total * rake(cells, margins, workload)
    rounded = round_to(cells, margins, np.full(3, total), workload)
    assert np.abs(rounded - real).max() < 8
    assert np.abs(rounded - real).mean() < 1


def test_margins_of_consistent_tables_and_their_variances():
    rng = np.random.default_rng(0)
    workload = Workload.pairs(made_schema([2, 3, 4]))
    variance = np.repeat([[1.0, 4.0, 9.0]], 20_000, axis=0)
    noise = rng.normal(size=(20_000, workload.cells)) * np.repeat(variance[0] ** 0.5, workload.sizes)
    found = make_consistent(noise, variance, workload)
    start = 0
    for variable, margins in sorted(margins_of(found.cells, workload).items()):
        here = slice(start, start + workload.domain[variable])
        start = here.stop
        for margin in margins:
            np.testing.assert_allclose(found.margins[:, here], margin, atol=1e-9)
    # 9 variances over 20,000 draws: standard error 1% each
    np.testing.assert_allclose(found.margins.var(axis=0), found.margin_variance[0], rtol=0.05)


@pytest.mark.parametrize("method", ["shrink", "reference"])
@pytest.mark.parametrize("epsilon", [1.0, 0.05])
def test_a_denoised_pool_agrees_exactly_and_takes_the_fast_layout(method, epsilon):
    example = load_example()
    pool = denoise(example.pool(plan_noise(55, epsilon=epsilon), seed=3), method=method)
    assert pool.counts.min() >= 0
    for first, *others in margins_of(pool.counts, pool.workload).values():
        for other in others:
            np.testing.assert_array_equal(first, other)
    assert FederationLoss(pool).model.consistent
    total = pool.counts[:, : pool.workload.sizes[0]].sum()
    assert 2**29 < total < 2**31  # no larger power of two would fit


def test_the_fast_layout_gives_the_loss_of_the_rounded_tables():
    """The same integers, evaluated table by table because their variables have no names."""
    pool = denoise(load_example().pool(plan_noise(55, epsilon=0.3), seed=3))
    loss = FederationLoss(pool)
    rng = np.random.default_rng(1)
    federations = np.array([rng.choice(46, 7, replace=False) for _ in range(50)], dtype=np.uint32)
    domain, unnamed = pool.workload.domain, 2**32 - 1
    where = {members: t for t, members in enumerate(combinations(range(len(domain)), 2))}
    assert tuple(where) == pool.workload.sets
    names, target = pool.schema.names, pool.schema.target
    kinds = [component_of((names[i], names[j]), loss.sensitive, target) for i, j in where]
    specs = [(domain[i], domain[j], kind, unnamed, unnamed) for (i, j), kind in zip(where, kinds, strict=True)]
    plain = _core.LossModel(pool.counts.astype(np.int32), specs, list(loss.weights.signed))
    assert not plain.consistent
    np.testing.assert_allclose(plain.components(federations), loss.model.components(federations), atol=1e-11)


def test_a_pool_whose_client_has_no_records_left_is_still_searched():
    example = load_example()
    noisy = example.pool(plan_noise(55, epsilon=0.01), seed=1)
    found = select(noisy, 3, certificate="none")
    assert len(found.names) == 3


@pytest.mark.parametrize(
    ("cells", "margins", "message"),
    [
        (np.full((1, 5), 1.0), np.ones((1, 5)), r"cells must have shape \(clients, 6\)"),
        (np.full((1, 6), 1.0), np.ones((1, 4)), r"margins must have shape \(1, 5\)"),
        (np.full((1, 6), -1.0), np.ones((1, 5)), "finite and not negative"),
        (np.full((1, 6), np.nan), np.ones((1, 5)), "finite and not negative"),
        (np.full((1, 6), 1.0), np.full((1, 5), np.inf), "finite and not negative"),
    ],
)
def test_the_core_refuses_what_it_cannot_round(cells, margins, message):
    with pytest.raises(ValueError, match=message):
        _core.rake_tables(cells, margins, [2, 3], [(0, 1)])
    with pytest.raises(ValueError, match=message):
        _core.round_tables(cells, margins, [10], [2, 3], [(0, 1)])


def test_the_core_refuses_totals_and_tables_out_of_range():
    cells, margins = np.ones((1, 6)), np.ones((1, 5))
    with pytest.raises(ValueError, match=r"totals must be between 0 and 2\^31 - 1, got 2147483648"):
        _core.round_tables(cells, margins, [2**31], [2, 3], [(0, 1)])
    with pytest.raises(ValueError, match="one total a client"):
        _core.round_tables(cells, margins, [1, 2], [2, 3], [(0, 1)])
    with pytest.raises(ValueError, match="a table's variables must be below 2"):
        _core.rake_tables(cells, margins, [2, 3], [(0, 2)])
