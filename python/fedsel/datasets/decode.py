"""Category codes back into values that encode to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel.schema import Schema, Variable


def decode(
    schema: Schema, columns: Sequence[npt.NDArray[np.generic]], *, seed: int
) -> dict[str, npt.NDArray[np.generic]]:
    """Turn codes into raw values.

    Parameters
    ----------
    schema : Schema
        What the codes mean.
    columns : sequence of ndarray of int, each of shape (rows,)
        Codes, one column per variable.
    seed : int
        A value within a bin is drawn uniformly, a whole number where the bin's edges are whole.

    Returns
    -------
    dict of str to ndarray
        One column of raw values per variable, object arrays with None where the code means "missing".
    """
    rng = np.random.default_rng(seed)
    return {
        variable.name: _values(variable, np.asarray(codes, dtype=np.int64), rng)
        for variable, codes in zip(schema.variables, columns, strict=True)
    }


def _values(variable: Variable, codes: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.generic]:
    values: npt.NDArray[np.generic]
    if variable.categories is not None:
        known = len(variable.categories)
        values = np.array(variable.categories)[np.minimum(codes, known - 1)]
    else:
        assert variable.bins is not None  # a variable has either categories or bins
        edges = np.array(variable.bins, dtype=np.float64)
        known = len(edges) - 1
        inside = np.minimum(codes, known - 1)
        low, high = edges[inside], edges[inside + 1]
        values = low + rng.random(len(codes)) * (high - low)
        if np.all(edges == np.floor(edges)):
            values = np.floor(values).astype(np.int64)
    missing = codes >= known
    if not missing.any():
        return values
    with_gaps: npt.NDArray[Any] = values.astype(object)
    with_gaps[missing] = None
    return with_gaps
