"""Exact tables for experiments: of the embedded example, or of a random share of a file's rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsel.datasets.example import load_example
from fedsel.encode_clients import encode_clients
from fedsel.schema import Schema
from fedsel.tables import Workload, count

Source = tuple[Schema, Workload, tuple[str, ...], npt.NDArray[np.int64]]
"""Schema, all pairs, client names and exact counts, (clients, cells)."""


def example_counts() -> Source:
    """Return the exact tables of the embedded example."""
    example = load_example()
    return example.schema, example.workload, example.clients, example.counts


def thinned_counts(path: Path, schema_path: Path, column: str, *, share: float, seed: int) -> Source:
    """Count a random share of each client's rows.

    Parameters
    ----------
    path, schema_path : Path
        Rows of all clients, and their schema.
    column : str
        Column that names the client.
    share : float
        Probability with which a row is kept.
    seed : int
        Seed of the choice.

    Returns
    -------
    Source
    """
    schema = Schema.from_toml(schema_path)
    workload = Workload.pairs(schema)
    rng = np.random.default_rng(seed)
    counts: dict[str, npt.NDArray[np.int64]] = {}
    for client, codes in encode_clients(schema, path, column):
        columns = codes.columns
        if share < 1:
            keep = rng.random(codes.rows) < share
            columns = tuple(codes_of[keep] for codes_of in columns)
        counts[client] = counts.get(client, 0) + count(columns, workload).counts
    clients = tuple(sorted(counts))
    return schema, workload, clients, np.array([counts[client] for client in clients])
