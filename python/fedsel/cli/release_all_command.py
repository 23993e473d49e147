"""``fedsel release-all``: one release for each of many clients, by whoever holds the rows of all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.release_options import (
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
from fedsel.cli.release_plan import Account, announce, check_consent, client_name, cost_text, describe, file_name
from fedsel.errors import BudgetError, DataError, FedselError, ReleaseError

if TYPE_CHECKING:
    from fedsel.counting import ClientCount
    from fedsel.privacy.plan import NoisePlan
    from fedsel.schema import Schema
    from fedsel.tables import Workload

_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".parquet", ".pq")


@dataclass(frozen=True)
class _Target:
    """Where one client's release and ledger go."""

    client: str
    release: Path
    ledger: Path | None


def release_all_command(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...",
            help="CSV or Parquet: a file per client, named after it (north.csv), or files with a --client-column.",
            show_default=False,
        ),
    ],
    schema: SchemaOption,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="Folder for releases and ledgers; made if not there.", show_default=False),
    ],
    epsilon: EpsilonOption,
    delta: DeltaOption = None,
    client_column: Annotated[
        str | None,
        typer.Option(help="Column with the client's name; without it, a file is a client.", show_default=False),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(help="Release these clients only: names separated by commas.", show_default=False),
    ] = None,
    adjacency: AdjacencyOption = AdjacencyChoice.add_remove,
    mechanism: MechanismOption = MechanismChoice.discrete_gaussian,
    accounting: AccountingOption = AccountingChoice.auto,
    precision: PrecisionOption = PrecisionChoice.equal,
    round_: RoundOption = 1,
    no_ledger: NoLedgerOption = False,
    budget_epsilon: BudgetEpsilonOption = None,
    budget_delta: BudgetDeltaOption = None,
    noise_seed: NoiseSeedOption = None,
    non_private: NonPrivateOption = False,
    delimiter: DelimiterOption = None,
    force: ForceOption = False,
) -> None:
    """Publish the noisy tables of many clients: for rehearsals and research, where one party holds all rows.

    [bold]fedsel release-all census.csv --client-column ST --schema schema.toml --epsilon 1 -o releases[/]

    [bold]fedsel release-all hospitals/*.csv --schema schema.toml --epsilon 1 -o releases[/]

    Every client gets CLIENT.parquet and its own ledger, CLIENT.ledger.
    All rows are read, and whatever could be refused is, before the first charge.
    In a real federation each client runs [bold]fedsel release[/], where its rows are.
    """
    from rich.console import Console

    from fedsel.privacy.calibration import plan_noise
    from fedsel.privacy.composition import Cost
    from fedsel.schema import Schema
    from fedsel.selection.precision import table_precisions
    from fedsel.tables import Workload

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
    if no_ledger and (budget_epsilon is not None or budget_delta is not None):
        raise BudgetError("--no-ledger does not go with --budget-epsilon or --budget-delta")
    _check_paths(data, out)
    wanted = None if clients is None else [client_name(name.strip()) for name in clients.split(",")]
    files = None if client_column is not None else files_by_client(data)
    typer.echo(describe(agreed, workload, plan, seed=noise_seed))
    typer.echo(f"output     {out}/CLIENT.parquet")
    if no_ledger:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        charge = (
            "not private, outside the budget" if plan.mechanism == "none" else cost_text(Cost(plan.epsilon, plan.delta))
        )
        typer.echo(f"ledger     {out}/CLIENT.ledger, one a client")
        typer.echo(f"charge     {charge}, to each")

    def prepare(names: Sequence[str]) -> list[tuple[_Target, Account | None]]:
        targets = _targets(names, out, with_ledger=not no_ledger, force=force)
        return [
            (
                target,
                None
                if target.ledger is None
                else _named(target, plan, budget_epsilon, budget_delta, round_=round_, again=force),
            )
            for target in targets
        ]

    if files is not None:
        files = {name: files[name] for name in _chosen(list(files), wanted)}
        prepare(list(files))  # the names are known: refuse what can be refused before hours of reading
    # On a terminal only; numbers of rows are not shown, since terminals are logged.
    with Console(stderr=True).status("counting rows"):
        counted = _count(agreed, workload, data, files, client_column, delimiter)
    counted = {name: counted[name] for name in _chosen(list(counted), wanted)}
    prepared = prepare(list(counted))
    typer.echo("\n" + _overview(prepared) + "\n")
    dropping = [name for name, part in counted.items() if part.dropped]
    if dropping:
        typer.echo(f"note: rows with missing values were dropped, as the schema says: {_some(dropping)}", err=True)
    out.mkdir(exist_ok=True)
    for done, (target, account) in enumerate(prepared):
        part = counted[target.client]
        try:
            _release(part, agreed, plan, target, account, noise_seed, round_, force=force, non_private=non_private)
        except FedselError as error:
            raise type(error)(
                f"client {target.client!r}: {error}; {done} of {len(prepared)} releases were written before"
            ) from None
    typer.echo(f"wrote      {len(prepared)} releases to {out}")


