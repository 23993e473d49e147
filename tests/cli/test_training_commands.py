from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from conftest import require_extra

require_extra("torch", "train")
require_extra("matplotlib", "train")

from fedsel.cli.main import app  # noqa: E402
from fedsel.errors import DataError, FedselError, TrainingError  # noqa: E402

SMALL = ("--example", "acs-income", "--rows", 4000, "--rounds", 2, "--hidden", "4")
STAMP = "non-private evaluation: training, losses and metrics read the clients' rows"


def run(command, *arguments):
    result = CliRunner().invoke(app, [command, *map(str, arguments)])
    if isinstance(result.exception, FedselError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def demo(folder, *clients):
    run("example", folder, "--clients", ",".join(clients), "--rows", 120)
    return folder


def test_train_prints_both_populations_groups_and_thinning():
    text = run("train", *SMALL, "--members", "CT,MA,RI", "--seed", 3)
    assert "members     CT, MA, RI" in text
    assert "of 1,121,894, 0.4% of each client's (--rows)" in text
    assert "members' test rows" in text
    assert "all clients' test rows" in text
    assert "fedavg(weighting=records)" in text
    for group in ("male", "female"):
        assert sum(group in line.split() for line in text.splitlines()) == 2
    assert STAMP in text


def test_train_reads_what_select_printed(tmp_path):
    selection = tmp_path / "result.json"
    selection.write_text(run("select", "--example", "acs-income", "-k", 3, "--noise-seed", 1, "--json"))
    found = json.loads(run("train", *SMALL, "--members", selection, "--json"))
    assert found["members"] == sorted(json.loads(selection.read_text())["members"])
    assert found["evaluation"] == "non-private evaluation"
    assert set(found["test"]) == {"members", "all clients"}
    assert found["settings"]["rounds"] == 2


def test_train_on_files_of_clients_with_any_aggregator(tmp_path):
    folder = demo(tmp_path / "demo", "RI", "WY")
    history = tmp_path / "history.parquet"
    arguments = (folder / "RI.csv", folder / "WY.csv", "--schema", folder / "schema.toml", "--members", "RI,WY")
    for aggregator, option in (("fedprox", "mu=0.5"), ("scaffold", "option=I"), ("fairfed", "metric=spd")):
        text = run(
            "train", *arguments, "--aggregator", aggregator, "--option", option, "--rounds", 2, "--history", history,
            "--force", "--privileged", "female",
        )  # fmt: skip
        assert option in text
    common = (*arguments, "--rounds", 2, "--json")
    plain = json.loads(run("train", *common))
    numbers = json.loads(run("train", *common, "--numeric", "AGEP:45:15", "--numeric", "WKHP:40:12"))
    assert numbers["loss"] != plain["loss"]
    with pytest.raises(TrainingError, match="--numeric must have the form NAME:CENTRE:SCALE, got 'AGEP:45'"):
        run("train", *arguments, "--numeric", "AGEP:45")
    table = pq.read_table(history)
    assert table.num_rows == 6
    about = json.loads(table.schema.metadata[b"fedsel"])
    assert about["evaluation"] == "non-private evaluation"
    assert about["members"] == ["RI", "WY"]


def test_train_goes_on_from_a_checkpoint(tmp_path):
    arguments = (*SMALL, "--members", "CT,MA", "--json")
    whole = json.loads(run("train", *arguments, "--rounds", 4))
    path = tmp_path / "run.ckpt"
    run("train", *arguments, "--rounds", 2, "--checkpoint", path)
    resumed = json.loads(run("train", *arguments, "--rounds", 4, "--checkpoint", path))
    assert resumed["test"] == whole["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--members", "CT,TX"), "the data hold no client 'TX'"),
        (("--members", "none.json"), r"none\.json: cannot be read: No such file"),
        (("--members", "CT", "--aggregator", "fedsgd"), r"aggregator must be one of fedavg.*got 'fedsgd'"),
        (("--members", "CT", "--option", "mu"), "--option must have the form NAME=VALUE, got 'mu'"),
        (("--members", "CT", "--option", "mu=1"), "fedavg has no option 'mu'; it has weighting"),
        (("--members", "CT", "--aggregator", "fedprox", "--option", "mu=x"), "mu must be a number, got 'x'"),
        (
            ("--members", "CT", "--aggregator", "fairfed", "--option", "secure_sum=x"),
            "secure_sum must be a SecureSum, got 'x'",
        ),
        (("--members", "CT", "--hidden", "4,x"), "--hidden must be widths separated by commas"),
        (("--members", "CT", "--sensitive", "AGEP"), "sensitive attribute must be one of SEX, got 'AGEP'"),
        (("--members", "CT", "--privileged", "men"), "privileged group must be one of male, female, got 'men'"),
        (("--members", "CT", "--clients-per-round", "2"), "clients_per_round must be between 1 and 1, the members"),
        (
            ("--members", "CT", "--optimiser", "adam", "--aggregator", "scaffold"),
            "scaffold needs the local optimiser sgd",
        ),
        (("--members", "CT", "--schema", "s.toml"), "--example brings its own rows and schema; --schema cannot"),
        (
            ("--members", "CT", "--device", "warp"),
            "device must be one that torch can use here, such as cpu, got 'warp'",
        ),
        (("--members", "CT", "--numeric", "AGEP:40:15"), "--example brings its own rows and schema; --numeric cannot"),
        (("--members", "CT", "--learning-rate", "0"), "learning rate must be positive"),
    ],
)
def test_train_refuses_what_does_not_fit(arguments, message):
    with pytest.raises(TrainingError, match=message):
        run("train", *SMALL, *arguments)


