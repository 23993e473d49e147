from dataclasses import replace

import pytest

from fedsel.errors import PrivacyError, ReleaseError
from fedsel.privacy.plan import NoisePlan
from fedsel.release import check_plan

PLAN = NoisePlan(
    "discrete-gaussian", "add-remove", 1.0, 1e-5, 900, (9, 16, 25, 1, 4), "exact", scores=(8, 6), rounds=(2, 2, 1)
)


def test_a_plan_of_tables_is_one_round():
    plan = NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 900, (9, 16, 25), "exact")
    assert (plan.rounds, plan.scores, plan.tables, plan.sensitivities) == ((3,), (), 3, (1, 1, 1))
    assert plan == replace(plan, rounds=(3,))
    assert plan.part(1) == plan


def test_scores_come_last():
    assert PLAN.tables == 3
    assert PLAN.sensitivities == (1, 1, 1, 8, 6)
    assert PLAN.scale.tolist() == [10.0, 7.5, 6.0, 30.0, 15.0]


@pytest.mark.parametrize(("number", "weights", "scores"), [(1, (9, 16), ()), (2, (25, 1), (8,)), (3, (4,), (6,))])
def test_a_part_has_the_queries_of_its_round_under_the_joint_guarantee(number, weights, scores):
    part = PLAN.part(number)
    assert (part.weights, part.scores, part.rounds) == (weights, scores, (len(weights),))
    assert (part.numerator, part.epsilon, part.delta) == (900, 1.0, 1e-5)


def test_parts_partition_the_scales():
    assert [s for n in (1, 2, 3) for s in PLAN.part(n).scale.tolist()] == PLAN.scale.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": (2, 2)}, r"rounds must be positive and add up to the number of queries \(5\), got \(2, 2\)"),
        ({"rounds": (5, 0)}, "rounds must be positive"),
        ({"scores": (0,)}, "scores must be positive integers"),
        ({"scores": (1,) * 6}, r"at most one per query \(5\)"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(PrivacyError, match=message):
        replace(PLAN, **change)


@pytest.mark.parametrize("number", [0, 4])
def test_a_round_the_plan_does_not_have(number):
    with pytest.raises(PrivacyError, match=f"round must be between 1 and 3, got {number}"):
        PLAN.part(number)


@pytest.mark.parametrize("change", [{"rounds": ()}, {"scores": (), "rounds": (4, 1)}])
def test_a_release_of_tables_has_no_scores_and_no_other_rounds(change):
    with pytest.raises(ReleaseError, match=r"own round, got 2 rounds|scores: expected"):
        check_plan(replace(PLAN, **change), 5)
