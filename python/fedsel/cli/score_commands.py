"""``fedsel scores``: the second round, in which clients release a few sums over their rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.release_command import check_paths, count_rows
from fedsel.cli.release_options import (
    LEDGER,
    DelimiterOption,
    ForceOption,
    NoiseSeedOption,
    NoLedgerOption,
)
from fedsel.cli.release_plan import Account, Grant, announce, check_consent, describe, file_name
from fedsel.cli.select_options import parse_weights, split_names
from fedsel.errors import BudgetError, ReleaseError, RuleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedsel.pool import Pool
    from fedsel.privacy.ledger import Ledger
    from fedsel.privacy.plan import NoisePlan
    from fedsel.release import Release
    from fedsel.schema import Schema
    from fedsel.tables import Marginals

scores_app = typer.Typer(
    no_args_is_help=True,
    help="A second round: each client releases a few sums over its rows, under a rule made from the first.",
)


@scores_app.command("rule")
def rule_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="The clients' releases of tables, made with --scores."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Rule file to write (JSON).", show_default=False)],
    weights: Annotated[
        str | None, typer.Option(help="Weights of the loss, as for 'fedsel select'. (default: 2,0.89,0.11,1.33)")
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option(help="Active sensitive attributes, separated by commas. (default: the schema's first)"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Make the rule by which clients score their rows, from the tables they have released.

    [bold]fedsel scores rule releases/*.parquet -o rule.json[/]

    Costs no privacy: only what was released goes in. Publish the file to all clients.
    """
    from fedsel.pool import Pool
    from fedsel.release_file import ReleaseReader
    from fedsel.score_rule_file import write_rule
    from fedsel.selection.make_rule import make_rule

    check_paths(files[0], out, kept=files[1:], force=force)
    reader = ReleaseReader()
    releases = [reader.read(file) for file in files]
    plan = _second_part(releases, files)
    rule = make_rule(
        Pool.from_releases(releases),
        plan,
        weights=parse_weights(weights),
        sensitive=None if sensitive is None else split_names(sensitive),
    )
    write_rule(rule, out, overwrite=force)
    _echo_rule(rule.names, rule.bounds, rule.identity)
    typer.echo(f"wrote      {out}")


def _second_part(releases: list[Release], files: list[Path]) -> NoisePlan:
    """Return the noise of the scores to come, which all clients must have planned alike."""
    for release, file in zip(releases, files, strict=True):
        if release.protocol is None or len(release.protocol.rounds) != 2:
            raise ReleaseError(
                f"{file}: expected the first of two rounds (fedsel release --scores), got another release"
            )
        if release.protocol != releases[0].protocol:
            raise ReleaseError(f"{file}: its plan of two rounds is not that of {files[0]}")
    assert releases[0].protocol is not None
    return releases[0].protocol.part(2)


