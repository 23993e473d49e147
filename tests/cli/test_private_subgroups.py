from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from conftest import require_extra
from fedsel.cli.main import app, main
from fedsel.schema import Schema, Variable


def run(*arguments):
    result = CliRunner().invoke(app, ["subgroups", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fedsel", "subgroups", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.fixture
def folder(tmp_path):
    schema = Schema(
        "trial",
        (
            Variable("age", bins=(0, 40, 60, 100)),
            Variable("sex", categories=("f", "m")),
            Variable("ward", categories=("a", "b", "c")),
            Variable("ill", role="target", categories=("no", "yes")),
        ),
    )
    (tmp_path / "schema.toml").write_text(schema.to_toml())
    rng = np.random.default_rng(0)
    for name, rows in (("north", 3000), ("south", 1200)):
        age, sex = rng.integers(18, 95, rows), rng.choice(["f", "m"], rows)
        ill = rng.random(rows) < 0.15 + 0.5 * ((age >= 60) & (sex == "f"))
        table = {"age": age, "sex": sex, "ward": rng.choice(["a", "b", "c"], rows), "ill": np.where(ill, "yes", "no")}
        pq.write_table(pa.table(table), tmp_path / f"{name}.rows.parquet")
    return tmp_path


def release(folder, client, *more, out=1):
    own = (folder / f"{client}.rows.parquet", "--schema", folder / "schema.toml", "--protocol", folder / "p.json")
    return "release", *own, "-o", folder / f"{client}.{out}.parquet", *more


def first(folder, client, *more):
    return release(folder, client, "--client", client, "--epsilon", "2", "--noise-seed", "1", *more)


def later(folder, client, number, *more):
    questions = ("--questions", folder / f"q{number}.json", "--first", folder / f"{client}.1.parquet")
    return release(folder, client, *questions, "--noise-seed", "1", *more, out=number)


def discover(folder, rounds, *more):
    files = [folder / f"{client}.{number}.parquet" for number in range(1, rounds + 1) for client in ("north", "south")]
    return "discover", *files, "--protocol", folder / "p.json", *more


@pytest.fixture
def released(folder):
    """All three rounds, released."""
    run("plan", "--schema", folder / "schema.toml", "--pairs", 2, "--confirm", 2, "-o", folder / "p.json")
    for client in ("north", "south"):
        run(*first(folder, client))
    for number in (2, 3):
        run(*discover(folder, number - 1, "--next", folder / f"q{number}.json"))
        for client in ("north", "south"):
            run(*later(folder, client, number))
    return folder


def test_a_whole_discovery(folder):
    said = run("plan", "--schema", folder / "schema.toml", "--pairs", 2, "--confirm", 2, "-o", folder / "p.json")
    assert "outcome    ill = yes" in said
    assert "attributes 3: age, sex, ward" in said
    said = run(*first(folder, "north", "--budget-epsilon", 3))
    assert "guarantee  epsilon 2, delta 1e-05, for adding or removing one record of this client (3 rounds toget" in said
    assert "charge     epsilon 2, delta 1e-05; then left epsilon 1" in said
    run(*first(folder, "south"))
    said = run(*discover(folder, 1, "--next", folder / "q2.json"))
    assert "round 1 only" in said
    assert "age x sex" in said
    for client in ("north", "south"):
        assert "charge     none: covered by that of round 1" in run(*later(folder, client, 2))
    run(*discover(folder, 2, "--next", folder / "q3.json"))
    for client in ("north", "south"):
        run(*later(folder, client, 3))
    said = run(*discover(folder, 3, "-k", 4))
    lines = said.splitlines()
    assert lines[2].startswith("age in [60, 100] and sex = f")
    assert "adjusted p" in lines[0]
    assert "(epsilon = 2, delta = 1e-05)-differentially private" in said
    assert "NOT PRIVATE" not in said
    assert "EXPERIMENT ONLY" in said


def test_json_and_report_say_the_same(released):
    require_extra("jinja2", "report")
    found = json.loads(run(*discover(released, 3, "--json", "--report", released / "one.html")))
    assert found["subgroups"][0]["description"] == "age in [60, 100] and sex = f"
    assert found["estimand"].startswith("weighted relative accuracy")
    assert [c["epsilon"] for c in found["clients"]] == [2.0, 2.0]
    (released / "found.json").write_text(json.dumps(found))
    run("report", released / "found.json", "-o", released / "two.html")
    one, two = ((released / name).read_text() for name in ("one.html", "two.html"))
    assert one == two
    for text in ("age in [60, 100]", "north", "south", 'class="whisker"', "What it cost", "Adjusted p"):
        assert text in one
    assert "<script" not in one


def test_the_page_escapes_what_clients_are_called(released):
    require_extra("jinja2", "report")
    found = json.loads(run(*discover(released, 3, "--json")))
    found["subgroups"][0]["clients"][0]["client"] = "<script>alert(1)</script>"
    found["clients"][0]["client"] = "<img src=x>"
    (released / "found.json").write_text(json.dumps(found))
    run("report", released / "found.json", "-o", released / "page.html")
    page = (released / "page.html").read_text()
    assert "<script" not in page
    assert "<img" not in page


def test_the_page_says_what_it_does_not_draw(released):
    require_extra("jinja2", "report")
    found = json.loads(run(*discover(released, 3, "--json")))
    one = found["subgroups"][0]
    absent = {"client": "east", "rate": None, "error": None, "records": None, "records_error": None}
    one["clients"] = [absent, *one["clients"][:1] * 99]
    (released / "found.json").write_text(json.dumps(found))
    run("report", released / "found.json", "-o", released / "page.html")
    page = (released / "page.html").read_text()
    assert "And 40 more clients, not drawn." in page
    assert page.count("not released") == 1


@pytest.mark.parametrize(
    "text", ["[]", "{}", "nonsense", '{"subgroups": [{"clients": 3}], "base": "x"}', '{"subgroups": [], "base": 0.1}']
)
def test_a_result_that_is_none_is_refused(released, capsys, monkeypatch, text):
    require_extra("jinja2", "report")
    (released / "bad.json").write_text(text)
    error = fail(capsys, monkeypatch, "report", released / "bad.json", "-o", released / "page.html")
    assert "expected" in error
    assert not (released / "page.html").exists()


def test_a_round_is_released_once(released, capsys, monkeypatch):
    (released / "north.2.parquet").unlink()
    error = fail(capsys, monkeypatch, *later(released, "north", 2))
    assert "was released" in error
    assert "--force for this one" in error
    assert "--round" not in error
    error = fail(capsys, monkeypatch, *first(released, "north", "--force", "--budget-epsilon", 2))
    assert "does not fit" in error


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--client", "north"), "round 1 needs --client and --epsilon"),
        (("--epsilon", "1"), "round 1 needs --client and --epsilon"),
        (("--questions", "q.json"), "a later round needs both --questions and --first"),
        (("--client", "n", "--epsilon", "inf"), "confirm with --non-private"),
        (("--client", "n", "--epsilon", "0"), "epsilon"),
        (("--client", "n", "--epsilon", "1", "--no-ledger", "--budget-epsilon", "2"), "--no-ledger does not go with"),
    ],
)
def test_release_refuses(folder, capsys, monkeypatch, more, message):
    run("plan", "--schema", folder / "schema.toml", "-o", folder / "p.json")
    assert message in fail(capsys, monkeypatch, *release(folder, "north", *more))
    assert not list(folder.glob("*.ledger"))


