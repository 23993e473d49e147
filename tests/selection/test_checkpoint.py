from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from fedsel import _core, select
from fedsel.errors import SelectionError
from fedsel.selection import Constraints, LossWeights
from fedsel.selection import checkpoint as checkpoints
from reference import made_exact_pool

MODES = [{"search": "exhaustive"}, {"certificate": "enumerate"}, {"certificate": "bound"}]


@pytest.fixture
def pool():
    return made_exact_pool(4, clients=22, domain=[3, 4, 3, 5], rows=(20, 400))


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Write after every part, so that small problems are written several times."""
    for module in ("checkpoint", "enumeration", "bounds"):
        monkeypatch.setattr(f"fedsel.selection.{module}.INTERVAL", 0.0)
    monkeypatch.setattr("fedsel.selection.bounds._STEP", 1)


class Killed(BaseException):
    pass


def stop_after(monkeypatch, writes):
    """Let a run end as if killed, right after it has written so many times."""
    save, left = checkpoints.Checkpoint.save, [writes]

    def saving(self, *arguments, **settings):
        save(self, *arguments, **settings)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(checkpoints.Checkpoint, "save", saving)


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("writes", [1, 4])
def test_a_run_that_goes_on_ends_at_the_same_result(tmp_path, monkeypatch, pool, options, writes):
    path = tmp_path / "c.json"
    options = {**options, "threads": 1}
    if "bound" in options.values():
        monkeypatch.setattr("fedsel.selection.bounds.GAPS", (0.5, 0.2, 0.1, 0.0))
    whole = select(pool, 8, **options)
    with monkeypatch.context() as patch:
        stop_after(patch, writes)
        with pytest.raises(Killed):
            select(pool, 8, checkpoint=path, **options)
    written = json.loads(path.read_text())["body"]["state"]
    assert written["best"]
    resumed = select(pool, 8, checkpoint=path, **options)
    assert (resumed.names, resumed.loss, resumed.certificate) == (whole.names, whole.loss, whole.certificate)
    assert (resumed.runner_ups, resumed.evaluations) == (whole.runner_ups, whole.evaluations)
    # The file of a run that has ended holds its result.
    again = select(pool, 8, checkpoint=path, **options)
    assert (again.names, again.certificate) == (whole.names, whole.certificate)


def test_what_was_evaluated_is_not_evaluated_again(tmp_path, monkeypatch, pool):
    path, calls = tmp_path / "c.json", []
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(Killed):
            select(pool, 8, search="exhaustive", checkpoint=path)
    blocks = json.loads(path.read_text())["body"]["state"]["blocks"]
    enumerate_ = _core.enumerate
    monkeypatch.setattr(_core, "enumerate", lambda *a, **o: calls.append(o["first"]) or enumerate_(*a, **o))
    progress = []
    select(pool, 8, search="exhaustive", checkpoint=path, progress=lambda done, _: progress.append(done))
    assert blocks > 0
    assert calls[0] == blocks
    assert all(done >= 0 for done in progress)


@pytest.mark.parametrize("options", MODES)
def test_a_checkpoint_of_another_pool_or_setting_is_refused(tmp_path, pool, options):
    path = tmp_path / "c.json"
    select(pool, 3, checkpoint=path, **options)
    counts = pool.counts.copy()
    counts[0] *= 2
    other = "belongs to another pool, or to a selection with other settings"
    for changed in (
        lambda: select(replace(pool, counts=counts), 3, checkpoint=path, **options),
        lambda: select(pool, 4, checkpoint=path, **options),
        lambda: select(pool, 3, checkpoint=path, runner_ups=1, **options),
        lambda: select(pool, 3, checkpoint=path, weights=LossWeights(1.0, 1.0, 1.0, 1.0), **options),
        lambda: select(pool, 3, checkpoint=path, constraints=Constraints(exclude=("c003",)), **options),
    ):
        with pytest.raises(SelectionError, match=other) as caught:
            changed()
        assert str(path) in str(caught.value)


def test_work_of_one_kind_does_not_go_on_as_another(tmp_path, pool):
    path = tmp_path / "c.json"
    select(pool, 3, checkpoint=path, certificate="enumerate")
    with pytest.raises(SelectionError, match="other settings"):
        select(pool, 3, checkpoint=path, certificate="bound")


@pytest.mark.parametrize("certificate", ["enumerate", "bound"])
def test_cut_and_changed_files_are_refused(tmp_path, pool, certificate):
    path = tmp_path / "c.json"
    select(pool, 3, checkpoint=path, certificate=certificate)
    whole = path.read_bytes()
    step = max(1, len(whole) // 40)
    broken = [whole[:size] for size in range(0, len(whole), step)]
    broken += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), step)]
    broken += [b"[]", b"null", b"\xff\xfe", b'{"body": 3, "digest": 4}', b"[" * 100_000]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(SelectionError, match=r"checkpoint|damaged|another pool") as caught:
            select(pool, 3, checkpoint=path, certificate=certificate)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("certificate", ["enumerate", "bound"])
def test_states_that_cannot_be_are_refused(tmp_path, monkeypatch, pool, certificate):
    """Of the right digest, and yet not what was written."""
    path = tmp_path / "c.json"
    load = checkpoints.Checkpoint.load
    select(pool, 3, checkpoint=path, certificate=certificate)
    for best in ([[0.0, [1, 2]]], [[0.0, [1, 1, 2]]], [[0.0, [1, 2, 99]]], [["x", [1, 2, 3]]]):
        changed = {"best": best}
        monkeypatch.setattr(
            checkpoints.Checkpoint, "load", lambda *a, changed=changed, **o: {**load(*a, **o), "blocks": 0, **changed}
        )
        with pytest.raises(SelectionError, match=r"c\.json: "):
            select(pool, 3, checkpoint=path, certificate=certificate)


def test_where_a_checkpoint_goes(tmp_path, pool):
    path = tmp_path / "c.json"
    for k, options in ((3, {}), ((3, 4), {"search": "exhaustive"}), (3, {"certificate": "model"})):
        with pytest.raises(SelectionError, match="a checkpoint goes with one size, and search exhaustive or"):
            select(pool, k, checkpoint=path, **options)
    with pytest.raises(SelectionError, match="cannot be written"):
        select(pool, 3, search="exhaustive", checkpoint=tmp_path / "none" / "c.json")
    with pytest.raises(SelectionError, match=r"cannot be read|expected a file"):
        select(pool, 3, search="exhaustive", checkpoint=tmp_path)


RUN = """
import sys
from pathlib import Path
from fedsel import select
from fedsel.selection import bounds, checkpoint, enumeration
sys.path.insert(0, {tests!r})
from reference import made_exact_pool
for module in (bounds, enumeration):
    module.INTERVAL = 0.0
bounds._STEP = 1
pool = made_exact_pool(4, clients=26, domain=[3, 4, 3, 5], rows=(20, 400))
found = select(pool, 12, checkpoint=Path({path!r}), threads=2, {options})
print(found.names, found.loss, found.certificate, found.runner_ups)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
@pytest.mark.parametrize("options", ["search='exhaustive'", "certificate='bound'"])
def test_killed_at_any_moment(tmp_path, options):
    path = tmp_path / "c.json"
    code = RUN.format(tests=os.path.dirname(os.path.dirname(__file__)), path=str(path), options=options)
    for delay in (0.0, 0.1, 0.3):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not path.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert path.exists()
    resumed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    fresh = code.replace(str(path), str(tmp_path / "other.json"))
    assert resumed == subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True, check=True).stdout
    assert "proof" in resumed
