"""Rows from whichever library, as named pandas columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedsel.errors import DataError


def named_columns(X: Any) -> dict[str, Any]:
    """Return the columns of a table as pandas Series of one length, by name.

    Parameters
    ----------
    X : pandas DataFrame, pyarrow Table or RecordBatch, mapping of names to arrays, or two-dimensional array
        The rows. The columns of an array are called ``x0``, ``x1`` and so on.

    Returns
    -------
    dict of str to Series

    Raises
    ------
    DataError
        If there is no column or no row, names repeat or are not text, or columns differ in length.
    """
    import pandas as pd

    arrow = sys.modules.get("pyarrow")
    if isinstance(X, pd.DataFrame):
        pairs = [(name, X.iloc[:, position]) for position, name in enumerate(X.columns)]
    elif arrow is not None and isinstance(X, (arrow.Table, arrow.RecordBatch)):
        pairs = [(name, X.column(position).to_pandas()) for position, name in enumerate(X.schema.names)]
    elif isinstance(X, Mapping):
        pairs = [(name, series(values, f"X: column {name}")) for name, values in X.items()]
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        pairs = [(f"x{position}", pd.Series(X[:, position])) for position in range(X.shape[1])]
    else:
        raise DataError(
            "X must be a DataFrame, a pyarrow table, a mapping of arrays or a two-dimensional array, got "
            f"{type(X).__name__}"
        )
    if not pairs:
        raise DataError("X: at least one column is needed, got none")
    result: dict[str, Any] = {}
    rows = len(pairs[0][1])
    for name, column in pairs:
        if not isinstance(name, str):
            raise DataError(f"X: column names must be text, got {name!r}")
        if name in result:
            raise DataError(f"X: column {name} is there twice")
        if len(column) != rows:
            raise DataError(f"X: columns differ in length: {pairs[0][0]} has {rows} rows, {name} has {len(column)}")
        result[name] = column
    if rows == 0:
        raise DataError("X: at least one row is needed, got none")
    return result


def series(values: Any, where: str) -> Any:
    """Return one column as a pandas Series.

    Raises
    ------
    DataError
        If it is not one-dimensional.
    """
    import pandas as pd

    if isinstance(values, pd.Series):
        return values
    if hasattr(values, "to_pandas"):
        return values.to_pandas()
    try:
        if isinstance(values, np.ma.MaskedArray):
            plain = np.asarray(values.data).astype(object)
            plain[np.ma.getmaskarray(values)] = None
            values = plain
        column = pd.Series(values)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be one-dimensional: {error}") from None
    if column.dtype == object:
        column = column.infer_objects()
    return column


def hashed(column: Any) -> Any:
    """Return a column of text or mixed values as an unordered categorical, so that its rows are looked at once.

    Others, and what cannot be told apart by value, come back as they are.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column
    if column.dtype.kind in "mM":
        return column
    try:
        positions, values = pd.factorize(column)
    except TypeError:
        return column
    return pd.Series(pd.Categorical.from_codes(positions, categories=pd.Index(values)), name=column.name)
