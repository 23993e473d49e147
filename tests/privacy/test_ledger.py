from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsel.errors import BudgetError, PrivacyError, ReleaseError
from fedsel.privacy.composition import Cost, SequentialComposition
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.ledger_file import is_blank
from release_samples import exact_plan, gaussian

UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "north.ledger"
    Ledger.create(path, client="north", epsilon=2.0, delta=3e-5).close()
    return path


def spend(ledger: Ledger, plan: Any = None, **options: Any) -> None:
    with ledger.spend(plan or gaussian(), "tables", **options):
        pass


# Charging


def test_a_new_ledger_holds_its_budget(path: Path) -> None:
    with Ledger(path, client="north") as ledger:
        assert (ledger.client, ledger.adjacency, ledger.budget) == ("north", "add-remove", Cost(2.0, 3e-5))
        assert UTC.fullmatch(ledger.created)
        assert ledger.charges == ()
        assert ledger.spent == Cost(0.0, 0.0)
        assert ledger.remaining == Cost(2.0, 3e-5)


def test_a_charge_is_recorded_whole(path: Path) -> None:
    with Ledger(path) as ledger:
        with ledger.spend(gaussian(), "tables", 1, seeded=True) as charge:
            assert charge.released is None
        (entry,) = ledger.charges
    assert (entry.number, entry.round, entry.purpose) == (1, 1, "tables")
    assert (entry.mechanism, entry.adjacency, entry.accounting) == ("discrete-gaussian", "add-remove", "exact")
    assert (entry.cost, entry.private, entry.seeded) == (Cost(1.0, 1e-5), True, True)
    assert UTC.fullmatch(entry.charged)
    assert entry.released is not None
    assert UTC.fullmatch(entry.released)
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT numerator, weights FROM charge").fetchone() == ("84", "[1,1,1,1,1,1]")
    raw.close()


def test_the_charge_is_on_disk_before_the_body_runs(path: Path) -> None:
    with Ledger(path) as ledger, ledger.spend(gaussian(), "tables", 1), Ledger(path) as other:
        (entry,) = other.charges
        assert entry.released is None
        assert other.spent == Cost(1.0, 1e-5)


