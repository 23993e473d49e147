"""``fedsel example``: files to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedsel.errors import DataError

_MOST_ROWS = 10_000_000  # per client: all its rows are in memory at once


def example_command(
    folder: Annotated[Path, typer.Argument(help="Folder to write to; made if it does not exist.")],
    name: Annotated[str, typer.Option(help="Which example: acs-income.")] = "acs-income",
    clients: Annotated[str | None, typer.Option(help="Client names, separated by commas; by default all.")] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, max=_MOST_ROWS, help="Rows per client; by default as many as it has.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a schema and one CSV file of made rows per client.

    The rows are drawn from the client's exact contingency tables by a tree-structured model: they look like census
    records, and no row is one.

    [bold]fedsel example demo --clients CT,MA,RI[/]
    """
    import pyarrow as pa
    import pyarrow.csv

    from fedsel.atomic_file import AtomicFile, make_folder
    from fedsel.datasets.decode import decode
    from fedsel.datasets.example import load_example
    from fedsel.datasets.tree import fit_tree

    example = load_example(name)
    chosen = list(example.clients) if clients is None else [client.strip() for client in clients.split(",")]
    unknown = [client for client in chosen if client not in example.clients]
    if unknown:
        raise DataError(f"example {name} has no client {unknown[0]!r}; it has {', '.join(example.clients)}")
    targets = [folder / "schema.toml", *(folder / f"{client}.csv" for client in chosen)]
    existing = [path for path in targets if path.exists()]
    if existing and not force:
        raise DataError(f"{existing[0]} exists; use --force to replace it")
    make_folder(folder, error=DataError)
    with AtomicFile(targets[0], overwrite=force, error=DataError) as file:
        file.publish(example.schema.to_toml().encode())
    for client, path in zip(chosen, targets[1:], strict=True):
        number = example.clients.index(client)
        model = fit_tree(example.marginals(client))
        codes = model.sample(rows or example.records(client), seed=seed * 1_000_003 + number)
        values = decode(example.schema, codes, seed=seed * 1_000_003 + number)
        text = pa.BufferOutputStream()
        pyarrow.csv.write_csv(pa.table({column: pa.array(data) for column, data in values.items()}), text)
        with AtomicFile(path, overwrite=force, error=DataError) as file:
            file.publish(text.getvalue())
    typer.echo(f"{folder}: schema.toml and {len(chosen)} CSV files of made rows")
