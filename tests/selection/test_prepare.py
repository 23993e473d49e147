from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fedsel import FederationLoss, Pool, select
from fedsel.errors import SelectionError
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import PreparedFile, prepare, prepared_file
from fedsel.selection.fixed_point import to_int32
from reference import made_exact_pool, made_pool

DOMAIN = [2, 3, 4, 2, 5]


def exact(clients=40, seed=0):
    return made_exact_pool(seed, clients=clients, domain=DOMAIN, rows=(50, 400), sensitive=(0, 1))


def noisy(clients=40):
    pool = exact(clients)
    rng = np.random.default_rng(1)
    plan = plan_noise(len(pool.workload.sets), epsilon=1.0)
    return replace(
        pool, counts=pool.counts + np.rint(rng.normal(0, 10, pool.counts.shape)).astype(np.int64), plans=(plan,)
    )


@pytest.mark.parametrize(
    ("pool", "method"),
    [(exact(), "auto"), (noisy(), "auto"), (noisy(), "none"), (made_pool(3, clients=40, domain=DOMAIN), "none")],
)
def test_a_prepared_pool_is_searched_like_the_pool(tmp_path, pool, method):
    path = tmp_path / "pool.rows"
    prepare(pool, path, denoise_method=method)
    expected = select(pool, 5, denoise_method=method, certificate="none")
    found = select(pool, 5, denoise_method=method, certificate="none", prepared=path)
    assert found.loss == expected.loss
    assert found.members == expected.members
    assert found.runner_ups == expected.runner_ups


def test_a_pool_is_laid_out_in_blocks(tmp_path, monkeypatch):
    pool = exact()
    prepare(pool, tmp_path / "whole")
    monkeypatch.setattr(prepared_file, "_BLOCK_BYTES", 7 * 8 * pool.workload.cells)  # 7 clients
    prepare(pool, tmp_path / "blocks")
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_stored_pool_is_prepared_from_its_folder(tmp_path):
    pool = exact()
    pool.save(tmp_path / "stored")
    prepare(Pool.load(tmp_path / "stored"), tmp_path / "rows")
    assert FederationLoss.prepared(pool, tmp_path / "rows")([1, 2, 3]) == FederationLoss(pool)([1, 2, 3])


def test_counts_too_large_for_sums_are_scaled_as_without_a_file(tmp_path):
    pool = exact()
    pool = replace(pool, counts=pool.counts * 10**6)
    assert to_int32(pool.counts, pool.workload.sizes)[1] > 0
    prepare(pool, tmp_path / "rows")
    ours, theirs = FederationLoss.prepared(pool, tmp_path / "rows"), FederationLoss(pool)
    assert ours.shift == theirs.shift
    assert ours([0, 5, 9]) == theirs([0, 5, 9])


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (exact(seed=1), {}, "another pool"),
        (exact(clients=39), {}, "expected 39 clients"),
        (exact(), {"sensitive": "v1"}, "other tables"),
        (exact(), {"denoise_method": "clip"}, "prepared with denoise none, expected clip"),
        (replace(exact(), clients=tuple(f"d{i}" for i in range(40))), {}, "another pool"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, other, options, message):
    path = tmp_path / "rows"
    prepare(exact(), path)
    with pytest.raises(SelectionError, match=message):
        FederationLoss.prepared(other, path, **options)


def test_files_are_not_replaced_unless_told(tmp_path):
    path = tmp_path / "rows"
    prepare(exact(), path)
    with pytest.raises(SelectionError, match="exists already"):
        prepare(exact(), path)
    prepare(noisy(), path, overwrite=True)
    assert PreparedFile.open(path).denoise == "shrink"
    assert [file.name for file in tmp_path.iterdir()] == ["rows"]


