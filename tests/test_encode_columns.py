from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fedsel.encode import Codes, encode
from fedsel.errors import DataError
from fedsel.schema import Schema, Variable

# --- particular columns ----------------------------------------------------------------------------------------------

ONE = Schema("s", (Variable("x", categories=(1, 2), missing="category"),))


def codes(data: Any, schema: Schema = ONE) -> list[int]:
    return encode(schema, {"x": data}).columns[0].tolist()


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, None],
        (1.0, "2", math.nan),
        [Decimal(1), Decimal("2.0"), Decimal("NaN")],
        [b"1", b" 2 ", b""],
        [np.int8(1), np.float32(2), pd.NaT],
        [True, np.str_("2"), np.datetime64("NaT")],
        np.ma.masked_array([1, 2, 1], mask=[False, False, True]),
        np.array([b"1", b"2", b""]),
        np.array(["1", "2", "3"], dtype=np.dtypes.StringDType()),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series([1, 2, None], dtype="Float32"),
        pd.Series([1, 2, None], dtype="category"),
        pd.Series(["1", "2", None], dtype="category")
        .cat.remove_categories(["2"])
        .cat.add_categories(["2"])
        .fillna("2")[[0, 1, 1]]
        .where([True, True, False]),
        pd.Series(["1", "2", None]),
        pd.Series(["1", "2", None], dtype="string"),
        pd.Series(["1", "2", "\ud800"], dtype=object),
        pd.Series([1, 2, None], dtype=pd.ArrowDtype(pa.decimal128(3, 1))),
        pd.Series(pd.arrays.SparseArray([1, 2, 0])),
        pd.Series([1, 2, 3], index=[5, 5, 5]),
        pa.array([1, 2, None]),
        pa.chunked_array([[1], [2, None]], pa.int8()),
        pa.array([0, 1, 2, None]).slice(1),
        pa.array(["0", "1", " 2 ", "\u00a0"]).slice(1),
        pa.array([b"1", b"2", None]),
        pa.array([Decimal("1.0"), Decimal("2.0"), None]),
        pa.array([1.0, 2.0, math.nan], pa.float16()),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint8()), pa.array([2, 1, 1])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 2]), pa.array(["2", "1", None])),
    ],
    ids=str,
)
def test_column(column: Any) -> None:
    assert codes(column) == [0, 1, 2]


def test_all_missing_columns() -> None:
    for column in (
        [None] * 3,
        pa.nulls(3),
        pd.Series([None] * 3),
        pd.Series([pd.NA] * 3, dtype="Int64"),
        np.full(3, np.nan),
    ):
        assert codes(column) == [2, 2, 2]
    empty = pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int8()), pa.array([], pa.string()))
    assert codes(empty) == [2, 2, 2]


def test_no_rows() -> None:
    for column in (
        [],
        np.zeros(0),
        pa.array([], pa.string()),
        pa.chunked_array([], pa.int8()),
        pd.Series([], dtype="str"),
    ):
        assert codes(column) == []


def test_booleans() -> None:
    target = Schema("s", (Variable("x", categories=(False, True), missing="category"),))
    for column in (
        [False, True, None],
        ["false", "TRUE", "yes"],
        ["0", "1.0", "2"],
        [0, 1.0, 2],
        pa.array([False, True, None]),
        pa.array([False, False, True, None]).slice(1),
        pa.array(["False", "1", "?"]),
        pd.Series([False, True, None], dtype="boolean"),
    ):
        assert codes(column, target) == [0, 1, 2]
    spelt = Schema("s", (Variable("x", categories=("FALSE", "True"), missing="category"),))
    assert codes(np.array([False, True]), spelt) == [0, 1]
    assert codes(["FALSE", True, "true"], spelt) == [0, 1, 2]


def test_columns_are_found_by_name_and_others_ignored() -> None:
    frame = pd.DataFrame({"y": [object()], "x": [2], 3: [0]})
    assert encode(ONE, frame).columns[0].tolist() == [1]
    accent = Schema("s", (Variable("\u00e9", categories=(1,)),))
    assert encode(accent, {"e\u0301": [1]}).rows == 1


def test_dropping_rows() -> None:
    schema = Schema("s", (Variable("x", categories=(1, 2), missing="drop"), Variable("y", bins=(0, 1), missing="drop")))
    result = encode(schema, {"x": [1, 9, 2, 9], "y": [0, 0, 5, 5]})
    assert (result.rows, result.dropped, result.unmatched) == (1, 3, (2, 2))
    assert [column.tolist() for column in result.columns] == [[0], [0]]


