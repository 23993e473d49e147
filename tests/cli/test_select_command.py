from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from fedsel.cli.main import app, main
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.client import release

REQUIRED = {
    "members",
    "loss",
    "components",
    "k",
    "evaluations",
    "search_seconds",
    "certificate",
    "certificate_seconds",
    "wall_seconds",
    "stop_reason",
    "privacy",
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def fail(capsys, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["fedsel", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def release_files(tmp_path_factory):
    example, folder = load_example(), tmp_path_factory.mktemp("releases")
    plan = plan_noise(len(example.workload.sets), epsilon=1.0)
    for client in example.clients[:6]:
        release(
            example.marginals(client), example.schema, plan, client=client, seed=1, path=folder / f"{client}.parquet"
        )
    return sorted(folder.glob("*.parquet"))


def test_the_example_is_solved_and_certified():
    result = run("select", "--example", "acs-income", "-k", 5, "--epsilon", "inf", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found) >= REQUIRED
    assert found["members"] == ["CT", "DE", "MD", "RI", "VA"]
    assert found["loss"] == pytest.approx(-0.484733, abs=1e-6)
    assert found["certificate"]["kind"] == "proof"
    assert found["certificate"]["evaluations"] == math.comb(46, 5)
    assert found["privacy"]["epsilon_max"] == "inf"
    assert not found["privacy"]["private"]


def test_the_printed_result_says_what_matters():
    result = run("select", "--example", "acs-income", "-k", 3, "--epsilon", 1, "--noise-seed", 4)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for phrase in (
        "federation of 3 of 46 clients",
        "proof: all 15,180 federations",
        "(epsilon = 1, delta = 1e-05)-differentially private",
        "EXPERIMENT ONLY",
    ):
        assert phrase in text


def test_fresh_noise_differs_and_seeded_noise_repeats():
    def loss(*options):
        return json.loads(run("select", "--example", "acs-income", "-k", 2, "--json", *options).stdout)["loss"]

    assert loss() != loss()
    assert loss("--noise-seed", 3) == loss("--noise-seed", 3) != loss("--noise-seed", 4)


def test_release_files_and_pool_folders_give_the_same(release_files, tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text(load_example().schema.to_toml(), encoding="utf-8")
    first = run("select", *release_files, "-k", 2, "--schema", schema, "--json")
    assert first.exit_code == 0, first.output
    assert run("pool", "build", *release_files, "-o", tmp_path / "pool").exit_code == 0
    second = run("select", tmp_path / "pool", "-k", 2, "--json")
    a, b = json.loads(first.stdout), json.loads(second.stdout)
    assert (a["members"], a["loss"], a["pool_size"]) == (b["members"], b["loss"], 6)


@pytest.mark.parametrize(
    "options", [("--search", "anneal", "--chains", "2"), ("--search", "exhaustive"), ("--denoise", "clip")]
)
def test_options_reach_the_search(release_files, options):
    result = run("select", *release_files, "-k", 2, "--json", *options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert options[1] in (found["search"], found["denoise"])


def test_weights_change_the_loss(release_files):
    found = json.loads(run("select", *release_files, "-k", 2, "--weights", "1,0,0,0", "--json").stdout)
    assert found["loss"] == pytest.approx(found["components"]["sensitive_target"], abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--example", "mars", "-k", 2), "example must be one of acs-income, got 'mars'"),
        (("--example", "acs-income", "-k", 60), "k must be between 1 and 46, got 60"),
        (("--example", "acs-income", "-k", 2, "--epsilon", 0), "epsilon must be positive, got 0.0"),
        (("--example", "acs-income", "-k", 2, "--epsilon", "nan"), "epsilon must be positive, got nan"),
        (("--example", "acs-income", "-k", 2, "--delta", 2), "delta must be between 0 and 1"),
        (("--example", "acs-income", "-k", 2, "--weights", "1,2"), "--weights must be four numbers"),
        (("--example", "acs-income", "-k", 2, "--sensitive", "AGEP"), "sensitive must be one of ['SEX'], got 'AGEP'"),
        (("-k", 2), "give release files, a pool folder or --example"),
        (("nowhere.parquet", "-k", 1), "nowhere.parquet"),
        (("nowhere.parquet", "-k", 1, "--epsilon", 1), "--epsilon goes with --example only"),
        (("nowhere.parquet", "-k", 1, "--example", "acs-income"), "give either --example or release files"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, monkeypatch, arguments, message):
    error = fail(capsys, monkeypatch, "select", *arguments)
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_another_schema_is_refused_naming_the_difference(capsys, monkeypatch, release_files, tmp_path):
    schema = tmp_path / "schema.toml"
    text = load_example().schema.to_toml()
    assert "65" in text
    schema.write_text(text.replace("65", "66"), encoding="utf-8")
    error = fail(capsys, monkeypatch, "select", *release_files, "-k", 2, "--schema", schema)
    assert "AGEP" in error


def test_usage_errors_keep_their_own_form():
    result = run("select", "--example", "acs-income")
    assert result.exit_code == 2
    assert "-k" in result.output


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "clients.csv"
    names = load_example().clients[:6]
    rows = [f"{name},{'even' if i % 2 == 0 else 'odd'},{i}" for i, name in enumerate(names)]
    path.write_text("\n".join(["client,parity,cost", *rows]), encoding="utf-8")
    return path


def test_constraints_and_sizes(release_files, facts):
    result = run(
        *("select", *release_files, "-k", "2-4", "--json", "--include", "AL", "--exclude", "AR"),
        *("--clients", facts, "--at-least", "parity=even:1", "--at-most", "parity=odd:2", "--budget", 9),
        *("--min-records", 1000, "--tolerance", 0.5),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [size["k"] for size in found["sizes"]] == [2, 3, 4]
    assert all("AL" in size["members"] and "AR" not in size["members"] for size in found["sizes"])
    assert found["smallest"]["k"] in (2, 3, 4)
    assert len(found["constraints"]) == 6
    text = run("select", *release_files, "-k", "2-3", "--include", "AL").stdout
    assert "constraint" in text
    assert "smallest" in text


@pytest.mark.parametrize("method", ["greedy", "descent", "anneal"])
def test_baselines_and_starts(release_files, method):
    start = () if method == "greedy" else ("--start", "AK,AL")
    result = run("select", *release_files, "-k", 2, "--search", method, *start, "--schedule", "paper", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["search"] == method
    assert len(found["chains"]) == (method == "anneal")


def test_the_pareto_front(release_files):
    result = run("pareto", *release_files, "-k", 2, "--steps", 5, "--json")
    assert result.exit_code == 0, result.output
    points = json.loads(result.stdout)["points"]
    assert [p["utility"] for p in points] == sorted(p["utility"] for p in points)
    assert "no other found beats" in run("pareto", *release_files, "-k", 2, "--steps", 5).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-k", "five"), "-k must be a number of members such as 5, or a range such as 3-8, got 'five'"),
        (("-k", "-3"), "-k must be a number of members"),
        (("-k", "4-2"), "the largest k must be between 4 and 6, got 2"),
        (("-k", 2, "--at-least", "parity=even:1"), "--at-least needs --clients"),
        (("-k", 2, "--budget", 3), "--budget needs --clients"),
        (("-k", 2, "--clients", "FACTS", "--at-most", "parity"), "--at-most must have the form COLUMN=VALUE:N"),
        (("-k", 2, "--clients", "FACTS", "--at-least", "parity=even:9"), "clash: at least 9 with parity=even"),
        (("-k", 2, "--include", "AK,AL,AR"), "clash: include AK; include AL; include AR"),
        (("-k", 2, "--include", "TX"), "include: the pool has no client 'TX'"),
        (
            ("-k", 2, "--start", "AK,AL"),
            "initial federations go with search anneal, temper, model or descent, got expand",
        ),
        (("-k", 2, "--search", "descent", "--start", "AK"), "an initial federation must have k = 2 members, got 1"),
        (("-k", 2, "--weights", "best"), "or one of pcs, pcs-repository, fairness, utility, got 'best'"),
    ],
)
def test_bad_rules_are_one_line_and_exit_2(capsys, monkeypatch, release_files, facts, arguments, message):
    arguments = [str(facts) if argument == "FACTS" else argument for argument in arguments]
    error = fail(capsys, monkeypatch, "select", *release_files, *arguments)
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_the_precision_of_tables_is_part_of_the_release(tmp_path):
    assert run("example", tmp_path / "demo", "--clients", "WY,RI", "--rows", 500).exit_code == 0
    schema = tmp_path / "demo" / "schema.toml"
    for client, precision in (("WY", "loss"), ("RI", "loss"), ("WY", "equal")):
        out = tmp_path / f"{client}-{precision}.parquet"
        data = tmp_path / "demo" / f"{client}.csv"
        result = run(
            *("release", data, "--schema", schema, "--client", client, "--epsilon", 1, "-o", out, "--no-ledger"),
            *("--precision", precision),
        )
        assert result.exit_code == 0, result.output
    agreed = run("select", tmp_path / "WY-loss.parquet", tmp_path / "RI-loss.parquet", "-k", 1, "--json")
    assert agreed.exit_code == 0, agreed.output
    mixed = run("select", tmp_path / "WY-equal.parquet", tmp_path / "RI-loss.parquet", "-k", 1)
    assert mixed.exit_code != 0
    example = run("select", "--example", "acs-income", "-k", 2, "--precision", "loss", "--noise-seed", 1, "--json")
    assert json.loads(example.stdout)["privacy"]["epsilon_max"] == 1.0
