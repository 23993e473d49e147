from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fedsel.cli.main import main
from fedsel.datasets.hospitals import write_hospitals
from fedsel.privacy.ledger import Ledger
from fedsel.release_file import read_release, write_release
from fedsel.score_rule_file import read_rule

NAMES = ("harbour", "hill", "lake", "north")
RELEASES = [f"releases/{name}.parquet" for name in NAMES]
SCORES = [f"scores/{name}.parquet" for name in NAMES]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a folder with four hospitals' records and the schema they agreed on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write_hospitals(Path("hospitals"))

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fedsel", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    done = call(
        *("schema", "init", "--codebook", "hospitals/codebook.csv", "--name", "heart"),
        *("--missing", "category", "--missing-value", "?", "-o", "schema.toml"),
    )
    assert done[0] == 0, done[2]
    schema = Path("schema.toml")
    head, sex, tail = schema.read_text().partition('name = "sex"\n')
    schema.write_text(head + sex + tail.replace('role = "feature"', 'role = "sensitive"', 1))
    return call


def first_round(run: Run, *options: str) -> None:
    for name in NAMES:
        given = ("--schema", "schema.toml", "--client", name, "--epsilon", "4", "-o", f"releases/{name}.parquet")
        status, _, err = run("release", f"hospitals/{name}.csv", *given, *options)
        assert status == 0, err


def second_round(run: Run, name: str, *options: str) -> tuple[int, str, str]:
    given = ("--rule", "rule.json", "--first", f"releases/{name}.parquet", "-o", f"scores/{name}.parquet")
    return run("scores", "release", f"hospitals/{name}.csv", *given, *options)


def both_rounds(run: Run) -> None:
    first_round(run, "--scores")
    assert run("scores", "rule", *RELEASES, "-o", "rule.json")[0] == 0
    for name in NAMES:
        status, _, err = second_round(run, name)
        assert status == 0, err


def refused(result: tuple[int, str, str]) -> str:
    status, _, err = result
    assert status == 2, result
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip()


def test_two_rounds_end_in_a_selection(run: Run) -> None:
    both_rounds(run)
    status, out, _ = run("select", *RELEASES, *SCORES, "--rule", "rule.json", "-k", "2", "--json")
    assert status == 0
    chosen = json.loads(out)
    assert chosen["denoise"] == "reference"
    assert "(epsilon = 4, delta = 1e-05)" in chosen["privacy"]["sentence"]
    status, out, _ = run("pool", "build", *RELEASES, *SCORES, "--rule", "rule.json", "-o", "pool")
    assert status == 0
    assert "6 scores" in out
    assert json.loads(run("select", "pool", "-k", "2", "--json")[1])["loss"] == chosen["loss"]
    assert "no problems" in run("pool", "check", *RELEASES, *SCORES, "--rule", "rule.json")[1]


def test_both_rounds_are_one_charge(run: Run) -> None:
    first_round(run, "--scores")
    run("scores", "rule", *RELEASES, "-o", "rule.json")
    status, out, _ = second_round(run, "lake")
    assert status == 0
    assert "charge     none: covered by that of round 1" in out
    with Ledger(Path("releases/lake.ledger")) as ledger:
        assert len(ledger.charges) == 1
        assert ledger.spent.epsilon == 4.0
    assert "a charge of epsilon 4, delta 1e-05 does not fit" in refused(second_round(run, "lake", "--force"))


def test_the_plan_says_what_will_be_spent_on_what(run: Run) -> None:
    given = ("--schema", "schema.toml", "--client", "lake", "--epsilon", "4", "-o", "lake.parquet", "--scores")
    _, out, _ = run("release", "hospitals/lake.csv", *given)
    assert "scores     6 sums over the rows, in a second round, under a rule made from the first" in out
    assert "(both rounds together)" in out
    assert "times what a row adds at most" in out


def test_what_is_printed_and_published_tells_no_exact_number(run: Run) -> None:
    both_rounds(run)
    rows = len(Path("hospitals/lake.csv").read_text().splitlines()) - 1
    _, out, _ = run("pool", "check", *RELEASES, *SCORES, "--rule", "rule.json")
    assert str(rows * 256) not in out
    assert read_release("scores/lake.parquet").counts[-1] != rows * 256


def test_a_public_rule_makes_one_round_do(run: Run) -> None:
    public = ("scores", "public-rule", "hospitals/hill.csv", "--schema", "schema.toml", "--epsilon", "4")
    status, out, err = run(*public, "-o", "rule.json")
    assert status == 0, err
    assert "a row adds at most" in out
    first_round(run, "--rule", "rule.json")
    held = read_release(RELEASES[0])
    assert held.scores is not None
    assert held.scores.rule == read_rule("rule.json").identity
    assert run("select", *RELEASES, "--rule", "rule.json", "-k", "2")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rule", "missing.json"), "missing.json: expected a file, got none"),
        (("--first", "scores/none.parquet"), "scores/none.parquet: cannot be read"),
        (("--no-ledger", "--ledger", "x"), "--no-ledger does not go with --ledger"),
        (("--ledger", "x.ledger"), "x.ledger: expected the ledger that the first round was charged to"),
    ],
)
def test_second_rounds_that_are_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    first_round(run, "--scores")
    run("scores", "rule", *RELEASES, "-o", "rule.json")
    assert refused(second_round(run, "lake", *arguments)).startswith(message)
    assert not Path("scores/lake.parquet").exists()


