"""The ``fedsel`` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli.acs_command import acs_command
from fedsel.cli.client_commands import ledger_app, release_command
from fedsel.cli.example_command import example_command
from fedsel.cli.pareto_command import pareto_command
from fedsel.cli.pool_commands import pool_app
from fedsel.cli.release_all_command import release_all_command
from fedsel.cli.schema_commands import schema_app
from fedsel.cli.select_command import select_command
from fedsel.errors import FedselError

EXIT_REFUSED = 2

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Choose which clients should form a federated-learning federation, from differentially private statistics "
        "alone.\n\n"
        "At each client: [bold]fedsel schema[/] describes the data, [bold]fedsel release[/] publishes noisy tables of "
        "it. At the coordinator: [bold]fedsel pool[/] checks what arrived, [bold]fedsel select[/] chooses the "
        "federation.\n\n"
        "Try it on the embedded example: [bold]fedsel select --example acs-income -k 5 --epsilon 1[/]"
    ),
)
app.command("select")(select_command)
app.command("pareto")(pareto_command)
app.command("release")(release_command)
app.command("release-all")(release_all_command)
app.command("example")(example_command)
app.command("acs")(acs_command)
app.add_typer(schema_app, name="schema")
app.add_typer(pool_app, name="pool")
app.add_typer(ledger_app, name="ledger")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedsel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; what a user caused is one line on stderr and exit status 2."""
    try:
        app()
    except (FedselError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(EXIT_REFUSED) from None
