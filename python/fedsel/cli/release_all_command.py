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
from fedsel.errors import BudgetError, DataError, FedselError, ReleaseError

if TYPE_CHECKING:
    from fedsel.counting import ClientCount
    from fedsel.privacy.ledger import Ledger
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
    scores: ScoresOption = False,
    round_: RoundOption = 1,
    no_ledger: NoLedgerOption = False,
    budget_epsilon: BudgetEpsilonOption = None,
    budget_delta: BudgetDeltaOption = None,
    composition: CompositionOption = None,
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

    from fedsel.privacy.composition import Cost
    from fedsel.schema import Schema
    from fedsel.selection.score_plan import plan_release
    from fedsel.tables import Workload

    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    plan = plan_release(
        agreed,
        workload,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency.value,
        mechanism=mechanism.value,
        accounting=accounting.value,
        precision=precision.value,
        score_rounds=2 if scores else 0,
    )
    check_consent(plan, non_private=non_private)
    grant = Grant(budget_epsilon, budget_delta, None if composition is None else composition.value)
    if no_ledger and grant != Grant():
        raise BudgetError("--no-ledger does not go with --budget-epsilon, --budget-delta or --composition")
    _check_paths(data, out)
    wanted = None if clients is None else [client_name(name.strip()) for name in clients.split(",")]
    files = None if client_column is not None else files_by_client(data)
    typer.echo(describe(agreed, workload, plan, seed=noise_seed))
    typer.echo(f"output     {out}/CLIENT.parquet")
    if no_ledger:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        charge = "not private, outside the budget" if plan.mechanism == "none" else str(Cost(plan.epsilon, plan.delta))
        typer.echo(f"ledger     {out}/CLIENT.ledger, one a client")
        typer.echo(f"charge     {charge}, to each")

    def prepare(names: Sequence[str]) -> list[tuple[_Target, Account | None]]:
        targets = _targets(names, out, with_ledger=not no_ledger, force=force)
        return [
            (
                target,
                None if target.ledger is None else _named(target, plan, grant, round_=round_, again=force),
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
    grant: Grant,
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
            grant,
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
            rows.append((target.client, str(target.release), "none", "-", "-"))
        else:
            rows.append(
                (target.client, str(target.release), "new" if account.new else "there", account.left, account.after)
            )
    return text_table(("client", "release", "ledger", "left before the charge", "left after it"), rows)


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

    with ExitStack() as stack:

        def open_ledger() -> Ledger:
            assert account is not None
            return stack.enter_context(account.open())

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
