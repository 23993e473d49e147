from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedsel.cli.main import main
from fedsel.cli.text_table import text_table
from fedsel.pool import Pool
from fedsel.privacy.ledger import Ledger
from fedsel.release_file import read_release, write_release
from release_samples import gaussian, sample

GOLDEN = Path(__file__).parent.parent / "golden"
SCHEMA = """format = 1
name = "clinic"

[[variables]]
name = "sex"
role = "sensitive"
categories = ["F", "M"]

[[variables]]
name = "age"
bins = [0, 40, 60, 120]

[[variables]]
name = "ill"
role = "target"
categories = [0, 1]
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a folder that holds a schema and the rows of two clients."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("s.toml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    for client in ("north", "south"):
        rows = (f"{rng.choice(['F', 'M'])},{rng.integers(0, 119)},{rng.integers(0, 2)}" for _ in range(321))
        Path(f"{client}.csv").write_text("sex,age,ill\n" + "\n".join(rows) + "\n")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fedsel", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def release(run: Run, client: str = "north", *options: str) -> tuple[int, str, str]:
    given = ["--schema", "s.toml", "--client", client, "-o", f"{client}.parquet"]
    epsilon = [] if "--epsilon" in options else ["--epsilon", "1"]
    return run("release", f"{client}.csv", *given, *epsilon, *options)


def refused(result: tuple[int, str, str]) -> str:
    status, _, err = result
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip()


def check_golden(name: str, text: str) -> None:
    """Compare with a file; FEDSEL_WRITE_GOLDEN=1 writes it instead, to be looked at before it is committed."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "YYYY-MM-DDTHH:MM:SS+00:00", text)
    path = GOLDEN / name
    if os.environ.get("FEDSEL_WRITE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# fedsel release


def test_release_with_a_ledger(run: Run) -> None:
    status, out, err = release(run, "north", "--budget-epsilon", "3")
    assert (status, err) == (0, "")
    check_golden("cli_release.txt", out)
    made = read_release("north.parquet")
    assert (made.client, made.round, made.plan.epsilon, made.plan.delta) == ("north", 1, 1.0, 1e-5)
    with Ledger("north.ledger", client="north") as ledger:
        assert (ledger.budget.epsilon, ledger.budget.delta) == (3.0, 3e-5)
        assert len(ledger.charges) == 1
    assert sorted(os.listdir()) == ["north.csv", "north.ledger", "north.parquet", "s.toml", "south.csv"]


def test_nothing_printed_or_released_tells_the_number_of_rows(run: Run) -> None:
    _, out, err = release(run)
    assert "321" not in out + err
    assert "321" not in str(pq.read_metadata("north.parquet").metadata)


def test_the_plan_is_printed_before_the_data_are_read(run: Run) -> None:
    Path("north.csv").write_text("sex,age,ill\nF,30,7\n")
    status, out, err = release(run)
    assert status == 2
    assert "north.csv" in err
    assert "guarantee  epsilon 1, delta 1e-05, for adding or removing one record of this client" in out
    assert "charge     epsilon 1, delta 1e-05; then left epsilon 0, delta 0" in out
    assert sorted(os.listdir()) == ["north.csv", "s.toml", "south.csv"]


def test_a_second_round_and_an_exhausted_budget(run: Run) -> None:
    release(run, "north", "--budget-epsilon", "2")
    assert refused(release(run)) == "north.parquet: the file exists already; --force replaces it"
    Path("north.parquet").unlink()
    assert "round 1 of client 'north' was released on" in refused(release(run))
    status, out, _ = release(run, "north", "--round", "2")
    assert status == 0
    assert "left epsilon 1, delta 1e-05" in out
    assert "remaining  epsilon 0, delta 0" in out
    text = refused(release(run, "north", "--round", "3", "--force"))
    assert "a charge of epsilon 1, delta 1e-05 does not fit" in text
    assert read_release("north.parquet").round == 2
    check_golden("cli_ledger_show.txt", run("ledger", "show", "north.ledger")[1])


def test_the_first_charge_must_fit_a_new_budget(run: Run) -> None:
    text = refused(release(run, "north", "--budget-epsilon", "0.5"))
    assert "the budget of client 'north' is epsilon 0.5, delta 1e-05, of which epsilon 0" in text
    assert "does not fit" in refused(release(run, "north", "--budget-epsilon", "3", "--budget-delta", "1e-6"))
    assert "the budget's epsilon must be a finite number above 0" in refused(
        release(run, "north", "--budget-epsilon", "0")
    )
    assert not Path("north.ledger").exists()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system takes no room beforehand")
def test_a_refused_release_leaves_no_ledger(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        assert "No space left on device" in refused(release(run))
        assert sorted(os.listdir()) == ["north.csv", "s.toml", "south.csv"]
        arguments = ["release-all", "north.csv", "--schema", "s.toml", "--epsilon", "1", "-o", "all"]
        assert "No space left on device" in refused(run(*arguments))
        assert os.listdir("all") == []
    assert release(run, "north", "--budget-epsilon", "2")[0] == 0


def test_a_budget_cannot_be_changed_in_passing(run: Run) -> None:
    release(run)
    text = refused(release(run, "north", "--round", "2", "--force", "--budget-epsilon", "5"))
    assert text == "north.ledger: the ledger's budget is epsilon 1, delta 1e-05 already, got --budget-epsilon 5"


def test_a_concentrated_budget(run: Run) -> None:
    options = ["--budget-epsilon", "3", "--budget-delta", "1e-5"]
    assert "does not fit" in refused(release(run, "south", "--composition", "zcdp", "--epsilon", "3"))
    status, out, _ = release(run, "north", "--composition", "zcdp", *options)
    assert status == 0
    (budget,) = re.findall(r"ledger     north.ledger \(new\): budget epsilon 3, delta 1e-05 \(rho (\S+)\)", out)
    charge, left = re.findall(
        r"charge     rho (\S+) \(epsilon 1, delta 1e-05 by itself\); then left rho (\S+) \(epsilon 1\.\d+ at", out
    )[0]
    assert float(charge) == pytest.approx(3 / (2 * 6.462**2), rel=1e-3)
    assert float(budget) - float(charge) == pytest.approx(float(left), rel=1e-2)
    assert f"remaining  rho {left}" in out
    text = refused(release(run, "north", "--round", "2", "--force", "--composition", "basic"))
    assert text == "north.ledger: the ledger's composition is zcdp already, got --composition basic"
    assert "then left rho" in release(run, "north", "--round", "2", "--force")[1]
    assert "needs a delta above 0" in refused(
        release(run, "south", "--mechanism", "discrete-laplace", "--composition", "zcdp")
    )


def test_a_named_ledger_and_none(run: Run) -> None:
    status, out, _ = release(run, "north", "--ledger", "books.db")
    assert status == 0
    assert Path("books.db").exists()
    assert "ledger     books.db (new)" in out
    assert "expected the ledger of client 'south', got that of 'north'" in refused(
        release(run, "south", "--ledger", "books.db")
    )
    status, out, _ = release(run, "south", "--no-ledger")
    assert status == 0
    assert "ledger     none: nothing is recorded, and nothing limits repeated releases" in out
    assert not Path("south.ledger").exists()
    text = refused(release(run, "south", "--no-ledger", "--ledger", "books.db", "--force"))
    assert text == "--no-ledger does not go with --ledger, --budget-epsilon, --budget-delta or --composition"


def test_client_names_that_are_no_file_names(run: Run) -> None:
    status, _, _ = run(
        "release", "north.csv", "--schema", "s.toml", "--client", "St. Mary's / 3", "-o", "m.parquet", "--epsilon", "1"
    )
    assert status == 0
    assert Path("St. Mary_s _ 3.ledger").exists()
    assert read_release("m.parquet").client == "St. Mary's / 3"


def test_names_come_into_normal_form(run: Run) -> None:
    options = ["--schema", "s.toml", "-o", "m.parquet", "--epsilon", "1", "--no-ledger"]
    assert run("release", "north.csv", "--client", "e\u0301t\u00e9", *options)[0] == 0
    assert read_release("m.parquet").client == "été"


def test_exact_releases_must_be_confirmed(run: Run) -> None:
    text = refused(release(run, "north", "--epsilon", "inf"))
    assert text == "--epsilon inf releases exact counts without any privacy; confirm with --non-private"
    assert "needs --budget-epsilon" in refused(release(run, "north", "--epsilon", "inf", "--non-private"))
    status, out, _ = release(run, "north", "--epsilon", "inf", "--non-private", "--budget-epsilon", "1")
    assert status == 0
    assert "guarantee  NOT PRIVATE: exact counts (epsilon = inf)" in out
    assert "charge     recorded as not private, outside the budget" in out
    assert read_release("north.parquet").exact
    assert "NOT PRIVATE: 1 exact releases were made" in run("ledger", "show", "north.ledger")[1]
    assert "NOT PRIVATE" in run("pool", "check", "north.parquet")[1]


def test_seeded_noise_is_labelled(run: Run) -> None:
    status, out, _ = release(run, "north", "--noise-seed", "5", "--no-ledger")
    assert status == 0
    assert "WARNING    noise from seed 5: experiments only" in out
    first = read_release("north.parquet")
    assert first.seeded
    release(run, "north", "--noise-seed", "5", "--no-ledger", "--force")
    assert read_release("north.parquet") == first
    assert "EXPERIMENT ONLY" in run("pool", "check", "north.parquet")[1]


def test_options_of_the_noise(run: Run) -> None:
    options = ["--mechanism", "discrete-laplace", "--adjacency", "replace-one", "--epsilon", "2"]
    status, out, _ = release(run, "north", *options)
    assert status == 0
    assert "discrete Laplace, scale = 3 records on every cell (pure accounting)" in out
    assert "epsilon 2, delta 0, for replacing one record of this client" in out
    release(run, "south", "--accounting", "rdp", "--delta", "1e-6")
    assert (read_release("south.parquet").plan.accounting, read_release("south.parquet").plan.delta) == ("rdp", 1e-6)


def test_public_sizes_are_released_under_replace_one_only(run: Run) -> None:
    Path("s.toml").write_text(SCHEMA.replace('name = "clinic"', 'name = "clinic"\nsizes = "public"'))
    release(run, "north", "--adjacency", "replace-one")
    assert read_release("north.parquet").rows == 321
    release(run, "south")
    assert read_release("south.parquet").rows is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "epsilon must be positive, got 0"),
        (["--epsilon", "-1"], "epsilon must be positive, got -1"),
        (["--epsilon", "nan"], "epsilon must be positive, got nan"),
        (["--epsilon", "5e-324"], "epsilon must be between 1e-09 and 1e+06, or infinite (no noise), got 5e-324"),
        (["--epsilon", "1e308"], "epsilon must be between 1e-09 and 1e+06, or infinite (no noise), got 1e+308"),
        (
            ["--epsilon", "1e-300", "--mechanism", "discrete-laplace"],
            "epsilon must be between 1e-09 and 1e+06, or infinite (no noise), got 1e-300",
        ),
        (["--epsilon", "1e-160", "--accounting", "rdp"], "epsilon must be between 1e-09 and 1e+06"),
        (["--budget-epsilon", "1e308"], "the budget's epsilon must be between 1e-09 and 1e+06, got 1e+308"),
        (
            ["--budget-epsilon", "1e6"],
            "north.ledger: the deltas of a budget must add up to less than 1, got epsilon 1e+06, enough for 1,000,000 "
            "releases with delta 1e-05: give --budget-delta, or less --budget-epsilon",
        ),
        (["--epsilon", "1e-9", "--budget-epsilon", "1e308"], "the budget's epsilon must be between 1e-09 and 1e+06"),
        (["--delta", "0"], "delta must be between 0 and 1 (exclusive), got 0"),
        (["--delta", "1"], "delta must be between 0 and 1 (exclusive), got 1"),
        (["--schema", "none.toml"], "none.toml"),
        (["-o", "missing/too/out.parquet"], "missing/too/out.parquet: the folder missing/too cannot be made"),
        (["--client", ""], "client: a name must have 1 to 200 characters, got 0"),
        (["--client", "a\nb"], "client: a name must be printable"),
    ],
)
def test_bad_options(run: Run, options: list[str], message: str) -> None:
    assert message in refused(release(run, "north", *options))
    assert sorted(os.listdir()) == ["north.csv", "s.toml", "south.csv"]


