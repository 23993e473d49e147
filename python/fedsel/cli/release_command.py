"""``fedsel release``: a client publishes its noisy tables."""

from __future__ import annotations

from collections.abc import Sequence
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
    CompositionOption,
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
    ScoresOption,
)
from fedsel.cli.release_plan import Account, Grant, announce, check_consent, client_name, describe, file_name
from fedsel.errors import BudgetError, DataError, ReleaseError, RuleError

if TYPE_CHECKING:
    from fedsel.counting import ClientCount
    from fedsel.privacy.ledger import Ledger
    from fedsel.schema import Schema
    from fedsel.score_rule import ScoreRule
    from fedsel.tables import Workload


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
    scores: ScoresOption = False,
    rule: Annotated[
        Path | None,
        typer.Option(
            help="Release scores at once, under a rule made from public data (fedsel scores public-rule).",
            show_default=False,
        ),
    ] = None,
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
    composition: CompositionOption = None,
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
    from fedsel.privacy.client import release
    from fedsel.schema import Schema
    from fedsel.score_rule_file import read_rule
    from fedsel.selection.score_plan import plan_release
    from fedsel.tables import Workload

    name = client_name(client)
    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    public = None if rule is None else read_rule(rule)
    plan = plan_release(
        agreed,
        workload,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency.value,
        mechanism=mechanism.value,
        accounting=accounting.value,
        precision=precision.value,
        score_rounds=2 if scores else 1 if rule is not None else 0,
    )
    if scores and rule is not None:
        raise RuleError("--scores plans a rule to come, --rule names one that is there: give one of them")
    if public is not None and agreed.difference(public.schema) is not None:
        raise RuleError(f"{rule}: schema differs from that of {schema}: {agreed.difference(public.schema)}")
    check_consent(plan, non_private=non_private)
    grant = Grant(budget_epsilon, budget_delta, None if composition is None else composition.value)
    if no_ledger and (ledger is not None or grant != Grant()):
        raise BudgetError("--no-ledger does not go with --ledger, --budget-epsilon, --budget-delta or --composition")
    check_paths(data, out, kept=(schema, rule, ledger, out.parent / f"{file_name(name)}.ledger"), force=force)
    file = None if no_ledger else (ledger or out.parent / f"{file_name(name)}.ledger")
    typer.echo(f"client     {name}, round {round_}")
    typer.echo(describe(agreed, workload, plan, seed=noise_seed))
    typer.echo(f"output     {out}")
    account: Account | None = None
    if file is None:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        account = announce(file, name, plan, grant, round_=round_, again=force, say=typer.echo)

    counted = count_rows(agreed, workload, data, name, client_column, delimiter, public)
    published = counted.rows if agreed.sizes == "public" and plan.adjacency == "replace-one" else None
    out.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        charged: list[Ledger] = []

        def open_ledger() -> Ledger:
            assert account is not None
            charged.append(stack.enter_context(account.open()))
            return charged[0]

        release(
            counted.marginals,
            agreed,
            plan,
            client=name,
            scores=counted.scores,
            ledger=None if account is None else open_ledger,
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
            typer.echo(f"remaining  {opened.terms.account.remaining_text(opened.prices)}")


def check_paths(data: Path, out: Path, *, kept: Sequence[Path | None], force: bool) -> None:
    """Refuse early what would otherwise show after hours of reading.

    `kept` are files besides the data that the output must not replace.
    """
    for path in (data, *kept):
        if path is not None and (path.resolve() == out.resolve() or _same_file(path, out)):
            raise ReleaseError(f"{out}: the output must be another file than {path}, which is needed")
    if not data.exists():
        raise DataError(f"{data}: no such file")
    if not (out.parent.is_dir() or (out.parent.parent.is_dir() and not out.parent.exists())):
        raise ReleaseError(f"{out}: the folder {out.parent} cannot be made: {out.parent.parent} is no folder")
    if out.exists() and not force:
        raise ReleaseError(f"{out}: the file exists already; --force replaces it")


def _same_file(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def count_rows(
    schema: Schema,
    workload: Workload,
    data: Path,
    client: str,
    client_column: str | None,
    delimiter: str | None,
    rule: ScoreRule | None,
) -> ClientCount:
    """Count, and score, one client's rows."""
    from rich.console import Console

    from fedsel.counting import count_clients, count_file

    # On a terminal only; the number of rows is not shown, since terminals are logged.
    with Console(stderr=True).status(f"counting the rows of {data.name}"):
        if client_column is None:
            counted = count_file(schema, workload, data, rule=rule, delimiter=delimiter)
        else:
            found = count_clients(
                schema, workload, [data], client_column, client=client, rule=rule, delimiter=delimiter
            )
            counted = found[client]
    if counted.dropped:
        typer.echo("note: rows with missing values were dropped, as the schema says", err=True)
    return counted
