from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from fedsel.encode import Codes, encode, encode_file
from fedsel.errors import DataError
from fedsel.schema import Schema, Variable
from fedsel.tables import Workload, count
from strategies import schemas

BLANKS = " \t\r\n\f\v\u00a0"

# --- a plain reference, one value at a time --------------------------------------------------------------------------


def number_in(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) else None


def reference_code(schema: Schema, variable: Variable, value: Any) -> int | None:
    """Return the code by the rules as documented, None where there is none."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    listed = schema.missing_values + variable.missing_values
    if isinstance(value, str):
        value = value.strip(BLANKS)
        if value == "" or value in listed:
            return None
    if variable.kind == "str":
        for code, category in enumerate(variable.categories or ()):
            if isinstance(value, bool):
                same = str(category).lower() == str(value).lower()
            elif isinstance(value, str):
                same = category == value
            else:
                same = not math.isinf(value) and category in (
                    repr(float(value)),
                    str(int(value)) if value == int(value) and abs(value) < 2**53 else None,
                )
            if same:
                return code
        return None
    if isinstance(value, str):
        spelt = {"true": 1.0, "false": 0.0} if variable.kind == "bool" else {}
        value = spelt.get(value.lower(), number_in(value))
        if value is None:
            return None
    if any(number_in(text) == value for text in listed):
        return None
    if variable.bins is None:
        return next((code for code, category in enumerate(variable.categories or ()) if category == value), None)
    last = len(variable.bins) - 2
    for code, (low, high) in enumerate(zip(variable.bins, variable.bins[1:], strict=False)):
        if low <= value < high or (code == last and value == high):
            return code
    return None


def reference(schema: Schema, rows: list[list[Any]]) -> list[tuple[int, ...]] | tuple[int, str]:
    """Return the codes of the kept rows, or row number and variable of the first refusal."""
    kept = []
    for number, row in enumerate(rows, start=1):
        codes: list[int] = []
        drop = False
        for variable, value in zip(schema.variables, row, strict=True):
            code = reference_code(schema, variable, value)
            if code is None and variable.missing == "error":
                return number, variable.name
            drop |= code is None and variable.missing == "drop"
            codes.append(variable.size - 1 if code is None else code)
        if not drop:
            kept.append(tuple(codes))
    return kept


def check(schema: Schema, expected: Any, run: Any) -> None:
    """Compare what `run` returns or raises with the reference."""
    if isinstance(expected, tuple):
        number, name = expected
        with pytest.raises(DataError) as caught:
            run()
        assert f': row {number}: {name}: missing="error" but the value is ' in str(caught.value)
        return
    codes = run()
    assert codes.rows == len(expected)
    assert [tuple(row) for row in zip(*(column.tolist() for column in codes.columns), strict=True)] == expected
    assert [column.dtype for column in codes.columns] == [np.uint8] * len(schema.names)


@st.composite
def rows_of(draw: Any, schema: Schema, *, text: bool) -> list[list[Any]]:
    """Rows with a good share of hits, near misses, missing and foreign values."""
    columns = []
    count = draw(st.integers(1, 8))
    for variable in schema.variables:
        pool: list[Any] = [None, "", "  ", "x", "nan", "inf", "1_0", "0x1", 7, "+1", "1.0", "true", "False"]
        for category in variable.categories or variable.bins or ():
            spelt = str(category)
            pool += [category, spelt, f" {spelt}\t", spelt.upper()]
            if not isinstance(category, str):
                pool += [float(category), f"{float(category)!r}", math.nextafter(category, math.inf)]
        if not text:
            pool += [math.nan, math.inf, -math.inf, True, False, 1, 0.0, pd.NA, pd.NaT, 10**30]
        pool += list(variable.missing_values + schema.missing_values)
        hits = [value for value in pool if reference_code(schema, variable, value) is not None]
        chosen = st.sampled_from(hits) | st.sampled_from(pool) if hits else st.sampled_from(pool)
        columns.append(draw(st.lists(chosen, min_size=count, max_size=count)))
    return [list(row) for row in zip(*columns, strict=True)]


@given(st.data())
def test_python_objects_against_the_reference(data: Any) -> None:
    schema = data.draw(schemas())
    rows = data.draw(rows_of(schema, text=False))
    expected = reference(schema, rows)
    columns = {name: list(values) for name, values in zip(schema.names, zip(*rows, strict=True), strict=True)}
    check(schema, expected, lambda: encode(schema, columns))
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    check(schema, expected, lambda: encode(schema, frame))


@settings(max_examples=50)
@given(st.data())
def test_text_against_the_reference(data: Any) -> None:
    schema = data.draw(schemas())
    rows = [[value if value is None else str(value) for value in row] for row in data.draw(rows_of(schema, text=True))]
    expected = reference(schema, rows)
    columns = {name: list(values) for name, values in zip(schema.names, zip(*rows, strict=True), strict=True)}
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    check(schema, expected, lambda: encode(schema, pa.table(arrays)))
    check(schema, expected, lambda: encode(schema, {name: array.dictionary_encode() for name, array in arrays.items()}))
    check(
        schema,
        expected,
        lambda: encode(schema, {name: array.cast(pa.large_string()) for name, array in arrays.items()}),
    )
    check(schema, expected, lambda: encode(schema, pd.DataFrame(columns, dtype="string")))
    check(schema, expected, lambda: encode(schema, pd.DataFrame(columns, dtype="category")))
    filled = {name: np.array([value or "" for value in values]) for name, values in columns.items()}
    check(schema, expected, lambda: encode(schema, filled))


@settings(max_examples=50)
@given(st.data())
def test_csv_files_against_the_reference(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    schema = data.draw(schemas())
    rows = [["" if value is None else str(value) for value in row] for row in data.draw(rows_of(schema, text=True))]
    expected = reference(schema, rows)
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["first", *schema.names], *([str(i), *row] for i, row in enumerate(rows))])
    check(schema, expected, lambda: Codes.join(encode_file(schema, path)))
    check(schema, expected, lambda: Codes.join(encode_file(schema, path, batch_rows=2)))


NUMERIC = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", NUMERIC)
def test_numeric_columns_against_the_reference(dtype: Any) -> None:
    kind = np.dtype(dtype).kind
    values = np.arange(0 if kind == "u" else -20, 100).astype(dtype)
    if kind == "f":
        values = np.concatenate([values, np.array([0.5, 2.25, math.nan, math.inf, -math.inf], dtype=dtype)])
    elif values.dtype.itemsize == 8:
        values = np.concatenate([values, np.array([2**53 - 1, 2**53, 2**53 + 1, 2**62], dtype=dtype)])
    variables = (
        Variable("i", categories=(-3, 5, 1, 2**53 - 1), missing="category"),
        Variable("t", categories=("2", "1.0", "03", "2.25", "a", "9007199254740991"), missing="category"),
        Variable("b", categories=(True, False), missing="category"),
        Variable("e", bins=(-2.5, 0, 0.5, 60), missing="category", missing_values=("7", "?")),
    )
    schema = Schema("s", variables)
    expected = reference(schema, [[value] * 4 for value in values.tolist()])
    plain = dict.fromkeys(schema.names, values)
    check(schema, expected, lambda: encode(schema, plain))
    check(schema, expected, lambda: encode(schema, pd.DataFrame(plain)))
    check(schema, expected, lambda: encode(schema, pa.table(plain)))
    check(
        schema, expected, lambda: encode(schema, {name: values.astype(values.dtype.newbyteorder()) for name in plain})
    )
    if np.dtype(dtype) != np.float16:  # which pandas cannot index
        check(schema, expected, lambda: encode(schema, pd.DataFrame(plain).astype("category")))
        nullable = pd.DataFrame(plain).convert_dtypes()
        check(schema, expected, lambda: encode(schema, nullable))
        arrow = pd.DataFrame(plain).astype(pd.ArrowDtype(pa.from_numpy_dtype(dtype)))
        check(schema, expected, lambda: encode(schema, arrow))


def test_batches_equal_the_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    schema = Schema(
        "s",
        (
            Variable("a", bins=(0, 1, 5, 9), missing="drop"),
            Variable("b", "target", categories=(0, 1)),
            Variable("c", categories=tuple(f"c{i}" for i in range(400)), missing="category"),
        ),
    )
    table = pa.table(
        {
            "b": rng.integers(0, 2, 5000),
            "a": rng.normal(4, 4, 5000).round(2),
            "c": [f"c{i}" for i in rng.integers(0, 420, 5000)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    whole = encode(schema, table)
    assert [column.dtype for column in whole.columns] == [np.uint8, np.uint8, np.uint16]
    assert whole.rows + whole.dropped == 5000
    assert whole.unmatched[0] == whole.dropped > 0
    assert (whole.unmatched[1], whole.unmatched[2] > 0) == (0, True)
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        for batch_rows in (1 << 16, 613):
            parts = list(encode_file(schema, path, batch_rows=batch_rows))
            assert max(part.rows for part in parts) <= batch_rows
            joined = Codes.join(parts)
            assert all((one == two).all() for one, two in zip(joined.columns, whole.columns, strict=True))
            assert (joined.rows, joined.dropped, joined.unmatched) == (whole.rows, whole.dropped, whole.unmatched)
    workload = Workload.pairs(schema)
    assert count(whole.columns, workload).counts.sum() == 3 * whole.rows