def test_one_client_of_a_file_of_several(run: Run) -> None:
    both = [f"{name},{line}" for name in ("north", "south") for line in Path(f"{name}.csv").read_text().split()[1:]]
    Path("both.csv").write_text("\n".join(["hospital,sex,age,ill", *both]))
    options = ["--schema", "s.toml", "--epsilon", "1", "--noise-seed", "1", "--no-ledger"]
    status, _, _ = run(
        "release", "both.csv", "--client-column", "hospital", "--client", "south", "-o", "new/a.parquet", *options
    )
    assert status == 0
    run("release", "south.csv", "--client", "south", "-o", "b.parquet", *options)
    assert read_release("new/a.parquet") == read_release("b.parquet")
    for column, client, message in (
        ("hospital", "west", "both.csv: no row has hospital = 'west'; it has north, south"),
        ("clinic", "south", "both.csv: no column clinic; it has hospital, sex, age, ill"),
    ):
        text = refused(
            run("release", "both.csv", "--client-column", column, "--client", client, "-o", "c.parquet", *options)
        )
        assert text == message


def test_other_delimiters(run: Run) -> None:
    Path("north.csv").write_text(Path("north.csv").read_text().replace(",", ";"))
    assert "no column sex" in refused(release(run))
    assert release(run, "north", "--delimiter", ";")[0] == 0


