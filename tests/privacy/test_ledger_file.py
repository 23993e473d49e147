"""Ledgers of version 1, and files that are none yet."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fedsel.errors import BudgetError
from fedsel.privacy.composition import Cost
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.ledger_file import VERSION, is_blank
from release_samples import exact_plan, gaussian

# What the first version wrote.
VERSION_1 = """
CREATE TABLE ledger (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    client TEXT NOT NULL,
    adjacency TEXT NOT NULL,
    epsilon REAL NOT NULL CHECK (typeof(epsilon) = 'real' AND epsilon > 0),
    delta REAL NOT NULL CHECK (typeof(delta) = 'real' AND delta >= 0 AND delta < 1),
    created TEXT NOT NULL
);
CREATE TABLE charge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    round INTEGER,
    purpose TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    adjacency TEXT NOT NULL,
    accounting TEXT NOT NULL,
    epsilon REAL NOT NULL CHECK (typeof(epsilon) = 'real'),
    delta REAL NOT NULL CHECK (typeof(delta) = 'real'),
    numerator TEXT NOT NULL,
    weights TEXT NOT NULL,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    seeded INTEGER NOT NULL CHECK (seeded IN (0, 1)),
    charged TEXT NOT NULL,
    released TEXT
);
PRAGMA application_id = 1717922919;
PRAGMA user_version = 1;
INSERT INTO ledger VALUES (1, 'north', 'add-remove', 3.0, 3e-05, '2024-05-01T10:00:00+00:00');
INSERT INTO charge VALUES (1, 1, 'tables', 'discrete-gaussian', 'add-remove', 'exact', 1.0, 1e-05, '84',
    '[1,1,1,1,1,1]', 1, 0, '2024-05-01T10:00:01+00:00', '2024-05-01T10:00:02+00:00');
INSERT INTO charge VALUES (2, 2, 'tables', 'none', 'add-remove', 'none', 9e999, 0.0, '0',
    '[1,1,1,1,1,1]', 0, 0, '2024-05-02T10:00:01+00:00', NULL);
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "north.ledger"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    return path


def stated_version(path: Path) -> int:
    connection = sqlite3.connect(path)
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return version


def test_a_ledger_of_version_1_keeps_all_its_charges(old: Path) -> None:
    for _ in range(2):
        with Ledger(old, client="north") as ledger:
            assert (ledger.budget, ledger.created) == (Cost(3.0, 3e-5), "2024-05-01T10:00:00+00:00")
            assert ledger.terms.account.composition == "basic"
            first, second = ledger.charges
        assert stated_version(old) == VERSION
    assert first.plan == gaussian()
    assert (first.charged, first.released) == ("2024-05-01T10:00:01+00:00", "2024-05-01T10:00:02+00:00")
    assert second.plan == exact_plan()
    assert not second.private
    assert second.released is None


def test_an_upgraded_ledger_goes_on(old: Path) -> None:
    with Ledger(old) as ledger:
        with pytest.raises(BudgetError, match="round 1 of client 'north' was released on 2024-05-01"):
            ledger.check(gaussian(), round=1)
        with ledger.spend(gaussian(), "tables", 3):
            pass
        assert ledger.remaining == Cost(1.0, 1e-5)
        assert [charge.number for charge in ledger.charges] == [1, 2, 3]


def test_an_upgraded_ledger_is_laid_out_like_a_new_one(old: Path, tmp_path: Path) -> None:
    Ledger(old).close()
    Ledger.create(tmp_path / "new", client="a", epsilon=1.0, delta=0.0).close()
    layouts = []
    for path in (old, tmp_path / "new"):
        connection = sqlite3.connect(path)
        tables = ("ledger", "charge", "covered")
        layouts.append([connection.execute(f"PRAGMA table_info({table})").fetchall() for table in tables])
        connection.close()
    assert layouts[0] == layouts[1]


def test_an_upgrade_that_fails_leaves_version_1(old: Path) -> None:
    connection = sqlite3.connect(old)
    connection.execute("CREATE TABLE covered (odd TEXT)")
    connection.close()
    with pytest.raises(BudgetError, match="the ledger cannot be used: table covered already exists"):
        Ledger(old)
    assert stated_version(old) == 1


def test_processes_that_upgrade_at_once(old: Path) -> None:
    code = (
        "import sys; from fedsel.privacy.ledger import Ledger; sys.stdin.read(); "
        f"print(len(Ledger({str(old)!r}).charges))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
        child.stdin = None
    assert [child.communicate()[0].strip() for child in children] == ["2", "2", "2"]


def test_what_is_no_ledger_yet(tmp_path: Path, old: Path) -> None:
    empty, started = tmp_path / "empty", tmp_path / "started"
    empty.touch()
    connection = sqlite3.connect(started)
    connection.execute("PRAGMA application_id = 0")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("DROP TABLE t")
    connection.close()
    assert [is_blank(p) for p in (tmp_path / "none", empty, started, old, tmp_path)] == [True, True, True, False, False]
    (tmp_path / "text").write_text("a,b\n" * 300)
    with pytest.raises(BudgetError, match="got a file that is not one"):
        is_blank(tmp_path / "text")
