from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsel.selection.empirical_bayes import posterior


def test_the_spread_is_where_the_sum_of_squares_has_its_expectation():
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.5, 4.0, 30)
    values = 5.0 + rng.normal(0, 3.0, 30) + rng.normal(0, np.sqrt(variance))
    found = posterior(values, variance)
    weight = 1 / (variance + found.between)
    centre = (weight * values).sum() / weight.sum()
    assert found.centre == pytest.approx(centre)
    assert (weight * (values - centre) ** 2).sum() == pytest.approx(29.0, rel=1e-6)
    kept = found.between / (found.between + variance)
    np.testing.assert_allclose(found.mean, centre + kept * (values - centre))
    np.testing.assert_allclose(found.variance, kept * variance)


def test_the_posterior_is_closer_than_the_measurements_and_states_how_close():
    """1,000 clients: squared errors average the stated variances to within six standard errors (fixed seed)."""
    rng = np.random.default_rng(1)
    variance = rng.uniform(0.5, 20.0, 1000)
    truth = rng.normal(2.0, 1.5, 1000)
    found = posterior(truth + rng.normal(0, np.sqrt(variance)), variance)
    assert found.centre == pytest.approx(2.0, abs=0.5)
    squared = (found.mean - truth) ** 2
    assert squared.mean() == pytest.approx(found.variance.mean(), abs=6 * squared.std() / np.sqrt(1000))
    assert squared.mean() < 0.5 * variance.mean()


@pytest.mark.parametrize("values", [[3.0, 3.0, 3.0], [1.0, 1.1, 0.9]])
def test_a_spread_that_noise_explains_is_given_up(values):
    found = posterior(np.array(values), np.full(3, 10.0))
    np.testing.assert_allclose(found.mean, np.mean(values), atol=1e-3)
    assert np.argsort(found.mean, kind="stable").tolist() == np.argsort(values, kind="stable").tolist()


def test_a_centre_that_should_be_0_is_pulled_there():
    far = posterior(np.full(4, 100.0), np.ones(4), centred=True)
    assert far.centre == pytest.approx(100.0 - 0.25 / 100, rel=1e-3)
    near = posterior(np.full(4, 0.3), np.ones(4), centred=True)
    assert near.centre == 0
    assert np.abs(near.mean).max() < 1e-3


@given(seed=st.integers(0, 2**32), size=st.integers(2, 6), spread=st.floats(0.0, 12.0))
def test_any_variances_have_a_posterior(seed, size, spread):
    rng = np.random.default_rng(seed)
    found = posterior(rng.normal(0, 1, size), 10.0 ** rng.uniform(-spread, spread, size))
    assert np.isfinite(found.mean).all()
    assert (found.variance >= 0).all()


def test_exact_measurements_and_single_ones_stay():
    exact = posterior(np.array([1.0, 5.0]), np.zeros(2))
    assert exact.mean.tolist() == [1.0, 5.0]
    assert exact.variance.tolist() == [0.0, 0.0]
    assert posterior(np.array([7.0]), np.array([2.0])).mean == pytest.approx([7.0])
    mixed = posterior(np.array([1.0, 5.0, 9.0]), np.array([0.0, 1.0, 1.0]))
    assert mixed.mean[0] == pytest.approx(1.0, abs=1e-6)
