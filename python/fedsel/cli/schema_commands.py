"""``fedsel schema``: draft, check and show schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsel.cli.noise_command import noise_command
from fedsel.errors import FedselError, SchemaError

if TYPE_CHECKING:
    from fedsel.schema import Schema

schema_app = typer.Typer(
    name="schema",
    help=(
        "Draft, check and show schemas: the public agreement on variables, categories and roles, and what it costs in "
        "noise."
    ),
    no_args_is_help=True,
)

_SHOWN_LABELS = 60
_SHOWN_UNLISTED = 5


@schema_app.command()
def init(
    sample: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file of PUBLIC rows to draft from. Never give private data.")
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option(help="CSV file with the columns variable, role, value, label, low, high.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Name of the target variable.")] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Name of a sensitive variable; may be given several times.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Column of the sample to leave out; may be given several times.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the schema; by default the file's.")] = None,
    max_categories: Annotated[
        int, typer.Option(help="Most distinct values of a sample's column that become categories.")
    ] = 20,
    bins: Annotated[int, typer.Option(help="Most bins of a numeric column of the sample.")] = 8,
    missing: Annotated[
        str | None,
        typer.Option(
            help="What happens to values without a category: error, drop (the row) or category; "
            "by default what the sample suggests, or error."
        ),
    ] = None,
    missing_value: Annotated[
        list[str] | None,
        typer.Option(help='Text that stands for a missing value in the data, such as "?"; may be given several times.'),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Character between the fields of a CSV file.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; by default the draft is printed.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")] = False,
) -> None:
    """Draft a schema from a public sample or a codebook, for you to read and correct.

    [bold]fedsel schema init --codebook codebook.csv --target disease --sensitive sex -o schema.toml[/]

    A codebook is a CSV file with a line per category or range:
    variable,role,value,label,low,high

    Categories must come from public knowledge. A schema drafted from private data
    would tell, by the values it lists, something about the people in them.
    """
    from fedsel.atomic_file import AtomicFile
    from fedsel.codebook import draft_from_codebook
    from fedsel.draft import checked_policy, draft_from_sample

    if (sample is None) == (codebook is None):
        raise SchemaError("exactly one of --sample and --codebook is needed")
    if output is not None and not force and output.exists() and not output.is_dir():
        raise FedselError(f"{output}: the file exists already; --force replaces it")
    chosen = tuple(sensitive or ())
    policy = checked_policy(missing)
    if sample is not None:
        draft = draft_from_sample(
            sample,
            target=target,
            sensitive=chosen,
            exclude=tuple(exclude or ()),
            name=name,
            max_categories=max_categories,
            bins=bins,
            missing=policy,
            delimiter=delimiter,
        )
    else:
        assert codebook is not None
        if exclude:
            raise SchemaError("--exclude goes with --sample")
        draft = draft_from_codebook(
            codebook, target=target, sensitive=chosen, name=name, missing=policy, delimiter=delimiter or ","
        )
    if missing_value:
        tokens = tuple(sorted({*draft.schema.missing_values, *missing_value}))
        draft = replace(draft, schema=replace(draft.schema, missing_values=tokens))
    text = draft.to_toml()
    if output is None:
        typer.echo(text, nl=False)
        return
    with AtomicFile(output, overwrite=force) as file:
        file.publish(text.encode())
    typer.echo(f"{output}: drafted {_summary(draft.schema)}")
    for comment in draft.comments:
        if comment.startswith("Left out"):
            typer.echo(f"  {comment}")
    typer.echo("Read it before use; its comments say what to look at.")


@schema_app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="CSV or Parquet file that must encode by the schema; may be given several times."),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Character between the fields of a CSV file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a schema file, and whether data files encode by it.

    [bold]fedsel schema check schema.toml --data rows.csv[/]

    Values without a category are often another coding: look at them.
    What is printed about data files is exact and private: it is for the client who holds them.
    """
    from fedsel.file_check import check_file
    from fedsel.schema import Schema

    parsed = Schema.from_toml(schema)
    files: list[dict[str, Any]] = []
    for path in data or ():
        found = check_file(parsed, path, delimiter=delimiter)
        unlisted = {name: dict(values.most_common(_SHOWN_UNLISTED)) for name, values in found.unlisted.items()}
        lost = {
            name: found.missing.get(name, 0) + sum(found.unlisted.get(name, {}).values())
            for name in parsed.names
            if name in found.missing or name in found.unlisted
        }
        entry: dict[str, Any] = {"file": str(path), "rows": found.rows, "dropped": found.dropped}
        files.append({**entry, "unmatched": lost, "missing": found.missing, "unlisted": unlisted})
    if as_json:
        typer.echo(json.dumps({"schema": str(schema), **_facts(parsed), "files": files}, ensure_ascii=False))
        return
    typer.echo(f"{schema}: valid, {_summary(parsed)}")
    typer.echo(f"fingerprint {parsed.fingerprint}")
    for entry in files:
        typer.echo(f"{entry['file']}: {entry['rows']:,} rows encoded, {entry['dropped']:,} dropped")
        for name, number in entry["unmatched"].items():
            fate = "row dropped" if parsed.variable(name).missing == "drop" else "counted as missing/other"
            missing = entry["missing"].get(name, 0)
            parts = [f"{missing:,} missing"] if missing else []
            if number > missing:
                shown = ", ".join(entry["unlisted"][name])
                parts.append(f"{number - missing:,} without a category, such as {shown}")
            typer.echo(f"  {name}: {', '.join(parts)} ({fate})")


