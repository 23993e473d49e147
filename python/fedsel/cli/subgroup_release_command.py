"""``fedsel subgroups release``: a client publishes the tables of one round."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.release_command import check_paths, count_rows
from fedsel.cli.release_options import (
    LEDGER,
    PRIVACY,
    AdjacencyChoice,
    AdjacencyOption,
    BudgetDeltaOption,
    BudgetEpsilonOption,
    CompositionOption,
    DelimiterOption,
    DeltaOption,
    ForceOption,
    MechanismChoice,
    MechanismOption,
    NoiseSeedOption,
    NoLedgerOption,
    NonPrivateOption,
    RoundOption,
    SchemaOption,
)
from fedsel.cli.release_plan import PROTECTS, Account, Grant, announce, check_consent, client_name, file_name
from fedsel.errors import BudgetError, SubgroupError

if TYPE_CHECKING:
    from fedsel.privacy.ledger import Ledger
    from fedsel.privacy.plan import NoisePlan
    from fedsel.subgroups.federated.protocol import SubgroupProtocol


def release_command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The client's rows: CSV or Parquet.", show_default=False)
    ],
    schema: SchemaOption,
    protocol: Annotated[Path, typer.Option(help="What was agreed (fedsel subgroups plan).", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Release file to write (Parquet).", show_default=False)],
    client: Annotated[
        str | None, typer.Option("--client", help="Round 1: name of this client.", show_default=False)
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Round 1: privacy cost of all rounds together; this client's own choice. inf: exact counts.",
            show_default=False,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="Later rounds: what the coordinator asks (fedsel subgroups discover --next)."),
    ] = None,
    first: Annotated[Path | None, typer.Option(help="Later rounds: this client's own release of round 1.")] = None,
    delta: DeltaOption = None,
    client_column: Annotated[
        str | None,
        typer.Option(help="Column of DATA with the client's name: only its own rows are counted.", show_default=False),
    ] = None,
    adjacency: AdjacencyOption = AdjacencyChoice.add_remove,
    mechanism: MechanismOption = MechanismChoice.discrete_gaussian,
    round_: RoundOption = 1,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger to charge (default: CLIENT.ledger beside the output, or beside --first).",
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
    """Publish this client's noisy tables of one round. Round 1 is charged for all; later ones are covered.

    [bold]fedsel subgroups release rows.csv --schema schema.toml --protocol protocol.json --client north --epsilon 1
    -o north.1.parquet[/]

    [bold]fedsel subgroups release rows.csv --schema schema.toml --protocol protocol.json --questions questions.2.json
    --first north.1.parquet -o north.2.parquet[/]

    Only the release file is meant to leave. Data and ledger stay with the client.
    """
    from fedsel.release_file import read_release
    from fedsel.schema import Schema
    from fedsel.subgroups.federated.client import asked, release_tables
    from fedsel.subgroups.federated.protocol import read_protocol
    from fedsel.subgroups.federated.questions import read_questions

    agreed = Schema.from_toml(schema)
    whole = read_protocol(protocol, agreed)
    grant = Grant(budget_epsilon, budget_delta, None if composition is None else composition.value)
    if no_ledger and (ledger is not None or grant != Grant()):
        raise BudgetError("--no-ledger does not go with --ledger, --budget-epsilon, --budget-delta or --composition")
    if (questions is None) != (first is None):
        raise SubgroupError("a later round needs both --questions and --first, and round 1 neither")
    if questions is None or first is None:
        if client is None or epsilon is None:
            raise SubgroupError("round 1 needs --client and --epsilon")
        asking, name = None, client_name(client)
        plan = whole.plan(epsilon, delta=delta, adjacency=adjacency.value, mechanism=mechanism.value)
        first_round, folder = round_, out.parent
    else:
        fixed = (client, epsilon, delta, adjacency, mechanism, round_)
        if fixed != (None, None, None, AdjacencyChoice.add_remove, MechanismChoice.discrete_gaussian, 1):
            raise SubgroupError(
                "--client, --epsilon, --delta, --adjacency, --mechanism and --round are those of round 1: "
                "leave them out in later rounds"
            )
        asking, own = read_questions(questions, whole), read_release(first)
        if own.workload != whole.first() or (own.protocol or own.plan).rounds != whole.tables:
            raise SubgroupError(f"{first}: expected this client's release of round 1 of {protocol}, got another one")
        name, plan = own.client, own.protocol or own.plan
        first_round, folder = own.round, first.parent
    check_consent(plan, non_private=non_private)
    workload, part = asked(whole, asking)
    file = None if no_ledger else (ledger or folder / f"{file_name(name)}.ledger")
    check_paths(data, out, kept=(schema, protocol, questions, first, file), force=force)
    number = first_round + part - 1
    typer.echo(f"client     {name}, round {part} of {whole.rounds}" + (f" ({number})" if number != part else ""))
    typer.echo(_describe(whole, plan, part, noise_seed))
    typer.echo(f"output     {out}")
    account: Account | None = None
    if file is None:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        if part > 1 and not file.exists():
            raise BudgetError(f"{file}: expected the ledger that round 1 was charged to, got no such file")
        account = announce(file, name, plan, grant, round_=number, again=force, say=typer.echo, part=part)
    counted = count_rows(agreed, workload, data, name, client_column, delimiter, None)
    published = counted.rows if agreed.sizes == "public" and plan.adjacency == "replace-one" else None
    out.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:

        def open_ledger() -> Ledger:
            assert account is not None
            return stack.enter_context(account.open())

        release_tables(
            counted.marginals,
            whole,
            plan,
            part,
            name,
            first_round,
            ledger=None if account is None else open_ledger,
            seed=noise_seed,
            rows=published,
            path=out,
            overwrite=force,
            again=force,
            non_private=non_private,
        )
    typer.echo(f"wrote      {out}")


def _describe(protocol: SubgroupProtocol, plan: NoisePlan, part: int, seed: int | None) -> str:
    own = plan.part(part)
    lines = [f"tables     {protocol.tables[part - 1]}, by {protocol.schema.target}"]
    if plan.mechanism == "none":
        lines += ["noise      none", "guarantee  NOT PRIVATE: exact counts (epsilon = inf)"]
        return "\n".join(lines)
    symbol = "sigma" if plan.mechanism == "discrete-gaussian" else "scale"
    lines.append(f"noise      {symbol} = {own.scale[0]:.4g} records on every cell ({plan.accounting} accounting)")
    rounds = "" if protocol.rounds == 1 else f" ({protocol.rounds} rounds together)"
    lines.append(f"guarantee  epsilon {plan.epsilon:g}, delta {plan.delta:g}, for {PROTECTS[plan.adjacency]}{rounds}")
    if seed is not None:
        lines.append(f"WARNING    noise from seed {seed}: experiments only, whoever knows the seed can remove it")
    return "\n".join(lines)
