"""Divergence of the subsampled Gaussian against Mironov's sum, a plain integral and dp-accounting."""

import math

import pytest
from scipy import integrate

from fedsel.privacy.subsampled import subsampled_gaussian_renyi

CASES = [(0.01, 1.0), (0.3, 0.5), (0.001, 5.0), (0.9, 2.0)]


@pytest.mark.parametrize(("q", "sigma"), CASES)
@pytest.mark.parametrize("order", [2, 3, 10])
def test_integer_orders_follow_the_paper(q, sigma, order):
    moment = math.fsum(
        math.comb(order, k) * (1 - q) ** (order - k) * q**k * math.exp((k * k - k) / (2 * sigma**2))
        for k in range(order + 1)
    )
    assert subsampled_gaussian_renyi(q, sigma, order) == pytest.approx(
        math.log(moment) / (order - 1), rel=1e-6, abs=1e-14
    )


@pytest.mark.parametrize(("q", "sigma"), CASES)
@pytest.mark.parametrize("order", [1.1, 1.5, 2.5, 7.3])
def test_fractional_orders_follow_the_integral(q, sigma, order):
    def integrand(z):
        ratio = 1 - q + q * math.exp((2 * z - 1) / (2 * sigma**2))
        return ratio**order * math.exp(-z * z / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))

    low, high = -12 * sigma, order + 12 * sigma
    moment, _ = integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-12, limit=500)
    found = subsampled_gaussian_renyi(q, sigma, order)
    assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-5, abs=1e-10)


@pytest.mark.parametrize(("q", "sigma"), [*CASES, (1e-6, 0.7), (0.02, 0.2)])
@pytest.mark.parametrize("order", [2.0, 5.0, 14.0])
def test_the_two_sums_agree(q, sigma, order):
    at_integer = subsampled_gaussian_renyi(q, sigma, order)
    beside = subsampled_gaussian_renyi(q, sigma, order + 1e-9)
    assert beside == pytest.approx(at_integer, rel=1e-6)


@pytest.mark.parametrize(("q", "sigma"), CASES)
def test_dp_accounting_agrees(q, sigma):
    dp = pytest.importorskip("dp_accounting")
    orders = [1.3, 2.0, 4.7, 32.0]
    accountant = dp.rdp.RdpAccountant(orders)
    accountant.compose(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma)))
    for order, theirs in zip(orders, map(float, accountant._rdp), strict=True):
        found = subsampled_gaussian_renyi(q, sigma, order)
        if order.is_integer():
            assert found == pytest.approx(theirs, rel=1e-6)
        else:  # theirs is a bound there, up to 7 per cent above the integral
            assert theirs / 1.07 <= found <= theirs * (1 + 1e-6) or theirs == math.inf


def test_all_records_in_every_step_is_the_gaussian():
    assert subsampled_gaussian_renyi(1.0, 2.0, 3.5) == pytest.approx(3.5 / 8, rel=1e-7)
    assert subsampled_gaussian_renyi(1 - 1e-12, 2.0, 3.5) == pytest.approx(3.5 / 8, rel=1e-7)


def test_extremes_stay_finite():
    for q, sigma, order in [(1e-12, 0.05, 1.01), (0.5, 0.05, 14.5), (1e-9, 100.0, 16384.0)]:
        assert 0 < subsampled_gaussian_renyi(q, sigma, order) <= order / (2 * sigma**2) * (1 + 1e-7)