@pytest.mark.parametrize("content", ["[]", '{"members": "CT"}', '{"members": []}', "CT"])
def test_train_refuses_files_that_are_no_selection(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(TrainingError, match=r"result\.json: (is not JSON|expected an object with a list of names)"):
        run("train", *SMALL, "--members", path)


def test_rows_need_a_schema(tmp_path):
    with pytest.raises(TrainingError, match="give data files and --schema, or --example"):
        run("train", "--members", "CT")
    folder = demo(tmp_path / "demo", "RI")
    with pytest.raises(DataError, match=r"absent\.csv"):
        run("train", folder / "absent.csv", "--schema", folder / "schema.toml", "--members", "RI")


def test_nothing_is_replaced_unasked(tmp_path):
    (tmp_path / "history.parquet").write_text("kept")
    with pytest.raises(TrainingError, match=r"history\.parquet exists; use --force"):
        run("train", *SMALL, "--members", "CT", "--history", tmp_path / "history.parquet")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "table.txt").write_text("kept")
    with pytest.raises(TrainingError, match=r"table\.txt exists; use --force"):
        run("compare", *SMALL, "-k", 2, "-o", tmp_path / "out")


def test_compare_prints_what_a_sceptic_asks_and_writes_its_files(tmp_path):
    out = tmp_path / "out"
    text = run(
        "compare", *SMALL, "-k", 2, "--seeds", 2, "--draws", 1, "--choices", "fedsel,random,all", "--aggregators",
        "fedavg,fairfed", "--candidates", 0.2, "--learning-rates", "1e-6,1e-5", "--tuning-effort", 4, "-o", out,
    )  # fmt: skip
    for expected in (
        "NON-PRIVATE EVALUATION",
        "0.4% of each client's",
        "2 of 9 candidates (46 clients in all)",
        "tuning: 4 trainings each, on one random federation (",
        "no repetition trains or tests on rows used here) [non-private evaluation]",
        "fairfed's beta: least |EOD| on validation rows among losses within 1% of the lowest",
        "tested on the members' own test rows [non-private evaluation]",
        "tested on the test rows of all candidates [non-private evaluation]",
        "95% confidence interval",
        "fedsel with fedavg minus each other, paired, members' own test rows",
        "fedsel with fedavg minus each other, paired, all candidates' test rows",
        "Holm",
        "2 repetitions show large effects only",
        "(edge)",
        STAMP,
    ):
        assert expected in text
    assert sorted(os.listdir(out)) == ["curves.svg", "history.parquet", "results.parquet", "table.txt"]
    assert text.split("\n\n")[1] in (out / "table.txt").read_text()
    assert pq.read_table(out / "results.parquet").num_rows == 2 * 2 * 4
    assert pq.read_table(out / "history.parquet").num_rows == 2 * 3 * 2 * 4


def test_compare_works_on_a_file_with_a_client_column(tmp_path):
    folder = demo(tmp_path / "demo", "CT", "RI", "VA", "WY")
    header, rows = None, []
    for name in ("CT", "RI", "VA", "WY"):
        first, *others = (folder / f"{name}.csv").read_text().splitlines()
        header = f"{first},state"
        rows += [f"{line},{name}" for line in others]
    (tmp_path / "all.csv").write_text("\n".join([header, *rows]))
    text = run(
        "compare", tmp_path / "all.csv", "--schema", folder / "schema.toml", "--client-column", "state", "-k", 2,
        "--seeds", 1, "--draws", 1, "--choices", "fedsel,nearest", "--aggregators", "fedavg,fedadam", "--full",
        "--candidates", 1, "--rounds", 1, "--hidden", "none", "--epsilon", "inf",
    )  # fmt: skip
    assert "2 of 4 candidates" in text
    assert sum(line.startswith("nearest") and "fedadam" in line for line in text.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-k", 50), "k must be between 1 and 34, the candidates of a repetition, got 50"),
        (("-k", 2, "--choices", "best"), r"choice must be one of fedsel.*got 'best'"),
        (
            ("-k", 2, "--choices", "fedsel,all", "--aggregators", "fedavg,fairfed"),
            "fairfed would train random federations: add random to --choices, or use --full",
        ),
        (("-k", 2, "--learning-rates", "fast"), "--learning-rates must be positive numbers"),
        (("-k", 2, "--candidates", 0), "share of candidates must be above 0"),
    ],
)
def test_compare_refuses_what_does_not_fit(arguments, message):
    with pytest.raises(TrainingError, match=message):
        run("compare", *SMALL, *arguments)


@pytest.mark.parametrize("command", [("train", "--members", "CT"), ("compare", "-k", "2")])
def test_a_missing_extra_is_one_line_and_status_2(command):
    hide = "import sys; sys.modules['torch'] = None; from fedsel.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hide, *command, "--example", "acs-income"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: this needs torch: pip install 'fedsel[train]'")
    assert len(done.stderr.splitlines()) == 1
