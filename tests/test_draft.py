from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsel.codebook import draft_from_codebook
from fedsel.draft import SAMPLE_ROWS, draft_from_sample
from fedsel.encode import Codes, encode_file
from fedsel.errors import DataError, FedselError, SchemaError
from fedsel.schema import Schema, Variable


def sample(folder: Path, frame: dict[str, Any], name: str = "people.csv") -> Path:
    path = folder / name
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


FRAME = {
    "site": ["a", "b"] * 100,
    "age": list(range(20, 70)) * 4,
    "sex": [1, 2] * 100,
    "smoker": ["True", "False"] * 100,
    "zip": ["01", "02"] * 100,
    "note": [f"text {i}" for i in range(200)],
    "dose": np.linspace(0, 1, 200).round(3),
    "visits": ["1", "?", "", "2"] * 50,
    "outcome": ["yes", "NA", "no", "no"] * 50,
    "empty": [""] * 200,
}


def test_sample(tmp_path: Path) -> None:
    path = sample(tmp_path, FRAME)
    draft = draft_from_sample(path, target="outcome", sensitive=["sex"], exclude=["site"], bins=4)
    assert draft.schema == Schema(
        "people",
        (
            Variable("age", bins=(20, 32, 44, 57, 69)),
            Variable("sex", "sensitive", categories=(1, 2)),
            Variable("smoker", categories=(False, True)),
            Variable("zip", categories=("01", "02")),
            Variable("dose", bins=(0, 0.25, 0.5, 0.75, 1)),
            Variable("visits", categories=(1, 2), missing="category"),
            Variable("outcome", "target", categories=("no", "yes"), missing="drop"),
        ),
        missing_values=("?", "NA"),
    )
    text = draft.to_toml()
    assert text.startswith("# Drafted from the public sample people.csv.\n# Read every line before use")
    assert "Never infer them from private data" in text
    assert "# Left out: note: 200 distinct texts, more than 20\n" in text
    assert "# Left out: empty: no value in any row\n" in text
    assert Schema.from_toml_text(text) == draft.schema
    codes = Codes.join(encode_file(draft.schema, path))
    assert (codes.rows, codes.dropped) == (150, 50)


