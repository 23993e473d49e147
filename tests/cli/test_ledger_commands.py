from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fedsel.cli.main import main
from fedsel.privacy.events import PureSelectionEvent
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.rounds import plan_rounds
from release_samples import exact_plan, gaussian

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fedsel", "ledger", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def fill(ledger: Ledger) -> None:
    plan = plan_rounds([1], scores=[(4, 1.0)], tables_share=0.5, rounds=(1, 1), epsilon=0.5)
    with ledger.spend(plan, "protocol", 1):
        pass
    with ledger.spend(gaussian(), "tables", 7, seeded=True):
        pass
    ledger.charge(PureSelectionEvent(0.25), purpose="feature")


def table(out: str) -> list[list[str]]:
    """Cells of the table of charges, without the times."""
    lines = out.split("\n\n")[1].splitlines()
    return [[cell for cell in line.split("  ") if cell.strip() and "T" not in cell] for line in lines[2:]]


def test_show(run: Run) -> None:
    with Ledger.create("l", client="north", epsilon=3.0, delta=1e-4) as ledger:
        fill(ledger)
    status, out, err = run("show", "l")
    assert (status, err) == (0, "")
    assert out.splitlines()[:5] == [
        "client     north",
        "protects   adding or removing one record of this client",
        "budget     epsilon 3, delta 0.0001",
        "spent      epsilon 1.75, delta 2e-05",
        "remaining  epsilon 1.25, delta 8e-05",
    ]
    rows = [[cell.strip() for cell in row] for row in table(out)]
    assert rows == [
        ["1", "1", "protocol", "0.5", "1e-05", "discrete-gaussian", "1 of 2 rounds"],
        ["2", "7", "tables (seeded noise)", "1", "1e-05", "discrete-gaussian", "yes"],
        ["3", "-", "feature", "0.25", "0", "selection", "-"],
    ]


def test_show_in_both_terms(run: Run) -> None:
    with Ledger.create("l", client="north", epsilon=3.0, delta=1e-4, composition="zcdp") as ledger:
        fill(ledger)
        account, prices = ledger.terms.account, ledger.prices
        spent, left = ledger.spent, ledger.remaining
    _, out, _ = run("show", "l")
    lines = out.splitlines()
    rho = sum(price.rho for price in prices)
    assert lines[2] == f"budget     {account.limit_text()}"
    assert lines[3] == f"spent      rho {rho:.4g} (epsilon {spent.epsilon:.4g}, delta 0.0001)"
    assert lines[4].startswith("remaining  rho ")
    assert lines[4].endswith(f"(epsilon {left.epsilon:.4g} at the budget's delta)")
    assert [row[5].strip() for row in table(out)] == [f"{price.rho:.4g}" for price in prices]


def test_show_what_is_not_private(run: Run) -> None:
    with (
        Ledger.create("l", client="north", epsilon=3.0, delta=1e-4) as ledger,
        ledger.spend(exact_plan(), "tables", 1, non_private=True),
    ):
        pass
    assert "NOT PRIVATE: 1 exact releases were made" in run("show", "l")[1]


def test_a_ledger_without_charges(run: Run) -> None:
    Ledger.create("new.ledger", client="a", epsilon=1.0, delta=0.0).close()
    assert "no charges yet" in run("show", "new.ledger")[1]
    assert run("export", "new.ledger")[:2] == (0, "")


def test_export(run: Run) -> None:
    with Ledger.create("l", client="north", epsilon=3.0, delta=1e-4) as ledger:
        fill(ledger)
    status, out, err = run("export", "l")
    assert (status, err) == (0, "")
    assert [json.loads(line)["purpose"] for line in out.splitlines()] == ["protocol", "tables", "feature"]
    status, out, _ = run("export", "l", "--format", "csv")
    assert status == 0
    assert out.startswith("number,round,purpose,")
    assert len(out.splitlines()) == 4


@pytest.mark.parametrize("command", ["show", "export"])
def test_files_that_are_no_ledger(run: Run, command: str) -> None:
    Path("s.toml").write_text("a = 1\n" * 200)
    for name, message in (("none.ledger", "got no such file"), ("s.toml", "expected a ledger")):
        status, _, err = run(command, name)
        assert status == 2
        assert err.startswith("error: ")
        assert message in err