def test_a_client_whose_rows_are_all_dropped(run: Run) -> None:
    Path("s.toml").write_text(SCHEMA + 'missing = "drop"\n')
    Path("north.csv").write_text("sex,age,ill\nF,30,\n")
    assert "no row is left once those with missing values are dropped" in refused(release(run))
    assert not Path("north.ledger").exists()


def test_data_that_are_not_there(run: Run) -> None:
    Path("north.csv").unlink()
    assert refused(release(run)) == "north.csv: no such file"


# fedsel pool


def test_pool_check(run: Run) -> None:
    status, out, err = run("pool", "check", str(GOLDEN / "north.v1.parquet"), str(GOLDEN / "unicode.v1.parquet"))
    assert (status, err) == (0, "")
    check_golden("cli_pool_check.txt", out)


def test_a_client_that_promises_more_than_its_noise_gives_is_a_problem(run: Run) -> None:
    write_release(sample(plan=gaussian(numerator=40)), "boast.parquet")
    text = refused(run("pool", "check", "boast.parquet"))
    assert re.fullmatch(r"client 'north': delta: expected \S+, what its noise gives at epsilon 1, got 1e-05", text)


def test_pool_check_of_releases_made_here(run: Run) -> None:
    for client in ("north", "south"):
        release(run, client)
    status, out, err = run("pool", "check", "north.parquet", "south.parquet")
    assert (status, err) == (0, "")
    assert out.endswith("no problems\n")


