"""Where the rows and releases of a simulation come from: the embedded example, or files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from fedsel.datasets.example import load_example
from fedsel.encode import Codes, code_dtype, encode, positions
from fedsel.encode_clients import client_columns, encode_clients
from fedsel.errors import DataError, TrainingError
from fedsel.pool import Pool
from fedsel.privacy.client import release
from fedsel.privacy.plan import NoisePlan
from fedsel.readers import read_batches
from fedsel.tables import Workload, count
from fedsel.training.data import ClientData, FederatedData, raw_numbers
from fedsel.training.splitting import set_apart, stream_seed, thin
from fedsel.training.task import Task

Part = Literal["all", "tuning", "results"]
"""Which of the clients' rows."""


class Source(Protocol):
    """Clients with rows, who can also release their tables.

    Attributes
    ----------
    task : Task
        What is learned.
    description : str
        Whose rows these are.
    clients : tuple of str
        All clients.
    total : int
        Rows of all clients together.
    fingerprint : str
        Differs where rows or releases would.
    """

    task: Task
    description: str
    clients: tuple[str, ...]
    total: int

    @property
    def fingerprint(self) -> str:
        """Compute it."""

    def rows(self, most: int | None, *, seed: int, part: Part = "all") -> FederatedData:
        """Return rows of all clients, the same share of each client's, at most about this many in all.

        No row of part "tuning" is one of part "results", whatever the seeds.
        """

    def pool(self, plan: NoisePlan, *, seed: int) -> Pool:
        """Return releases of all clients' tables, counted from all their rows, with seeded noise."""


