from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import require_extra

require_extra("torch", "train")

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.privacy.calibration import plan_noise  # noqa: E402
from fedsel.training.cells import Cells  # noqa: E402
from fedsel.training.comparison import compare  # noqa: E402
from fedsel.training.comparison_settings import ComparisonSettings  # noqa: E402
from fedsel.training.simulation import RunSettings  # noqa: E402
from fedsel.training.sources import ExampleSource  # noqa: E402
from fedsel.training.task import Task  # noqa: E402

FACTS = {"k": 5, "rates": (0.1, 1 / 3)}
CELL = {"seed": 3, "choice": "random"}


def never():
    raise AssertionError("worked out again")


# --- the store -------------------------------------------------------------------------------------------------------


def test_a_part_is_worked_out_once_and_comes_back_to_the_bit(tmp_path):
    value = {"third": 1 / 3, "tiny": 5e-324, "none": None, "names": ["a", "b"]}
    folder = tmp_path / "deep" / "kept"
    assert Cells(folder, FACTS).kept(CELL, lambda: value) == value
    assert Cells(folder, FACTS).kept(CELL, never) == value
    assert sorted(os.listdir(folder)) == ["3_random.json", "comparison.json"]


def test_without_a_folder_nothing_is_kept():
    cells = Cells(None, FACTS)
    assert [cells.kept(CELL, lambda: 1), cells.kept(CELL, lambda: 2)] == [1, 2]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({**FACTS, "k": 4}, "holds a comparison with k 5, this one has 4; take another folder"),
        ({"k": 5}, r"with rates \[0\.1, 0\.3333333333333333\], this one has \(none\)"),
        ({**FACTS, "device": "cpu"}, r'with device \(none\), this one has "cpu"'),
    ],
)
def test_another_setting_is_refused_by_name(tmp_path, facts, message):
    Cells(tmp_path, FACTS)
    with pytest.raises(TrainingError, match=message):
        Cells(tmp_path, facts)


@pytest.mark.parametrize("content", ['{"cell": {"seed": 3', "", "[]", '{"cell": {"seed": 3, "choice": "random"}}'])
def test_damaged_parts_are_refused_by_file(tmp_path, content):
    cells = Cells(tmp_path, FACTS)
    (tmp_path / "3_random.json").write_text(content)
    with pytest.raises(TrainingError, match=r"3_random\.json: is (damaged|no part of this comparison); remove it"):
        cells.kept(CELL, never)


def test_a_part_of_another_comparison_is_refused(tmp_path):
    Cells(tmp_path / "a", FACTS).kept(CELL, lambda: 1)
    cells = Cells(tmp_path / "b", {**FACTS, "k": 4})
    (tmp_path / "b" / "3_random.json").write_bytes((tmp_path / "a" / "3_random.json").read_bytes())
    with pytest.raises(TrainingError, match=r"3_random\.json: is no part of this comparison"):
        cells.kept(CELL, never)


def test_an_interrupted_write_leaves_no_part(tmp_path, monkeypatch):
    cells = Cells(tmp_path, FACTS)

    def broken(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(TrainingError, match=r"3_random\.json: cannot be written: No space left"):
            cells.kept(CELL, lambda: 1)
    assert os.listdir(tmp_path) == ["comparison.json"]
    assert cells.kept(CELL, lambda: 2) == 2


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(TrainingError, match="file: is not a folder"):
        Cells(tmp_path / "file", FACTS)


# --- a comparison ----------------------------------------------------------------------------------------------------


def settings(**changes):
    fields = {
        "k": 3,
        "pairs": (("fedsel", "fedavg"), ("random", "fedavg"), ("random", "scaffold")),
        "seeds": 2,
        "draws": 2,
        "candidates": 0.2,
        "rows": 4_000,
        "run": RunSettings(2),
        "rates": (0.01, 0.1),
        "effort": 3,
        "hidden": (4,),
    }
    return ComparisonSettings(**{**fields, **changes})


def run(checkpoint=None, *, epsilon=1.0, source=None, **changes):
    return compare(
        source or ExampleSource(), plan_noise(55, epsilon=epsilon), settings(**changes), checkpoint=checkpoint
    )


def without_times(comparison):
    results = [{k: v for k, v in row.items() if k != "seconds"} for row in comparison.results]
    return {**vars(comparison), "results": results}


@pytest.fixture(scope="module")
def whole():
    return without_times(run())


def dated(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}


CHILD = "import sys, test_cells; from pathlib import Path; test_cells.run(Path(sys.argv[1]))"


@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
@pytest.mark.parametrize("parts", [3, 10])
def test_a_killed_comparison_goes_on_to_the_same_table(tmp_path, whole, parts):
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], env=environment)
    while len(dated(tmp_path)) < parts and child.poll() is None:
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "the child ended by itself"
    before = dated(tmp_path)
    assert without_times(run(tmp_path)) == whole
    after = dated(tmp_path)
    assert before.items() < after.items()  # none was worked out twice


def test_a_finished_comparison_trains_nothing_and_may_grow(tmp_path, whole, monkeypatch):
    run(tmp_path, seeds=1, draws=1)
    assert without_times(run(tmp_path)) == whole
    monkeypatch.setattr("fedsel.training.repetition.Repetition.simulation", property(lambda self: never()))
    assert without_times(run(tmp_path)) == whole


def test_other_settings_or_rows_are_refused_by_name(tmp_path):
    run(tmp_path, seeds=1, draws=1)
    other = ExampleSource(task=Task.of(ExampleSource().task.schema, privileged="female"))
    for changes, name in (
        ({"k": 2}, "k"),
        ({"effort": 4}, "effort"),
        ({"run": RunSettings(3)}, "rounds"),
        ({"rows": 5_000}, "rows"),
        ({"epsilon": 2.0}, "noise"),
        ({"source": other}, "privileged"),
    ):
        with pytest.raises(TrainingError, match=f"holds a comparison with {name} .*, this one has"):
            run(tmp_path, **changes)
    facts = json.loads((tmp_path / "comparison.json").read_text())
    (tmp_path / "comparison.json").write_text(json.dumps({**facts, "rows of": "0" * 64}))
    with pytest.raises(TrainingError, match='with rows of "0000'):
        run(tmp_path)
