from __future__ import annotations

import numpy as np
import pytest

from fedsel.datasets.example import load_example
from fedsel.encode import Codes
from fedsel.errors import DataError, TrainingError
from fedsel.privacy.calibration import plan_noise
from fedsel.tables import Workload, count
from fedsel.training.sources import ExampleSource, FileSource
from fedsel.training.task import Task
from training_samples import made_schema, made_task

ROWS = "place,colour,size,sex,outcome\n" + "".join(
    f"{'north' if i % 3 else 'south'},{('red', 'blue')[i % 2]},{i % 2 + 1},{'mf'[i % 2]},{i % 4 == 0}\n"
    for i in range(60)
)


def test_rows_of_the_example_look_like_its_tables():
    source = ExampleSource()
    data = source.rows(60_000, seed=1)
    example = load_example()
    assert data.names == source.clients == example.clients
    assert abs(int(data.rows.sum()) - 60_000) < 46
    assert data["PA"].rows == round(example.records("PA") * 60_000 / 1_121_894)
    exact = example.marginals("PA").table(0).sum(axis=1)  # AGEP
    found = np.bincount(data["PA"].codes[:, 0], minlength=len(exact))
    assert np.abs(found / found.sum() - exact / exact.sum()).sum() / 2 < 0.03
    table = example.workload.sets.index((0, example.schema.names.index("PINCP")))
    positive = example.marginals("PA").table(table)[:, 1].sum() / example.records("PA")
    assert data["PA"].target.mean() == pytest.approx(positive, abs=0.03)


def test_rows_repeat_and_differ_between_seeds_and_clients():
    source = ExampleSource()
    a, b, c = (source.rows(20_000, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(a["RI"].codes, b["RI"].codes)
    assert not np.array_equal(a["RI"].codes, c["RI"].codes)
    with pytest.raises(TrainingError, match="rows to keep must be at least 1, got 0"):
        source.rows(0, seed=1)


def test_a_client_column_and_a_file_per_client_give_the_same(tmp_path):
    (tmp_path / "all.csv").write_text(ROWS)
    header, *lines = ROWS.splitlines()
    for place in ("north", "south"):
        own = [line for line in lines if line.startswith(place)]
        (tmp_path / f"{place}.csv").write_text("\n".join([header, *own]))
    task = made_task()
    one = FileSource.of_column(task, [tmp_path / "all.csv"], "place")
    two = FileSource.of_files(task, {name: tmp_path / f"{name}.csv" for name in ("south", "north")})
    assert one.clients == two.clients == ("north", "south")
    assert one.total == two.total == 60
    for name in one.clients:
        assert np.array_equal(one.rows(None, seed=0)[name].codes, two.rows(None, seed=0)[name].codes)
    assert one.rows(30, seed=0).rows.tolist() == [20, 10]


def test_releases_are_counted_from_all_rows(tmp_path):
    (tmp_path / "all.csv").write_text(ROWS)
    source = FileSource.of_column(made_task(), [tmp_path / "all.csv"], "place")
    pool = source.pool(plan_noise(6, epsilon=float("inf")), seed=0)
    assert pool.clients == ("north", "south")
    assert pool.totals().estimate.tolist() == [40.0, 20.0]
    north = source.rows(None, seed=0)["north"]
    workload = Workload.pairs(made_schema())
    columns = [*north.codes.T, north.target]
    expected = count([np.ascontiguousarray(column, dtype=np.uint8) for column in columns], workload)
    assert np.array_equal(pool.counts[0], expected.counts)
    noisy = source.pool(plan_noise(6, epsilon=1.0), seed=0)
    assert noisy.private.seeded == 2


def test_what_does_not_fit_the_schema_is_refused(tmp_path):
    (tmp_path / "all.csv").write_text(ROWS.replace("blue", "mauve"))
    with pytest.raises(DataError, match="row 2"):
        FileSource.of_column(made_task(), [tmp_path / "all.csv"], "place")


def test_numbers_do_not_come_from_files():
    with pytest.raises(TrainingError, match="hold categories only, not the numeric input x0"):
        FileSource(made_task(numeric=1), [], description="")


def test_rows_of_a_client_join():
    task = Task.of(made_schema())
    part = Codes(tuple(np.zeros(3, dtype=np.uint8) for _ in range(4)), 3, 0, (0,) * 4)
    source = FileSource(task, [("b", part), ("a", part), ("b", part)], description="made")
    assert source.rows(None, seed=0).rows.tolist() == [3, 6]
