from __future__ import annotations

import numpy as np
import pytest

from fedsel.subgroups.federated.evidence import Evidence, fuse
from fedsel.subgroups.federated.shares import onto_simplex, overdispersion, pooled_shares
from fedsel.subgroups.federated.sizes import estimate_sizes


def plain_pooled(counts, variance, sizes, guess, phi):  # type: ignore[no-untyped-def]
    """The formulas of the module's comment, client by client and cell by cell."""
    total = sum(sizes)
    shares, noise = [], []
    for cell, pi in enumerate(np.clip(guess, 1e-3, 1 - 1e-3)):
        v = [m * pi * (1 - pi) * (1 + phi * max(m - 1, 0)) for m in sizes]
        w = [m / (a + b) if a + b > 0 else 0.0 for m, a, b in zip(sizes, v, variance, strict=True)]
        below = sum(a * m for a, m in zip(w, sizes, strict=True))
        mean = sum(a * row[cell] for a, row in zip(w, counts, strict=True)) / below
        trust = [a / (a + b) if b > 0 else 1.0 for a, b in zip(v, variance, strict=True)]
        predicted = [m * mean + b * (row[cell] - m * mean) for m, b, row in zip(sizes, trust, counts, strict=True)]
        shares.append(sum(predicted) / total)
        rest = sum(m * (1 - b) for m, b in zip(sizes, trust, strict=True))
        factors = [rest * a / below + b for a, b in zip(w, trust, strict=True)]
        noise.append(sum(f * f * b for f, b in zip(factors, variance, strict=True)) / total**2)
    return np.array(shares), np.array(noise)


@pytest.mark.parametrize("phi", [0.0, 0.01, 1.0])
def test_pooling_equals_the_plain_formulas(phi: float) -> None:
    rng = np.random.default_rng(1)
    counts, sizes = rng.normal(50, 30, (5, 7)), np.array([400.0, 90.0, 0.0, 3.0, 800.0])
    variance, guess = np.array([100.0, 400.0, 100.0, 25.0, 0.0]), rng.dirichlet([1.0] * 7)
    got = pooled_shares(counts, variance, sizes, guess, phi)
    for a, b in zip(got, plain_pooled(counts, variance, sizes, guess, phi), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_exact_counts_are_added_up() -> None:
    counts = np.array([[3.0, 7.0], [0.0, 90.0], [0.0, 0.0]])
    shares, variance = pooled_shares(counts, np.zeros(3), counts.sum(axis=1), np.array([0.5, 0.5]), 0.0)
    np.testing.assert_allclose(shares, [0.03, 0.97], rtol=1e-14)
    np.testing.assert_array_equal(variance, 0.0)


def test_an_absent_client_is_taken_to_be_like_the_others() -> None:
    counts = np.array([[30.0, 70.0], [0.0, 0.0]])
    got, _ = pooled_shares(counts, np.array([0.0, np.inf]), np.array([100.0, 50.0]), np.array([0.3, 0.7]), 0.0)
    np.testing.assert_allclose(got, [0.3, 0.7], rtol=1e-12)


def test_nothing_known_gives_equal_shares() -> None:
    shares, variance = pooled_shares(np.ones((2, 4)), np.ones(2), np.zeros(2), np.full(4, 0.25), 0.0)
    np.testing.assert_array_equal(shares, 0.25)
    assert np.all(variance > 0)


def test_noise_of_unequal_clients_is_far_below_that_of_their_sum() -> None:
    sizes, variance = np.array([900.0] + [10.0] * 9), np.full(10, 2500.0)
    _, pooled = pooled_shares(np.zeros((10, 3)), variance, sizes, np.full(3, 1 / 3), 0.0)
    assert np.all(pooled < variance.sum() / sizes.sum() ** 2 / 5)


@pytest.mark.parametrize("phi", [0.0, 0.02, 0.2])
def test_overdispersion_is_found_by_moments(phi: float) -> None:
    rng = np.random.default_rng(2)
    sizes, sigma, found = rng.integers(500, 3000, 12), 20.0, []
    for _ in range(200):
        pi = rng.dirichlet([5.0] * 6)
        rows = [rng.multinomial(m, pi if phi == 0 else rng.dirichlet(pi * (1 / phi - 1))) for m in sizes]
        noisy = np.array(rows) + rng.normal(0, sigma, (12, 6))
        found.append(overdispersion(noisy, np.full(12, sigma**2), sizes.astype(float), np.zeros(12)))
    # clipped at 0, so a little above it where there is none
    assert np.mean(found) == pytest.approx(phi, rel=0.15, abs=0.001)


def test_overdispersion_of_nobody_is_none() -> None:
    assert overdispersion(np.zeros((3, 2)), np.ones(3), np.zeros(3), np.ones(3)) == 0.0


def test_the_projection_is_the_nearest_point_of_the_simplex() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = rng.normal(0.2, 0.5, rng.integers(1, 8))
        near = onto_simplex(values)
        assert near.min() >= 0
        assert near.sum() == pytest.approx(1, abs=1e-12)
        # first-order condition: towards no other corner does the distance fall
        gradient = near - values
        assert np.all(gradient @ near <= gradient + 1e-12)


def test_projection_leaves_shares_alone() -> None:
    shares = np.array([0.5, 0.0, 0.25, 0.25])
    np.testing.assert_allclose(onto_simplex(shares), shares, atol=1e-15)


def test_fusing_is_by_inverse_variance() -> None:
    rng = np.random.default_rng(4)
    parts = [Evidence((0,), rng.normal(0, 9, (3, 4, 2)), rng.uniform(1, 5, (3, 2))) for _ in range(3)]
    got = fuse(parts)
    for client in range(3):
        for outcome in range(2):
            weights = np.array([1 / part.variance[client, outcome] for part in parts])
            expected = (
                sum(w * part.counts[client, :, outcome] for w, part in zip(weights, parts, strict=True)) / weights.sum()
            )
            np.testing.assert_allclose(got.counts[client, :, outcome], expected, rtol=1e-12)
            assert got.variance[client, outcome] == pytest.approx(1 / weights.sum())


def test_exact_measurements_win_and_absent_ones_say_nothing() -> None:
    exact = Evidence((), np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [np.inf, np.inf]]))
    noisy = Evidence((), np.array([[9.0, 9.0], [5.0, 6.0]]), np.full((2, 2), 4.0))
    got = fuse([exact, noisy])
    np.testing.assert_array_equal(got.counts, [[1.0, 2.0], [5.0, 6.0]])
    np.testing.assert_array_equal(got.variance, [[0.0, 0.0], [4.0, 4.0]])
    nothing = fuse([Evidence((), np.zeros((1, 2)), np.full((1, 2), np.inf))] * 2)
    assert np.isinf(nothing.variance).all()


