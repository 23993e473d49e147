"""Where the rows of a simulation come from: the embedded example, or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedsel.datasets.example import load_example
from fedsel.encode import Codes, code_dtype, encode_file
from fedsel.encode_clients import encode_clients
from fedsel.training.data import ClientData, FederatedData
from fedsel.training.splitting import stream_seed
from fedsel.training.task import Task


def example_rows(
    name: str = "acs-income", *, clients: Sequence[str] | None = None, rows: int | None = None, seed: int = 0
) -> FederatedData:
    """Draw made rows of an example's clients from their exact tables; see `fedsel.datasets.tree`.

    Parameters
    ----------
    name : str
        Name of the example.
    clients : sequence of str, optional
        Which clients; by default all.
    rows : int, optional
        Most rows of all the example's clients together: every client gets the same share of its own number, which it
        gets by default.
    seed : int
        Seed of the draw.
    """
    from fedsel.datasets.tree import fit_tree

    example = load_example(name)
    task = Task.of(example.schema)
    total = sum(example.records(client) for client in example.clients)
    share = 1.0 if rows is None else min(1.0, rows / total)

    def drawn(client: str) -> ClientData:
        count = round(example.records(client) * share)
        columns = fit_tree(example.marginals(client)).sample(count, seed=stream_seed(seed, "rows", client))
        types = map(code_dtype, example.schema.domain)
        small = tuple(column.astype(kind) for column, kind in zip(columns, types, strict=True))
        return ClientData.of_codes(client, task, Codes(small, count, 0, (0,) * len(small)))

    return FederatedData(map(drawn, example.clients if clients is None else clients))


def file_rows(task: Task, path: Path, client_column: str, *, delimiter: str | None = None) -> FederatedData:
    """Encode a file whose column names the client; raises as `fedsel.encode_clients` does.

    Parameters
    ----------
    task : Task
        Without numeric inputs.
    path : Path
        CSV or Parquet file.
    client_column : str
        Column with the client's name.
    delimiter : str, optional
        Separates CSV fields.
    """
    parts: dict[str, list[Codes]] = {}
    for client, codes in encode_clients(task.schema, path, client_column, delimiter=delimiter):
        parts.setdefault(client, []).append(codes)
    return FederatedData(ClientData.of_codes(name, task, Codes.join(batches)) for name, batches in parts.items())


def folder_rows(task: Task, files: Mapping[str, Path], *, delimiter: str | None = None) -> FederatedData:
    """Encode one file per client, by client name; raises as `fedsel.encode_file` does."""
    return FederatedData(
        ClientData.of_codes(name, task, Codes.join(encode_file(task.schema, path, delimiter=delimiter)))
        for name, path in files.items()
    )
