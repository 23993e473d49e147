from __future__ import annotations

import io

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from fedsel.datasets.example import load_example
from fedsel.encode import Codes
from fedsel.errors import DataError, TrainingError
from fedsel.privacy.calibration import plan_noise
from fedsel.tables import Workload, count
from fedsel.training.sources import ExampleSource, FileSource
from fedsel.training.task import NumericInput, Task
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


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_numbers_come_with_their_rows(tmp_path, ending):
    header, *lines = ROWS.splitlines()
    with_age = "\n".join([f"{header},age", *(f"{line},{20 + i}" for i, line in enumerate(lines))])
    table = pacsv.read_csv(io.BytesIO(with_age.encode()))

    def write(part, name):
        write_table = pq.write_table if ending == "parquet" else pacsv.write_csv
        write_table(part, tmp_path / f"{name}.{ending}")
        return tmp_path / f"{name}.{ending}"

    task = Task.of(made_schema(), numeric=[NumericInput("age", centre=20, scale=10)])
    one = FileSource.of_column(task, [write(table, "all")], "place")
    places = np.array(table["place"].to_pylist())
    own = {name: write(table.filter(places == name), name) for name in ("north", "south")}
    two = FileSource.of_files(task, own)
    for source in (one, two):
        for name in ("north", "south"):
            client = source.rows(None, seed=0)[name]
            rows = np.flatnonzero(places == name)
            assert client.numeric[:, 0] == pytest.approx(rows / 10)
            assert client.target.tolist() == (rows % 4 == 0).tolist()
            assert client.codes[:, 1].tolist() == (rows % 2).tolist()
    assert np.array_equal(
        one.pool(plan_noise(6, epsilon=1.0), seed=0).counts, two.pool(plan_noise(6, epsilon=1.0), seed=0).counts
    )


def test_a_number_that_is_none_is_refused_by_name(tmp_path):
    header, *lines = ROWS.splitlines()
    task = Task.of(made_schema(), numeric=[NumericInput("age", centre=0, scale=1)])
    for value, message in (
        ("old", "client 'south': age must hold numbers"),
        ("", "client 'south': row 1: age must be"),
    ):
        text = "\n".join([f"{header},age", *(f"{line},{value if i == 0 else 1}" for i, line in enumerate(lines))])
        (tmp_path / "all.csv").write_text(text)
        with pytest.raises(TrainingError, match=message):
            FileSource.of_column(task, [tmp_path / "all.csv"], "place")
    (tmp_path / "south.csv").write_text(header + "\n")
    with pytest.raises(DataError, match=r"south\.csv: (no column age|holds a header but no rows)"):
        FileSource.of_files(task, {"south": tmp_path / "south.csv"})


def test_rows_of_a_client_join():
    task = Task.of(made_schema())
    part = Codes(tuple(np.zeros(3, dtype=np.uint8) for _ in range(4)), 3, 0, (0,) * 4)
    none = np.empty((3, 0))
    source = FileSource(task, [("b", part, none), ("a", part, none), ("b", part, none)], description="made")
    assert source.rows(None, seed=0).rows.tolist() == [3, 6]
