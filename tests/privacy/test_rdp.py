import math

import pytest

from fedsel.privacy import rdp


@pytest.mark.parametrize(
    ("tables", "closed_form", "tighter"),
    [
        (3, 8.488, 7.006),
        (15, 18.980, 15.667),
        (36, 29.403, 24.271),
        (55, 36.343, 29.999),
        (120, 53.683, 44.312),
        (136, 57.150, 47.174),
    ],
)
def test_scales_for_epsilon_one(tables, closed_form, tighter):
    assert math.sqrt(tables) / rdp.classic_distance(1.0, 1e-5) == pytest.approx(closed_form, abs=6e-4)
    assert math.sqrt(tables) / rdp.zcdp_distance(1.0, 1e-5) == pytest.approx(tighter, abs=6e-4)


def test_closed_form_minimises_over_the_order():
    epsilon, delta = 0.7, 1e-6
    distance = rdp.classic_distance(epsilon, delta)

    def spent(order):
        return order * distance**2 / 2 + math.log(1 / delta) / (order - 1)

    best = min(spent(1 + 0.01 * k) for k in range(1, 10_000))
    assert best == pytest.approx(epsilon, rel=1e-4)


def test_zcdp_conversion_is_the_least_over_orders():
    rho, epsilon = 0.02, 1.0

    def bound(order):
        return math.exp((order - 1) * (order * rho - epsilon)) / (order - 1) * (1 - 1 / order) ** order

    least = min(bound(1 + 0.01 * k) for k in range(1, 10_000))
    assert rdp.zcdp_delta(epsilon, rho) <= least * (1 + 1e-9)
    assert rdp.zcdp_delta(epsilon, rho) == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-4])
def test_conversions_agree_with_dp_accounting(rho, delta):
    dp = pytest.importorskip("dp_accounting")
    best = max(
        1.5, (1 + rdp.zcdp_epsilon(rho, delta) / rho) / 2
    )  # of the classic conversion, near that of the tight one
    orders = [1 + (best - 1) * 2 ** (k / 64) for k in range(-256, 257)]
    accountant = dp.rdp.RdpAccountant(orders)
    accountant.compose(dp.ZCDpEvent(rho))
    epsilon = rdp.zcdp_epsilon(rho, delta)
    assert epsilon == pytest.approx(float(accountant.get_epsilon(delta)), rel=1e-3, abs=1e-12)
    ours = min(rdp.renyi_epsilon(order * rho, order, delta) for order in orders)
    assert epsilon <= ours <= epsilon * 1.001 + 1e-12
    assert rdp.zcdp_delta(epsilon, rho) <= delta
    assert min(rdp.renyi_delta(order * rho, order, epsilon) for order in orders) == pytest.approx(
        rdp.zcdp_delta(epsilon, rho), rel=1e-2
    )


def test_the_least_epsilon_is_found_from_above():
    assert rdp.least_epsilon(lambda epsilon: math.exp(-epsilon), 1e-3) == pytest.approx(math.log(1e3), rel=1e-11)
    assert math.exp(-rdp.least_epsilon(lambda epsilon: math.exp(-epsilon), 1e-3)) <= 1e-3
    assert rdp.least_epsilon(lambda _: 0.0, 1e-3) == 0.0
    assert rdp.least_epsilon(lambda _: 1.0, 1e-3) == math.inf
