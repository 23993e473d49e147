"""``fedsel subgroups``: one module a command."""

from __future__ import annotations

import typer

from fedsel.cli.subgroup_central_command import central_command
from fedsel.cli.subgroup_discover_command import discover_command, report_command
from fedsel.cli.subgroup_plan_command import plan_command
from fedsel.cli.subgroup_release_command import release_command

ACROSS = "Across clients, under differential privacy"

subgroup_app = typer.Typer(
    no_args_is_help=True,
    help=(
        "Find readable descriptions of where an outcome differs.\n\n"
        "On rows in one place: [bold]central[/], which is not private.\n\n"
        "Across clients: [bold]plan[/] what will be released, [bold]release[/] it at each client, [bold]discover[/] at "
        "the coordinator, round by round."
    ),
    rich_markup_mode="rich",
)
subgroup_app.command("central")(central_command)
subgroup_app.command("plan", rich_help_panel=ACROSS)(plan_command)
subgroup_app.command("release", rich_help_panel=ACROSS)(release_command)
subgroup_app.command("discover", rich_help_panel=ACROSS)(discover_command)
subgroup_app.command("report", rich_help_panel=ACROSS)(report_command)