class ExampleSource:
    """The embedded example: rows are made from its exact tables, anew for every seed.

    Parameters
    ----------
    name : str
        Name of the example.
    task : Task, optional
        By default that of its schema.
    """

    def __init__(self, name: str = "acs-income", *, task: Task | None = None) -> None:
        self._example = load_example(name)
        self.task = Task.of(self._example.schema) if task is None else task
        self.clients = self._example.clients
        self.total = sum(map(self._example.records, self.clients))
        self.description = (
            f"made rows of the example {name}: they look like its {self.total:,} records, and none is one"
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the exact tables, as hexadecimal digits."""
        digest = hashlib.sha256(self._example.schema.fingerprint.encode())
        for client in self.clients:
            digest.update(client.encode())
            digest.update(np.ascontiguousarray(self._example.marginals(client).counts).tobytes())
        return digest.hexdigest()

    def rows(self, most: int | None, *, seed: int, part: Part = "all") -> FederatedData:
        """Draw rows; see `fedsel.datasets.tree`. They are new ones for every seed and part."""
        from fedsel.datasets.tree import fit_tree

        share = _share(most, self.total)
        names = ("rows",) if part == "all" else ("rows", part)

        def drawn(client: str) -> ClientData:
            number = max(1, round(self._example.records(client) * share))
            columns = fit_tree(self._example.marginals(client)).sample(number, seed=stream_seed(seed, *names, client))
            types = map(code_dtype, self._example.schema.domain)
            small = tuple(column.astype(kind) for column, kind in zip(columns, types, strict=True))
            return ClientData.of_codes(client, self.task, Codes(small, number, 0, (0,) * len(small)))

        return FederatedData(map(drawn, self.clients))

    def pool(self, plan: NoisePlan, *, seed: int) -> Pool:
        """Add noise to the example's exact tables."""
        return self._example.pool(plan, seed=seed)


Piece = tuple[str, Codes, npt.NDArray[np.float64]]
"""A client's name, a batch of its rows encoded, and their raw numbers, (rows, numeric inputs)."""


class FileSource:
    """Encoded rows of files.

    Parameters
    ----------
    task : Task
        What the rows mean.
    parts : iterable of Piece
        Batches of all clients' rows.
    description : str
        Whose rows these are.
    """

    def __init__(self, task: Task, parts: Iterable[Piece], *, description: str) -> None:
        batches: dict[str, list[tuple[Codes, npt.NDArray[np.float64]]]] = {}
        for client, codes, numbers in parts:
            batches.setdefault(client, []).append((codes, numbers))
        self._codes = {name: Codes.join(codes for codes, _ in batches[name]) for name in sorted(batches)}
        self._data = FederatedData(
            ClientData.of_codes(name, task, codes, np.concatenate([numbers for _, numbers in batches[name]]))
            for name, codes in self._codes.items()
        )
        self.task, self.description = task, description
        self.clients = self._data.names
        self.total = int(self._data.rows.sum())

    @classmethod
    def of_column(
        cls, task: Task, paths: Sequence[Path], client_column: str, *, delimiter: str | None = None
    ) -> FileSource:
        """Read files whose column names the client; raises as `fedsel.encode_clients.encode_clients` does."""

        def parts() -> Iterator[Piece]:
            for path in paths:
                if task.numeric:
                    names = _columns(task)
                    for client, raw in client_columns(path, client_column, names, delimiter=delimiter):
                        codes = encode(task.schema, raw, source=f"{path}: some rows of client {client!r}")
                        yield client, codes, raw_numbers(client, task, raw, codes)
                else:
                    for client, codes in encode_clients(task.schema, path, client_column, delimiter=delimiter):
                        yield client, codes, np.empty((codes.rows, 0))

        return cls(task, parts(), description=f"rows of {', '.join(map(str, paths))}")

    @classmethod
    def of_files(cls, task: Task, files: Mapping[str, Path], *, delimiter: str | None = None) -> FileSource:
        """Read a file per client, by client name; raises as `fedsel.encode.encode_file` does."""

        def parts() -> Iterator[Piece]:
            names = _columns(task)
            for client, path in files.items():
                first_row = 1

                def find(columns: Sequence[str], source: str = str(path)) -> list[int]:
                    return positions(columns, names, source)

                for columns in read_batches(path, find, delimiter=delimiter):
                    raw = dict(zip(names, columns, strict=True))
                    codes = encode(task.schema, raw, source=str(path), first_row=first_row)
                    yield client, codes, raw_numbers(client, task, raw, codes)
                    first_row += len(columns[0])
                if first_row == 1:
                    raise DataError(f"{path}: holds a header but no rows")

        return cls(task, parts(), description=f"rows of {len(files)} files")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all rows, as hexadecimal digits."""
        digest = hashlib.sha256(self._data.fingerprint.encode())
        for codes in self._codes.values():  # releases count all variables, also those that are no inputs
            for column in codes.columns:
                digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    @cached_property
    def _parts(self) -> dict[Part, FederatedData]:
        tuning, results = set_apart(self._data)
        return {"all": self._data, "tuning": tuning, "results": results}

    def rows(self, most: int | None, *, seed: int, part: Part = "all") -> FederatedData:
        """Draw a share of every client's rows."""
        data = self._parts[part]
        return data if most is None else thin(data, most, seed=seed)

    def pool(self, plan: NoisePlan, *, seed: int) -> Pool:
        """Count all rows, and add noise."""
        schema, workload = self.task.schema, Workload.pairs(self.task.schema)
        return Pool.from_releases(
            release(count(codes.columns, workload), schema, plan, client=name, seed=seed)
            for name, codes in self._codes.items()
        )


def _columns(task: Task) -> tuple[str, ...]:
    """Columns to read: those of the schema, and numbers that are not among them."""
    return tuple(dict.fromkeys((*task.schema.names, *(number.name for number in task.numeric))))


def example_rows(
    name: str = "acs-income", *, clients: Sequence[str] | None = None, rows: int | None = None, seed: int = 0
) -> FederatedData:
    """Draw made rows of an example; see `ExampleSource`.

    Parameters
    ----------
    name : str
        Name of the example.
    clients : sequence of str, optional
        Which clients; by default all.
    rows : int, optional
        Most rows of all the example's clients together; by default as many as there are records.
    seed : int
        Seed of the draw.
    """
    data = ExampleSource(name).rows(rows, seed=seed)
    return data if clients is None else data.subset(list(clients))


def _share(most: int | None, total: int) -> float:
    if most is not None and most < 1:
        raise TrainingError(f"rows to keep must be at least 1, got {most}")
    return 1.0 if most is None else min(1.0, most / total)