def test_pool_check_lists_every_problem(run: Run) -> None:
    release(run, "north")
    release(run, "south", "--epsilon", "2")
    Path("cut.parquet").write_bytes(Path("north.parquet").read_bytes()[:-9])
    status, out, err = run("pool", "check", "north.parquet", "south.parquet", "cut.parquet", "north.parquet", "none")
    assert status == 2
    lines = err.splitlines()
    assert len(lines) == 5
    assert "south.parquet: release differs from that of north.parquet in epsilon (1, 2)" in lines[0]
    assert lines[1].startswith("problem: cut.parquet: ")
    assert "client 'north' occurs twice" in lines[2]
    assert lines[3] == "problem: none: cannot be read: No such file or directory"
    assert lines[4] == "error: 4 problems in 5 files"
    assert "north" in out
    status, out, err = run("pool", "check", "north.parquet", "south.parquet", "--allow-mixed")
    assert (status, err) == (0, "")
    assert "mixed: clients differ in epsilon (1, 2)" in out


def test_one_problem_is_one_line(run: Run) -> None:
    assert refused(run("pool", "check", "s.toml")).startswith("s.toml: expected a Parquet file")


def test_pool_build(run: Run) -> None:
    for client in ("north", "south"):
        release(run, client)
    status, out, err = run("pool", "build", "north.parquet", "south.parquet", "-o", "pool")
    assert (status, err) == (0, "")
    assert out.endswith("wrote pool\n")
    assert Pool.load("pool").clients == ("north", "south")
    assert refused(run("pool", "build", "north.parquet", "-o", "pool")) == (
        "pool: exists already; --force replaces a stored pool"
    )
    assert run("pool", "build", "north.parquet", "-o", "pool", "--force")[0] == 0
    assert Pool.load("pool").clients == ("north",)
    assert "is not a stored pool" in refused(run("pool", "build", "north.parquet", "-o", ".", "--force"))


def test_tables_line_up_for_wide_characters() -> None:
    text = text_table(("client", "n"), [("病院", "5"), ("ab", "1,000")], right=(1,))
    assert text == "client      n\n------  -----\n病院        5\nab      1,000"