def test_later_rounds_refuse_what_is_not_theirs(released, capsys, monkeypatch):
    wrong = ("--questions", released / "q2.json", "--first", released / "north.2.parquet")
    assert "expected this client's release of round 1" in fail(
        capsys, monkeypatch, *release(released, "north", *wrong, out=9)
    )
    both = ("--questions", released / "q2.json", "--first", released / "north.1.parquet", "--epsilon", "1")
    assert "leave them out in later rounds" in fail(capsys, monkeypatch, *release(released, "north", *both, out=9))
    for option in (("--adjacency", "replace-one"), ("--mechanism", "discrete-laplace"), ("--round", "4")):
        assert "leave them out in later rounds" in fail(
            capsys, monkeypatch, *release(released, "north", *wrong[:3], released / "north.1.parquet", *option, out=9)
        )
    moved = ("--questions", released / "q2.json", "--first", released / "north.1.parquet")
    (released / "north.ledger").rename(released / "elsewhere.ledger")
    assert "expected the ledger that round 1 was charged to" in fail(
        capsys, monkeypatch, *release(released, "north", *moved, out=9)
    )


def test_discover_refuses_other_releases(released, capsys, monkeypatch):
    files = [released / "north.2.parquet", released / "south.1.parquet"]
    assert "client 'north': expected" in fail(
        capsys, monkeypatch, "discover", *files, "--protocol", released / "p.json"
    )
    assert "nothing left to ask" in fail(capsys, monkeypatch, *discover(released, 3, "--next", released / "q4.json"))


@pytest.mark.parametrize(("option", "name"), [("--next", "north.1.parquet"), ("--report", "p.json")])
def test_discover_does_not_write_over_what_it_reads(released, capsys, monkeypatch, option, name):
    require_extra("jinja2", "report")
    before = (released / name).read_bytes()
    error = fail(capsys, monkeypatch, *discover(released, 1, option, released / name, "--force"))
    assert "the output must be another file than" in error
    assert (released / name).read_bytes() == before
