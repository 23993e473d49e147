from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from fedsel.privacy.charge import Charge
from fedsel.privacy.events import PureSelectionEvent
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.ledger_export import FIELDS, charges_to_csv, charges_to_json_lines
from fedsel.privacy.rounds import plan_rounds
from release_samples import exact_plan, gaussian


@pytest.fixture
def charges(tmp_path: Path) -> tuple[Charge, ...]:
    plan = plan_rounds([1], scores=[(4, 1.0)], tables_share=0.5, rounds=(1, 1), epsilon=0.5)
    with Ledger.create(tmp_path / "l", client="north", epsilon=3.0, delta=1e-4) as ledger:
        with ledger.spend(gaussian(), "tables, all", 1, seeded=True):
            pass
        with ledger.spend(plan, "protocol", 2), ledger.spend(plan, "protocol", 3, part=2):
            pass
        ledger.charge(PureSelectionEvent(0.25), purpose="feature")
        with ledger.spend(exact_plan(), "rehearsal", 9, non_private=True):
            pass
        return ledger.charges


def test_json_lines_hold_everything(charges: tuple[Charge, ...]) -> None:
    lines = [json.loads(line) for line in charges_to_json_lines(charges).splitlines()]
    assert [tuple(line) for line in lines] == [FIELDS] * 4
    first, second, third, fourth = lines
    assert (first["purpose"], first["round"], first["seeded"]) == ("tables, all", 1, True)
    assert (first["numerator"], first["weights"], first["rounds"]) == (84, [1] * 6, [6])
    assert (first["epsilon"], first["delta"]) == (1.0, 1e-5)
    assert first["rho"] == pytest.approx(6 / 168)
    assert second["scores"] == [4]
    assert [covered["part"] for covered in second["covered"]] == [2]
    assert third["event"] == {"kind": "selection", "epsilon": 0.25, "mechanism": "exponential"}
    assert third["weights"] is None
    assert (fourth["epsilon"], fourth["rho"], fourth["private"]) == ("inf", "inf", False)


def test_the_table_holds_the_same(charges: tuple[Charge, ...]) -> None:
    lines = [json.loads(line) for line in charges_to_json_lines(charges).splitlines()]
    rows = list(csv.DictReader(io.StringIO(charges_to_csv(charges))))
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert list(row) == list(FIELDS)
        for field, value in line.items():
            if value is None:
                assert row[field] == ""
            elif isinstance(value, str):
                assert row[field] == value
            else:
                assert json.loads(row[field]) == value


def test_an_empty_ledger() -> None:
    assert charges_to_json_lines(()) == ""
    assert charges_to_csv(()) == ",".join(FIELDS) + "\n"
