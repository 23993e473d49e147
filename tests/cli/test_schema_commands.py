from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedsel.cli.schema_commands import schema_app
from fedsel.errors import FedselError
from fedsel.schema import Schema

SAMPLE = "site,age,sex,y\n" + "".join(f"s,{20 + i % 50},{1 + i % 2},{i % 2}\n" for i in range(100))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("public.csv").write_text(SAMPLE)
    return tmp_path


def run(*arguments: str) -> str:
    """Return what a command prints; what it raises is raised."""
    result = CliRunner().invoke(schema_app, list(arguments))
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return result.output


def refused(*arguments: str) -> str:
    with pytest.raises(FedselError) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


INIT = ("init", "--sample", "public.csv", "--target", "y", "--sensitive", "sex", "--exclude", "site")


@pytest.mark.usefixtures("folder")
def test_init_check_show() -> None:
    out = run(*INIT, "-o", "s.toml")
    assert out.startswith("s.toml: drafted 3 variables (target y; sensitive sex), 3 pair tables with 36 cells\n")
    schema = Schema.from_toml("s.toml")
    assert schema.names == ("age", "sex", "y")
    assert Path("s.toml").read_text().startswith("# Drafted from the public sample public.csv.\n")
    assert run("check", "s.toml") == (
        "s.toml: valid, 3 variables (target y; sensitive sex), 3 pair tables with 36 cells\n"
        f"fingerprint {schema.fingerprint}\n"
    )
    shown = run("show", "s.toml")
    for text in ("age", "sensitive", "[20, 26), [26, 32)", "0, 1", schema.fingerprint, "sizes hidden"):
        assert text in shown


@pytest.mark.usefixtures("folder")
def test_init_prints_without_an_output_file() -> None:
    out = run(*INIT)
    assert Schema.from_toml_text(out).names == ("age", "sex", "y")
    assert os.listdir() == ["public.csv"]


@pytest.mark.usefixtures("folder")
def test_init_from_a_codebook() -> None:
    Path("book.csv").write_text(
        "variable,role,value,label,low,high\ny,,0,no,,\ny,,1,yes,,\nage,,,,0,18\nage,,,,18,99\n"
    )
    out = run("init", "--codebook", "book.csv", "--target", "y", "--missing", "drop", "-o", "s.toml", "--name", "b")
    assert "drafted 2 variables (target y; nothing sensitive)" in out
    schema = Schema.from_toml("s.toml")
    assert (schema.name, schema.target, schema.variables[1].missing) == ("b", "y", "drop")


@pytest.mark.usefixtures("folder")
def test_init_takes_texts_for_missing_values() -> None:
    Path("book.csv").write_text("variable,value\ny,0\ny,1\n")
    init = ("init", "--codebook", "book.csv", "--missing", "category", "-o", "s.toml")
    run(*init, "--missing-value", "?", "--missing-value", "-9")
    assert Schema.from_toml("s.toml").missing_values == ("-9", "?")
    assert refused(*init, "--missing-value", "1", "--force").startswith("variable y: ")


@pytest.mark.usefixtures("folder")
def test_noise_of_a_schema() -> None:
    run(*INIT, "-o", "s.toml")
    out = run("noise", "s.toml", "--epsilon", "1", "--epsilon", "2")
    assert out.splitlines()[0] == "public: 3 pairs of 3 variables, " + out.splitlines()[0].split(", ")[1]
    assert [line.split()[:3] for line in out.splitlines()[-2:]] == [["1", "1e-05", "6.462"], ["2", "1e-05", "3.456"]]
    assert len(run("noise", "s.toml").splitlines()) == 10
    assert refused("noise", "s.toml", "--epsilon", "0") == "epsilon must be positive, got 0.0"


@pytest.mark.usefixtures("folder")
def test_init_names_what_it_left_out() -> None:
    out = run("init", "--sample", "public.csv", "--max-categories", "1", "-o", "s.toml", "--target", "y")
    assert "Left out" not in out
    Path("public.csv").write_text("x,note\n1,a\n2,b\n")
    out = run("init", "--sample", "public.csv", "--max-categories", "1", "-o", "s.toml", "--force")
    assert "  Left out: note: 2 distinct texts, more than 1\n" in out


@pytest.mark.usefixtures("folder")
def test_init_never_overwrites_unasked() -> None:
    Path("s.toml").write_text("mine")
    assert refused(*INIT, "-o", "s.toml") == "s.toml: the file exists already; --force replaces it"
    assert Path("s.toml").read_text() == "mine"
    run(*INIT, "-o", "s.toml", "--force")
    assert Schema.from_toml("s.toml").target == "y"
    assert sorted(os.listdir()) == ["public.csv", "s.toml"]


