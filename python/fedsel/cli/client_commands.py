"""Commands at a client: ``fedsel release`` and ``fedsel ledger``."""

from __future__ import annotations

import math
import unicodedata
from contextlib import ExitStack
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.errors import BudgetError, DataError, ReleaseError

if TYPE_CHECKING:
    from fedsel.privacy.composition import Cost
    from fedsel.privacy.plan import NoisePlan
    from fedsel.schema import Schema
    from fedsel.tables import Marginals, Workload

ledger_app = typer.Typer(no_args_is_help=True, help="Look into a client's privacy ledger.")

_MECHANISMS = {
    "discrete-gaussian": "discrete Gaussian",
    "discrete-laplace": "discrete Laplace",
}
_PROTECTS = {
    "add-remove": "adding or removing one record of this client",
    "replace-one": "replacing one record of this client",
}


class AdjacencyChoice(StrEnum):
    """Which neighbouring data sets the guarantee speaks of."""

    add_remove = "add-remove"
    replace_one = "replace-one"


class MechanismChoice(StrEnum):
    """Kind of noise."""

    discrete_gaussian = "discrete-gaussian"
    discrete_laplace = "discrete-laplace"


class AccountingChoice(StrEnum):
    """How the noise is derived from the guarantee."""

    auto = "auto"
    exact = "exact"
    zcdp = "zcdp"
    rdp = "rdp"


def release_command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The client's rows: CSV or Parquet.", show_default=False)
    ],
    schema: Annotated[Path, typer.Option("--schema", help="The agreed schema (TOML).", show_default=False)],
    client: Annotated[str, typer.Option("--client", help="Name of this client.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Release file to write (Parquet).", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="Privacy cost of this release; inf: exact counts, no privacy.")],
    delta: Annotated[float | None, typer.Option(help="Its delta (1e-5; none for discrete Laplace).")] = None,
    adjacency: Annotated[
        AdjacencyChoice, typer.Option(help="What the guarantee protects.")
    ] = AdjacencyChoice.add_remove,
    mechanism: Annotated[MechanismChoice, typer.Option(help="Kind of noise.")] = MechanismChoice.discrete_gaussian,
    accounting: Annotated[AccountingChoice, typer.Option(help="How the noise is calibrated.")] = AccountingChoice.auto,
    round_: Annotated[int, typer.Option("--round", min=1, help="Round of the protocol.")] = 1,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Ledger to charge (default: CLIENT.ledger beside the output).", show_default=False),
    ] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Charge no ledger: nothing limits repeated releases.")
    ] = False,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(help="Whole budget of a new ledger (default: this release's cost).", show_default=False),
    ] = None,
    budget_delta: Annotated[
        float | None,
        typer.Option(help="Delta of a new ledger's budget (default: enough for its epsilon).", show_default=False),
    ] = None,
    noise_seed: Annotated[
        int | None,
        typer.Option(min=0, help="NOT SECURE, experiments only: draw the noise from this seed.", show_default=False),
    ] = None,
    non_private: Annotated[
        bool, typer.Option("--non-private", help="Confirm an exact release (--epsilon inf).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the output, and charge a round again.")] = False,
) -> None:
    """Publish this client's noisy tables, charging its ledger first.

    Says what will be spent on what before it reads the data or spends anything.

    Only the release file leaves the client; it holds neither the number of rows nor an exact count.
    """
    from fedsel.privacy.calibration import plan_noise
    from fedsel.privacy.client import release
    from fedsel.privacy.ledger import Ledger
    from fedsel.release import check_client_name
    from fedsel.schema import Schema
    from fedsel.tables import Workload

    name = check_client_name(unicodedata.normalize("NFC", client))
    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    plan = plan_noise(
        len(workload.sets),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency.value,
        mechanism=mechanism.value,
        accounting=accounting.value,
    )
    if plan.mechanism == "none" and not non_private:
        raise ReleaseError("--epsilon inf releases exact counts without any privacy; confirm with --non-private")
    if no_ledger and (ledger is not None or budget_epsilon is not None or budget_delta is not None):
        raise BudgetError("--no-ledger does not go with --ledger, --budget-epsilon or --budget-delta")
    _check_paths(data, out, force=force)
    file = None if no_ledger else (ledger or out.parent / f"{_file_name(name)}.ledger")
    typer.echo(_describe(name, agreed, workload, plan, out, round_=round_, seed=noise_seed))
    budget = None
    if file is None:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        budget = _announce(file, name, plan, budget_epsilon, budget_delta, round_=round_, again=force)

    marginals, rows = _count(agreed, workload, data)
    published = rows if agreed.sizes == "public" and plan.adjacency == "replace-one" else None
    with ExitStack() as stack:
        account = None
        if file is not None and budget is not None:
            account = Ledger.open_or_create(
                file, client=name, epsilon=budget.epsilon, delta=budget.delta, adjacency=plan.adjacency
            )
            stack.enter_context(account)
        release(
            marginals,
            agreed,
            plan,
            client=name,
            ledger=account,
            seed=noise_seed,
            round=round_,
            rows=published,
            path=out,
            overwrite=force,
            again=force,
            non_private=non_private,
        )
        typer.echo(f"wrote      {out}")
        if account is not None:
            typer.echo(f"remaining  {_cost(account.remaining)}")


