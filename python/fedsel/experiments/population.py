"""Whole populations for experiments: the rows, or only the exact tables, of every client of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsel.datasets.example import load_example
from fedsel.datasets.latent import latent_rows, latent_schema
from fedsel.encode import Codes
from fedsel.encode_clients import encode_clients
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.schema import Schema
from fedsel.tables import Workload, count

Columns = tuple[npt.NDArray[np.generic], ...]


@dataclass(frozen=True, eq=False)
class Population:
    """What no coordinator ever sees.

    Parameters
    ----------
    schema : Schema
        What the categories mean.
    workload : Workload
        All pairs.
    clients : tuple of str
        Names.
    counts : ndarray of int64, shape (clients, cells)
        Exact tables.
    columns : tuple of Columns, or None
        Category codes of each client's rows, where there are rows.
    """

    schema: Schema
    workload: Workload
    clients: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    columns: tuple[Columns, ...] | None = None

    def pool(self) -> Pool:
        """Return the exact tables as a pool."""
        weights = (1,) * len(self.workload.sets)
        plan = NoisePlan("none", "add-remove", np.inf, 0.0, 0, weights, "none")
        return self.pool_of(self.counts, plan, seeded=False)

    def pool_of(self, counts: npt.NDArray[np.int64], plan: NoisePlan, *, seeded: bool) -> Pool:
        """Return other tables of the same clients as a pool."""
        size = len(self.clients)
        return Pool(
            clients=self.clients,
            schema=self.schema,
            workload=self.workload,
            counts=counts,
            plans=(plan,),
            plan_index=(0,) * size,
            seeded=(seeded,) * size,
            rounds=(1,) * size,
            rows=(None,) * size,
        )

    def thinned(self, share: float, *, seed: int) -> Population:
        """Keep each row with probability `share`; needs rows."""
        assert self.columns is not None
        rng = np.random.default_rng(seed)
        kept = []
        for columns in self.columns:
            keep = rng.random(len(columns[0])) < share
            kept.append(tuple(column[keep] for column in columns))
        return _of_rows(self.schema, dict(zip(self.clients, kept, strict=True)))


def example_population() -> Population:
    """Return the exact tables of the embedded example, which has no rows."""
    example = load_example()
    return Population(example.schema, example.workload, example.clients, example.counts)


def made_population(seed: int) -> Population:
    """Return rows made from latent classes (`fedsel.datasets.latent`)."""
    return _of_rows(latent_schema(), dict(latent_rows(seed)))


def read_population(path: Path, schema_path: Path, column: str) -> Population:
    """Read the rows of all clients.

    Parameters
    ----------
    path, schema_path : Path
        Rows of all clients, and their schema.
    column : str
        Column that names the client.
    """
    schema = Schema.from_toml(schema_path)
    parts: dict[str, list[Codes]] = {}
    for client, codes in encode_clients(schema, path, column):
        parts.setdefault(client, []).append(codes)
    return _of_rows(schema, {client: Codes.join(parts[client]).columns for client in sorted(parts)})


def _of_rows(schema: Schema, rows: dict[str, Columns]) -> Population:
    workload = Workload.pairs(schema)
    counts = np.array([count(columns, workload).counts for columns in rows.values()])
    return Population(schema, workload, tuple(rows), counts, tuple(rows.values()))