def test_a_failed_release_keeps_its_charge(path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(KeyboardInterrupt), ledger.spend(gaussian(), "tables", 1):
            raise KeyboardInterrupt
        assert ledger.charges[0].released is None
        assert ledger.remaining == Cost(1.0, 2e-5)


def test_overspending_is_refused_and_charges_nothing(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, round=1)
        spend(ledger, gaussian(epsilon=0.6), round=2)
        with pytest.raises(BudgetError) as caught:
            spend(ledger, gaussian(epsilon=0.5), round=3)
        assert str(caught.value) == (
            f"{path}: the budget of client 'north' is epsilon 2, delta 3e-05, of which epsilon 1.6, delta 2e-05 is "
            "spent; a charge of epsilon 0.5, delta 1e-05 does not fit"
        )
        with pytest.raises(BudgetError, match="does not fit"):
            spend(ledger, gaussian(epsilon=0.1, delta=2e-5), round=3)
        assert len(ledger.charges) == 2
        spend(ledger, gaussian(epsilon=0.4), round=3)
        assert ledger.remaining == Cost(0.0, 0.0)


def test_sums_are_exact_on_the_numbers_as_written(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l", client="a", epsilon=0.3, delta=0.3) as ledger:
        for number in (1, 2, 3):
            spend(ledger, gaussian(epsilon=0.1, delta=0.1), round=number)  # as floats, 0.1 + 0.1 + 0.1 > 0.3
        with pytest.raises(BudgetError, match="does not fit"):
            spend(ledger, gaussian(epsilon=1e-300, delta=1e-300), round=4)


def test_a_round_is_charged_twice_only_if_told(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, round=1)
        with pytest.raises(
            BudgetError, match=r"round 1 of client 'north' was released on .*; charging it again must be"
        ):
            spend(ledger, round=1)
        with pytest.raises(ZeroDivisionError), ledger.spend(gaussian(), "tables", 1, again=True):
            raise ZeroDivisionError
        with pytest.raises(
            BudgetError, match="round 1 of client 'north' was charged, but its release was not completed"
        ):
            spend(ledger, round=1)
        assert ledger.spent == Cost(2.0, 2e-5)


def test_charges_outside_the_rounds_do_not_collide(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger)
        spend(ledger)
        assert [charge.round for charge in ledger.charges] == [None, None]


def test_another_adjacency_is_refused(path: Path) -> None:
    with (
        Ledger(path) as ledger,
        pytest.raises(BudgetError, match="the budget is for adjacency add-remove, got a charge"),
    ):
        spend(ledger, gaussian(adjacency="replace-one"))


def test_exact_releases_must_be_declared_and_are_recorded_apart(path: Path) -> None:
    with Ledger(path) as ledger:
        with pytest.raises(BudgetError, match="must be declared non-private explicitly"):
            spend(ledger, exact_plan(), round=1)
        assert ledger.charges == ()
        spend(ledger, exact_plan(), round=1, non_private=True)
        (entry,) = ledger.charges
        assert not entry.private
        assert entry.cost.epsilon == float("inf")
        assert ledger.spent == Cost(0.0, 0.0)
        spend(ledger, round=2)
        assert ledger.spent == Cost(1.0, 1e-5)


@pytest.mark.parametrize("purpose", ["", "a\nb"])
def test_a_purpose_is_one_line(path: Path, purpose: str) -> None:
    with (
        Ledger(path) as ledger,
        pytest.raises(BudgetError, match="purpose must be printable"),
        ledger.spend(gaussian(), purpose),
    ):
        pass


def test_checking_charges_nothing(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.check(gaussian(), round=1)
        with pytest.raises(BudgetError, match="does not fit"):
            ledger.check(gaussian(epsilon=3.0), round=1)
        assert ledger.charges == ()


costs = st.builds(Cost, st.floats(0, 10), st.floats(0, 1e-3))


@given(st.lists(costs, max_size=8), costs)
def test_what_fits_is_what_adds_up(spent: list[Cost], budget: Cost) -> None:
    rule = SequentialComposition()
    total = rule.total(spent)
    if rule.fits(spent, budget):
        assert total.epsilon <= budget.epsilon * (1 + 1e-12)
        assert total.delta <= budget.delta * (1 + 1e-12)
    else:
        assert total.epsilon >= budget.epsilon * (1 - 1e-12) or total.delta >= budget.delta * (1 - 1e-12)
    assert rule.fits(spent, Cost(float("inf"), 1.0))
    assert rule.fits([], budget)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.0), (float("nan"), 0.0), (1.0, -0.1), (1.0, 1.1)])
def test_costs_that_are_none(epsilon: float, delta: float) -> None:
    with pytest.raises(PrivacyError):
        Cost(epsilon, delta)


# Files


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 0.0), (-1.0, 0.0), (float("inf"), 0.0), (float("nan"), 0.0), (1.0, 1.0), (1.0, -1e-9), (1.0, float("nan"))],
)
def test_budgets_that_are_refused_leave_no_file(tmp_path: Path, epsilon: float, delta: float) -> None:
    with pytest.raises(BudgetError, match="the budget's"):
        Ledger.create(tmp_path / "l", client="a", epsilon=epsilon, delta=delta)
    assert list(tmp_path.iterdir()) == []


def test_names_and_adjacencies_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="client: "):
        Ledger.create(tmp_path / "l", client="", epsilon=1.0, delta=0.0)
    with pytest.raises(BudgetError, match="adjacency must be one of"):
        Ledger.create(tmp_path / "l", client="a", epsilon=1.0, delta=0.0, adjacency="both")  # type: ignore[arg-type]


def test_a_ledger_is_not_made_twice_nor_its_budget_changed(path: Path) -> None:
    with pytest.raises(BudgetError, match="the ledger exists already"):
        Ledger.create(path, client="north", epsilon=9.0, delta=0.1)
    with Ledger.open_or_create(path, client="north", epsilon=9.0, delta=0.1) as ledger:
        assert ledger.budget == Cost(2.0, 3e-5)


def test_open_or_create_makes_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()  # what a crash while making it can leave
    for name in ("new", "empty"):
        with Ledger.open_or_create(tmp_path / name, client="a", epsilon=1.0, delta=0.0) as ledger:
            assert ledger.budget == Cost(1.0, 0.0)
            assert ledger.charges == ()
            spend(ledger, gaussian(epsilon=0.5, delta=0.0))
            assert ledger.remaining == Cost(0.5, 0.0)
        with Ledger(tmp_path / name, client="a") as ledger:
            assert len(ledger.charges) == 1
    with (
        Ledger.open_or_create(tmp_path / "no" / "l", client="a", epsilon=1.0, delta=0.0) as ledger,
        pytest.raises(BudgetError, match="unable to open"),
    ):
        spend(ledger, gaussian(epsilon=0.5, delta=0.0))