def test_wide_domains() -> None:
    for size, dtype in ((256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.int32)):
        schema = Schema("s", (Variable("x", categories=tuple(range(size))),))
        column = encode(schema, {"x": np.arange(size)}).columns[0]
        assert column.dtype == dtype
        assert (column == np.arange(size)).all()


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        (Variable("x", bins=(0, 100)), 212, "212, outside the bins 0..100"),
        (Variable("x", bins=(0, 100)), "212", "212, outside the bins 0..100"),
        (Variable("x", bins=(0, 0.5)), -0.25, "-0.25, outside the bins 0..0.5"),
        (Variable("x", bins=(0, 100)), math.inf, "inf, outside the bins 0..100"),
        (Variable("x", bins=(0, 100)), "old", "'old', not a number"),
        (Variable("x", bins=(0, 100)), None, "missing"),
        (Variable("x", bins=(0, 100)), math.nan, "missing"),
        (Variable("x", bins=(0, 100)), "  ", "missing"),
        (Variable("x", bins=(0, 100), missing_values=("?",)), " ? ", "'?', which stands for a missing value"),
        (Variable("x", bins=(0, 100), missing_values=("0",)), 0.0, "0.0, which stands for a missing value"),
        (Variable("x", bins=(0, 100), missing_values=("0",)), "0.0", "0.0, which stands for a missing value"),
        (Variable("x", categories=(1, 2)), 3, "3, not among the categories 1, 2"),
        (Variable("x", categories=("a", "b")), " c", "'c', not among the categories a, b"),
        (Variable("x", categories=("a", "b")), "1", "'1', not among the categories a, b"),
        (Variable("x", categories=(False, True)), 2, "2, not among the categories false, true"),
        (Variable("x", categories=("a", "b")), True, "true, not among the categories a, b"),
        (Variable("x", categories=(1,)), "x" * 99, f"'{'x' * 39}..., not among the categories 1"),
        (
            Variable("x", categories=tuple(range(99))),
            -1,
            "-1, not among the categories 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (99 in all)",
        ),
    ],
)
def test_refused_value(variable: Variable, value: Any, reason: str) -> None:
    expected = f'clients/a.csv: row 17: x: missing="error" but the value is {reason}'
    for column in ([value], pd.Series([value], dtype=object), np.array([value], dtype=object), pa.array([value])):
        with pytest.raises(DataError) as caught:
            encode(Schema("s", (variable,)), {"x": column}, source="clients/a.csv", first_row=17)
        assert str(caught.value) == expected


def test_the_first_refused_row_is_named_whatever_is_dropped() -> None:
    schema = Schema(
        "s",
        (
            Variable("x", categories=(1,)),
            Variable("y", categories=(1,)),
            Variable("z", categories=(1,), missing="drop"),
        ),
    )
    with pytest.raises(DataError, match=r"^data: row 2: y: "):
        encode(schema, {"x": [1, 1, 2], "y": [1, 2, 2], "z": [1, 2, 1]})


def broken_text(content: bytes) -> Any:
    """Text as a damaged file may hold it, unchecked."""
    offsets = np.array([0, len(content)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def test_broken_text_is_shown_escaped() -> None:
    with pytest.raises(DataError, match=r"UTF-8|not among the categories a"):
        encode(Schema("s", (Variable("x", categories=("a",)),)), {"x": broken_text(b"a\xffa")})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"y": [1]}, "data: no column x; it has y"),
        ({}, "data: no column x; it has none"),
        ({str(i): [1] for i in range(12)}, "data: no column x; it has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "data: column x is there 2 times"),
        (pa.table([[1], [2]], names=["x", "x"]), "data: column x is there 2 times"),
        ({"x": [[1]]}, "data: x holds a value of type list; expected numbers, text or true/false"),
        ({"x": [([],)]}, "data: x holds a value of type tuple; expected numbers, text or true/false"),
        ({"x": [1j]}, "data: x holds a value of type complex; expected numbers, text or true/false"),
        ({"x": [b"\xff"]}, r"data: x holds text that is not UTF-8: b'\xff'"),
        ({"x": np.zeros((2, 2))}, "data: x has 2 dimensions; expected 1"),
        ({"x": np.zeros(2, complex)}, "data: x has type complex128; expected numbers, text or true/false"),
        ({"x": np.zeros(2, "M8[s]")}, "data: x has type datetime64[s]; expected numbers, text or true/false"),
        ({"x": pa.array([[1]])}, "data: x has type list<item: int64>; expected numbers, text or true/false"),
        (
            {"x": pa.array([1], pa.timestamp("s"))},
            "data: x has type timestamp[s]; expected numbers, text or true/false",
        ),
        ({"x": pd.Series(pd.period_range("2020", periods=1))}, None),
        ({"x": pd.Series(pd.to_datetime(["2020-01-01"])).astype("category")}, None),
        ({"x": pa.array([b"\xff"])}, "data: x holds text that is not UTF-8"),
        ({"x": broken_text(b"\xff\xff")}, "data: x holds text that is not UTF-8"),
        ({"x": {1}}, "data: x holds a set; expected an array of values"),
        ([[1]], "data: expected a DataFrame, a pyarrow table or a mapping of arrays, got list"),
    ],
)
def test_refused_data(data: Any, message: str | None) -> None:
    with pytest.raises(DataError) as caught:
        encode(ONE, data)
    assert "expected numbers" in str(caught.value) if message is None else str(caught.value) == message


def test_columns_of_different_length() -> None:
    schema = Schema("s", (Variable("x", categories=(1,)), Variable("y", categories=(1,))))
    with pytest.raises(DataError, match=r"^data: columns differ in length: x has 1 rows, y has 2$"):
        encode(schema, {"x": [1], "y": [1, 1]})


def test_joining() -> None:
    with pytest.raises(DataError, match="at least one batch"):
        Codes.join([])
    one, two = encode(ONE, {"x": [1]}), encode(Schema("s", (Variable("x", categories=tuple(range(999))),)), {"x": [1]})
    with pytest.raises(DataError, match="different schemas"):
        Codes.join([one, two])
