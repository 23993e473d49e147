"""Exact delta against plain convolution, against dp-accounting, and against its own limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel.errors import PrivacyError
from fedsel.privacy.lattice import discrete_gaussian_delta


def delta_by_convolution(epsilon, *, numerator, weights, shifts=None):
    """Delta by summing over the distribution of the joint loss, coordinate by coordinate."""
    shifts = shifts or [1] * len(weights)
    mass = np.ones(1)
    for w, d in zip(weights, shifts, strict=True):
        reach = int(14 * math.sqrt(numerator / w)) + 3
        y = np.arange(-reach, reach + 1)
        spread = np.zeros(2 * reach * w * d + 1)
        spread[:: w * d] = np.exp(-y * y * w / (2 * numerator))
        mass = np.convolve(mass, spread / spread.sum())
    s = np.arange(mass.size) - mass.size // 2
    loss = (sum(w * d * d for w, d in zip(weights, shifts, strict=True)) + 2 * s) / (2 * numerator)
    return float(np.sum(mass * -np.expm1(np.minimum(0.0, epsilon - loss))))


@pytest.mark.parametrize(
    ("epsilon", "numerator", "weights", "cells"),
    [
        (1.0, 12, [1], 1),
        (1.0, 12, [1], 2),
        (2.0, 3, [1], 1),  # sigma^2 = 3
        (0.5, 30, [1, 2, 3], 2),
        (3.0, 5, [2, 3], 1),
        (5.0, 3, [7, 11], 1),  # sigma < 1, lattice with gaps
        (10.0, 1, [3], 1),
        (0.0, 10, [1, 2], 1),
        (20.0, 10, [60, 100, 7], 1),
        (0.1, 400, [4, 6, 10, 10], 2),  # common divisor
        (8.0, 1, [1] * 10, 1),
    ],
)
def test_agrees_with_convolution_and_is_never_below(epsilon, numerator, weights, cells):
    exact = delta_by_convolution(epsilon, numerator=numerator, weights=weights * cells)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights * cells)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0, 6),
    numerator=st.integers(1, 60),
    weights=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    cells=st.sampled_from([1, 2]),
)
def test_agrees_with_convolution_anywhere(epsilon, numerator, weights, cells):
    exact = delta_by_convolution(epsilon, numerator=numerator, weights=weights * cells)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights * cells)
    assert found >= exact * (1 - 1e-9) - 1e-15
    # the plain sum itself loses digits below 1e-13; far from the usual range the bound may loosen
    distance = math.sqrt(cells * sum(weights) / numerator)
    if distance < 6:
        assert found <= exact * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize(
    ("epsilon", "numerator", "weights", "shifts"),
    [
        (1.0, 300, [1], [7]),
        (1.0, 40, [3], [2]),
        (0.5, 900, [6, 6, 1, 1], [1, 1, 6, 6]),  # two tables and two scores, D = 6
        (2.0, 250, [8, 16, 3, 5], [1, 1, 8, 8]),
        (0.0, 700, [2, 3, 5], [5, 3, 2]),
        (6.0, 20, [4, 2, 1], [1, 2, 4]),
        (0.3, 800, [12, 12, 1], [1, 1, 12]),  # replace-one: two cells, twice D = 6
        (4.0, 1, [3, 5], [2, 1]),  # sigma < 1
    ],
)
def test_agrees_with_convolution_at_any_shifts(epsilon, numerator, weights, shifts):
    exact = delta_by_convolution(epsilon, numerator=numerator, weights=weights, shifts=shifts)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights, shifts=shifts)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0, 4),
    numerator=st.integers(1, 60),
    coordinates=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4),
)
def test_agrees_with_convolution_at_shifts_anywhere(epsilon, numerator, coordinates):
    weights, shifts = ([c[i] for c in coordinates] for i in (0, 1))
    exact = delta_by_convolution(epsilon, numerator=numerator, weights=weights, shifts=shifts)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights, shifts=shifts)
    assert found >= exact * (1 - 1e-9) - 1e-15
    if sum(w * d * d for w, d in coordinates) / numerator < 36:
        assert found <= exact * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize(("sigma2", "shift", "epsilon"), [(80, 9, 1.0), (4, 3, 0.5), (60_000, 256, 2.0)])
def test_one_query_agrees_with_the_sum_over_its_outputs(sigma2, shift, epsilon):
    reach = 40 * math.isqrt(sigma2)
    y = np.arange(-reach, reach + 1)
    p = np.exp(-y * y / (2 * sigma2))
    q = np.exp(-((y - shift) ** 2) / (2 * sigma2)) / p.sum()
    plain = np.maximum(p / p.sum() - math.exp(epsilon) * q, 0).sum()
    found = discrete_gaussian_delta(epsilon, numerator=sigma2, weights=[1], shifts=[shift])
    assert found == pytest.approx(plain, rel=1e-9)


def test_the_largest_shift_of_every_coordinate_is_the_worst():
    def delta(shifts):
        return discrete_gaussian_delta(0.7, numerator=60, weights=[1, 2, 3], shifts=shifts)

    worst = delta([4, 2, 3])
    smaller = [delta([a, b, c]) for a in (1, 2, 3, 4) for b in (1, 2) for c in (1, 2, 3) if (a, b, c) != (4, 2, 3)]
    assert max(smaller) < worst


def test_scaling_a_query_changes_nothing():
    """Twice the shift under four times the variance is the same Gaussian, up to its lattice, which is fine here."""
    one = discrete_gaussian_delta(1.0, numerator=90_000, weights=[10, 20], shifts=[60, 40])
    two = discrete_gaussian_delta(1.0, numerator=90_000 * 4, weights=[10, 20], shifts=[120, 80])
    assert two == pytest.approx(one, rel=5e-3)


def test_both_directions_of_adjacency_agree():
    """The hockey-stick divergence of (Y, Y + 1) and of (Y + 1, Y), each summed over outputs."""
    sigma2, epsilon = 1.7, 0.8
    y = np.arange(-40, 41)
    p = np.exp(-y * y / (2 * sigma2))
    p /= p.sum()
    q = np.roll(p, 1)
    there = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    back = np.maximum(q - math.exp(epsilon) * p, 0).sum()
    assert there == pytest.approx(back, rel=1e-12)
    assert discrete_gaussian_delta(epsilon, numerator=17, weights=[10]) == pytest.approx(there, rel=1e-9)


@pytest.mark.parametrize(("tables", "epsilon", "factor"), [(1, 2.0, 1.103), (3, 4.0, 1.077)])
def test_continuous_calibration_does_not_certify_the_discrete_mechanism(tables, epsilon, factor):
    """At the continuous mechanism's exact sigma for 1e-5, the discrete one has a larger delta."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu):
        spill = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return norm.cdf(mu / 2 - epsilon / mu) - spill - 1e-5

    mu = brentq(excess, 0.01, 10, xtol=1e-14)
    numerator = round(tables / mu**2 * 2**30)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=[2**30] * tables)
    assert found / 1e-5 == pytest.approx(factor, abs=6e-4)