@schema_app.command()
def show(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the variables of a schema file, their roles and categories."""
    from fedsel.schema import Schema

    parsed = Schema.from_toml(schema)
    if as_json:
        typer.echo(json.dumps({**_facts(parsed), "schema": json.loads(parsed.to_json())}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(parsed.name), title_justify="left")
    for column in ("variable", "role", "size", "missing", "categories"):
        table.add_column(column, justify="right" if column == "size" else "left", no_wrap=column == "variable")
    for variable in parsed.variables:
        cells = (variable.name, variable.role, str(variable.size), variable.missing, _shortened(variable.shown))
        table.add_row(*map(Text, cells))  # as Text: a bin such as [0, 18) is no markup
    console = Console()
    console.print(table)
    if parsed.description:
        console.print(Text(parsed.description))
    console.print(Text(f"{_summary(parsed)}; sizes {parsed.sizes}"))
    console.print(Text(f"fingerprint {parsed.fingerprint}"))


schema_app.command("noise")(noise_command)


def _pair_cells(domain: tuple[int, ...]) -> int:
    """Return the number of cells in the tables of all pairs."""
    return (sum(domain) ** 2 - sum(size**2 for size in domain)) // 2


def _facts(schema: Schema) -> dict[str, Any]:
    count = len(schema.names)
    return {
        "name": schema.name,
        "fingerprint": schema.fingerprint,
        "variables": count,
        "domain": list(schema.domain),
        "target": schema.target,
        "sensitive": list(schema.sensitive),
        "pairs": count * (count - 1) // 2,
        "cells": _pair_cells(schema.domain),
    }


def _summary(schema: Schema) -> str:
    facts = _facts(schema)
    variables = "1 variable" if facts["variables"] == 1 else f"{facts['variables']} variables"
    target = f"target {schema.target}" if schema.target else "no target"
    sensitive = f"sensitive {', '.join(schema.sensitive)}" if schema.sensitive else "nothing sensitive"
    return f"{variables} ({target}; {sensitive}), {facts['pairs']:,} pair tables with {facts['cells']:,} cells"


def _shortened(texts: tuple[str, ...]) -> str:
    """Return the first texts that fit, and how many more there are."""
    shown = texts[0]
    for position, text in enumerate(texts[1:], start=1):
        if len(shown) + len(text) > _SHOWN_LABELS:
            return f"{shown}, ... ({len(texts) - position} more)"
        shown += f", {text}"
    return shown
