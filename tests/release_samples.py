"""Releases made for tests: small, consistent, and the same every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsel import Marginals, Workload, count
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.schema import Schema, Variable

VARIABLES = (
    Variable("sex", role="sensitive", categories=("F", "M")),
    Variable("age", bins=(0, 40, 60, 120)),
    Variable("ward", categories=("Süd", "Nord", "West"), missing="category"),
    Variable("ill", role="target", categories=(0, 1)),
)
SCHEMA = Schema("clinic", VARIABLES)
PUBLIC = Schema("clinic", VARIABLES, sizes="public")
PAIRS = Workload.pairs(SCHEMA)


def gaussian(tables: int = 6, **changes: Any) -> NoisePlan:
    fields: dict[str, Any] = {
        "mechanism": "discrete-gaussian",
        "adjacency": "add-remove",
        "epsilon": 1.0,
        "delta": 1e-5,
        "numerator": 84,
        "weights": (1,) * tables,
        "accounting": "exact",
    }
    return NoisePlan(**{**fields, **changes})


def exact_plan(tables: int = 6, **changes: Any) -> NoisePlan:
    return gaussian(
        tables,
        **{
            "mechanism": "none",
            "epsilon": float("inf"),
            "delta": 0.0,
            "numerator": 0,
            "accounting": "none",
            **changes,
        },
    )


def marginals(workload: Workload = PAIRS, *, rows: int = 400, seed: int = 0) -> Marginals:
    rng = np.random.default_rng(seed)
    return count([rng.integers(0, size, rows).astype(np.uint8) for size in workload.domain], workload)


def noisy(exact: Marginals, plan: NoisePlan, *, seed: int = 1) -> npt.NDArray[np.int64]:
    scale = np.repeat(plan.scale, exact.workload.sizes)
    noise = np.rint(np.random.default_rng(seed).normal(0, 1, scale.size) * scale).astype(np.int64)
    return exact.counts + noise


def sample(client: str = "north", *, seed: int = 0, **changes: Any) -> Release:
    plan = changes.get("plan", gaussian())
    workload = changes.get("workload", PAIRS)
    fields: dict[str, Any] = {
        "client": client,
        "schema": SCHEMA,
        "workload": workload,
        "plan": plan,
    }
    if "counts" not in changes:
        fields["counts"] = noisy(marginals(workload, seed=seed), plan, seed=seed + 1000)
    return Release(**{**fields, **changes})


def rewritten(
    source: Path,
    target: Path,
    *,
    metadata: Callable[[dict[str, Any]], Any] | None = None,
    raw: bytes | None = None,
    table: Callable[[Any], Any] | None = None,
    key: str = "fedsel",
    **options: Any,
) -> Path:
    """Write a release file again as a stranger could: metadata, table or form of the file changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = json.loads(pq.read_metadata(source).metadata[b"fedsel"])
    if metadata is not None:
        changed = metadata(content)
        content = content if changed is None else changed
    data = pq.read_table(source)
    data = data if table is None else table(data)
    text = raw if raw is not None else json.dumps(content).encode()
    schema = data.schema.with_metadata(None)
    settings = {"compression": "NONE", "store_schema": False, "use_dictionary": data.column_names[:7], **options}
    rows = settings.pop("row_group_size", max(data.num_rows, 1))
    with pq.ParquetWriter(target, schema, **settings) as writer:
        writer.write_table(pa.table(data.columns, schema=schema), row_group_size=rows)
        writer.add_key_value_metadata({key: text})
    return target
