from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsel import Workload
from fedsel.errors import BudgetError, ReleaseError
from fedsel.privacy.client import release
from fedsel.privacy.composition import Cost
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.plan import NoisePlan
from fedsel.release_file import read_release
from release_samples import PUBLIC, SCHEMA, exact_plan, gaussian, marginals

TESTS = Path(__file__).parent.parent


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.create(tmp_path / "north.ledger", client="north", epsilon=3.0, delta=1e-4) as ledger:
        yield ledger


def test_charge_noise_and_file(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "north.parquet"
    made = release(marginals(), SCHEMA, gaussian(), client="north", ledger=ledger, round=2, path=path)
    assert read_release(path) == made
    assert (made.client, made.round, made.plan, made.seeded, made.rows) == ("north", 2, gaussian(), False, None)
    assert not np.array_equal(made.counts, marginals().counts)
    (charge,) = ledger.charges
    assert (charge.round, charge.cost, charge.released is not None) == (2, Cost(1.0, 1e-5), True)
    assert sorted(os.listdir(tmp_path)) == ["north.ledger", "north.parquet"]


def test_every_table_carries_noise() -> None:
    # 40 releases: a cell that never changes has probability below 0.05^40
    draws = np.stack([release(marginals(), SCHEMA, gaussian(), client="north").counts for _ in range(40)])
    assert (draws != marginals().counts).any(axis=0).all()


def test_noise_is_fresh_unless_seeded() -> None:
    first, second = (release(marginals(), SCHEMA, gaussian(), client="north") for _ in range(2))
    assert not np.array_equal(first.counts, second.counts)
    assert not first.seeded
    first, second = (release(marginals(), SCHEMA, gaussian(), client="north", seed=7) for _ in range(2))
    assert first == second
    assert first.seeded


def test_one_seed_gives_clients_and_rounds_their_own_noise() -> None:
    options = [
        {"client": "north"},
        {"client": "south"},
        {"client": "north", "round": 2},
        {"client": "north", "seed": 8},
        {"client": "north", "plan": gaussian(weights=(1,) * 5 + (2,))},
    ]
    draws = [
        release(marginals(), SCHEMA, **{"plan": gaussian(), "seed": 7, **option}).counts[:-6] for option in options
    ]
    for first in range(len(draws)):
        for second in range(first):
            assert not np.array_equal(draws[first], draws[second])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (gaussian(), gaussian(epsilon=2.0, numerator=21)),
        (gaussian(), gaussian(weights=(2,) * 6)),
        (
            gaussian(),
            gaussian(mechanism="discrete-laplace", accounting="pure", delta=0.0),
        ),
    ],
)
def test_one_seed_gives_plans_their_own_noise(first: NoisePlan, second: NoisePlan) -> None:
    exact = marginals()
    one, other = (
        np.concatenate([release(exact, SCHEMA, plan, client=f"c{n}", seed=7).counts - exact.counts for n in range(40)])
        for plan in (first, second)
    )
    assert one.size == 1760
    # 1 / sqrt(1760) = 0.024 is the standard deviation of the correlation of independent noise; the seed is fixed
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1


def test_a_ledger_is_opened_right_before_its_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_ledger() -> Ledger:
        return Ledger.open_or_create(tmp_path / "north.ledger", client="north", epsilon=1.0, delta=1e-5)

    for changes in ({"plan": gaussian(5)}, {"round": 0}, {"seed": -1}, {"path": tmp_path / "none" / "north.parquet"}):
        arguments: dict[str, Any] = {"plan": gaussian(), "client": "north", **changes}
        with pytest.raises(ReleaseError):
            release(marginals(), SCHEMA, ledger=open_ledger, **arguments)
        assert os.listdir(tmp_path) == []
    with pytest.raises(BudgetError, match="expected the ledger of client 'south', got that of 'north'"):
        release(marginals(), SCHEMA, gaussian(), client="south", ledger=open_ledger)
    release(marginals(), SCHEMA, gaussian(), client="north", ledger=open_ledger)
    with open_ledger() as ledger:
        assert len(ledger.charges) == 1


def test_exact_release_needs_a_word_where_there_is_a_ledger(ledger: Ledger) -> None:
    assert np.array_equal(release(marginals(), SCHEMA, exact_plan(), client="north").counts, marginals().counts)
    with pytest.raises(BudgetError, match="non-private"):
        release(marginals(), SCHEMA, exact_plan(), client="north", ledger=ledger)
    made = release(marginals(), SCHEMA, exact_plan(), client="north", ledger=ledger, non_private=True, seed=3)
    assert made.exact
    assert not made.seeded
    assert ledger.spent == Cost(0.0, 0.0)