@scores_app.command("public-rule")
def public_rule_command(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="PUBLIC rows that resemble the clients', such as an earlier year's."),
    ],
    schema: Annotated[Path, typer.Option(help="The schema that all clients agreed on.", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="Epsilon at which the clients will release.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Rule file to write (JSON).", show_default=False)],
    client_column: Annotated[
        str | None, typer.Option(help="Column of DATA that tells parties apart; one party without it.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Delta that goes with it. (default: 1e-5)")] = None,
    weights: Annotated[str | None, typer.Option(help="As for 'fedsel scores rule'.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="As for 'fedsel scores rule'.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Make a rule from public rows: tables and scores then go in one round.

    [bold]fedsel scores public-rule last-year.csv --schema schema.toml --epsilon 0.1 -o rule.json[/]

    The rows are read exactly as they are, and the rule shows it: never give it a client's own.
    """
    from fedsel.counting import count_clients, count_file
    from fedsel.schema import Schema
    from fedsel.score_rule_file import write_rule
    from fedsel.selection.make_rule import make_rule
    from fedsel.selection.score_plan import plan_scores
    from fedsel.tables import Workload

    check_paths(data, out, kept=(schema,), force=force)
    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    if client_column is None:
        counted = {"public": count_file(agreed, workload, data)}
    else:
        counted = count_clients(agreed, workload, [data], client_column)
    chosen, guarded = parse_weights(weights), None if sensitive is None else split_names(sensitive)
    plan = plan_scores(agreed, workload, epsilon=epsilon, delta=delta, rounds=1, weights=chosen, sensitive=guarded)
    pool = _exact_pool({name: part.marginals for name, part in counted.items()}, agreed)
    rule = make_rule(pool, plan, weights=chosen, sensitive=guarded)
    write_rule(rule, out, overwrite=force)
    _echo_rule(rule.names, rule.bounds, rule.identity)
    typer.echo(f"wrote      {out}")


@scores_app.command("release")
def release_scores_command(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The client's rows: CSV or Parquet.", show_default=False)
    ],
    rule: Annotated[Path, typer.Option(help="The rule that the coordinator published.", show_default=False)],
    first: Annotated[Path, typer.Option(help="This client's own release of the first round.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Release file to write (Parquet).", show_default=False)],
    client_column: Annotated[
        str | None,
        typer.Option(help="Column of DATA with the client's name: only its own rows are scored.", show_default=False),
    ] = None,
    round_: Annotated[
        int | None,
        typer.Option(
            "--round", min=2, help="Round of the protocol (default: the one after the first's).", show_default=False
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger that was charged in the first round (default: CLIENT.ledger beside the first release).",
            rich_help_panel=LEDGER,
            show_default=False,
        ),
    ] = None,
    no_ledger: NoLedgerOption = False,
    noise_seed: NoiseSeedOption = None,
    delimiter: DelimiterOption = None,
    force: ForceOption = False,
) -> None:
    """Publish this client's noisy scores: covered by what the first round was charged.

    [bold]fedsel scores release rows.csv --rule rule.json --first north.parquet -o north.scores.parquet[/]

    The noise was fixed in the first round; the rule only says what is summed.
    What one row adds is clipped here, whatever the rule says.
    """
    from fedsel.privacy.client import release
    from fedsel.release import check_protocol
    from fedsel.release_file import read_release
    from fedsel.score_rule_file import read_rule
    from fedsel.tables import Workload

    own = read_release(first)
    published = read_rule(rule)
    plan = own.protocol
    if plan is None or len(plan.rounds) != 2 or not plan.part(2).scores:
        raise ReleaseError(f"{first}: expected the first of two rounds (fedsel release --scores), got another release")
    difference = own.schema.difference(published.schema)
    if difference is not None:
        raise RuleError(f"{rule}: schema differs from that of {first}: {difference}")
    if no_ledger and ledger is not None:
        raise BudgetError("--no-ledger does not go with --ledger")
    second = plan.part(2)
    if second.scores != (published.resolution,) * len(published.queries.names):
        raise RuleError(
            f"{rule}: expected {len(second.scores)} scores of D = {second.scores[0]}, as planned in {first}, "
            f"got {len(published.queries.names)} of D = {published.resolution}"
        )
    if published.workload != own.workload:
        raise RuleError(f"{rule}: expected a rule over the tables of {first}, got one over others")
    number = own.round + 1 if round_ is None else round_
    check_protocol(plan, second, number)
    check_consent(second, non_private=False)
    file = None if no_ledger else (ledger or first.parent / f"{file_name(own.client)}.ledger")
    check_paths(data, out, kept=(rule, first, file), force=force)
    typer.echo(f"client     {own.client}, round {number}")
    blank = Workload(own.schema.names, own.schema.domain, ())
    typer.echo(describe(own.schema, blank, second, seed=noise_seed, together=True))
    typer.echo(f"rule       {rule} ({published.identity[:12]})")
    typer.echo(f"output     {out}")
    account: Account | None = None
    if file is None:
        typer.echo("ledger     none: nothing is recorded, and nothing limits repeated releases")
    else:
        if not file.exists():
            raise BudgetError(f"{file}: expected the ledger that the first round was charged to, got no such file")
        account = announce(file, own.client, plan, Grant(), round_=number, part=2, again=force, say=typer.echo)
    counted = count_rows(published.schema, published.workload, data, own.client, client_column, delimiter, published)
    out.parent.mkdir(exist_ok=True)
    with ExitStack() as stack:

        def open_ledger() -> Ledger:
            assert account is not None
            return stack.enter_context(account.open())

        release(
            None,
            own.schema,
            plan,
            client=own.client,
            scores=counted.scores,
            ledger=None if account is None else open_ledger,
            seed=noise_seed,
            round=number,
            part=2,
            path=out,
            overwrite=force,
            again=force,
        )
    typer.echo(f"wrote      {out}")


def _exact_pool(tables: Mapping[str, Marginals], schema: Schema) -> Pool:
    import math

    from fedsel.pool import Pool
    from fedsel.privacy.plan import NoisePlan
    from fedsel.release import Release

    def released(name: str, marginals: Marginals) -> Release:
        weights = (1,) * len(marginals.workload.sets)
        plan = NoisePlan("none", "add-remove", math.inf, 0.0, 0, weights, "none")
        return Release(name, schema, marginals.workload, marginals.counts, plan)

    return Pool.from_releases([released(name, marginals) for name, marginals in tables.items()])


def _echo_rule(names: tuple[str, ...], bounds: tuple[float, ...], identity: str) -> None:
    typer.echo(f"rule       {identity[:12]}")
    for name, bound in zip(names, bounds, strict=True):
        typer.echo(f"score      {name}: a row adds at most {bound:.3g} bits to either side of the centre")
