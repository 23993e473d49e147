import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel.errors import PrivacyError
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.release import check_plan


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


@pytest.mark.parametrize("options", [{}, {"mechanism": "discrete-laplace"}, {"accounting": "rdp"}])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-160, 9e-10, 1.1e6, 1e12, 1e300, 1e308])
def test_epsilon_out_of_range_is_refused_at_once(epsilon, options):
    message = f"epsilon must be between 1e-09 and 1e+06, or infinite (no noise), got {epsilon}"
    with pytest.raises(PrivacyError, match=re.escape(message)):
        plan_noise(55, epsilon=epsilon, **options)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.999])
def test_extreme_budgets_still_give_valid_plans(epsilon, delta):
    plan = plan_noise(7, epsilon=epsilon, delta=delta)
    if plan.accounting == "exact":
        assert certify(plan) <= delta


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
@pytest.mark.parametrize("tables", [1, 55, 2000, 100_000])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-7, 1e-6, 1e6])
def test_every_plan_can_be_released_or_is_refused(epsilon, tables, mechanism, adjacency):
    try:
        plan = plan_noise(tables, epsilon=epsilon, mechanism=mechanism, adjacency=adjacency)
    except PrivacyError as error:
        refusal = str(error)
    else:
        check_plan(plan, tables)
        return
    assert refusal.startswith("noise scale: ")
    assert epsilon < 1e-5


@pytest.mark.parametrize("accounting", ["auto", "zcdp", "rdp"])
@pytest.mark.parametrize("delta", [5e-324, 1e-5, 1 - 2**-53])
@pytest.mark.parametrize("epsilon", [2e-8, 1e6])
def test_the_ends_of_the_range(epsilon, delta, accounting):
    plan = plan_noise(1, epsilon=epsilon, delta=delta, accounting=accounting)
    assert plan.epsilon == epsilon
    assert plan.numerator > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mechanism": "discrete-laplace"},
            r"the widest noise must stay within 2\*\*39 records, got a scale of 2e\+10",
        ),
        ({"delta": 1e-12}, r"noise scale: numerator and weights must be at most 2\*\*62"),
        ({"epsilon": 1.0, "weights": [1] * 19 + [2**62 + 1]}, r"numerator and weights must be at most 2\*\*62"),
        (
            {"epsilon": 1.0, "mechanism": "discrete-laplace", "weights": [1] * 19 + [2**40]},
            r"the widest noise must stay within 2\*\*39 records, got a scale of 1\.1e\+12",
        ),
    ],
)
def test_noise_that_no_release_can_carry(options, message):
    with pytest.raises(PrivacyError, match=message):
        plan_noise(20, **({"epsilon": 1e-9} | options))


def hostile_integers():
    return st.one_of(st.integers(1, 3), st.integers(1, 2**62), st.integers(0, 62).map(lambda power: 2**power))


@settings(max_examples=150, deadline=None)
@given(
    mechanism=st.sampled_from(["discrete-gaussian", "discrete-laplace"]),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    epsilon=st.one_of(st.floats(min_value=0, exclude_min=True), st.floats(1e-9, 1e6)),
    delta=st.floats(0, 1),
    numerator=hostile_integers(),
    weights=st.lists(hostile_integers(), min_size=1, max_size=6),
)
def test_any_plan_is_certified_or_refused(mechanism, adjacency, epsilon, delta, numerator, weights):
    plan = NoisePlan(mechanism, adjacency, epsilon, delta, numerator, tuple(weights), "zcdp")
    try:
        found = certify(plan)
    except PrivacyError:
        return
    assert 0 <= found <= 1


@pytest.mark.parametrize("epsilon", [1.1e6, 1e12, 1e308])
def test_certify_refuses_an_epsilon_out_of_range(epsilon):
    plan = replace(plan_noise(3, epsilon=1.0), epsilon=epsilon)
    with pytest.raises(PrivacyError, match=r"epsilon must be at most 1e\+06 or infinite, got 1"):
        certify(plan)


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
