from __future__ import annotations

import errno
import os

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


def test_too_many_rows_are_refused(tmp_path):
    result = run(tmp_path / "new", "--clients", "WY", "--rows", 99999999999999999)
    assert result.exit_code == 2
    assert "10000000" in result.output  # typer words the rest differently over versions
    assert not (tmp_path / "new").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("kept")
    for folder in ("file", "file/below"):
        with pytest.raises(DataError, match=r"file: is not a folder$"):
            run(tmp_path / folder, "--clients", "WY", "--rows", 5)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_full_disk_leaves_no_cut_file(tmp_path, monkeypatch):
    write, left = os.write, 3000  # room for the schema and a part of the rows

    def filling(handle, data):
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(handle, data[:left])
        left -= written
        return written

    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(DataError, match=r"WY\.csv: cannot be written: No space left on device"):
        run(tmp_path, "--clients", "WY", "--rows", 500)
    assert os.listdir(tmp_path) == ["schema.toml"]


def test_unknown_clients_are_refused(tmp_path):
    with pytest.raises(DataError, match="example acs-income has no client 'TX'"):
        run(tmp_path / "new", "--clients", "TX")
    assert not (tmp_path / "new").exists()
