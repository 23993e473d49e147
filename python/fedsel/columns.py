"""Columns of rows, from whichever library, as category codes.

Neither pandas nor pyarrow is imported unless such a column came in. ``pyarrow.array`` and, of an arrow array,
``to_numpy`` and ``numpy.asarray`` import pandas where it is installed; the conversions here use buffers instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError
from fedsel.matching import Codes32, Matcher
from fedsel.schema_rules import BLANKS

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def column_codes(matcher: Matcher, column: Any) -> Codes32:
    """Return the codes of a column, -1 where a value is missing or matches nothing.

    Parameters
    ----------
    matcher : Matcher
        The variable's rules.
    column : pandas Series, pyarrow Array or ChunkedArray, ndarray, list or tuple, of length rows
        The raw values.

    Returns
    -------
    ndarray of int32, shape (rows,)

    Raises
    ------
    DataError
        If the column holds values of a type that cannot be encoded.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(column, (pandas.Series, pandas.Index)):
        return _pandas_codes(matcher, column)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(column, (arrow.Array, arrow.ChunkedArray)):
        return _arrow_codes(matcher, column)
    if isinstance(column, (list, tuple)):
        return _object_codes(matcher, column)
    if isinstance(column, np.ndarray):
        return _numpy_codes(matcher, column)
    raise DataError(f"holds a {type(column).__name__}; expected an array of values")


def column_value(column: Any, row: int) -> object:
    """Return one raw value of a column as a Python object, for messages."""
    value = column.iloc[row] if hasattr(column, "iloc") else column[row]
    if hasattr(value, "as_py"):
        try:
            return value.as_py()
        except UnicodeDecodeError:
            return value.as_buffer().to_pybytes()
    if value is np.ma.masked:
        return None
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def _unsupported(kind: object) -> DataError:
    return DataError(f"has type {kind}; expected numbers, text or true/false")


# --- numpy and plain sequences ---------------------------------------------------------------------------------------


def _numpy_codes(matcher: Matcher, column: npt.NDArray[Any]) -> Codes32:
    if column.ndim != 1:
        raise DataError(f"has {column.ndim} dimensions; expected 1")
    kind = column.dtype.kind
    mask = None
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column)
        column = np.asarray(column.data)
    if kind in "biuf":
        codes = matcher.numbers(column)
    elif kind in "US":
        distinct, inverse = np.unique(column, return_inverse=True)
        codes = _distinct_codes(matcher, distinct.tolist())[inverse]
    elif kind in "OT":
        codes = _object_codes(matcher, column.tolist())
    else:
        raise _unsupported(column.dtype)
    if mask is not None:
        codes[mask] = -1
    return codes


def _object_codes(matcher: Matcher, values: Sequence[object]) -> Codes32:
    # Type and value together, because 1, 1.0 and True are one dictionary key. Both passes over the rows run in C.
    keys = list(zip(map(type, values), values, strict=True))
    try:
        position = dict.fromkeys(keys)
    except TypeError:
        raise DataError(f"holds a value of type {_unhashable(values)}; expected numbers, text or true/false") from None
    position = dict(zip(position, range(len(position)), strict=True))
    distinct = _distinct_codes(matcher, [value for _, value in position])
    return _coded(distinct, np.fromiter(map(position.__getitem__, keys), dtype=np.int64, count=len(keys)))


def _unhashable(values: Sequence[object]) -> str:
    for value in values:
        try:
            hash(value)
        except TypeError:
            return type(value).__name__
    return "unknown"


def _distinct_codes(matcher: Matcher, values: Sequence[object]) -> Codes32:
    return np.fromiter(map(matcher.value, values), dtype=np.int32, count=len(values))


def _coded(distinct: Codes32, positions: npt.NDArray[Any]) -> Codes32:
    """Return the codes of a dictionary-encoded column; a position of -1 is a missing value."""
    padded = np.append(distinct, np.int32(-1)).astype(np.int32)
    codes: Codes32 = padded[positions]  # -1 picks the one appended
    return codes


# --- pandas ----------------------------------------------------------------------------------------------------------