@ledger_app.command("show")
def ledger_show(file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.", show_default=False)]) -> None:
    """Show a ledger's budget, what is left of it, and every charge (times in UTC)."""
    from fedsel.cli.text_table import text_table
    from fedsel.privacy.ledger import Ledger

    with Ledger(file) as ledger:
        charges, spent, remaining = ledger.charges, ledger.spent, ledger.remaining
        typer.echo(f"client     {ledger.client}")
        typer.echo(f"protects   {_PROTECTS.get(ledger.adjacency, ledger.adjacency)}")
        typer.echo(f"budget     {_cost(ledger.budget)}")
    typer.echo(f"spent      {_cost(spent)}")
    typer.echo(f"remaining  {_cost(remaining)}")
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
    if not out.parent.is_dir():
        raise ReleaseError(f"{out}: its folder does not exist")
    if out.exists() and not force:
        raise ReleaseError(f"{out}: the file exists already; --force replaces it")


def _file_name(client: str) -> str:
    return "".join(character if character.isalnum() or character in "._- " else "_" for character in client)


def _describe(
    client: str, schema: Schema, workload: Workload, plan: NoisePlan, out: Path, *, round_: int, seed: int | None
) -> str:
    lines = [
        f"client     {client}, round {round_}",
        f"schema     {schema.name} ({schema.fingerprint[:12]})",
        f"tables     {len(workload.sets)} pairs of {len(workload.names)} variables, {workload.cells:,} cells",
    ]
    if plan.mechanism == "none":
        lines.append("noise      none")
        lines.append("guarantee  NOT PRIVATE: exact counts (epsilon = inf)")
    else:
        symbol = "sigma" if plan.mechanism == "discrete-gaussian" else "scale"
        low, high = plan.scale.min(), plan.scale.max()
        width = f"{low:.4g}" if math.isclose(low, high) else f"{low:.4g} to {high:.4g}"
        kind = _MECHANISMS[plan.mechanism]
        lines.append(f"noise      {kind}, {symbol} = {width} records on every cell ({plan.accounting} accounting)")
        lines.append(f"guarantee  epsilon {plan.epsilon:g}, delta {plan.delta:g}, for {_PROTECTS[plan.adjacency]}")
        if seed is not None:
            lines.append(f"WARNING    noise from seed {seed}: experiments only, whoever knows the seed can remove it")
    lines.append(f"output     {out}")
    return "\n".join(lines)


def _announce(
    file: Path,
    client: str,
    plan: NoisePlan,
    budget_epsilon: float | None,
    budget_delta: float | None,
    *,
    round_: int,
    again: bool,
) -> Cost:
    """Say what the ledger will be charged and refuse what it would refuse; nothing is made or charged yet."""
    from fedsel.privacy.composition import Cost, SequentialComposition
    from fedsel.privacy.ledger import Ledger, check_budget

    exact = plan.mechanism == "none"
    charge = None if exact else Cost(plan.epsilon, plan.delta)
    if file.exists() and not (file.is_file() and file.stat().st_size == 0):
        with Ledger(file, client=client) as ledger:
            budget, left = ledger.budget, ledger.remaining
            for option, stated, held in (
                ("--budget-epsilon", budget_epsilon, budget.epsilon),
                ("--budget-delta", budget_delta, budget.delta),
            ):
                if stated is not None and stated != held:
                    raise BudgetError(
                        f"{file}: the ledger's budget is {_cost(budget)} already, got {option} {stated:g}"
                    )
            typer.echo(f"ledger     {file}: budget {_cost(budget)}; left {_cost(left)}")
            ledger.check(plan, round=round_, again=again, non_private=exact)
    else:
        if exact and budget_epsilon is None:
            raise BudgetError(f"{file}: a new ledger needs --budget-epsilon with an exact release, or say --no-ledger")
        epsilon = plan.epsilon if budget_epsilon is None else budget_epsilon
        check_budget(epsilon, 0.0)
        if budget_delta is None:
            # as many releases like this one as the epsilon allows
            releases = 1 if exact else max(1, int(Fraction(repr(epsilon)) / Fraction(repr(plan.epsilon))))
            budget_delta = float(Fraction(repr(plan.delta)) * releases)
        check_budget(epsilon, budget_delta)
        budget = left = Cost(epsilon, budget_delta)
        typer.echo(
            f"ledger     {file} (new): budget {_cost(budget)}" + ("" if budget_epsilon else ", this release's own")
        )
        if charge is not None and not SequentialComposition().fits([charge], budget):
            raise BudgetError(f"{file}: a charge of {_cost(charge)} does not fit the budget of {_cost(budget)}")
    if charge is None:
        typer.echo("charge     recorded as not private, outside the budget")
    else:
        after = SequentialComposition().remaining([charge], left)
        typer.echo(f"charge     {_cost(charge)}; then left {_cost(after)}")
    return budget


def _count(schema: Schema, workload: Workload, data: Path) -> tuple[Marginals, int]:
    from rich.console import Console

    from fedsel.encode import encode_file
    from fedsel.tables import count

    total: Marginals | None = None
    rows = dropped = 0
    # On a terminal only; the number of rows is not shown, since terminals are logged.
    with Console(stderr=True).status(f"counting the rows of {data.name}"):
        for codes in encode_file(schema, data):
            part = count(codes.columns, workload)
            total = part if total is None else total + part
            rows += codes.rows
            dropped += codes.dropped
    if total is None:
        raise DataError(f"{data}: expected rows, got none")
    if dropped:
        typer.echo("note: rows with missing values were dropped, as the schema says", err=True)
    return total, rows


def _cost(cost: Cost) -> str:
    return f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"
