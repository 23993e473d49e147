"""Commands at a client: ``fedsel release`` and ``fedsel ledger``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.release_options import (
    LEDGER,
    AccountingChoice,
    AccountingOption,
    AdjacencyChoice,
    AdjacencyOption,
    BudgetDeltaOption,
    BudgetEpsilonOption,
    DelimiterOption,
    DeltaOption,
    EpsilonOption,
    ForceOption,
    MechanismChoice,
    MechanismOption,
    NoiseSeedOption,
    NoLedgerOption,
    NonPrivateOption,
    PrecisionChoice,
    PrecisionOption,
    RoundOption,
    SchemaOption,
)
from fedsel.cli.release_plan import PROTECTS, announce, check_consent, client_name, cost_text, describe, file_name
from fedsel.errors import BudgetError, DataError, ReleaseError

if TYPE_CHECKING:
    from fedsel.counting import ClientCount
    from fedsel.schema import Schema
    from fedsel.tables import Workload

ledger_app = typer.Typer(no_args_is_help=True, help="Look into a client's privacy ledger: budget and charges.")


def release_command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The client's rows: CSV or Parquet.", show_default=False)
    ],
    schema: SchemaOption,
    client: Annotated[
        str, typer.Option("--client", help="Name of this client, as it will stand in the release.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Release file to write (Parquet).", show_default=False)],
    epsilon: EpsilonOption,
    delta: DeltaOption = None,
    client_column: Annotated[
        str | None,
        typer.Option(
            help="Column of DATA with the client's name: only rows that hold the name of --client are counted.",
            show_default=False,
        ),
    ] = None,
    adjacency: AdjacencyOption = AdjacencyChoice.add_remove,
    mechanism: MechanismOption = MechanismChoice.discrete_gaussian,
    accounting: AccountingOption = AccountingChoice.auto,
    precision: PrecisionOption = PrecisionChoice.equal,
    round_: RoundOption = 1,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger to charge, made if it is not there (default: CLIENT.ledger beside the output).",
            rich_help_panel=LEDGER,
            show_default=False,
        ),
    ] = None,
    no_ledger: NoLedgerOption = False,
    budget_epsilon: BudgetEpsilonOption = None,
    budget_delta: BudgetDeltaOption = None,
    noise_seed: NoiseSeedOption = None,
    non_private: NonPrivateOption = False,
    delimiter: DelimiterOption = None,
    force: ForceOption = False,
) -> None:
    """Publish this client's noisy tables, charging its ledger first.

    [bold]fedsel release rows.csv --schema schema.toml --client north --epsilon 1 -o north.parquet[/]

    Says what will be spent on what before it reads the data or spends anything.
    Only the release file is meant to leave: it holds no row and no exact count.
    Data and ledger stay with the client.
    """
    from fedsel.privacy.calibration import plan_noise
    from fedsel.privacy.client import release
    from fedsel.privacy.ledger import Ledger
    from fedsel.schema import Schema
    from fedsel.selection.precision import table_precisions
    from fedsel.tables import Workload

    name = client_name(client)
    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    plan = plan_noise(
        len(workload.sets),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency.value,
        mechanism=mechanism.value,
        accounting=accounting.value,
        weights=table_precisions(agreed, workload, precision=precision.value),
    )
    check_consent(plan, non_private=non_private)
    if no_ledger and (ledger is not None or budget_epsilon is not None or budget_delta is not None):
        raise BudgetError("--no-ledger does not go with --ledger, --budget-epsilon or --budget-delta")
    _check_paths(data, out, force=force)
    file = None if no_ledger else (ledger or out.parent / f"{file_name(name)}.ledger")
    typer.echo(f"client     {name}, round {round_}")
    typer.echo(describe(agreed, workload, plan, seed=noise_seed))
    typer.echo(f"output     {out}")
    budget = None
    if file is None:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        account = announce(file, name, plan, budget_epsilon, budget_delta, round_=round_, again=force, say=typer.echo)
        budget = account.budget

    counted = _count(agreed, workload, data, name, client_column, delimiter)
    published = counted.rows if agreed.sizes == "public" and plan.adjacency == "replace-one" else None
    out.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        charged: list[Ledger] = []

        def open_ledger() -> Ledger:
            assert file is not None
            assert budget is not None
            opened = Ledger.open_or_create(
                file, client=name, epsilon=budget.epsilon, delta=budget.delta, adjacency=plan.adjacency
            )
            charged.append(stack.enter_context(opened))
            return opened

        release(
            counted.marginals,
            agreed,
            plan,
            client=name,
            ledger=None if file is None else open_ledger,
            seed=noise_seed,
            round=round_,
            rows=published,
            path=out,
            overwrite=force,
            again=force,
            non_private=non_private,
        )
        typer.echo(f"wrote      {out}")
        for opened in charged:
            typer.echo(f"remaining  {cost_text(opened.remaining)}")


@ledger_app.command("show")
def ledger_show(file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.", show_default=False)]) -> None:
    """Show a ledger's budget, what is left of it, and every charge (times in UTC)."""
    from fedsel.cli.text_table import text_table
    from fedsel.privacy.ledger import Ledger

    with Ledger(file) as ledger:
        charges, spent, remaining = ledger.charges, ledger.spent, ledger.remaining
        typer.echo(f"client     {ledger.client}")
        typer.echo(f"protects   {PROTECTS.get(ledger.adjacency, ledger.adjacency)}")
        typer.echo(f"budget     {cost_text(ledger.budget)}")
    typer.echo(f"spent      {cost_text(spent)}")
    typer.echo(f"remaining  {cost_text(remaining)}")
    exact = sum(not charge.private for charge in charges)
    if exact:
        typer.echo(f"NOT PRIVATE: {exact} exact releases were made; the budget bounds only the others")
    if not charges:
        typer.echo("no charges yet")
        return
    rows = [
        (
            str(charge.number),
            "-" if charge.round is None else str(charge.round),
            charge.purpose + (" (seeded noise)" if charge.seeded else ""),
            f"{charge.cost.epsilon:g}",
            f"{charge.cost.delta:g}",
            charge.mechanism,
            charge.charged,
            "yes" if charge.released else "not reported",
        )
        for charge in charges
    ]
    headers = ("no", "round", "purpose", "epsilon", "delta", "mechanism", "charged", "released")
    typer.echo("\n" + text_table(headers, rows, right=(0, 1, 3, 4)))


def _check_paths(data: Path, out: Path, *, force: bool) -> None:
    """Refuse early what would otherwise show after hours of reading."""
    if not data.exists():
        raise DataError(f"{data}: no such file")
    if not (out.parent.is_dir() or (out.parent.parent.is_dir() and not out.parent.exists())):
        raise ReleaseError(f"{out}: the folder {out.parent} cannot be made: {out.parent.parent} is no folder")
    if out.exists() and not force:
        raise ReleaseError(f"{out}: the file exists already; --force replaces it")


def _count(
    schema: Schema, workload: Workload, data: Path, client: str, client_column: str | None, delimiter: str | None
) -> ClientCount:
    from rich.console import Console

    from fedsel.counting import count_clients, count_file

    # On a terminal only; the number of rows is not shown, since terminals are logged.
    with Console(stderr=True).status(f"counting the rows of {data.name}"):
        if client_column is None:
            counted = count_file(schema, workload, data, delimiter=delimiter)
        else:
            found = count_clients(schema, workload, [data], client_column, client=client, delimiter=delimiter)
            counted = found[client]
    if counted.dropped:
        typer.echo("note: rows with missing values were dropped, as the schema says", err=True)
    return counted
