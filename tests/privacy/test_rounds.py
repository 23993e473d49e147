"""Joint calibration of tables and scores over several rounds."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.privacy.rounds import plan_rounds

WEIGHTS = [int(w) for w in np.random.default_rng(3).integers(10, 101, 55)]
SCORES = [(256, 1.0)] * 6


def shares(plan, power):
    """Each query's part of the joint cost: cells times sensitivity^power times weight, normalised."""
    cells = 1 if plan.adjacency == "add-remove" else 2
    cost = [cells * w for w in plan.weights[: plan.tables]]
    cost += [(cells * d) ** power * w for d, w in zip(plan.scores, plan.weights[plan.tables :], strict=True)]
    return np.array(cost, dtype=float) / sum(cost)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.005, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("tables_share", [0.2, 0.5, 0.9])
def test_joint_guarantee_and_shares(epsilon, adjacency, tables_share):
    plan = plan_rounds(
        WEIGHTS, scores=SCORES, tables_share=tables_share, rounds=(55, 3, 3), epsilon=epsilon, adjacency=adjacency
    )
    assert plan.accounting == "exact"
    assert (plan.scores, plan.rounds) == ((256,) * 6, (55, 3, 3))
    assert certify(plan) <= 1e-5 < certify(replace(plan, numerator=plan.numerator - 1))
    part = shares(plan, 2)
    assert part[:55].sum() == pytest.approx(tables_share, rel=0.01)
    assert part[55:] == pytest.approx((1 - tables_share) / 6, rel=0.01)
    assert len({Fraction(got, wanted) for got, wanted in zip(plan.weights[:55], WEIGHTS, strict=True)}) == 1


def test_unequal_scores():
    plan = plan_rounds([1, 2], scores=[(64, 3.0), (96, 1.0)], tables_share=0.6, epsilon=2.0)
    assert plan.accounting == "exact"
    assert shares(plan, 2) == pytest.approx([0.2, 0.4, 0.3, 0.1], rel=0.01)


def test_a_small_share():
    plan = plan_rounds([1], scores=[(256, 1.0)], tables_share=0.999, epsilon=1.0)
    assert shares(plan, 2)[1] == pytest.approx(1e-3, rel=0.01)
    assert certify(plan) <= 1e-5


def test_scores_only():
    plan = plan_rounds([], scores=SCORES, rounds=(4, 2), epsilon=1.0)
    assert (plan.tables, len(set(plan.weights)), plan.accounting) == (0, 1, "exact")
    assert certify(plan) <= 1e-5
    # six scores of 256 need 256 times the noise of six tables, nearly: their lattice is finer
    assert plan.scale[0] == pytest.approx(256 * plan_noise(6, epsilon=1.0).scale[0], rel=1e-3)


def test_tables_only_is_the_plan_of_one_round_with_its_rounds():
    plan = plan_rounds([1, 2, 2], scores=[], rounds=(1, 2), epsilon=1.0)
    assert plan == replace(plan_noise(3, epsilon=1.0, weights=[1, 2, 2]), rounds=(1, 2))


@pytest.mark.parametrize(("adjacency", "cells"), [("add-remove", 1), ("replace-one", 2)])
def test_discrete_laplace_adds_up(adjacency, cells):
    plan = plan_rounds(
        [1, 3], scores=[(16, 1.0)], tables_share=0.5, epsilon=0.7, adjacency=adjacency, mechanism="discrete-laplace"
    )
    joint = Fraction(cells * (plan.weights[0] + plan.weights[1] + 16 * plan.weights[2]), plan.numerator)
    assert joint <= Fraction(0.7)
    assert float(joint) == pytest.approx(0.7, rel=1e-6)
    assert shares(plan, 1)[2] == pytest.approx(0.5, rel=0.01)
    assert certify(plan) == 0.0
    assert certify(replace(plan, numerator=plan.numerator // 2)) > 0.1


def test_falls_back_where_the_lattice_is_too_long():
    many = [int(w) for w in np.random.default_rng(0).integers(1, 2**30, 50)]
    plan = plan_rounds(many, scores=[(256, 1.0)], tables_share=0.5, epsilon=0.1)
    assert plan.accounting == "zcdp"
    assert shares(plan, 2)[50] == pytest.approx(0.5, rel=0.01)


def test_agrees_with_dp_accounting():
    """A score of 4 and two tables: dp-accounting composes one distribution a query."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    plan = plan_rounds([1, 1], scores=[(4, 1.0)], tables_share=0.5, epsilon=1.0)

    def delta(interval):
        total = None
        for sigma, d in zip(plan.scale, plan.sensitivities, strict=True):
            one = pld.from_discrete_gaussian_mechanism(
                sigma, sensitivity=d, value_discretization_interval=interval, use_connect_dots=False
            )
            total = one if total is None else total.compose(one)
        return total.get_delta_for_epsilon(1.0)

    interval = 1e-4
    coarse, fine = delta(interval), delta(interval / 4)
    while abs(coarse - fine) > 0.01 * fine:
        interval /= 4
        coarse, fine = fine, delta(interval / 4)
    assert certify(plan) == pytest.approx(fine, rel=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables_share": None}, r"tables_share must be between 0 and 1 \(exclusive\), got None"),
        ({"tables_share": 1.0}, r"tables_share must be between 0 and 1 \(exclusive\), got 1.0"),
        ({"scores": [(0, 1.0)]}, "the D of a score must be a positive integer, got 0 for score 0"),
        ({"scores": [(1.5, 1.0)]}, "the D of a score must be a positive integer, got 1.5 for score 0"),
        ({"scores": [(8, 0.0)]}, "the share of a score must be a positive number, got 0.0 for score 0"),
        ({"scores": [(1009, 1.0), (2003, 1.0)]}, "least common multiple of the shifts of all scores must be at most"),
        ({"weights": [1, 0]}, "weights must be positive integers, got 0 for table 1"),
        ({"weights": [], "scores": []}, "a plan needs at least one table or score, got none"),
        ({"rounds": (2,)}, r"rounds must be positive and add up to the number of queries \(3\)"),
    ],
)
def test_refusals(options, message):
    arguments = {"weights": [1, 2], "scores": [(8, 1.0)], "tables_share": 0.5, "epsilon": 1.0} | options
    with pytest.raises(PrivacyError, match=message):
        plan_rounds(arguments.pop("weights"), **arguments)