def changed(path, **fields):
    """Change fields of the header, which keeps its length."""
    content = path.read_bytes()
    length = int.from_bytes(content[16:24], "little")
    header = {**json.loads(content[24 : 24 + length]), **fields}
    text = json.dumps(header, separators=(",", ":")).encode()
    end = 24 + length + -(24 + length) % 4096
    start = content[:16] + len(text).to_bytes(8, "little") + text
    return start + bytes(end - len(start)) + content[end:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.read_bytes()[:-1], "cut?"),
        (lambda path: path.read_bytes() + b"x", "cut?"),
        (lambda path: path.read_bytes()[:20], "damaged text"),
        (lambda path: b"", "another kind of file"),
        (lambda path: path.read_bytes()[:24] + b"\xff" + path.read_bytes()[25:], "damaged text"),
        (lambda path: path.read_bytes()[:-1] + b"\x7f", "the rows are damaged"),
        (lambda path: changed(path, format=2), "format: expected 1, got 2"),
        (lambda path: changed(path, clients="40"), "clients: expected int, got str"),
        (lambda path: changed(path, clients=0), "clients: got 0"),
        (lambda path: changed(path, clients=2**39), "cut?"),
        (lambda path: changed(path, byteorder="middle"), "byte order"),
        (lambda path: changed(path, consistent=False), "does not fit the tables"),
    ],
)
def test_damaged_files_are_refused(tmp_path, damage, message):
    path = tmp_path / "rows"
    prepare(exact(), path)
    path.write_bytes(damage(path))
    with pytest.raises(SelectionError, match=message):
        FederationLoss.prepared(exact(), path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(SelectionError, match="cannot be read: No such file"):
        FederationLoss.prepared(exact(), tmp_path / "rows")


def cut(path):
    os.truncate(path, 8192)


def test_a_file_that_is_cut_while_a_search_runs_stops_it(tmp_path):
    pool, path = exact(clients=200), tmp_path / "rows"
    prepare(pool, path)
    with pytest.raises(SelectionError, match=r"cut\?"):
        select(
            pool,
            20,
            search="descent",
            prepared=path,
            certificate="none",
            progress=lambda *_: cut(path),
            time_limit=60.0,
        )


def test_a_file_that_is_cut_between_uses_gives_no_numbers(tmp_path):
    pool, path = exact(clients=200), tmp_path / "rows"
    prepare(pool, path)
    loss = FederationLoss.prepared(pool, path)
    state = loss.state([0, 199])
    cut(path)
    for use in (lambda: loss([3, 199]), lambda: loss.information([3, 199]), lambda: state.components):
        with pytest.raises(SelectionError, match=r"cut\?"):
            use()


def test_the_process_outlives_a_cut_file_and_still_ends_by_other_bus_errors(tmp_path):
    pool, path = exact(clients=200), tmp_path / "rows"
    prepare(pool, path)
    pool.save(tmp_path / "stored")
    program = f"""
import ctypes, mmap, os, signal
from fedsel import FederationLoss, Pool
loss = FederationLoss.prepared(Pool.load({str(tmp_path / "stored")!r}), {str(path)!r})
os.truncate({str(path)!r}, 8192)
try:
    loss([3, 199])
except ValueError as error:
    print("refused", flush=True)
os.kill(os.getpid(), signal.SIGBUS)
print("not reached")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n"
    assert done.returncode == -7


def test_time_limits_hold_from_a_file(tmp_path):
    pool, path = exact(clients=100), tmp_path / "rows"
    prepare(pool, path)
    found = select(pool, 10, prepared=path, time_limit=1e-9)
    assert found.stop_reason == "time limit"
    assert math.isfinite(found.loss)


def test_a_checkpoint_does_not_go_with_a_prepared_pool(tmp_path):
    prepare(exact(), tmp_path / "rows")
    with pytest.raises(SelectionError, match="a checkpoint does not go with a prepared pool"):
        select(exact(), 3, prepared=tmp_path / "rows", search="exhaustive", checkpoint=tmp_path / "state")
