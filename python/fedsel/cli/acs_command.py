"""``fedsel acs``: tasks on the American Community Survey as files, one a state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedsel.errors import DataError


def acs_command(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="ACSIncome, ACSPublicCoverage, ACSMobility, ACSEmployment or ACSTravelTime.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder to write to; made if not there.", show_default=False)
    ],
    states: Annotated[
        str | None, typer.Option(help="Postal codes, separated by commas (default: all, with PR).", show_default=False)
    ] = None,
    year: Annotated[int, typer.Option(min=2014, help="Survey year; most tasks end in 2018.")] = 2018,
    horizon: Annotated[str, typer.Option(help="1-Year or 5-Year file.")] = "1-Year",
    downloads: Annotated[
        Path | None,
        typer.Option(
            help="Where downloaded person files are, or go (default: pums in the folder).", show_default=False
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Download from here (default: the Census Bureau).", show_default=False)
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the server may stay silent.")] = 60.0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a folktables task on census records as a schema and one CSV file per state (extra acs).

    [bold]fedsel acs ACSEmployment --states WY,RI,VT -o employment[/]

    Person files (5 to 400 MB a state) are downloaded once and kept.
    """
    from fedsel.atomic_file import AtomicFile, make_folder
    from fedsel.datasets.acs import CENSUS_URL, STATES, acs_schema, load_acs

    schema = acs_schema(task)
    chosen = list(STATES) if states is None else [state.strip().upper() for state in states.split(",")]
    rows = load_acs(
        task,
        chosen,
        year=year,
        horizon=horizon,
        folder=downloads or out / "pums",
        base_url=base_url or CENSUS_URL,
        timeout=timeout,
    )
    paths = {state: out / f"{state}.csv" for state in chosen}
    existing = [path for path in (out / "schema.toml", *paths.values()) if path.exists()]
    if existing and not force:
        raise DataError(f"{existing[0]} exists; use --force to replace it")
    make_folder(out, error=DataError)
    with AtomicFile(out / "schema.toml", overwrite=force, error=DataError) as file:
        file.publish(schema.to_toml().encode())
    for state, frame in rows:
        with AtomicFile(paths[state], overwrite=force, error=DataError) as file:
            file.publish(frame.to_csv(index=False).encode())
        typer.echo(f"{paths[state]}: {len(frame):,} rows")
    typer.echo(f"{out}: schema.toml and {len(paths)} CSV files")
