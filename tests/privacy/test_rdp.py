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