def test_public_rows() -> None:
    plan = gaussian(adjacency="replace-one")
    assert release(marginals(), PUBLIC, plan, client="north", rows=400).rows == 400
    with pytest.raises(ReleaseError, match="rows: "):
        release(marginals(), SCHEMA, plan, client="north", rows=400)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client": ""}, "client: a name must have"),
        ({"plan": gaussian(5)}, "weights: expected 6, one per table, got 5"),
        (
            {"plan": gaussian(mechanism="discrete-laplace", accounting="pure", delta=0.0, numerator=10**14)},
            r"the widest noise must stay within 2\*\*39 records, got a scale of 1e\+14",
        ),
        ({"round": 0}, "round: expected an integer"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"rows": 400}, "rows: the schema does not declare"),
        (
            {"marginals": marginals(Workload((*"abc",), (2, 2, 2), ((0, 1),)))},
            "workload: expected the schema's variables",
        ),
        ({"path": "missing/north.parquet"}, "cannot be written"),
        ({"path": "."}, "expected a file to write, got a folder"),
        ({"path": "there.parquet"}, "the file exists already"),
    ],
)
def test_what_can_fail_beforehand_costs_nothing(
    ledger: Ledger, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    (tmp_path / "there.parquet").write_text("kept")
    arguments = {"marginals": marginals(), "schema": SCHEMA, "plan": gaussian(), "client": "north", **changes}
    if "path" in arguments:
        arguments["path"] = tmp_path / arguments["path"]
    with pytest.raises((ReleaseError, BudgetError), match=message if changes.get("client") != "" else "client"):
        release(**arguments, ledger=ledger)
    assert ledger.charges == ()
    assert sorted(os.listdir(tmp_path)) == ["north.ledger", "there.parquet"]


def test_the_ledger_of_another_client_is_not_charged(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="expected the ledger of client 'south', got that of 'north'"):
        release(marginals(), SCHEMA, gaussian(), client="south", ledger=ledger)
    assert ledger.charges == ()


def test_a_refused_charge_leaves_no_file(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="does not fit"):
        release(marginals(), SCHEMA, gaussian(epsilon=4.0), client="north", ledger=ledger, path=tmp_path / "n.parquet")
    assert os.listdir(tmp_path) == ["north.ledger"]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system takes no room beforehand")
def test_a_full_disk_shows_before_the_charge(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ReleaseError, match=r"north\.parquet: cannot be written: No space left on device"):
        release(marginals(), SCHEMA, gaussian(), client="north", ledger=ledger, path=tmp_path / "north.parquet")
    assert ledger.charges == ()
    assert os.listdir(tmp_path) == ["north.ledger"]


def test_a_failure_after_the_charge_leaves_the_charge_and_no_file(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ReleaseError, match="cannot be written: broken"):
        release(marginals(), SCHEMA, gaussian(), client="north", ledger=ledger, path=tmp_path / "north.parquet")
    (charge,) = ledger.charges
    assert charge.released is None
    assert os.listdir(tmp_path) == ["north.ledger"]


# Killed

# Without numba: a kernel compiled on first use would take most of the time in which a process can be killed.
CHILD = """
import os, signal, sys
from pathlib import Path
from release_samples import SCHEMA, gaussian, marginals
from fedsel import atomic_file
from fedsel.privacy import client, ledger_file
from fedsel.privacy.ledger import Ledger

folder, point = Path(sys.argv[1]), sys.argv[2]
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
armed = False

def add_noise(counts, sizes, plan, *, entropy):
    if armed and point == "before noise":
        kill()
    return counts + 1

client.add_noise = add_noise
name = atomic_file.AtomicFile._name
def naming(self):
    if armed and point == "before the name":
        kill()
    name(self)
    if armed and point == "after the name":
        kill()
atomic_file.AtomicFile._name = naming

plan, exact = gaussian(epsilon=0.001, delta=1e-9), marginals()
with Ledger.open_or_create(folder / "ledger", client="north", epsilon=1e6, delta=0.5) as ledger:
    spend = ledger.spend
    def spending(*args, **options):
        global armed
        armed = True
        if point == "before the charge":
            kill()
        return spend(*args, **options)
    ledger.spend = spending
    client.release(exact, SCHEMA, plan, client="north", ledger=ledger, round=1, path=folder / "1.parquet")
"""


def run(folder: Path, point: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), point]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS)


@pytest.mark.parametrize(
    ("point", "charges", "releases"),
    [
        ("before the charge", 0, 0),
        ("before noise", 1, 0),
        ("before the name", 1, 0),
        ("after the name", 1, 1),
    ],
)
def test_killed_at_a_given_point(tmp_path: Path, point: str, charges: int, releases: int) -> None:
    child = run(tmp_path, point)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    files = sorted(tmp_path.glob("*.parquet"))
    with Ledger.open_or_create(tmp_path / "ledger", client="north", epsilon=1e6, delta=0.5) as ledger:
        assert [charge.released for charge in ledger.charges] == [None] * charges
        assert len(files) == releases
        for file in files:
            assert read_release(file).round == 1
        if charges and not releases:
            with pytest.raises(BudgetError, match="round 1 of client 'north' was charged, but its release was not"):
                ledger.check(gaussian(), round=1)