def _check_paths(data: Sequence[Path], out: Path) -> None:
    for file in data:
        if not file.exists():
            raise DataError(f"{file}: no such file")
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{out}: expected a folder, got a file")
    if not out.exists() and not out.parent.is_dir():
        raise ReleaseError(f"{out}: the folder cannot be made: {out.parent} is no folder")


def files_by_client(data: Sequence[Path]) -> dict[str, Path]:
    """Return the file of each client, named by the file without its ending.

    Raises
    ------
    ReleaseError
        If a name cannot be a client's.
    DataError
        If two files name one client.
    """
    files: dict[str, Path] = {}
    for file in data:
        stem = file.name
        for ending in (".gz", *_ENDINGS):
            if stem.lower().endswith(ending):
                stem = stem[: -len(ending)]
                if ending != ".gz":
                    break
        try:
            name = client_name(stem)
        except ReleaseError as error:
            raise ReleaseError(f"{file}: its name is the client's: {error}") from None
        if name in files:
            raise DataError(f"{file}: client {name!r} has the file {files[name]} already")
        files[name] = file
    return files


def _chosen(names: Sequence[str], wanted: Sequence[str] | None) -> Sequence[str]:
    if wanted is None:
        return names
    for name in wanted:
        if name not in names:
            raise DataError(f"--clients: the data hold no client {name!r}; they hold {_some(names)}")
    return [name for name in names if name in wanted]


def _targets(names: Sequence[str], out: Path, *, with_ledger: bool, force: bool) -> list[_Target]:
    """Give every client its files; none may be there already, and no two clients may share one."""
    taken: dict[str, str] = {}
    targets = []
    for name in names:
        stem = file_name(name)
        key = stem.casefold()  # some file systems tell no upper from lower case
        if key in taken:
            raise ReleaseError(f"clients {taken[key]!r} and {name!r} would both be written to {out / stem}.parquet")
        taken[key] = name
        release = out / f"{stem}.parquet"
        if release.exists() and not force:
            raise ReleaseError(f"client {name!r}: {release} exists already; --force replaces it")
        targets.append(_Target(name, release, out / f"{stem}.ledger" if with_ledger else None))
    return targets


def _named(
    target: _Target,
    plan: NoisePlan,
    budget_epsilon: float | None,
    budget_delta: float | None,
    *,
    round_: int,
    again: bool,
) -> Account:
    assert target.ledger is not None
    try:
        return announce(
            target.ledger,
            target.client,
            plan,
            budget_epsilon,
            budget_delta,
            round_=round_,
            again=again,
            say=lambda _: None,
        )
    except BudgetError as error:
        raise BudgetError(f"client {target.client!r}: {error}") from None


def _count(
    schema: Schema,
    workload: Workload,
    data: Sequence[Path],
    files: dict[str, Path] | None,
    client_column: str | None,
    delimiter: str | None,
) -> dict[str, ClientCount]:
    from fedsel.counting import count_clients, count_file

    if files is not None:
        return {name: count_file(schema, workload, file, delimiter=delimiter) for name, file in files.items()}
    assert client_column is not None
    return count_clients(schema, workload, data, client_column, delimiter=delimiter)


def _overview(prepared: Sequence[tuple[_Target, Account | None]]) -> str:
    from fedsel.cli.text_table import text_table

    rows = []
    for target, account in prepared:
        if account is None:
            rows.append((target.client, str(target.release), "none", "-"))
        else:
            rows.append(
                (target.client, str(target.release), "new" if account.new else "there", cost_text(account.left))
            )
    return text_table(("client", "release", "ledger", "left before the charge"), rows)


def _release(
    counted: ClientCount,
    schema: Schema,
    plan: NoisePlan,
    target: _Target,
    account: Account | None,
    seed: int | None,
    round_: int,
    *,
    force: bool,
    non_private: bool,
) -> None:
    from fedsel.privacy.client import release
    from fedsel.privacy.ledger import Ledger

    with ExitStack() as stack:

        def open_ledger() -> Ledger:
            assert target.ledger is not None
            assert account is not None
            return stack.enter_context(
                Ledger.open_or_create(
                    target.ledger,
                    client=target.client,
                    epsilon=account.budget.epsilon,
                    delta=account.budget.delta,
                    adjacency=plan.adjacency,
                )
            )

        release(
            counted.marginals,
            schema,
            plan,
            client=target.client,
            ledger=None if target.ledger is None else open_ledger,
            seed=seed,
            round=round_,
            rows=counted.rows if schema.sizes == "public" and plan.adjacency == "replace-one" else None,
            path=target.release,
            overwrite=force,
            again=force,
            non_private=non_private,
        )


def _some(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
