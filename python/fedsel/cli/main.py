"""The ``fedsel`` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli.acs_command import acs_command
from fedsel.cli.compare_command import compare_command
from fedsel.cli.example_command import example_command
from fedsel.cli.experiment_commands import experiment_app
from fedsel.cli.ledger_commands import ledger_app
from fedsel.cli.pareto_command import pareto_command
from fedsel.cli.pool_commands import pool_app
from fedsel.cli.release_all_command import release_all_command
from fedsel.cli.release_command import release_command
from fedsel.cli.schema_commands import schema_app
from fedsel.cli.score_commands import scores_app
from fedsel.cli.select_command import select_command
from fedsel.cli.subgroup_commands import subgroup_app
from fedsel.cli.train_command import train_command
from fedsel.errors import FedselError

EXIT_REFUSED = 2

CLIENT = "At each client"
COORDINATOR = "At the coordinator"
ROWS = "On rows in one place"
TRIALS = "To try things"
EVALUATION = "To evaluate, with all rows at hand"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Choose which clients should form a federated-learning federation, from differentially private statistics "
        "alone.\n\n"
        "1. Together: [bold]fedsel schema[/] drafts the public agreement on variables, and shows its cost in noise.\n\n"
        "2. Each client: [bold]fedsel schema check[/] tries it on the data, [bold]fedsel release[/] publishes noisy "
        "tables and charges the client's privacy [bold]ledger[/].\n\n"
        "3. The coordinator: [bold]fedsel pool check[/] looks at what arrived, [bold]fedsel select[/] chooses.\n\n"
        "Try it on the embedded example: [bold]fedsel select --example acs-income -k 5 --epsilon 1[/]\n\n"
        "A tutorial with made hospitals is in docs/tutorial.md."
    ),
)
app.command("release", rich_help_panel=CLIENT)(release_command)
app.command("select", rich_help_panel=COORDINATOR)(select_command)
app.command("pareto", rich_help_panel=COORDINATOR)(pareto_command)
app.command("train", rich_help_panel=EVALUATION)(train_command)
app.command("compare", rich_help_panel=EVALUATION)(compare_command)
app.command("release-all", rich_help_panel=TRIALS)(release_all_command)
app.command("example", rich_help_panel=TRIALS)(example_command)
app.command("acs", rich_help_panel=TRIALS)(acs_command)
app.add_typer(subgroup_app, name="subgroups", rich_help_panel=ROWS)
app.add_typer(experiment_app, name="experiment", rich_help_panel=TRIALS)
app.add_typer(schema_app, name="schema", rich_help_panel=CLIENT)
app.add_typer(pool_app, name="pool", rich_help_panel=COORDINATOR)
app.add_typer(scores_app, name="scores", rich_help_panel=COORDINATOR)
app.add_typer(ledger_app, name="ledger", rich_help_panel=CLIENT)


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
