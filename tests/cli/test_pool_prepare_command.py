from __future__ import annotations

import json

import pytest

from fedsel.cli.main import main
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line: its status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["fedsel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return (stop.value.code or 0, *capsys.readouterr())

    return call


def stored(folder):
    example = load_example()
    example.pool(plan_noise(len(example.workload.sets), epsilon=1.0), seed=3).save(folder)
    return folder


def test_a_prepared_pool_is_selected_from_like_the_pool(tmp_path, run):
    pool, rows = stored(tmp_path / "pool"), tmp_path / "pool.rows"
    status, out, _ = run("pool", "prepare", pool, "-o", rows)
    assert status == 0
    assert "denoise shrink; wrote" in out
    ours, theirs = (
        json.loads(run("select", pool, "-k", "5", "--certificate", "none", "--json", *more)[1])
        for more in (["--prepared", rows], [])
    )
    assert ours["members"] == theirs["members"]
    assert ours["loss"] == theirs["loss"]


def test_mistakes_are_one_line(tmp_path, run):
    pool, rows = stored(tmp_path / "pool"), tmp_path / "pool.rows"
    assert run("pool", "prepare", pool, "-o", rows)[0] == 0
    assert run("pool", "prepare", pool, "-o", rows)[::2] == (2, f"error: {rows}: the file exists already\n")
    assert run("pool", "prepare", pool, "-o", rows, "--force")[0] == 0
    rows.write_bytes(rows.read_bytes()[:-64])
    status, _, error = run("select", pool, "-k", "5", "--prepared", rows)
    assert status == 2
    assert "(cut?)" in error
    assert len(error.splitlines()) == 1