@pytest.mark.usefixtures("folder")
def test_init_refusals_leave_nothing_behind() -> None:
    assert refused("init") == "exactly one of --sample and --codebook is needed"
    assert refused(*INIT, "--codebook", "b.csv") == "exactly one of --sample and --codebook is needed"
    assert refused("init", "--codebook", "b.csv", "--exclude", "x") == "--exclude goes with --sample"
    assert refused(*INIT, "-o", "none/s.toml").startswith("none/s.toml: cannot be written: No such file")
    assert refused(*INIT, "-o", ".").startswith(".: ")
    assert refused(*INIT[:3], "--target", "z", "-o", "s.toml") == "public.csv: no column z; it has site, age, sex, y"
    assert refused(*INIT, "--missing", "perhaps") == (
        "missing must be one of 'error', 'drop', 'category', got 'perhaps'"
    )
    assert os.listdir() == ["public.csv"]


@pytest.mark.usefixtures("folder")
def test_check_data() -> None:
    run(*INIT, "-o", "s.toml")
    text = Path("s.toml").read_text().replace('missing = "error"', 'missing = "category"', 2)
    Path("s.toml").write_text(text.replace('missing = "error"', 'missing = "drop"'))
    Path("client.csv").write_text("y,sex,age\n1,1,30\n0,?,300\n7,1,300\n")
    out = run("check", "s.toml", "--data", "client.csv", "--data", "public.csv")
    assert out.splitlines()[2:] == [
        "client.csv: 2 rows encoded, 1 dropped",
        "  age: 2 without a category, such as 300 (counted as missing/other)",
        "  sex: 1 without a category, such as ? (counted as missing/other)",
        "  y: 1 without a category, such as 7 (row dropped)",
        "public.csv: 100 rows encoded, 0 dropped",
    ]
    facts = json.loads(run("check", "s.toml", "--data", "client.csv", "--json"))
    assert facts["files"] == [
        {
            "file": "client.csv",
            "rows": 2,
            "dropped": 1,
            "unmatched": {"age": 2, "sex": 1, "y": 1},
            "missing": {},
            "unlisted": {"age": {"300": 2}, "sex": {"?": 1}, "y": {"7": 1}},
        }
    ]
    assert facts["fingerprint"] == Schema.from_toml("s.toml").fingerprint


@pytest.mark.usefixtures("folder")
def test_check_refuses() -> None:
    run(*INIT, "-o", "s.toml")
    Path("client.csv").write_text("y,sex,age\n1,1,30\n0,1,300\n")
    assert refused("check", "s.toml", "--data", "client.csv") == (
        'client.csv: row 2: age: missing="error" but the value is 300, outside the bins 20..69'
    )
    assert refused("check", "none.toml") == "none.toml: cannot be read: No such file or directory"
    Path("bad.toml").write_text("name = ")
    assert refused("check", "bad.toml").startswith("bad.toml: not valid TOML: Invalid value (at ")
    assert refused("show", "bad.toml").startswith("bad.toml: not valid TOML: ")


@pytest.mark.usefixtures("folder")
def test_show_json() -> None:
    run(*INIT, "-o", "s.toml")
    facts: dict[str, Any] = json.loads(run("show", "s.toml", "--json"))
    schema = Schema.from_toml("s.toml")
    assert Schema.from_json(json.dumps(facts.pop("schema"))) == schema
    assert facts == {
        "name": "public",
        "fingerprint": schema.fingerprint,
        "variables": 3,
        "domain": [8, 2, 2],
        "target": "y",
        "sensitive": ["sex"],
        "pairs": 3,
        "cells": 36,
    }


@pytest.mark.usefixtures("folder")
def test_show_takes_brackets_and_long_lists_as_they_are() -> None:
    text = """format = 1
name = "[bold]x[/bold]"
description = "[red]d[/red]"
[[variables]]
name = "[/]é"
categories = ["[/]", "b"]
[[variables]]
name = "one"
categories = [%s]
"""
    Path("s.toml").write_text(text % ", ".join(map(str, range(100))))
    shown = run("show", "s.toml")
    for part in ("[bold]x[/bold]", "[red]d[/red]", "[/]é", "[/], b", "more)", "no target; nothing sensitive"):
        assert part in shown
