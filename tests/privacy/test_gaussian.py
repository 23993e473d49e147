import math

import pytest
from scipy import special

from fedsel.privacy.gaussian import gaussian_delta


@pytest.mark.parametrize("distance", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 50.0])
def test_never_below_the_formula(distance, epsilon):
    """Against the same formula in extended range, by logarithms of both probabilities."""
    log_there = special.log_ndtr(distance / 2 - epsilon / distance)
    log_back = epsilon + special.log_ndtr(-distance / 2 - epsilon / distance)
    expected = math.exp(log_there) * -math.expm1(log_back - log_there)
    found = gaussian_delta(epsilon, distance)
    assert expected * (1 - 1e-6) <= found <= expected * (1 + 1e-6) + 1e-300


def test_a_known_figure():
    """The scale of 55 tables at epsilon 1, delta 1e-5 is 27.667."""
    assert gaussian_delta(1.0, math.sqrt(55) / 27.667) == pytest.approx(1e-5, rel=1e-3)


def test_ranges():
    assert gaussian_delta(1e5, 0.001) <= 1e-300
    assert gaussian_delta(0.0, 1e9) == 1.0
