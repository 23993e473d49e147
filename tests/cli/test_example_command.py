from __future__ import annotations

import pytest
from typer.testing import CliRunner

from fedsel import Schema, encode_file
from fedsel.cli.main import app
from fedsel.errors import DataError


def run(*arguments):
    result = CliRunner().invoke(app, ["example", *map(str, arguments)])
    if isinstance(result.exception, DataError):
        raise result.exception
    return result


def test_the_files_fit_the_schema_and_repeat(tmp_path):
    assert run(tmp_path / "a", "--clients", "WY,RI", "--rows", 50).exit_code == 0
    assert run(tmp_path / "b", "--clients", "RI", "--rows", 50).exit_code == 0
    schema = Schema.from_toml(tmp_path / "a" / "schema.toml")
    assert sum(codes.rows for codes in encode_file(schema, tmp_path / "a" / "WY.csv")) == 50
    assert (tmp_path / "a" / "RI.csv").read_bytes() == (tmp_path / "b" / "RI.csv").read_bytes()
    assert (tmp_path / "a" / "WY.csv").read_bytes() != (tmp_path / "a" / "RI.csv").read_bytes()


def test_nothing_is_replaced_unasked(tmp_path):
    assert run(tmp_path, "--clients", "WY", "--rows", 5).exit_code == 0
    with pytest.raises(DataError, match=r"schema\.toml exists; use --force"):
        run(tmp_path, "--clients", "WY", "--rows", 5)
    assert run(tmp_path, "--clients", "WY", "--rows", 5, "--force").exit_code == 0


def test_unknown_clients_are_refused(tmp_path):
    with pytest.raises(DataError, match="example acs-income has no client 'TX'"):
        run(tmp_path / "new", "--clients", "TX")
    assert not (tmp_path / "new").exists()