def test_a_new_ledger_and_its_first_charge_are_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "north.ledger"
    with Ledger.open_or_create(path, client="north", epsilon=1.0, delta=1e-5) as ledger:
        with pytest.raises(BudgetError, match="does not fit"):
            spend(ledger, gaussian(epsilon=2.0))
        assert not path.exists()

        def fail(*_: Any, **__: Any) -> int:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("fedsel.privacy.ledger.write_charge", fail)
            with pytest.raises(KeyboardInterrupt):
                spend(ledger)
        assert is_blank(path)  # no budget without a charge
        assert ledger.charges == ()
        spend(ledger)
    with Ledger(path) as ledger:
        assert len(ledger.charges) == 1


def test_the_terms_of_whoever_was_first_hold(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with (
        Ledger.open_or_create(path, client="north", epsilon=1.0, delta=1e-5) as one,
        Ledger.open_or_create(path, client="north", epsilon=5.0, delta=1e-4) as two,
        Ledger.open_or_create(path, client="south", epsilon=5.0, delta=1e-4) as three,
    ):
        spend(one, round=1)
        with pytest.raises(BudgetError, match="the budget of client 'north' is epsilon 1"):
            spend(two, round=2)
        with pytest.raises(BudgetError, match="expected the ledger of client 'south', got that of 'north'"):
            spend(three, round=2)
    with Ledger(path) as ledger:
        assert (ledger.budget, len(ledger.charges)) == (Cost(1.0, 1e-5), 1)


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def damaged_budget(path: Path, change: str) -> None:
    execute(path, "PRAGMA ignore_check_constraints = 1", f"UPDATE ledger SET {change}")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "expected a ledger, got no such file"),
        (
            lambda path: path.write_text("a,b\n1,2\n" * 100),
            "expected a ledger, got a file that is not one or is damaged",
        ),
        (lambda path: path.write_bytes(b""), "expected a ledger, got another kind of database"),
        (lambda path: execute(path, "PRAGMA application_id = 7"), "expected a ledger, got another kind of database"),
        (
            lambda path: execute(path, "PRAGMA user_version = 3"),
            "expected a ledger of version 1 to 2, got version 3, made by a newer fedsel",
        ),
        (lambda path: execute(path, "PRAGMA user_version = 0"), "expected a ledger of version 1 to 2, got version 0"),
        (lambda path: execute(path, "DELETE FROM ledger"), "expected a ledger, got one without a budget"),
        (lambda path: execute(path, "DROP TABLE ledger"), "the ledger cannot be used: no such table: ledger"),
        (lambda path: damaged_budget(path, "epsilon = 'abc'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "delta = x'00'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "client = x'00'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "adjacency = 'none'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "created = x'00'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "composition = 'gdp'"), "got damaged ones"),
        (lambda path: damaged_budget(path, "composition = 'zcdp', delta = 0.0"), "needs a delta above 0, got 0.0"),
        (lambda path: damaged_budget(path, "epsilon = 9e999"), "the budget's epsilon must be a finite number above 0"),
        (lambda path: damaged_budget(path, "epsilon = 1e7"), "the budget's epsilon must be between 1e-09 and 1e+06"),
        (lambda path: damaged_budget(path, "delta = 1"), "the budget's delta must be at least 0 and below 1, got 1.0"),
        (cut, "damaged"),
    ],
)
def test_files_that_are_no_ledger(path: Path, damage: Callable[[Path], Any], message: str) -> None:
    damage(path)
    with pytest.raises(BudgetError) as caught:
        Ledger(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="got a folder"):
        Ledger(tmp_path)