def test_sizes_are_the_least_squares_solution() -> None:
    """Against numpy's lstsq on all cells' totals, a public number of records as one more, heavy equation."""
    rng = np.random.default_rng(5)
    tables = [
        Evidence(tuple(range(len(shape))), rng.normal(20, 5, (1, *shape, 2)), np.array([[4.0, 9.0]]))
        for shape in ((), (3,), (2, 4))
    ]
    rows, right = [], []
    for table in tables:
        cells = table.counts[0, ..., 0].size
        for outcome in range(2):
            scale = 1 / np.sqrt(table.variance[0, outcome] * cells)
            rows.append(scale * np.eye(2)[outcome])
            right.append(scale * table.counts[0, ..., outcome].sum())
    free = np.linalg.lstsq(np.array(rows), np.array(right))[0]
    np.testing.assert_allclose(estimate_sizes(tables, [None]).estimate[0], free, rtol=1e-10)
    bound = np.linalg.lstsq(np.array([*rows, 1e6 * np.ones(2)]), np.array([*right, 1e6 * 77.0]))[0]
    known = estimate_sizes(tables, [77])
    np.testing.assert_allclose(known.estimate[0], bound, rtol=1e-8)
    assert np.all(known.variance < estimate_sizes(tables, [None]).variance)


def test_clients_that_do_not_stand_out_weigh_nothing_and_totals_stay() -> None:
    table = Evidence((), np.array([[100.0, 50.0], [-3.0, 2.0], [40.0, 3.0]]), np.full((3, 2), 25.0))
    sizes = estimate_sizes([table], [None] * 3)
    weights = sizes.weights()
    assert weights[1].tolist() == [0.0, 0.0]
    assert weights[2, 1] == 0.0
    np.testing.assert_allclose(weights.sum(axis=0), sizes.totals)


def test_shares_beyond_all_measure_are_projected_too() -> None:
    """Where a double cannot tell v from v - 1."""
    np.testing.assert_array_equal(onto_simplex(np.array([0.0, 1e17, -1e17])), [0.0, 1.0, 0.0])


def test_of_public_records_only_their_division_is_uncertain() -> None:
    """The stated variances against those over many draws of noise, within six standard errors."""
    rng = np.random.default_rng(6)
    truth, variance, draws = np.array([[300.0, 100.0], [50.0, 70.0]]), np.array([[90.0, 30.0], [25.0, 25.0]]), 4000
    known = [400, None]
    found = [
        estimate_sizes([Evidence((), rng.normal(truth, np.sqrt(variance)), variance)], known) for _ in range(draws)
    ]
    estimates = np.array([sizes.estimate for sizes in found])
    difference = 0.7 * estimates[..., 1] - 0.3 * estimates[..., 0]
    np.testing.assert_allclose(difference.var(axis=0), found[0].of_difference(0.3), rtol=6 * np.sqrt(2 / draws))
    assert found[0].records_variance == pytest.approx(50.0)
    assert estimates.sum(axis=(1, 2)).var() == pytest.approx(50.0, rel=6 * np.sqrt(2 / draws))
    np.testing.assert_allclose(estimates[:, 0].sum(axis=1), 400.0)