def test_one_round_is_no_first_round(run: Run) -> None:
    first_round(run)
    assert "expected the first of two rounds" in refused(run("scores", "rule", *RELEASES, "-o", "rule.json"))
    public = ("scores", "public-rule", "hospitals/hill.csv", "--schema", "schema.toml", "--epsilon", "4")
    run(*public, "-o", "rule.json")
    assert "expected the first of two rounds" in refused(second_round(run, "lake"))


def test_options_that_contradict_each_other(run: Run) -> None:
    public = ("scores", "public-rule", "hospitals/hill.csv", "--schema", "schema.toml", "--epsilon", "4")
    run(*public, "-o", "rule.json")
    given = ("release", "hospitals/lake.csv", "--schema", "schema.toml", "--client", "lake", "-o", "lake.parquet")
    message = refused(run(*given, "--epsilon", "4", "--scores", "--rule", "rule.json"))
    assert message.startswith("--scores plans a rule to come")
    assert "--rule goes with release files" in refused(
        run("select", "--example", "acs-income", "-k", "3", "--rule", "rule.json")
    )
    both_rounds_without_rule = refused(run("select", "--rule", "rule.json", "-k", "2", "nowhere.parquet"))
    assert both_rounds_without_rule.startswith("nowhere.parquet")


def test_a_rule_of_another_schema_is_refused(run: Run) -> None:
    first_round(run, "--scores")
    other = Path("schema.toml").read_text().replace('name = "heart"', 'name = "hearts"')
    Path("other.toml").write_text(other)
    run("scores", "public-rule", "hospitals/hill.csv", "--schema", "other.toml", "--epsilon", "4", "-o", "rule.json")
    assert "schema differs from that of" in refused(second_round(run, "lake"))


def test_the_output_replaces_nothing_that_is_needed(run: Run) -> None:
    first_round(run, "--scores")
    run("scores", "rule", *RELEASES, "-o", "rule.json")
    for kept in ("releases/lake.ledger", "releases/lake.parquet", "rule.json", "hospitals/lake.csv"):
        before = Path(kept).read_bytes()
        message = refused(second_round(run, "lake", "-o", kept, "--force"))
        assert message.startswith(f"{kept}: the output must be another file")
        assert Path(kept).read_bytes() == before
    before = Path(RELEASES[1]).read_bytes()
    assert "the output must be another file" in refused(run("scores", "rule", *RELEASES, "-o", RELEASES[1], "--force"))
    assert Path(RELEASES[1]).read_bytes() == before
    given = (
        "release",
        "hospitals/lake.csv",
        "--schema",
        "schema.toml",
        "--client",
        "lake",
        "--epsilon",
        "1",
        "--force",
    )
    for kept in ("hospitals/lake.csv", "schema.toml"):
        assert "the output must be another file" in refused(run(*given, "-o", kept))
    assert "the output must be another file" in refused(run(*given, "-o", "x", "--ledger", "x"))


def test_exact_scores_are_refused(run: Run) -> None:
    given = ("release", "hospitals/lake.csv", "--schema", "schema.toml", "--client", "lake", "-o", "lake.parquet")
    assert "epsilon must be finite" in refused(run(*given, "--epsilon", "inf", "--non-private", "--scores"))


def test_the_second_round_follows_the_first(run: Run) -> None:
    first_round(run, "--scores", "--round", "3")
    run("scores", "rule", *RELEASES, "-o", "rule.json")
    assert refused(second_round(run, "lake", "--round", "2")).startswith("releases/lake.ledger: ")
    status, out, err = second_round(run, "lake")
    assert status == 0, err
    assert "round 4" in out
    assert "(both rounds together)" in out
    assert read_release("scores/lake.parquet").round == 4


def test_a_pool_check_needs_tables_and_their_scores(run: Run) -> None:
    both_rounds(run)
    assert "scores only" in refused(run("pool", "check", *SCORES, "--rule", "rule.json"))
    assert "no release holds scores" in refused(run("pool", "check", *RELEASES, "--rule", "rule.json"))


def test_a_promise_broken_by_the_scores_is_a_problem(run: Run) -> None:
    run("scores", "public-rule", "hospitals/hill.csv", "--schema", "schema.toml", "--epsilon", "4", "-o", "rule.json")
    first_round(run, "--rule", "rule.json")
    honest = read_release(RELEASES[0])
    plan = honest.plan
    heavier = tuple(w if i < plan.tables else 16 * w for i, w in enumerate(plan.weights))
    write_release(replace(honest, plan=replace(plan, weights=heavier)), RELEASES[0], overwrite=True)
    message = refused(run("pool", "check", RELEASES[0], "--rule", "rule.json"))
    assert message.startswith("client 'harbour': delta: expected")


def test_a_promise_that_cannot_be_examined_exactly_is_bounded(run: Run) -> None:
    first_round(run)
    honest = read_release(RELEASES[0])
    awkward = tuple(10**15 + 37 * i * i + i for i in range(len(honest.plan.weights)))
    numerator = round(float(honest.plan.scale[0]) ** 2 * 10**15)  # about the noise it has
    plan = replace(honest.plan, weights=awkward, numerator=numerator, epsilon=0.1)
    write_release(replace(honest, plan=plan), RELEASES[0], overwrite=True)
    assert "delta: expected" in refused(run("pool", "check", RELEASES[0]))
