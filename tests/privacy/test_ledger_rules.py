"""Plans of several rounds, charges of events and zCDP budgets in a ledger."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from fedsel.errors import BudgetError, PrivacyError
from fedsel.privacy.accounting import epsilon_of
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.composition import Cost
from fedsel.privacy.events import ComposedEvent, GaussianEvent, PureSelectionEvent, SubsampledGaussianEvent
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.rounds import plan_rounds
from release_samples import gaussian

PLAN = plan_rounds([1, 2], scores=[(8, 1.0)] * 2, tables_share=0.5, rounds=(2, 1, 1), epsilon=1.0)
TRAINING = SubsampledGaussianEvent(0.01, 1.1, 1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "north.ledger"
    Ledger.create(path, client="north", epsilon=3.0, delta=1e-4).close()
    return path


def spend(ledger: Ledger, round: int, part: int, plan: object = PLAN, **options: bool) -> int:
    with ledger.spend(plan, "protocol", round, part=part, **options) as charge:  # type: ignore[arg-type]
        return charge.number


# Several rounds


def test_a_plan_is_charged_whole_at_its_first_round_and_covers_the_others(path: Path) -> None:
    with Ledger(path) as ledger:
        assert [spend(ledger, 4, 1), spend(ledger, 5, 2), spend(ledger, 6, 3)] == [1, 1, 1]
        assert ledger.spent == Cost(1.0, 1e-5)
        (charge,) = ledger.charges
        assert (charge.plan, charge.rounds, [c.part for c in charge.covered]) == (PLAN, range(4, 7), [2, 3])
        assert charge.released is not None
        assert all(covered.released for covered in charge.covered)
    with Ledger(path) as ledger, pytest.raises(BudgetError, match=r"round 5 of client 'north' was released on"):
        spend(ledger, 5, 2)


def test_a_covered_round_is_recorded_before_its_release(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 1, 1)
        with pytest.raises(ZeroDivisionError), ledger.spend(PLAN, "protocol", 2, part=2):
            raise ZeroDivisionError
        with Ledger(path) as other:
            assert [(c.part, c.released) for c in other.charges[0].covered] == [(2, None)]
        with pytest.raises(BudgetError, match="round 2 of client 'north' was begun, but its release was not completed"):
            spend(ledger, 2, 2)


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAN, numerator=PLAN.numerator + 1),
        replace(PLAN, rounds=(2, 2)),
        replace(PLAN, weights=(*PLAN.weights[:3], PLAN.weights[3] + 1)),
        replace(PLAN, scores=(8, 9)),
        replace(PLAN, epsilon=0.9),
    ],
)
def test_only_the_same_plan_is_covered(path: Path, other: object) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 1, 1)
        with pytest.raises(BudgetError, match="part 2 of its plan, expected a charge of the same plan at round 1"):
            spend(ledger, 2, 2, other)
        assert ledger.spent == Cost(1.0, 1e-5)


def test_a_later_round_needs_the_first(path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(BudgetError, match="expected a charge of the same plan at round 1, got none"):
            spend(ledger, 2, 2)
        with pytest.raises(BudgetError, match="expected a charge of the same plan at round 1, got none"):
            spend(ledger, 2, 2, again=True)
        spend(ledger, 1, 1)
        with pytest.raises(BudgetError, match="part 2 of its plan, expected a charge of the same plan at round 2"):
            spend(ledger, 3, 2)


def test_a_covered_round_again_is_charged_by_itself(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 1, 1)
        spend(ledger, 2, 2)
        assert spend(ledger, 2, 2, again=True) == 2
        assert ledger.charges[1].plan == PLAN.part(2)
        assert ledger.spent == Cost(2.0, 2e-5)


def test_a_plan_charged_twice_covers_twice(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 1, 1)
        assert spend(ledger, 1, 1, again=True) == 2
        assert {spend(ledger, 2, 2), spend(ledger, 2, 2)} == {1, 2}
        with pytest.raises(BudgetError, match="was released on"):
            spend(ledger, 2, 2)


def test_reserved_rounds_are_taken(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 2, 1)
        with pytest.raises(BudgetError, match=r"round 3 of client 'north' is covered by charge 1 of .*, for a plan of"):
            spend(ledger, 3, 1, gaussian())
        with pytest.raises(BudgetError, match="round 2 of client 'north' was released"):
            spend(ledger, 1, 1)  # its second round is round 2
        spend(ledger, 5, 1, gaussian())


def test_parts_and_rounds_that_do_not_exist(path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(BudgetError, match="part must be between 1 and 3, got 4"):
            spend(ledger, 4, 4)
        with (
            pytest.raises(BudgetError, match="a plan of 3 rounds needs the number of the round"),
            ledger.spend(PLAN, "protocol"),
        ):
            pass


def test_checking_tells_what_would_be_charged(path: Path) -> None:
    with Ledger(path) as ledger:
        assert ledger.check(PLAN, round=1).cover is None
        spend(ledger, 1, 1)
        cover = ledger.check(PLAN, round=2, part=2).cover
        assert cover is not None
        assert cover.number == 1
        assert ledger.charges[0].covered == ()


# Events


def test_events_are_charged(path: Path) -> None:
    with Ledger(path) as ledger:
        selection = ledger.charge(PureSelectionEvent(0.25), purpose="best feature")
        assert (selection.number, selection.round, selection.mechanism) == (1, None, "selection")
        assert selection.cost == Cost(0.25, 0.0)
        training = ledger.charge(TRAINING, purpose="training", delta=1e-6)
        assert training.cost == Cost(epsilon_of(TRAINING, 1e-6), 1e-6)
        assert training.event == TRAINING
        assert [charge.event for charge in ledger.charges] == [PureSelectionEvent(0.25), TRAINING]
        with pytest.raises(BudgetError, match="does not fit"):
            ledger.charge(TRAINING, purpose="training again")
        assert len(ledger.charges) == 2


def test_an_event_may_be_the_first_charge(tmp_path: Path) -> None:
    file = tmp_path / "l"
    with Ledger.open_or_create(file, client="a", epsilon=1.0, delta=0.0) as ledger:
        with pytest.raises(BudgetError, match="does not fit"):
            ledger.charge(PureSelectionEvent(2.0), purpose="best feature")
        assert not file.exists()
        ledger.charge(PureSelectionEvent(0.5), purpose="best feature")
    with Ledger(file) as ledger:
        assert ledger.remaining == Cost(0.5, 0.0)


def test_events_that_are_refused(path: Path, tmp_path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(BudgetError, match="purpose must be printable"):
            ledger.charge(TRAINING, purpose="")
        with pytest.raises(BudgetError, match="the budget is for adjacency add-remove, got a charge for replace-one"):
            ledger.charge(GaussianEvent(10.0), purpose="p", adjacency="replace-one")
        with pytest.raises(PrivacyError, match="delta must be at least 0 and below 1"):
            ledger.charge(TRAINING, purpose="p", delta=2.0)
        with pytest.raises(BudgetError, match="expected a finite epsilon, got inf"):
            ledger.charge(GaussianEvent(1e-9), purpose="p")
    made = Ledger.create(tmp_path / "l", client="a", epsilon=9.0, delta=1e-3, adjacency="replace-one")
    with made as ledger, pytest.raises(BudgetError, match="Poisson sampling is accounted for add-remove"):
        ledger.charge(ComposedEvent((GaussianEvent(9.0), TRAINING)), purpose="p")


# zCDP budgets


def test_a_concentrated_ledger_grants_by_rho(tmp_path: Path) -> None:
    plan = plan_noise(6, epsilon=0.5)
    with Ledger.create(tmp_path / "l", client="a", epsilon=1.5, delta=1e-5, composition="zcdp") as ledger:
        number = 0
        while True:
            try:
                spend(ledger, number + 1, 1, plan)
            except BudgetError as error:
                refusal = str(error)
                break
            number += 1
        assert number > 3  # what addition would grant
        assert ledger.spent.epsilon <= 1.5
        assert ledger.spent.epsilon + ledger.remaining.epsilon == pytest.approx(1.5)
        assert "is epsilon 1.5, delta 1e-05 (rho " in refusal
        assert "a charge of rho " in refusal
    with Ledger(tmp_path / "l") as again:
        assert again.terms.account.composition == "zcdp"
        with pytest.raises(BudgetError, match="does not fit"):
            spend(again, 99, 1, plan)


def test_a_concentrated_ledger_charges_a_selection_by_its_bounded_range(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l", client="a", epsilon=1.0, delta=1e-5, composition="zcdp") as ledger:
        for _ in range(15):  # 15 times 0.1 by addition
            ledger.charge(PureSelectionEvent(0.1), purpose="feature")
        assert ledger.spent.epsilon < 1.0
        assert ledger.charges[0].price.rho == pytest.approx(0.1**2 / 8)


def test_what_is_stored_is_the_plan(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, 1, 1)
    with sqlite3.connect(path) as raw:
        scores, rounds = raw.execute("SELECT scores, rounds FROM charge").fetchone()
    raw.close()
    assert (json.loads(scores), json.loads(rounds)) == ([8, 8], [2, 1, 1])
