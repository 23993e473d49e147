"""Metrics as Parquet files that any data-frame tool reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsel.atomic_file import AtomicFile
from fedsel.errors import TrainingError
from fedsel.training.fairness import METRIC_NAMES
from fedsel.training.stamp import STAMP

_WHOLE = ("seed", "draw", "round", "rows", "training_rows", "test_rows")
_REAL = ("loss", "seconds", *METRIC_NAMES)


def write_metrics(
    path: Path, rows: Sequence[Mapping[str, Any]], *, metadata: Mapping[str, object], overwrite: bool = False
) -> None:
    """Write rows of metrics, null where undefined; the file's metadata call them a non-private evaluation.

    Parameters
    ----------
    path : Path
        The file.
    rows : sequence of mapping
        All with the same keys, such as `TrainingResult.history`; at least one.
    metadata : mapping
        What is needed to repeat them; stored as JSON under ``fedsel``.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    TrainingError
        If the file exists or cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def kind(name: str) -> pa.DataType:
        if name in _WHOLE:
            return pa.int64()
        if name == "members":
            return pa.list_(pa.string())
        return pa.float64() if name in _REAL else pa.string()

    about = json.dumps({"evaluation": STAMP, **metadata}, ensure_ascii=False)
    schema = pa.schema([(name, kind(name)) for name in rows[0]], metadata={"fedsel": about})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), buffer)
    with AtomicFile(path, overwrite=overwrite, error=TrainingError) as file:
        file.publish(buffer.getvalue().to_pybytes())
