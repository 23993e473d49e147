"""Renyi divergences against plain sums over outputs; what is pure, and what zCDP it means."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fedsel.privacy.events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
)
from fedsel.privacy.renyi import concentration, pure_epsilon, renyi_bound, rounded_up

ORDERS = [1.01, 1.5, 2.0, 7.5, 60.0]


def divergence(p, q, order):
    """Of one finite distribution from another."""
    return float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1)


def translates(log_mass, shift, reach):
    y = np.arange(-reach, reach + 1)
    p, q = np.exp(log_mass(y)), np.exp(log_mass(y - shift))
    return p / p.sum(), q / p.sum()


@pytest.mark.parametrize("order", ORDERS[:4])
def test_discrete_gaussian(order):
    p, q = translates(lambda y: -y * y / 60, 4, 150)
    found = renyi_bound(DiscreteGaussianEvent(30, (1,), (4,)), order)
    assert found == pytest.approx(divergence(p, q, order), rel=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_discrete_laplace_is_bounded_by_randomised_response(order):
    p, q = translates(lambda y: -abs(y) * 0.7, 2, 60)
    found = renyi_bound(DiscreteLaplaceEvent(10, (7,), (2,)), order)
    assert divergence(p, q, order) <= found <= 1.4 * (1 + 1e-8)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 4.0])
def test_permute_and_flip_is_bounded_by_randomised_response(epsilon, order):
    p = 1 / (1 + math.exp(-epsilon))
    worst = divergence(np.array([p, 1 - p]), np.array([1 - p, p]), order)
    found = renyi_bound(PureSelectionEvent(epsilon, "permute-and-flip"), order)
    assert found == pytest.approx(worst, rel=1e-5, abs=1e-15)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gap", [0.0, 0.5, 1.0, 2.0])
def test_two_candidates(order, gap):
    """Both selections at two neighbouring data sets: the score of one candidate rises by one, of the other falls."""
    epsilon = 0.8

    def exponential(difference):
        odds = math.exp(epsilon * difference / 2)
        return np.array([odds / (1 + odds), 1 / (1 + odds)])

    def permute_and_flip(difference):
        # the worse candidate is accepted if it comes first and its coin, exp(-epsilon d / 2), says so
        coin = math.exp(-epsilon * abs(difference) / 2) / 2
        pair = np.array([1 - coin, coin])
        return pair if difference >= 0 else pair[::-1]

    for mechanism, probabilities in (("exponential", exponential), ("permute-and-flip", permute_and_flip)):
        event = PureSelectionEvent(epsilon, mechanism)
        there, here = probabilities(gap), probabilities(gap - 2)
        assert divergence(there, here, order) <= renyi_bound(event, order)
        assert divergence(here, there, order) <= renyi_bound(event, order)


def test_permute_and_flip_exceeds_the_bound_of_bounded_range():
    """From a tie to a gap of two, its divergence passes epsilon^2 / 8 per order: it must not be charged that."""
    epsilon, order = 0.1, 2.0
    tied, apart = np.array([0.5, 0.5]), np.array([1 - math.exp(-epsilon) / 2, math.exp(-epsilon) / 2])
    assert divergence(tied, apart, order) > 3 * order * epsilon**2 / 8


@pytest.mark.parametrize("order", [1.1, 2.0, 9.0, 400.0])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_laplace_follows_dp_accounting(scale, order):
    dp = pytest.importorskip("dp_accounting")
    accountant = dp.rdp.RdpAccountant([order])
    accountant.compose(dp.LaplaceDpEvent(scale))
    assert renyi_bound(LaplaceEvent(scale), order) == pytest.approx(float(accountant._rdp[0]), rel=1e-6)


def test_compositions_add_up():
    parts = (GaussianEvent(2.0), LaplaceEvent(5.0), PureSelectionEvent(0.3), SubsampledGaussianEvent(0.1, 1.0, 5))
    assert renyi_bound(ComposedEvent(parts), 3.0) == pytest.approx(sum(renyi_bound(p, 3.0) for p in parts), rel=1e-8)
    assert concentration(ComposedEvent(parts)) == pytest.approx(1 / 8 + 1 / 50 + 0.09 / 8 + 5 / 2)
    assert pure_epsilon(ComposedEvent(parts)) == math.inf
    assert pure_epsilon(ComposedEvent(parts[1:3])) == pytest.approx(0.5)


def test_zcdp_of_each_kind():
    assert concentration(DiscreteGaussianEvent(900, (9, 16), (1, 10))) == pytest.approx((9 + 1600) / 1800)
    assert concentration(DiscreteLaplaceEvent(100, (2, 3), (1, 5))) == pytest.approx((0.02**2 + 0.15**2) / 2)
    assert pure_epsilon(DiscreteLaplaceEvent(100, (2, 3), (1, 5))) == 0.17
    assert concentration(PureSelectionEvent(0.4)) == pytest.approx(0.02)
    assert concentration(PureSelectionEvent(0.4, "permute-and-flip")) == pytest.approx(0.08)


@pytest.mark.parametrize("order", ORDERS)
def test_zcdp_bounds_the_divergence_at_every_order(order):
    for event in (LaplaceEvent(2.0), DiscreteLaplaceEvent(10, (3,), (2,)), SubsampledGaussianEvent(0.2, 1.5, 3)):
        assert renyi_bound(event, order) <= order * concentration(event) * (1 + 1e-7)


def test_rounding_is_upwards():
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(1, 2)):
        assert 0 <= Fraction(rounded_up(value)) - value <= Fraction(math.ulp(float(value)))
