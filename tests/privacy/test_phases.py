import math

import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.accounting import epsilon_of
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.composition import Cost
from fedsel.privacy.events import SubsampledGaussianEvent
from fedsel.privacy.phases import three_phases


def test_members_pay_for_training_and_others_do_not():
    stated = three_phases(tables=plan_noise(55, epsilon=1.0), training=Cost(2.0, 1e-6))
    assert stated.tables == Cost(1.0, 1e-5)
    assert stated.training == Cost(2.0, 1e-6)
    assert stated.member == Cost(3.0, 1.1e-5)
    assert stated.sentence == (
        "For adding or removing one of its records: phase 1 (tables) costs (epsilon = 1, delta = 1e-05) once at every "
        "candidate; phase 2 (selection) is post-processing and costs nothing; phase 3 (training) costs (epsilon = 2, "
        "delta = 1e-06) at members only; together (epsilon = 3, delta = 1.1e-05) at a member and (epsilon = 1, delta = "
        "1e-05) at a client that was not chosen."
    )


def test_training_by_an_event():
    training = Cost(epsilon_of(SubsampledGaussianEvent(0.01, 1.1, 1000), 1e-5), 1e-5)
    stated = three_phases(tables=plan_noise(3, epsilon=0.5, adjacency="replace-one"), training=training)
    assert stated.member.epsilon == pytest.approx(0.5 + training.epsilon)
    assert stated.adjacency == "replace-one"


def test_no_statement_without_privacy():
    with pytest.raises(PrivacyError, match="plan of the tables must have noise"):
        three_phases(tables=plan_noise(3, epsilon=math.inf), training=Cost(1.0, 0.0))
    with pytest.raises(PrivacyError, match="training's epsilon must be finite, got inf"):
        three_phases(tables=plan_noise(3, epsilon=1.0), training=Cost(math.inf, 0.0))
