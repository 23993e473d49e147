from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedsel import Pool, Workload, count
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.selection.reference import RATIO_BOUNDS, _shrunk_singular_values, make_reference, positive_sizes
from reference import made_schema


def example_pool(epsilon, seed=1):
    return load_example().pool(plan_noise(55, epsilon=epsilon), seed=seed)


def pointwise_information(counts, workload):
    """Plain log2 of each cell's ratio to the product of its margins."""
    found = np.empty(workload.cells)
    for t in range(len(workload.sets)):
        here = slice(*workload.offsets[t : t + 2])
        table = counts[here].reshape(workload.shapes[t]).astype(float)
        p = table / table.sum()
        expected = np.outer(p.sum(axis=1), p.sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            found[here] = np.log2(p / expected).ravel()
    return found


def test_of_exact_tables_it_is_their_pointwise_information():
    pool = example_pool(math.inf)
    sizes = pool.totals().estimate
    reference = make_reference(pool, sizes)
    plain = pointwise_information(np.sqrt(sizes) @ pool.counts, pool.workload)
    common = pool.counts.sum(axis=0) > 100  # rare cells are held within bounds
    np.testing.assert_allclose(reference.information[common], np.clip(plain[common], *np.log2(RATIO_BOUNDS)), atol=1e-3)
    sums = np.add.reduceat(reference.proportions, pool.workload.offsets[:-1])
    np.testing.assert_allclose(sums, 1.0, atol=0.01)
    assert reference.proportions.min() > 0


def test_noise_is_taken_out():
    """At epsilon = 0.1 the noisy logarithms are far off; the reference is not (seeded noise)."""
    exact, noisy = example_pool(math.inf), example_pool(0.1)
    weight = exact.counts.sum(axis=0) / exact.counts.sum()
    truth = make_reference(exact, positive_sizes(exact)).information
    found = make_reference(noisy, positive_sizes(noisy)).information
    plain = pointwise_information(np.maximum(noisy.counts.sum(axis=0), 1), exact.workload)

    def error(information):
        return float(np.sqrt(weight @ (information - truth) ** 2))

    assert error(found) < 0.5 * error(plain)
    assert error(found) < 0.6 * float(np.sqrt(weight @ truth**2))


def test_independent_variables_have_no_information():
    schema = made_schema([4, 5, 3])
    rng = np.random.default_rng(0)
    workload = Workload.pairs(schema)
    plan = plan_noise(3, epsilon=0.5)
    columns = [rng.integers(0, size, 20_000).astype(np.uint8) for size in (4, 5, 3)]
    counts = np.array([count(columns, workload).counts] * 5)
    noisy = counts + np.rint(rng.normal(0, plan.scale[0], counts.shape)).astype(np.int64)
    pool = Pool(
        clients=tuple("abcde"),
        schema=schema,
        workload=workload,
        counts=noisy,
        plans=(plan,),
        plan_index=(0,) * 5,
        seeded=(True,) * 5,
        rounds=(1,) * 5,
        rows=(None,) * 5,
    )
    assert np.abs(make_reference(pool, positive_sizes(pool)).information).max() < 0.1


def test_sizes_are_positive_and_close_to_the_truth():
    pool = example_pool(1.0)
    truth = load_example().pool(plan_noise(55, epsilon=math.inf)).totals().estimate
    np.testing.assert_allclose(positive_sizes(pool), truth, rtol=0.05, atol=200)
    drowned = example_pool(0.001)
    assert positive_sizes(drowned).min() > 0


def test_a_small_size_that_is_known_stays_small():
    """However large the other clients are."""
    pool = example_pool(10.0)
    counts = pool.counts.copy()
    counts[0] //= 20
    counts[1:] *= 100
    uneven = replace(pool, counts=counts)
    assert positive_sizes(uneven)[0] == pytest.approx(uneven.totals().estimate[0], rel=0.02)


@pytest.mark.parametrize("shape", [0.2, 1.0])
def test_singular_values_of_noise_are_0_and_large_ones_stay(shape):
    noise = 3.0
    edge = noise * (1 + math.sqrt(shape))
    found = _shrunk_singular_values(np.array([100 * edge, edge * 1.001, edge, 0.5 * edge, 0.0]), shape, noise)
    assert found[0] == pytest.approx(100 * edge, rel=1e-3)
    assert 0 <= found[1] < 0.3 * edge
    assert found[2:].tolist() == [0.0, 0.0, 0.0]


def test_shrunk_singular_values_are_the_formula_of_gavish_and_donoho():
    y, beta = 2.5, 0.4
    expected = math.sqrt((y**2 - beta - 1) ** 2 - 4 * beta) / y
    assert _shrunk_singular_values(np.array([y]), beta, 1.0)[0] == pytest.approx(expected)
