from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsel.cli.main import main
from fedsel.errors import ReleaseError
from fedsel.pool import Pool
from fedsel.privacy.client import release as private_release
from fedsel.privacy.ledger import Ledger
from fedsel.release_file import read_release

SCHEMA = """format = 1
name = "clinic"

[[variables]]
name = "sex"
role = "sensitive"
categories = ["F", "M"]

[[variables]]
name = "ill"
role = "target"
categories = [0, 1]
missing = "drop"
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``fedsel release-all`` where all.csv holds the rows of three clients, and three files those of one each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("s.toml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    rows = [
        (str(rng.choice(["north", "south", "west"])), f"{rng.choice(['F', 'M'])},{rng.integers(2)}") for _ in range(457)
    ]
    Path("all.csv").write_text("\n".join(["hospital,sex,ill", *(f"{name},{row}" for name, row in rows)]))
    for client in ("north", "south", "west"):
        Path(f"{client}.csv").write_text("\n".join(["sex,ill", *(row for name, row in rows if name == client)]))

    def call(*arguments: str) -> tuple[int, str, str]:
        given = [] if "--epsilon" in arguments else ["--epsilon", "1"]
        argv = ["fedsel", "release-all", *arguments, "--schema", "s.toml", "-o", "out", *given]
        monkeypatch.setattr("sys.argv", argv)
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def refused(result: tuple[int, str, str]) -> str:
    status, _, err = result
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip()


COLUMN = ("all.csv", "--client-column", "hospital")
FILES = ("north.csv", "south.csv", "west.csv")


def test_a_column_and_files_give_the_same(run: Run) -> None:
    status, out, err = run(*COLUMN, "--noise-seed", "3")
    assert (status, err) == (0, "")
    assert "457" not in out
    assert sorted(os.listdir("out")) == [
        f"{c}.{end}" for c in ("north", "south", "west") for end in ("ledger", "parquet")
    ]
    for line in (
        "guarantee  epsilon 1, delta 1e-05, for adding or removing one record of this client",
        "charge     epsilon 1, delta 1e-05, to each",
        "south   out/south.parquet  new     epsilon 1, delta 1e-05  epsilon 0, delta 0",
        "wrote      3 releases to out",
    ):
        assert line in out.splitlines()
    first = {client: read_release(f"out/{client}.parquet") for client in ("north", "south", "west")}
    for client in first:
        with Ledger(f"out/{client}.ledger", client=client) as ledger:
            assert (len(ledger.charges), ledger.remaining.epsilon) == (1, 0.0)
    Path("out").rename("before")
    assert run(*FILES, "--noise-seed", "3", "--no-ledger")[0] == 0
    assert sorted(os.listdir("out")) == list(FILES[i].replace("csv", "parquet") for i in range(3))
    pool = Pool.open(sorted(Path("out").iterdir()))
    assert pool.clients == ("north", "south", "west")
    for client, release in first.items():
        assert read_release(f"out/{client}.parquet") == release


def test_some_clients_only(run: Run) -> None:
    assert run(*COLUMN, "--clients", "west, north", "--no-ledger")[0] == 0
    assert sorted(os.listdir("out")) == ["north.parquet", "west.parquet"]
    assert refused(run(*FILES, "--clients", "east", "--force")) == (
        "--clients: the data hold no client 'east'; they hold north, south, west"
    )


def test_nothing_is_charged_where_one_output_exists(run: Run) -> None:
    Path("out").mkdir()
    Path("out/south.parquet").touch()
    for shape in (COLUMN, FILES):
        text = refused(run(*shape))
        assert text == "client 'south': out/south.parquet exists already; --force replaces it"
        assert os.listdir("out") == ["south.parquet"]


def test_nothing_is_charged_where_one_budget_is_spent(run: Run) -> None:
    assert run("south.csv")[0] == 0
    Path("out/south.parquet").unlink()
    for shape in (COLUMN, FILES):
        text = refused(run(*shape, "--round", "2"))
        assert text.startswith("client 'south': out/south.ledger: the budget of client 'south' is epsilon 1")
        assert os.listdir("out") == ["south.ledger"]


def test_a_failure_in_between_says_what_was_done(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def release(*arguments: Any, client: str, **options: Any) -> Any:
        if client == "south":
            raise ReleaseError("the disk is full")
        return private_release(*arguments, client=client, **options)

    monkeypatch.setattr("fedsel.privacy.client.release", release)
    text = refused(run(*COLUMN))
    assert text == "client 'south': the disk is full; 1 of 3 releases were written before"
    assert sorted(os.listdir("out")) == ["north.ledger", "north.parquet"]  # no ledger without a charge


def test_rounds_are_charged_to_the_ledgers_that_are_there(run: Run) -> None:
    assert run(*FILES, "--budget-epsilon", "2")[0] == 0
    status, out, _ = run(*COLUMN, "--round", "2", "--force")
    assert status == 0
    assert "west    out/west.parquet   there   epsilon 1, delta 1e-05" in out
    assert read_release("out/west.parquet").round == 2


def test_a_bad_value_names_the_client(run: Run) -> None:
    lines = Path("all.csv").read_text().splitlines()
    Path("all.csv").write_text("\n".join([*lines, "west,X,1"]))
    text = refused(run(*COLUMN))
    assert text == (
        """all.csv: row 458 (client 'west'): sex: missing="error" but the value is 'X', not among the categories F, M"""
    )
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",F,1", "all.csv: row 458: hospital: the client's name is missing"),
        ("east,F,", "all.csv: client 'east': no row is left once those with missing values are dropped"),
        ("we/st,F,1\nwe_st,F,1", "clients 'we/st' and 'we_st' would both be written to out/we_st.parquet"),
        ("West,F,1", "clients 'West' and 'west' would both be written to out/west.parquet"),
        ("a\u200bb,F,1", "all.csv: row 458: hospital: client: a name must be printable"),
    ],
)
def test_bad_clients(run: Run, row: str, message: str) -> None:
    Path("all.csv").write_text(Path("all.csv").read_text() + "\n" + row + "\n")
    assert refused(run(*COLUMN)).startswith(message)
    assert not Path("out").exists()


def test_bad_files(run: Run) -> None:
    assert refused(run("north.csv", "east.csv")) == "east.csv: no such file"
    Path("more").mkdir()
    Path("more/north.csv.gz").touch()
    assert refused(run("north.csv", "more/north.csv.gz")) == (
        "more/north.csv.gz: client 'north' has the file north.csv already"
    )
    assert refused(run("all.csv", "--client-column", "clinic")) == (
        "all.csv: no column clinic; it has hospital, sex, ill"
    )
    Path("out").touch()
    assert refused(run(*FILES)) == "out: expected a folder, got a file"


def test_names_with_dots_keep_them(run: Run) -> None:
    Path("north.csv").rename("processed.north.data")
    assert run("processed.north.data", "--no-ledger")[0] == 0
    assert read_release("out/processed.north.parquet").client == "processed.north"


def test_options(run: Run) -> None:
    assert "confirm with --non-private" in refused(run(*FILES, "--epsilon", "inf"))
    assert "--no-ledger does not go with" in refused(run(*FILES, "--no-ledger", "--budget-epsilon", "2"))
    status, out, _ = run(*FILES, "--epsilon", "inf", "--non-private", "--budget-epsilon", "1")
    assert status == 0
    assert "charge     not private, outside the budget, to each" in out


def test_sizes_are_stated_where_they_are_public(run: Run) -> None:
    Path("s.toml").write_text(SCHEMA.replace('name = "clinic"', 'name = "clinic"\nsizes = "public"'))
    assert run(*COLUMN, "--adjacency", "replace-one")[0] == 0
    rows = [read_release(f"out/{client}.parquet").rows for client in ("north", "south", "west")]
    assert sum(row or 0 for row in rows) == 457
