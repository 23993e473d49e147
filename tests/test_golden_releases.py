"""Files written by earlier versions stay readable, value by value."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from fedsel.pool import Pool
from fedsel.release_file import encode_release, read_release

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
FILES = ("north.v1.parquet", "unicode.v1.parquet", "public.v1.parquet", "exact.v1.parquet")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_golden", ROOT / "scripts" / "write_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_and_the_folder_hold_the_same_files(script: ModuleType) -> None:
    assert set(script.golden_releases()) == set(FILES) == {path.name for path in GOLDEN.glob("*.parquet")}


@pytest.mark.parametrize("name", FILES)
def test_golden_file(script: ModuleType, name: str) -> None:
    assert read_release(GOLDEN / name) == script.golden_releases()[name]


def test_golden_values_as_literals() -> None:
    release = read_release(GOLDEN / "north.v1.parquet")
    assert (release.client, release.round, release.seeded, release.rows) == ("north", 1, False, None)
    assert release.table(0).tolist() == [[40, 37, 34], [31, 28, -35]]
    assert release.plan.scale.tolist() == [84**0.5] * 6
    assert release.schema.labels("Straße") == ("Süd", "Nord", "missing/other")
    public = read_release(GOLDEN / "public.v1.parquet")
    assert (public.client, public.round, public.seeded, public.rows) == ("west", 3, True, 400)
    assert public.workload.sets == ((0,), (1, 3), (0, 1, 2))
    assert public.plan.scale.tolist() == [12.0, 24.0, 8.0]
    assert read_release(GOLDEN / "unicode.v1.parquet").client == "病院 2"
    assert read_release(GOLDEN / "exact.v1.parquet").exact


@pytest.mark.parametrize("name", FILES)
def test_metadata_is_written_as_it_was(script: ModuleType, tmp_path: Path, name: str) -> None:
    # not the bytes of the file, which depend on the version of pyarrow
    (tmp_path / name).write_bytes(encode_release(script.golden_releases()[name]))
    old, new = (json.loads(pq.read_metadata(path / name).metadata[b"fedsel"]) for path in (GOLDEN, tmp_path))
    assert new == old


def test_golden_files_form_a_pool() -> None:
    pool = Pool.open([GOLDEN / "north.v1.parquet", GOLDEN / "unicode.v1.parquet"])
    assert pool.clients == ("north", "病院 2")