def test_a_damaged_entry_is_no_free_release(path: Path) -> None:
    with Ledger(path) as ledger:
        spend(ledger, round=1)
    execute(path, "UPDATE charge SET epsilon = -5")
    with (
        Ledger(path) as ledger,
        pytest.raises(BudgetError, match="charge 1: expected epsilon and delta, got a damaged entry"),
    ):
        spend(ledger, round=2)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("ledger", "epsilon = 'abc'"),
        ("ledger", "delta = x'00'"),
        ("charge", "epsilon = 'abc'"),
        ("charge", "delta = ''"),
    ],
)
def test_the_file_itself_keeps_texts_out_of_budgets_and_costs(path: Path, table: str, change: str) -> None:
    with Ledger(path) as ledger:
        spend(ledger, round=1)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        execute(path, f"UPDATE {table} SET {change}")


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ("purpose = x'00'", "purpose: got a damaged entry (bytes)"),
        ("charged = x'00'", "charged: got a damaged entry (bytes)"),
        ("released = x'00'", "released: got a damaged entry (bytes)"),
        ("mechanism = x'00'", "mechanism: got a damaged entry (bytes)"),
        ("round = 'one'", "round: got a damaged entry (str)"),
        ("epsilon = 'abc'", "epsilon: got a damaged entry (str)"),
        ("private = 'yes'", "private: got a damaged entry (str)"),
        ("mechanism = 'noise'", "expected a plan or an event, got a damaged entry: mechanism must be one of"),
        ("weights = '[1, true]'", "expected a plan or an event, got a damaged entry: weights must be integers"),
        ("weights = 'x'", "expected a plan or an event, got a damaged entry: Expecting value"),
        ("rounds = '[2]'", "expected a plan or an event, got a damaged entry: rounds must be positive"),
        ("event = '{}'", "expected a plan or an event, got a damaged entry: an event must have a known kind"),
        ("private = 0", "private: got a damaged entry, it contradicts the mechanism"),
        ("delta = 2", "expected epsilon and delta, got a damaged entry: delta must be between 0 and 1, got 2.0"),
    ],
)
def test_a_damaged_entry_is_named(path: Path, change: str, column: str) -> None:
    with Ledger(path) as ledger:
        spend(ledger, round=1)
    execute(path, "PRAGMA ignore_check_constraints = 1", f"UPDATE charge SET {change}")
    with Ledger(path) as ledger:
        with pytest.raises(BudgetError) as caught:
            _ = ledger.charges
        assert str(caught.value).startswith(f"{path}: charge 1: {column}")
        with pytest.raises(BudgetError, match="damaged entry"):
            spend(ledger, round=2)


def test_a_ledger_that_drops_its_charges_charges_nothing(path: Path) -> None:
    execute(path, "CREATE TRIGGER forget AFTER INSERT ON charge BEGIN DELETE FROM charge; END")
    with (
        Ledger(path) as ledger,
        pytest.raises(BudgetError, match="expected charge 1 to be recorded, got a"),
    ):
        spend(ledger, round=1)


def test_the_ledger_of_another_client_is_refused(path: Path) -> None:
    with pytest.raises(BudgetError, match="expected the ledger of client 'south', got that of 'north'"):
        Ledger(path, client="south")


def test_paths_with_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "St. Mary's ?mode=memory #1 %41 ü.ledger"
    with Ledger.create(path, client="a", epsilon=1.0, delta=1e-5) as ledger:
        spend(ledger, round=1)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# Other processes


def test_a_lock_that_is_not_given_up_is_an_error(path: Path) -> None:
    with Ledger(path, timeout=0.05) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match="another process has held the ledger for too long"):
            spend(ledger, round=1)
        other.execute("ROLLBACK")
        other.close()
        spend(ledger, round=1)


RACER = """
import sys
from release_samples import gaussian
from fedsel.errors import BudgetError
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.ledger_file import is_blank
print("ready", flush=True)
for line in sys.stdin:
    with Ledger.open_or_create(line.strip(), client="north", epsilon=1.5, delta=1e-4) as ledger:
        print("open", flush=True)
        sys.stdin.readline()
        try:
            with ledger.spend(gaussian(), "tables", again=True):
                print("spent", flush=True)
        except BudgetError as error:
            assert "does not fit" in str(error), error
            print("refused", flush=True)
"""


def test_of_two_processes_racing_for_the_last_budget_one_wins(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        for _ in range(2)
    ]

    def tell(text: str) -> None:
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(f"{text}\n")
            racer.stdin.flush()

    def hear() -> list[str]:
        return sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout is not None)

    try:
        assert hear() == ["ready", "ready"]
        for number in range(20):
            path = tmp_path / f"{number}.ledger"
            if number % 2:  # else they race for making it too
                Ledger.create(path, client="north", epsilon=1.5, delta=1e-4).close()
            tell(str(path))
            assert hear() == ["open", "open"]
            tell("go")
            assert hear() == ["refused", "spent"]
            with Ledger(path) as ledger:
                assert len(ledger.charges) == 1
    finally:
        for racer in racers:
            racer.communicate()
    assert [racer.returncode for racer in racers] == [0, 0]
