from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsel.errors import DataError
from fedsel.file_check import check_file
from fedsel.schema import Schema, Variable

SCHEMA = Schema(
    "s",
    (
        Variable("x", categories=(1, 2), missing="category", missing_values=("-9",)),
        Variable("y", categories=("a", "b"), missing="drop"),
        Variable("z", bins=(0, 1), missing="category"),
    ),
    missing_values=("?",),
)


def test_missing_and_unlisted_values_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("z,y,x\n0,a,1\n?,a,-9.0\n2,c,\n -1 ,,3\nhigh,b, 3\n")
    found = check_file(SCHEMA, path)
    assert (found.rows, found.dropped) == (3, 2)
    assert found.missing == {"x": 2, "y": 1, "z": 1}
    assert found.unlisted == {"x": Counter({"3": 2}), "y": Counter("c"), "z": Counter(["2", "-1", "high"])}


def test_typed_columns(tmp_path: Path) -> None:
    nan = float("nan")
    pq.write_table(pa.table({"x": [1.0, nan, -9.0, 4.5], "y": ["a"] * 4, "z": [0, 1, 7, None]}), tmp_path / "rows")
    found = check_file(SCHEMA, tmp_path / "rows")
    assert found.missing == {"x": 2, "z": 1}
    assert found.unlisted == {"x": Counter(["4.5"]), "z": Counter(["7"])}


def test_free_text_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y,z\n" + "".join(f"word {i},a,0\n" for i in range(3000)))
    found = check_file(SCHEMA, path).unlisted["x"]
    assert len(found) == 1001
    assert (found["..."], sum(found.values())) == (2000, 3000)


def test_refusals_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x\n1\n2\n3\n")
    schema = Schema("s", (Variable("x", categories=(1, 2)),))
    with pytest.raises(DataError, match=r"rows\.csv: row 3: x: missing=\"error\" but the value is 3"):
        check_file(schema, path)
    path.write_text("x\n")
    with pytest.raises(DataError, match="holds a header but no rows"):
        check_file(schema, path)