def test_parquet_sample_of_other_types(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = {
        "flag": pa.array([True, None, False]),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "when": pa.array([0, 1, 2], pa.timestamp("s")),
        "half": pa.array([0.5, 0.5, 0.5]),
        "count": pa.array([3, 3, 3]),
    }
    pq.write_table(pa.table(table), path)
    draft = draft_from_sample(path, name="n")
    assert draft.schema == Schema(
        "n",
        (
            Variable("flag", categories=(False, True), missing="category"),
            Variable("kind", categories=("x", "y")),
            Variable("half", bins=(0, 1)),
            Variable("count", categories=(3,)),
        ),
    )
    assert "Left out: when: values of type datetime" in draft.comments
    assert Codes.join(encode_file(draft.schema, path)).rows == 3


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("bins", [1, 2, 8])
def test_bins_hold_every_value_of_the_sample(tmp_path: Path, scale: float, bins: int) -> None:
    values = np.random.default_rng(3).normal(size=500) * scale
    path = sample(tmp_path, {"x": values})
    schema = draft_from_sample(path, bins=bins).schema
    assert 1 <= schema.domain[0] <= bins
    codes = Codes.join(encode_file(schema, path))
    assert codes.rows == 500
    if bins == 8:
        assert np.bincount(codes.columns[0]).min() > 40


def test_bins_of_large_numbers_close_together(tmp_path: Path) -> None:
    for values in ([1.6e15 + i for i in range(0, 100, 3)], [1e17] * 3, [0.1 + i * 1e-13 for i in range(30)]):
        path = sample(tmp_path, {"x": values})
        assert Codes.join(encode_file(draft_from_sample(path).schema, path)).rows == len(values)


def test_missing_policy(tmp_path: Path) -> None:
    path = sample(tmp_path, {"x": [1, 2], "y": [0, 1]})
    drafts = {m: draft_from_sample(path, target="y", missing=m).schema for m in ("error", "drop", "category")}  # type: ignore[arg-type]
    assert {m: [v.missing for v in s.variables] for m, s in drafts.items()} == {
        "error": ["error", "error"],
        "drop": ["drop", "drop"],
        "category": ["category", "drop"],
    }


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(
        pa.table({"x": np.arange(SAMPLE_ROWS + 1) == SAMPLE_ROWS, "y": np.arange(SAMPLE_ROWS + 1) // SAMPLE_ROWS}), path
    )
    draft = draft_from_sample(path)
    assert draft.comments[0] == "Drafted from the first 200,000 rows of the public sample p.parquet."
    assert draft.schema.domain == (2, 1)


def test_odd_file_and_column_names_stay_in_their_comment(tmp_path: Path) -> None:
    path = tmp_path / "a\nname = 3.csv"
    path.write_text('"b\nc",x\n1,1\n')
    draft = draft_from_sample(path)
    assert Schema.from_toml_text(draft.to_toml()).names == ("x",)
    assert r"Left out: b\nc: variable name must not hold control characters, got 'b\nc'" in draft.comments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "nope"}, DataError, "{path}: no column nope; it has x, note"),
        ({"exclude": ["nope"]}, DataError, "{path}: no column nope; it has x, note"),
        (
            {"target": "x", "sensitive": ["x"]},
            SchemaError,
            "variable x: one variable cannot be both target and sensitive",
        ),
        ({"target": "x", "exclude": ["x"]}, SchemaError, "variable x: excluded, but named as target"),
        (
            {"target": "note", "max_categories": 2},
            DataError,
            "{path}: column note cannot be the target variable: 3 distinct texts, more than 2",
        ),
        ({"exclude": ["x", "note"]}, DataError, "{path}: no column can be drafted"),
        ({"bins": 0}, SchemaError, "bins must be at least 1, got 0"),
        ({"max_categories": 0}, SchemaError, "max_categories must be at least 1, got 0"),
        ({"missing": "no"}, SchemaError, "missing must be one of 'error', 'drop', 'category', got 'no'"),
        ({"name": ""}, SchemaError, "schema name must not be empty"),
    ],
)
def test_refused_sample(tmp_path: Path, options: dict[str, Any], error: type[FedselError], message: str) -> None:
    path = sample(tmp_path, {"x": [1, 2, 3], "note": ["a", "b", "c"]})
    with pytest.raises(error) as caught:
        draft_from_sample(path, **options)
    assert str(caught.value) == message.format(path=path)


