"""``fedsel ledger``: look into a client's ledger."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fedsel.cli.release_plan import PROTECTS

ledger_app = typer.Typer(no_args_is_help=True, help="Look into a client's privacy ledger: budget and charges.")


class ExportFormat(StrEnum):
    """How charges are written."""

    jsonl = "jsonl"
    csv = "csv"


@ledger_app.command("show")
def ledger_show(file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.", show_default=False)]) -> None:
    """Show a ledger's budget, what is left of it, and every charge (times in UTC)."""
    from fedsel.cli.text_table import text_table
    from fedsel.privacy.charge import Charge, private_prices
    from fedsel.privacy.ledger import Ledger

    with Ledger(file) as ledger:
        charges, account = ledger.charges, ledger.terms.account
    typer.echo(f"client     {ledger.client}")
    typer.echo(f"protects   {PROTECTS.get(ledger.adjacency, ledger.adjacency)}")
    typer.echo(f"budget     {account.limit_text()}")
    prices = private_prices(charges)
    typer.echo(f"spent      {account.spent_text(prices)}")
    typer.echo(f"remaining  {account.remaining_text(prices)}")
    exact = sum(not charge.private for charge in charges)
    if exact:
        typer.echo(f"NOT PRIVATE: {exact} exact releases were made; the budget bounds only the others")
    if not charges:
        typer.echo("no charges yet")
        return

    def released(charge: Charge) -> str:
        if charge.event is not None:
            return "-"
        done = bool(charge.released) + sum(bool(covered.released) for covered in charge.covered)
        if charge.plan is not None and len(charge.plan.rounds) > 1:
            return f"{done} of {len(charge.plan.rounds)} rounds"
        return "yes" if done else "not reported"

    concentrated = account.composition == "zcdp"
    rows = [
        (
            str(charge.number),
            "-" if charge.round is None else str(charge.round),
            charge.purpose + (" (seeded noise)" if charge.seeded else ""),
            f"{charge.cost.epsilon:g}",
            f"{charge.cost.delta:g}",
            *([f"{charge.price.rho:.4g}"] if concentrated else []),
            charge.mechanism,
            charge.charged,
            released(charge),
        )
        for charge in charges
    ]
    rho = ["rho"] if concentrated else []
    headers = ("no", "round", "purpose", "epsilon", "delta", *rho, "mechanism", "charged", "released")
    typer.echo("\n" + text_table(headers, rows, right=(0, 1, 3, 4, *([5] if concentrated else []))))


@ledger_app.command("export")
def ledger_export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.", show_default=False)],
    form: Annotated[
        ExportFormat, typer.Option("--format", help="JSON lines, or CSV with a header.")
    ] = ExportFormat.jsonl,
) -> None:
    """Write every charge, with all that is recorded about it, to the standard output.

    [bold]fedsel ledger export north.ledger --format csv > north.csv[/]
    """
    from fedsel.privacy.ledger import Ledger
    from fedsel.privacy.ledger_export import charges_to_csv, charges_to_json_lines

    with Ledger(file) as ledger:
        charges = ledger.charges
    write = charges_to_json_lines if form is ExportFormat.jsonl else charges_to_csv
    typer.echo(write(charges), nl=False)
