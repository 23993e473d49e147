import math
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.privacy.plan import NoisePlan


@pytest.mark.parametrize(
    ("tables", "add_remove", "replace_one"),
    [
        (3, 6.462, 9.138),
        (15, 14.449, 20.434),
        (36, 22.384, 31.655),
        (55, 27.667, 39.127),
        (120, 40.867, 57.795),
        (136, 43.506, 61.527),
    ],
)
def test_scales_at_epsilon_one(tables, add_remove, replace_one):
    """So wide a discrete Gaussian needs the continuous mechanism's exact scale, as printed."""
    assert plan_noise(tables, epsilon=1.0).scale[0] == pytest.approx(add_remove, rel=1e-4)
    assert plan_noise(tables, epsilon=1.0, adjacency="replace-one").scale[0] == pytest.approx(replace_one, rel=1e-4)


def test_narrow_noise_is_wider_than_the_continuous_scale():
    plan = plan_noise(1, epsilon=2.0)
    continuous = 1.9938  # delta of the continuous mechanism is 1e-5 there
    assert plan.scale[0] > continuous * 1.002


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4] * 5, [7] * 19 + [100]])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_smallest_numerator_within_delta(epsilon, adjacency, weights):
    plan = plan_noise(20, epsilon=epsilon, delta=1e-6, adjacency=adjacency, weights=weights)
    assert plan.accounting == "exact"
    assert certify(plan) <= 1e-6
    assert certify(replace(plan, numerator=plan.numerator - 1)) > 1e-6
    assert plan.numerator > 500_000  # sigma^2 is resolved to two parts in a million
    given = [1] * 20 if weights is None else weights
    assert len({Fraction(found, wanted) for found, wanted in zip(plan.weights, given, strict=True)}) == 1


def test_monotone():
    def scale(tables=30, epsilon=1.0, delta=1e-5):
        return plan_noise(tables, epsilon=epsilon, delta=delta).scale[0]

    for values in (
        [scale(epsilon=e) for e in (0.1, 0.3, 1.0, 3.0, 10.0)],
        [scale(delta=d) for d in (1e-12, 1e-9, 1e-5, 1e-2, 0.5)],
        [scale(tables=m) for m in (100, 30, 10, 3, 1)],
    ):
        assert all(a > b for a, b in pairwise(values))


def test_accountings_are_ordered_and_valid():
    plans = {name: plan_noise(55, epsilon=1.0, accounting=name) for name in ("exact", "zcdp", "rdp")}
    assert [plan.accounting for plan in plans.values()] == ["exact", "zcdp", "rdp"]
    assert plans["rdp"].scale[0] == pytest.approx(36.343, abs=6e-4)
    assert plans["zcdp"].scale[0] == pytest.approx(29.999, abs=6e-4)
    assert certify(plans["rdp"]) < certify(plans["zcdp"]) < certify(plans["exact"]) <= 1e-5


def test_auto_turns_to_a_bound_beyond_two_thousand_tables_and_says_so():
    assert plan_noise(2000, epsilon=1.0).accounting == "exact"
    assert plan_noise(2001, epsilon=1.0).accounting == "zcdp"
    assert plan_noise(2001, epsilon=1.0, accounting="exact").accounting == "exact"


def test_auto_turns_to_a_bound_where_weights_forbid_exactness():
    weights = [int(w) for w in np.random.default_rng(0).integers(1, 2**30, 50)]
    plan = plan_noise(50, epsilon=0.1, weights=weights)
    assert plan.accounting == "zcdp"
    with pytest.raises(PrivacyError, match="exact accounting is out of reach"):
        plan_noise(50, epsilon=0.1, weights=weights, accounting="exact")


@pytest.mark.parametrize(("adjacency", "cells"), [("add-remove", 1), ("replace-one", 2)])
def test_discrete_laplace_adds_up_exactly(adjacency, cells):
    weights = [1, 2, 2, 5]
    plan = plan_noise(4, epsilon=0.3, adjacency=adjacency, mechanism="discrete-laplace", weights=weights)
    joint = Fraction(cells * sum(plan.weights), plan.numerator)
    assert joint <= Fraction(0.3)
    assert float(joint) == pytest.approx(0.3, rel=1e-6)
    assert (plan.delta, plan.accounting, certify(plan)) == (0.0, "pure", 0.0)
    assert plan.scale[3] == pytest.approx(cells * 10 / 0.3 / 5, rel=1e-6)


def test_certify_sees_too_little_noise():
    gaussian = plan_noise(5, epsilon=1.0)
    assert certify(replace(gaussian, numerator=gaussian.numerator // 2)) > 1e-4
    laplace = plan_noise(5, epsilon=1.0, mechanism="discrete-laplace")
    assert certify(replace(laplace, numerator=laplace.numerator // 2)) == pytest.approx(-math.expm1(-1.0), rel=1e-5)


def test_infinite_epsilon_is_a_plan_without_noise():
    plan = plan_noise(3, epsilon=math.inf)
    assert plan == NoisePlan("none", "add-remove", math.inf, 0.0, 0, (1, 1, 1), "none")
    assert certify(plan) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be positive, got -1.0"),
        ({"epsilon": math.nan}, "epsilon must be positive, got nan"),
        ({"delta": 2.0}, r"delta must be between 0 and 1 \(exclusive\), got 2.0"),
        ({"delta": 0.0}, r"delta must be between 0 and 1 \(exclusive\), got 0.0"),
        ({"delta": math.nan}, r"delta must be between 0 and 1 \(exclusive\), got nan"),
        ({"delta": 1e-5, "mechanism": "discrete-laplace"}, "delta must be 0 with the discrete Laplace"),
        ({"weights": [1, 2]}, r"weights must hold one integer per table \(3\), got 2"),
        ({"weights": [1, 2, 0]}, "weights must be positive integers, got 0 for table 2"),
        ({"weights": [1, 0.5, 1]}, "weights must be positive integers, got 0.5 for table 1"),
        ({"weights": [True, 1, 1]}, "weights must be positive integers, got True for table 0"),
        ({"mechanism": "none"}, "mechanism 'none' needs epsilon = inf, got 1.0"),
        ({"mechanism": "laplace"}, "mechanism must be one of discrete-gaussian, discrete-laplace, none"),
        ({"accounting": "pld"}, "accounting must be one of auto, exact, zcdp, rdp, got 'pld'"),
        ({"adjacency": "bounded"}, "adjacency must be one of add-remove, replace-one, got 'bounded'"),
        ({"tables": 0}, "tables must be at least 1, got 0"),
    ],
)
def test_refusals(options, message):
    arguments = {"tables": 3, "epsilon": 1.0} | options
    with pytest.raises(PrivacyError, match=message):
        plan_noise(arguments.pop("tables"), **arguments)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.999])
def test_extreme_budgets_still_give_valid_plans(epsilon, delta):
    plan = plan_noise(7, epsilon=epsilon, delta=delta)
    if plan.accounting == "exact":
        assert certify(plan) <= delta


def test_quick_and_light():
    plan_noise(2, epsilon=1.0)
    start = time.perf_counter()
    plan_noise(55, epsilon=1.0, delta=1.1e-5)
    assert time.perf_counter() - start < 0.3
    code = (
        "import sys; from fedsel.privacy.calibration import plan_noise; plan_noise(55, epsilon=1.0); "
        "print([m for m in ('scipy', 'numba', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
