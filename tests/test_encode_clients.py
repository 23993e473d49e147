from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsel.counting import count_clients, count_file
from fedsel.encode import Codes, encode
from fedsel.encode_clients import client_columns, encode_clients
from fedsel.errors import DataError
from fedsel.schema import Schema, Variable
from fedsel.tables import Workload, count

SCHEMA = Schema(
    "s",
    (
        Variable("x", categories=(1, 2, 3), missing="category"),
        Variable("y", categories=("a", "b"), missing="drop"),
        Variable("z", bins=(0, 1, 2)),
    ),
)
PAIRS = Workload.pairs(SCHEMA)


def frame(rows: int, clients: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": rng.choice([f"client {i}" for i in range(clients)], rows),
            "x": rng.integers(1, 5, rows),
            "y": rng.choice(["a", "b", ""], rows),
            "z": rng.uniform(0, 2, rows),
        }
    )


def joined(path: Path, **options: Any) -> dict[str, Codes]:
    parts: dict[str, list[Codes]] = {}
    for name, codes in encode_clients(SCHEMA, path, "who", **options):
        parts.setdefault(name, []).append(codes)
    return {name: Codes.join(codes) for name, codes in parts.items()}


def same(one: Codes, two: Codes) -> bool:
    return (one.rows, one.dropped, one.unmatched) == (two.rows, two.dropped, two.unmatched) and all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one.columns, two.columns, strict=True)
    )


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("kind", ["csv", "parquet", "dictionary"])
def test_every_client_encodes_as_if_it_were_alone(tmp_path: Path, kind: str, batch_rows: int) -> None:
    data = frame(300, 5)
    path = tmp_path / "rows"
    if kind == "csv":
        data.to_csv(path, index=False)
    else:
        stored = data.astype({"who": "category"}) if kind == "dictionary" else data
        stored.to_parquet(path, index=False)
    found = joined(path, batch_rows=batch_rows)
    assert set(found) == set(data["who"])
    for name, codes in found.items():
        alone = encode(SCHEMA, data[data["who"] == name])
        assert same(codes, alone)
        only = joined(path, client=name, batch_rows=batch_rows)
        assert list(only) == [name]
        assert same(only[name], alone)


def test_names_come_into_one_form(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who,x,y,z\n Süd ,1,a,0\nSu\u0308d,2,a,1\nNord,1,b,0\n", encoding="utf-8")
    assert {name: codes.rows for name, codes in joined(path).items()} == {"Süd": 2, "Nord": 1}


@pytest.mark.parametrize("values", [[6, 7, 6], [6.0, 7.0, 6.0]])
def test_numbers_may_name_clients(tmp_path: Path, values: list[float]) -> None:
    pq.write_table(pa.table({"who": values, "x": [1, 2, 3], "y": ["a"] * 3, "z": [0, 1, 2]}), tmp_path / "rows")
    assert {name: codes.rows for name, codes in joined(tmp_path / "rows").items()} == {"6": 2, "7": 1}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", None], "row 2: who: the client's name is missing"),
        (["a", "  "], "row 2: who: the client's name is missing"),
        ([1.5, float("nan")], "row 2: who: the client's name is missing"),
        ([True, False], "row 1: who: a client's name must be text or a number, got bool"),
        (["a", "b\tc"], "row 2: who: client: a name must be printable"),
        (["a", "b" * 201], "row 2: who: client: a name must have 1 to 200 characters, got 201"),
    ],
)
def test_bad_names(tmp_path: Path, values: list[Any], message: str) -> None:
    pq.write_table(pa.table({"who": values, "x": [1, 2], "y": ["a", "a"], "z": [0, 0]}), tmp_path / "rows")
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        joined(tmp_path / "rows")


def test_values_that_only_a_dictionary_lists_name_nobody(tmp_path: Path) -> None:
    who = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["bad\nname", "a"]))
    pq.write_table(pa.table({"who": who, "x": [1, 2], "y": ["a", "a"], "z": [0, 0]}), tmp_path / "rows")
    assert list(joined(tmp_path / "rows")) == ["a"]


