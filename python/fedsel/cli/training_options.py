"""Options that ``fedsel train`` and ``fedsel compare`` share, and what they mean to the library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedsel.errors import TrainingError

if TYPE_CHECKING:
    from fedsel.training.sources import Source
    from fedsel.training.task import NumericInput

OptimiserName = Literal["adam", "sgd"]

_ROWS = "Rows"
_MODEL = "Model"
_EFFORT = "Effort"

Data = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DATA]...",
        help="CSV or Parquet: a file per client, named after it (north.csv), or files with a --client-column.",
        show_default=False,
    ),
]
Example = Annotated[
    str | None,
    typer.Option(
        help="Use made rows of an embedded example instead: acs-income (46 US states).",
        rich_help_panel=_ROWS,
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="Schema of the rows.", rich_help_panel=_ROWS, show_default=False)
]
ClientColumn = Annotated[
    str | None,
    typer.Option(
        help="Column with the client's name; without it, a file is a client.",
        rich_help_panel=_ROWS,
        show_default=False,
    ),
]
Delimiter = Annotated[str | None, typer.Option(help="Separates CSV fields.", rich_help_panel=_ROWS, show_default=False)]
MostRows = Annotated[
    int,
    typer.Option(
        "--rows",
        min=0,
        help="Most rows of all clients together; each keeps the same share of its own. 0 keeps all.",
        rich_help_panel=_ROWS,
    ),
]
Sensitive = Annotated[
    str | None,
    typer.Option(
        help="Active sensitive attribute. (default: the schema's first)", rich_help_panel=_ROWS, show_default=False
    ),
]
Privileged = Annotated[
    str | None,
    typer.Option(
        help="Label of its privileged group; differences are the others minus this one. (default: the first category)",
        rich_help_panel=_ROWS,
        show_default=False,
    ),
]
Numeric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:CENTRE:SCALE",
        help="A column of numbers as one more input, (value - CENTRE) / SCALE by public constants; may be repeated.",
        rich_help_panel=_ROWS,
        show_default=False,
    ),
]
Hidden = Annotated[
    str,
    typer.Option(help="Hidden widths, separated by commas; 'none' is logistic regression.", rich_help_panel=_MODEL),
]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds.", rich_help_panel=_MODEL)]
Batch = Annotated[int, typer.Option("--batch-size", min=1, help="Rows of a batch.", rich_help_panel=_MODEL)]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over a client's rows a round.", rich_help_panel=_MODEL)]
PerRound = Annotated[
    int | None,
    typer.Option(
        "--clients-per-round",
        min=1,
        help="Members that take part in a round. (default: all)",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(help="Where to train: cpu, cuda, ...", rich_help_panel=_EFFORT)]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Memory = Annotated[
    int,
    typer.Option(
        "--memory-mb", min=1, help="Most MiB that a round may take, besides the rows.", rich_help_panel=_EFFORT
    ),
]


def open_source(
    data: Sequence[Path] | None,
    *,
    example: str | None,
    schema: Path | None,
    client_column: str | None,
    delimiter: str | None,
    sensitive: str | None,
    privileged: str | None,
    numeric: Sequence[str] | None,
) -> Source:
    """Return where rows come from.

    Raises
    ------
    TrainingError
        If options do not go together.
    """
    from fedsel.cli.release_all_command import files_by_client
    from fedsel.datasets.example import load_example
    from fedsel.schema import Schema
    from fedsel.training.sources import ExampleSource, FileSource
    from fedsel.training.task import Task

    if example is not None:
        given = [
            name
            for name, value in (
                ("data files", data),
                ("--schema", schema),
                ("--client-column", client_column),
                ("--delimiter", delimiter),
                ("--numeric", numeric),
            )
            if value
        ]
        if given:
            raise TrainingError(f"--example brings its own rows and schema; {given[0]} cannot go with it")
        return ExampleSource(
            example, task=Task.of(load_example(example).schema, sensitive=sensitive, privileged=privileged)
        )
    if not data or schema is None:
        raise TrainingError("give data files and --schema, or --example")
    numbers = [_parse_numeric(text) for text in numeric or ()]
    task = Task.of(Schema.from_toml(schema), sensitive=sensitive, privileged=privileged, numeric=numbers)
    if client_column is not None:
        return FileSource.of_column(task, data, client_column, delimiter=delimiter)
    return FileSource.of_files(task, files_by_client(data), delimiter=delimiter)


def _parse_numeric(text: str) -> NumericInput:
    from fedsel.training.task import NumericInput

    name, *constants = text.rsplit(":", 2)
    try:
        centre, scale = map(float, constants)
    except ValueError:
        raise TrainingError(f"--numeric must have the form NAME:CENTRE:SCALE, got {text!r}") from None
    return NumericInput(name.strip(), centre, scale)


def parse_hidden(text: str) -> tuple[int, ...]:
    """Read hidden widths.

    Raises
    ------
    TrainingError
        If they are no whole numbers.
    """
    if text.strip() == "none":
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise TrainingError(f"--hidden must be widths separated by commas such as 32,32,32, or none, got {text!r}")
    return tuple(map(int, parts))


def thinning_text(kept: int, total: int) -> str:
    """Say how many of all rows are used."""
    if kept >= total:
        return f"all {total:,}"
    return f"{kept:,} of {total:,}, {kept / total:.1%} of each client's (--rows)"


def number_text(value: float | None, digits: int = 4) -> str:
    """Write a metric; what is undefined is called so."""
    return "undefined" if value is None else f"{value:.{digits}f}"
