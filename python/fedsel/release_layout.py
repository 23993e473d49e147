"""The columns of a release in long form: one row per cell, with names and labels that any reader understands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.schema import Schema
from fedsel.tables import MAX_ORDER, Workload

COUNT = "count"
LABEL_COLUMNS = (
    "table",
    *(f"variable_{i}" for i in range(1, MAX_ORDER + 1)),
    *(f"category_{i}" for i in range(1, MAX_ORDER + 1)),
)
COLUMNS = (*LABEL_COLUMNS, COUNT)


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """One column of text, each different text once.

    Parameters
    ----------
    values : tuple of str
        The different texts, in order of appearance.
    codes : ndarray of int32, shape (cells,)
        Position in `values`, -1 for null.
    """

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]

    def text(self, row: int) -> str | None:
        """Return the text of a row, None for null."""
        code = int(self.codes[row])
        return None if code < 0 else self.values[code]


SCORE_PREFIX = "score: "


def label_columns(schema: Schema, workload: Workload, scores: tuple[str, ...] = ()) -> dict[str, LabelColumn]:
    """Lay out the text columns of every release of a schema, workload and scores.

    Parameters
    ----------
    schema : Schema
        Gives the labels.
    workload : Workload
        Gives the tables, over the schema's variables.
    scores : tuple of str
        Names of the scores: a row each, after all tables, the name in the column ``table`` and nulls beyond.

    Returns
    -------
    dict of str to LabelColumn
        Keys `LABEL_COLUMNS`. A table of fewer than three variables has nulls in the columns beyond.
    """
    values: dict[str, dict[str, int]] = {name: {} for name in LABEL_COLUMNS}
    codes = {name: np.full(workload.cells + len(scores), -1, dtype=np.int32) for name in LABEL_COLUMNS}
    labels = [schema.labels(name) for name in workload.names]
    for table, members in enumerate(workload.sets):
        shape = workload.shapes[table]
        here = slice(int(workload.offsets[table]), int(workload.offsets[table + 1]))
        codes["table"][here] = _code(values["table"], workload.label(table))
        for place, variable in enumerate(members):
            name, category = f"variable_{place + 1}", f"category_{place + 1}"
            codes[name][here] = _code(values[name], workload.names[variable])
            own = np.array([_code(values[category], label) for label in labels[variable]], dtype=np.int32)
            along = np.ones(len(shape), dtype=np.int64)
            along[place] = shape[place]
            codes[category][here] = np.broadcast_to(own.reshape(along), shape).ravel()
    for place, score in enumerate(scores, start=workload.cells):
        codes["table"][place] = _code(values["table"], SCORE_PREFIX + score)
    return {name: LabelColumn(tuple(values[name]), codes[name]) for name in LABEL_COLUMNS}


def _code(known: dict[str, int], text: str) -> int:
    return known.setdefault(text, len(known))