def _pandas_codes(matcher: Matcher, column: Any) -> Codes32:
    import pandas as pd

    dtype = column.dtype
    values = column.array
    if isinstance(dtype, pd.CategoricalDtype):
        return _coded(column_codes(matcher, dtype.categories), np.asarray(values.codes))
    if isinstance(dtype, (pd.StringDtype, pd.ArrowDtype)):
        import pyarrow as pa

        try:
            return _arrow_codes(matcher, pa.array(values, from_pandas=True))
        except UnicodeEncodeError:  # a lone surrogate; as Python text it merely matches nothing
            return _object_codes(matcher, values.tolist())
    if isinstance(dtype, np.dtype):
        return _numpy_codes(matcher, column.to_numpy())
    plain = getattr(dtype, "numpy_dtype", None)
    if isinstance(plain, np.dtype) and plain.kind in "biuf":  # the nullable integers, floats and booleans
        codes = matcher.numbers(column.to_numpy(dtype=plain, na_value=0))
        codes[column.isna()] = -1
        return codes
    if isinstance(dtype, pd.SparseDtype):
        return _numpy_codes(matcher, np.asarray(values))
    raise _unsupported(dtype)


# --- pyarrow ---------------------------------------------------------------------------------------------------------


def _arrow_codes(matcher: Matcher, column: Any) -> Codes32:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _arrow_array_codes(matcher, column)
    parts = [_arrow_array_codes(matcher, chunk) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])


def _arrow_array_codes(matcher: Matcher, array: Any) -> Codes32:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), -1, dtype=np.int32)
    if pa.types.is_dictionary(kind):
        positions = arrow_numbers(array.indices).astype(np.int64)
        positions[_nulls(array.indices)] = -1
        return _coded(_arrow_array_codes(matcher, array.dictionary), positions)
    if pa.types.is_decimal(kind):
        array = pc.cast(array, pa.float64(), safe=False)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            array = pc.cast(array, pa.string() if pa.types.is_binary(kind) else pa.large_string())
        except pa.ArrowInvalid:
            raise DataError("holds text that is not UTF-8") from None
    elif kind == getattr(pa, "string_view", pa.string)():
        array = pc.cast(array, pa.large_string())
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        try:
            return _arrow_text_codes(matcher, pc.utf8_trim(array, characters=BLANKS))
        except pa.ArrowInvalid:  # a damaged file; arrow trusts what calls itself text
            raise DataError("holds text that is not UTF-8") from None
    if not (pa.types.is_integer(kind) or pa.types.is_floating(array.type) or pa.types.is_boolean(kind)):
        raise _unsupported(kind)
    codes = matcher.numbers(arrow_numbers(array))
    if array.null_count:
        codes[_nulls(array)] = -1
    return codes


def _arrow_text_codes(matcher: Matcher, array: Any) -> Codes32:
    import pyarrow as pa
    import pyarrow.compute as pc

    if matcher.text_codes:
        array = pc.cast(array, pa.large_string())
        found = pc.index_in(array, value_set=_arrow_texts(list(matcher.text_codes)))  # codes are in this order
        codes = arrow_numbers(found).astype(np.int32)
        codes[_nulls(found)] = -1
        return codes
    codes = matcher.numbers(_numbers_in_text(array))
    if matcher.variable.kind == "bool":
        found = pc.index_in(pc.utf8_lower(pc.cast(array, pa.large_string())), value_set=_arrow_texts(["false", "true"]))
        spelt = ~_nulls(found)
        codes[spelt] = matcher.numbers(arrow_numbers(found)[spelt])
    return codes


def _numbers_in_text(array: Any) -> npt.NDArray[np.float64]:
    """Return the numbers that trimmed texts denote, NaN where a text is none; shape (rows,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(array, pa.float64())  # a column of numbers throughout, much the fastest
    except pa.ArrowInvalid:
        plain = pc.match_substring_regex(array, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
        array = pc.if_else(plain, pc.utf8_ltrim(array, characters="+"), pa.nulls(len(array), array.type))
        numbers = pc.cast(array, pa.float64())
    values = arrow_numbers(numbers).copy()
    values[_nulls(numbers)] = np.nan
    return values


def _arrow_texts(texts: Sequence[str]) -> Any:
    """Return texts as an arrow array, built from buffers."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(item) for item in encoded])]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def arrow_numbers(array: Any) -> npt.NDArray[Any]:
    """Return an arrow array of numbers or booleans as numpy, (rows,); what stands at nulls is arbitrary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_boolean = pa.types.is_boolean(array.type)
    if is_boolean:
        array = pc.cast(array, pa.uint8())  # booleans are packed eight to a byte
    kind = str(array.type)
    dtype = np.dtype(_FLOATS.get(kind, kind))
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype=np.bool_ if is_boolean else dtype)
    values = np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize)
    return values.astype(np.bool_) if is_boolean else values


def _nulls(array: Any) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    return arrow_numbers(pc.is_null(array)).astype(np.bool_)
