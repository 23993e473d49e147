from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from conftest import require_extra
from fedsel.cli.main import app, main
from fedsel.subgroups import SubgroupDiscovery
from fedsel.subgroups.files import read_rows
from subgroup_reference import made_rows


def run(*arguments):
    return CliRunner().invoke(app, ["subgroups", "central", *map(str, arguments)], catch_exceptions=False)


def fail(capsys, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["fedsel", "subgroups", "central", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def data():
    X, y = made_rows(4, 500)
    return {
        **X,
        "age": np.arange(500) % 77,
        "name": [f"<b>{i % 3}</b>" for i in range(500)],
        "y": np.where(y, "yes", "no"),
    }


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(pa.table(data), folder / "rows.parquet")
    lines = [",".join(data), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_the_command_finds_what_the_library_finds(files, data, name):
    options = [
        "--target",
        "y",
        "--positive",
        "yes",
        "-k",
        7,
        "--depth",
        2,
        "--search",
        "exhaustive",
        "--min-support",
        20,
    ]
    result = run(files / name, *options, "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    found = SubgroupDiscovery(positive="yes", k=7, depth=2, search="exhaustive", min_support=20)
    found.fit({name: column for name, column in data.items() if name != "y"}, data["y"])
    assert [s["description"] for s in shown["subgroups"]] == [s.description for s in found.subgroups_]
    assert [s["quality"] for s in shown["subgroups"]] == [s.quality for s in found.subgroups_]
    assert shown["privacy"] == "computed from exact rows: not private"
    assert shown["parameters"]["min_support"] == 20
    assert shown["stop_reason"] == "completed"


def test_the_text_names_the_same_subgroups(files):
    result = run(files / "rows.csv", "--target", "y", "--positive", "yes", "--significance", "bonferroni", "-k", 3)
    assert result.exit_code == 0
    assert result.stdout.startswith("subgroups of 500 rows by y = yes, 0.")
    assert "adjusted p" in result.stdout
    assert "v1 = 2" in result.stdout
    assert "not private" in result.stdout


def test_every_option_reaches_the_search(files):
    result = run(
        *(files / "rows.csv", "--target", "y", "--positive", "no", "--quality", "0.5", "--direction", "both"),
        *("--depth", 2, "--width", 3, "--threads", 1, "--time-limit", 60, "--engine", "bitsets", "-k", 4),
        *("--min-support", "0.02", "--max-support", 300, "--min-quality", 0.001, "--min-improvement", 0.001),
        *("--max-overlap", 0.8, "--diversity", "cover", "--diversity-weight", 0.5, "--exclude", "v3"),
        *("--categorical", "v2", "--bins", 3, "--cuts", "age=20,40", "--binning", "width", "--intervals", "all"),
        *("--set-size", 2, "--missing", "condition", "--missing-value", "?", "--max-categories", 50),
        *("--significance", "permutation", "--permutations", 20, "--max-p-value", 0.9, "--seed", 5, "--json"),
    )
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    parameters = shown["parameters"]
    assert (
        parameters
        | {
            "quality": 0.5,
            "direction": "both",
            "depth": 2,
            "width": 3,
            "k": 4,
            "min_support": 0.02,
            "max_support": 300,
            "min_improvement": 0.001,
            "diversity": "cover",
            "exclude": ["v3"],
            "categorical": ["v2"],
            "cuts": {"age": [20.0, 40.0]},
            "set_size": 2,
            "missing": "condition",
            "permutations": 20,
            "seed": 5,
        }
        == parameters
    )
    assert shown["permutations"] == 20
    assert shown["subgroups"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "z"], "error: X: no column z; it has v0, v1, v2, v3, age, name, y"),
        (["--target", "y"], "error: y holds neither numbers nor true/false: say which value counts as positive"),
        (["--target", "y", "--positive", "maybe"], "got 0 positive of 500; y has"),
        (["--target", "y", "--positive", "yes", "--cuts", "age"], "error: --cuts must be COLUMN=A,B,... with numbers"),
        (["--target", "y", "--positive", "yes", "--cuts", "name=1"], "column name has cut points but is not numeric"),
        (["--target", "y", "--positive", "yes", "--min-support", "-3"], "min_support must be a number of rows"),
        (["--target", "age", "--quality", "lift"], "quality lift needs a yes/no outcome, got numbers"),
    ],
)
def test_what_cannot_be_used_is_one_line(files, capsys, monkeypatch, arguments, message):
    error = fail(capsys, monkeypatch, files / "rows.csv", *arguments)
    assert message in error
    assert error.count("\n") == 1


def test_csv_columns_are_typed_by_all_their_values(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("zip,whole,number,truth,text,gap\n01234, 1 ,1.5,true,x,\n12345,2,nan,False,?,3\n", encoding="utf-8")
    rows = read_rows(path, missing_values=["?"])
    assert [str(rows[name].dtype) for name in ("whole", "number", "truth")] == ["int64", "float64", "bool"]
    assert rows["zip"].tolist() == ["01234", "12345"]
    assert rows["text"].isna().tolist() == [False, True]
    assert rows["gap"].isna().tolist() == [True, False]


def test_a_column_that_is_there_twice(tmp_path, capsys, monkeypatch):
    path = tmp_path / "twice.csv"
    path.write_text("a,a,y\n1,2,3\n", encoding="utf-8")
    assert "column a is there 2 times" in fail(capsys, monkeypatch, path, "--target", "y")
    path.write_text("a,y\n", encoding="utf-8")
    assert "holds a header but no rows" in fail(capsys, monkeypatch, path, "--target", "y")


def test_the_report_is_one_page_that_escapes_what_it_shows(files, tmp_path, capsys, monkeypatch):
    require_extra("jinja2", "report")
    page = tmp_path / "page.html"
    options = [files / "rows.csv", "--target", "y", "--positive", "yes", "--quality", "gain", "-k", 30]
    assert run(*options, "--significance", "bonferroni", "--report", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "name = &lt;b&gt;" in text
    assert "<b>0</b>" not in text
    assert "<script" not in text
    assert "Not private" in text
    body = text[text.index("<header>") : text.index("</header>") + len("</header>")]
    ET.fromstring(body)  # well-formed
    ET.fromstring(text[text.index('<main id="main">') : text.index("</main>") + len("</main>")])
    assert "the file exists already" in fail(capsys, monkeypatch, *options, "--report", page)
    assert run(*options, "--report", page, "--force").exit_code == 0


def test_a_report_of_nothing(files, tmp_path):
    require_extra("jinja2", "report")
    page = tmp_path / "page.html"
    options = [files / "rows.csv", "--target", "y", "--positive", "yes", "--min-quality", 5]
    result = run(*options, "--report", page)
    assert result.exit_code == 0
    assert "nothing deviates as asked" in result.stdout
    assert "Nothing deviates as asked" in page.read_text(encoding="utf-8")


def test_the_picture(files, tmp_path, capsys, monkeypatch):
    require_extra("matplotlib", "experiments")
    picture = tmp_path / "found.svg"
    options = [files / "rows.csv", "--target", "y", "--positive", "yes"]
    assert run(*options, "--plot", picture).exit_code == 0
    svg = picture.read_text(encoding="utf-8")
    assert "<svg" in svg
    assert "a plot must end with .svg, .png, .pdf" in fail(
        capsys, monkeypatch, *options, "--plot", tmp_path / "found.gif"
    )
    assert "no subgroup was found that could be drawn" in fail(
        capsys, monkeypatch, *options, "--min-quality", 5, "--plot", picture
    )