@pytest.mark.parametrize(
    ("epsilon", "numerator", "weights"),
    [(1.0, 765, [1] * 55), (2.0, 64, [1, 1, 2, 4]), (0.02, 9000, [1, 2, 2]), (4.0, 3, [1])],
)
def test_dp_accounting_agrees_once_its_grid_is_fine(epsilon, numerator, weights):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    def delta(interval):
        total = None
        for w in set(weights):
            one = pld.from_discrete_gaussian_mechanism(
                math.sqrt(numerator / w), value_discretization_interval=interval, use_connect_dots=False
            )
            several = one.self_compose(weights.count(w)) if weights.count(w) > 1 else one
            total = several if total is None else total.compose(several)
        return total.get_delta_for_epsilon(epsilon)

    interval = 1e-4
    coarse, fine = delta(interval), delta(interval / 4)
    while abs(coarse - fine) > 0.01 * fine:
        interval /= 4
        coarse, fine = fine, delta(interval / 4)
    found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=weights)
    assert found == pytest.approx(fine, rel=0.01)


def test_tiny_delta_keeps_relative_precision():
    """P(S >= s) falls like a Gaussian tail; for one cell the sum is plain to write in logarithms."""
    sigma2, epsilon = 50, 3.0
    y = np.arange(epsilon * sigma2 - 0.5, 700)  # losses (1 + 2 y) / (2 sigma^2) from epsilon on
    y = np.ceil(y)
    weights = np.exp(-(y * y - y[0] ** 2) / (2 * sigma2)) * -np.expm1(epsilon - (1 + 2 * y) / (2 * sigma2))
    norm = np.exp(-(np.arange(-200, 201) ** 2) / (2 * sigma2)).sum()
    exact = math.log(weights.sum() / norm) - y[0] ** 2 / (2 * sigma2)
    found = discrete_gaussian_delta(epsilon, numerator=50, weights=[1])
    assert exact < math.log(1e-90)
    assert math.log(found) == pytest.approx(exact, abs=1e-9)


def test_scaling_all_weights_changes_nothing():
    one = discrete_gaussian_delta(1.0, numerator=700, weights=[1, 2, 3])
    assert discrete_gaussian_delta(1.0, numerator=700 * 64, weights=[64, 128, 192]) == pytest.approx(one, rel=1e-12)


def test_falls_with_epsilon_and_with_noise():
    by_epsilon = [discrete_gaussian_delta(e, numerator=500, weights=[1] * 20) for e in np.linspace(0, 4, 15)]
    assert all(a > b for a, b in pairwise(by_epsilon))
    by_noise = [discrete_gaussian_delta(1.0, numerator=p, weights=[1, 2]) for p in range(5, 60, 5)]
    assert all(a > b for a, b in pairwise(by_noise))


def test_many_tables_and_different_weights_stay_quick():
    rng = np.random.default_rng(5)
    weights = [int(w) for w in rng.integers(1, 1000, 200)]
    found = discrete_gaussian_delta(1.0, numerator=int(14 * sum(weights)), weights=weights)
    rho = sum(weights) / (2 * 14 * sum(weights))
    assert 0 < found < math.exp(-((1 - rho) ** 2) / (4 * rho))  # the simplest zCDP bound


@pytest.mark.parametrize("numerator", [1, 10**9, 10**400])
def test_out_of_reach_is_refused(numerator):
    weights = [int(w) for w in np.random.default_rng(6).integers(1, 2**30, 2000)]
    if numerator == 1:
        assert discrete_gaussian_delta(1.0, numerator=numerator, weights=[10**400]) == 1.0
        return
    with pytest.raises(PrivacyError, match="exact accounting is out of reach"):
        discrete_gaussian_delta(1.0, numerator=numerator, weights=weights)


def test_extreme_epsilon():
    assert discrete_gaussian_delta(math.inf, numerator=1, weights=[1]) == 0.0
    with pytest.raises(PrivacyError, match="epsilon must not be negative, got nan"):
        discrete_gaussian_delta(math.nan, numerator=1, weights=[1])