def test_the_clients_column_may_be_a_variable(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("site,t\nn,0\ns,1\nn,1\n")
    schema = Schema("s", (Variable("site", categories=("n", "s")), Variable("t", categories=(0, 1))))
    found = {
        name: [c.tolist() for c in codes.columns]
        for name, codes in encode_clients(schema, tmp_path / "rows.csv", "site")
    }
    assert found == {"n": [[0, 0], [0, 1]], "s": [[1], [1]]}


def test_rows_of_other_clients_need_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who,x,y,z\na,1,a,0\nb,1,a,9\nb,1,a,0\na,1,a,1\nb,1,a,8\n")
    assert joined(path, client="a")["a"].rows == 2
    for options in ({}, {"client": "b"}):
        with pytest.raises(DataError, match=r"row 2 \(client 'b'\): z: missing=\"error\" but the value is 9"):
            joined(path, **options)
    with pytest.raises(DataError, match="no row has who = 'c'; it has a, b"):
        joined(path, client="c")


def test_counts_of_clients_over_several_files(tmp_path: Path) -> None:
    data = frame(500, 7)
    data[:200].to_csv(tmp_path / "one.csv", index=False)
    data[200:].to_parquet(tmp_path / "two.parquet", index=False)
    found = count_clients(SCHEMA, PAIRS, [tmp_path / "one.csv", tmp_path / "two.parquet"], "who")
    assert list(found) == sorted(set(data["who"]))
    for name, counted in found.items():
        codes = encode(SCHEMA, data[data["who"] == name])
        assert (counted.rows, counted.dropped) == (codes.rows, codes.dropped)
        assert np.array_equal(counted.marginals.counts, count(codes.columns, PAIRS).counts)


def test_counts_of_one_file(tmp_path: Path) -> None:
    data = frame(90, 1)
    data.to_csv(tmp_path / "rows.csv", index=False)
    counted = count_file(SCHEMA, PAIRS, tmp_path / "rows.csv")
    assert np.array_equal(counted.marginals.counts, count(encode(SCHEMA, data).columns, PAIRS).counts)


def test_clients_without_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("who,x,y,z\na,1,,0\nb,1,a,0\n")
    with pytest.raises(DataError, match=r"rows\.csv: client 'a': no row is left"):
        count_clients(SCHEMA, PAIRS, [tmp_path / "rows.csv"], "who")
    (tmp_path / "none.csv").write_text("who,x,y,z\n")
    with pytest.raises(DataError, match="holds a header but no rows"):
        count_clients(SCHEMA, PAIRS, [tmp_path / "none.csv"], "who")
    with pytest.raises(DataError, match="at least one data file is needed"):
        count_clients(SCHEMA, PAIRS, [], "who")


def test_the_embedded_example_is_what_the_survey_file_counts_to(data_dir: Path) -> None:
    from fedsel.datasets.example import load_example

    example = load_example()
    found = count_clients(example.schema, example.workload, [data_dir / "acs_income_2018_46_states.parquet"], "ST")
    assert tuple(found) == example.clients
    for name, counted in found.items():
        assert np.array_equal(counted.marginals.counts, example.marginals(name).counts)


def test_no_command_at_a_client_loads_pandas(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    frame(200, 3).to_csv(tmp_path / "rows.csv", index=False)
    rows = ["rows.csv", "--schema", "s.toml", "--client-column", "who", "--epsilon", "1"]
    for arguments in (
        ["release", *rows, "--client", "client 1", "-o", "one.parquet"],
        ["release-all", *rows, "-o", "all"],
        ["schema", "check", "s.toml", "--data", "rows.csv"],
    ):
        code = (
            f"import sys\nfrom fedsel.cli.main import app\napp({arguments}, standalone_mode=False)\n"
            "sys.exit('pandas' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_raw_columns_keep_each_clients_rows_in_order(tmp_path: Path, batch_rows: int) -> None:
    data = frame(300, 5).assign(number=range(300))
    data.to_parquet(tmp_path / "all.parquet")
    found: dict[str, list[Any]] = {}
    for name, columns in client_columns(tmp_path / "all.parquet", "who", ["number", "z"], batch_rows=batch_rows):
        assert list(columns) == ["number", "z"]
        found.setdefault(name, []).extend(columns["number"].to_pylist())
    assert found == {str(name): rows["number"].tolist() for name, rows in data.groupby("who")}
    with pytest.raises(DataError, match="no column w"):
        list(client_columns(tmp_path / "all.parquet", "who", ["w"]))