def test_refused_sample_files(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    for content, message in (
        ('"a\nb","a\nb"\n1,1\n', r"column a\nb is there 2 times"),
        ("x,x\n1,1\n", "column x is there 2 times"),
        ("x\n", "holds a header but no rows"),
        ("", "is empty"),
    ):
        path.write_text(content)
        with pytest.raises(DataError) as caught:
            draft_from_sample(path)
        assert str(caught.value) == f"{path}: {message}"


# --- codebooks -------------------------------------------------------------------------------------------------------

CODEBOOK = """\
variable,role,value,label,low,high
sex,sensitive,1,male,,
sex,,2,female,,
age,,,,0,18
age,,,grown,18,100
years,feature,,a,0,17
years,,,b,18,64
years,,,c,65,65
ok,target,true,,,
ok,,FALSE,,,

zip,,01,"north, west",,
zip,,2,,,
"""


def test_codebook(tmp_path: Path) -> None:
    path = tmp_path / "book.v1.csv"
    path.write_text(CODEBOOK, encoding="utf-8-sig")
    draft = draft_from_codebook(path)
    assert draft.schema == Schema(
        "book",
        (
            Variable("sex", "sensitive", categories=(1, 2), labels=("male", "female")),
            Variable("age", bins=(0, 18, 100), labels=("0 to 18", "grown")),
            Variable("years", bins=(0, 18, 65, 65.5), labels=("a", "b", "c")),
            Variable("ok", "target", categories=(True, False)),
            Variable("zip", categories=("01", "2"), labels=("north, west", "2")),
        ),
    )
    assert draft.comments[0] == "Drafted from the codebook book.v1.csv."
    assert Schema.from_toml_text(draft.to_toml()) == draft.schema
    other = draft_from_codebook(path, name="n", target="zip", sensitive=["age", "ok"], missing="category").schema
    assert (other.name, other.target, other.sensitive) == ("n", "zip", ("sex", "age", "ok"))
    assert [variable.missing for variable in other.variables] == ["category"] * 4 + ["drop"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("variable,value\n", "holds a header but no variables"),
        ("variable,wert\n", "unknown column 'wert'; known are variable, role, value, label, low, high"),
        ("variable,value,value\n", "column value is there 2 times"),
        ("value\n1\n", "columns variable, and value or low and high, are needed; got value"),
        ("variable,low\n1,1\n", "columns variable, and value or low and high, are needed; got variable, low"),
        ("variable,value\nx\n", "line 2: expected 2 fields, got 1"),
        ("variable,value\n,1\n", "line 2: the variable is not named"),
        ("variable,value\nx,1\nx,1\n", "variable x: the category 1 occurs twice"),
        ("variable,value\nx,\n", "line 2: variable x: either a value or low and high is needed"),
        ("variable,value,low,high\nx,1,0,1\n", "line 2: variable x: either a value or low and high is needed"),
        ("variable,value,low,high\nx,,0,\n", "line 2: variable x: low and high must be numbers, got '0' and ''"),
        (
            "variable,value,low,high\nx,1,,\nx,,0,1\n",
            "line 3: variable x: has values and ranges; a variable has either",
        ),
        (
            "variable,role,value\nx,goal,1\n",
            "line 2: variable x: role must be feature, target or sensitive, got 'goal'",
        ),
        (
            "variable,role,value\nx,target,1\nx,feature,2\n",
            "line 3: variable x: the role is feature here, target before",
        ),
        (
            "variable,low,high\nx,0,1\nx,5,6\n",
            "variable x: ranges must adjoin, got one that ends at 1 and one from 5",
        ),
        (
            "variable,low,high\nx,0,1.5\nx,2.5,6\n",
            "variable x: ranges must adjoin, got one that ends at 1.5 and one from 2.5",
        ),
        (
            "variable,low,high\nx,0,1\nx,1,6\nx,7,8\n",
            "variable x: ranges must adjoin, got one that ends at 6 and one from 7",
        ),
        ("variable,low,high\nx,1,1\n", None),
        ("variable,low,high\nx,5,1\n", "variable x: bins must strictly increase, got [5, 1]"),
        ('variable,value\nx,"1\n', "unreadable CSV file: unexpected end of data"),
    ],
)
def test_bad_codebook(tmp_path: Path, content: str, message: str | None) -> None:
    path = tmp_path / "book.csv"
    path.write_text(content)
    if message is None:
        assert draft_from_codebook(path).schema.variables[0].bins == (1, 1.5)
        return
    with pytest.raises(SchemaError) as caught:
        draft_from_codebook(path)
    assert str(caught.value) == f"{path}: {message}"


def test_codebook_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"variable,value\nx,\xe9\n")
    for path, message in (
        (tmp_path / "none.csv", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin.csv", "is not UTF-8 text (byte 17)"),
    ):
        with pytest.raises(SchemaError) as caught:
            draft_from_codebook(path)
        assert str(caught.value) == f"{path}: {message}"
    (tmp_path / "book.csv").write_text(CODEBOOK)
    with pytest.raises(SchemaError, match=r"book\.csv: no variable nope; it has sex, age, years, ok, zip$"):
        draft_from_codebook(tmp_path / "book.csv", target="nope")
