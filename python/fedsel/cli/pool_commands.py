"""Commands at the coordinator: ``fedsel pool``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli import select_options as options
from fedsel.errors import FedselError, PoolError
from fedsel.privacy.sufficiency import noise_bounds
from fedsel.score_rule_file import read_rule

if TYPE_CHECKING:
    from fedsel.pool import Pool
    from fedsel.privacy.plan import NoisePlan

pool_app = typer.Typer(no_args_is_help=True, help="Check releases at the coordinator, and gather them into a pool.")

Files = Annotated[
    list[Path], typer.Argument(metavar="FILES...", help="Release files, one per client.", show_default=False)
]
AllowMixed = Annotated[
    bool,
    typer.Option("--allow-mixed", help="Accept different budgets, noise, adjacency, rounds or seeding, and say so."),
]

RuleFile = Annotated[
    Path | None, typer.Option("--rule", help="The rule of the scores, where files hold some (fedsel scores).")
]

_MOST_PLANS = 20  # certifying a plan takes some 30 ms


@pool_app.command("check")
def pool_check(files: Files, rule: RuleFile = None, allow_mixed: AllowMixed = False) -> None:
    """Check release files one by one and together; list clients with noisy sizes, and every problem.

    [bold]fedsel pool check releases/*.parquet[/]

    Releases are checked as what they are, files from elsewhere: form, promises, consistency.
    A note says whose tables are blurred by their noise, or drown in it.
    """
    from fedsel.cli.text_table import text_table
    from fedsel.pool import Pool
    from fedsel.pool_builder import PoolBuilder
    from fedsel.pool_scores import ScoreBuilder
    from fedsel.release_file import ReleaseReader

    builder, reader = PoolBuilder(len(files), allow_mixed=allow_mixed), ReleaseReader()
    scores = ScoreBuilder(None if rule is None else read_rule(rule))
    problems: list[str] = []
    for file in files:
        try:
            release = reader.read(file)
            if release.workload.sets:
                builder.add(release, source=str(file))
            if release.scores is not None:
                scores.add(release, source=str(file))
        except FedselError as error:
            problems.append(str(error))
    if builder.protocols:
        pool = Pool(**builder.finish(partial=True))
        problems += _broken_promises(builder.promises)
        if rule is not None and not scores.used:
            problems.append("a score rule was given, but no release holds scores")
        if scores.used:
            try:
                pool = replace(pool, scores=scores.finish(builder.protocols, allow_mixed=allow_mixed))
            except FedselError as error:
                problems.append(str(error))
        totals = pool.totals()
        bounds = [noise_bounds(pool.workload, plan) for plan in pool.plans]
        rows, weak = [], False
        for row, client in enumerate(pool.clients):
            plan = pool.plans[pool.plan_index[row]]
            drowned, blurred = bounds[pool.plan_index[row]]
            records = totals.estimate[row]
            small = ["drowned"] if records < drowned else ["blurred"] if records < blurred else []
            weak = weak or bool(small)
            notes = [note for note, on in (("exact", plan.mechanism == "none"), ("seeded", pool.seeded[row])) if on]
            rows.append(
                (
                    client,
                    f"{totals.estimate[row]:,.0f}",
                    f"{1.96 * totals.standard_error[row]:,.0f}",
                    f"{plan.epsilon:g}",
                    f"{plan.delta:g}",
                    ", ".join(notes + small),
                )
            )
        headers = ("client", "records", "+- (95%)", "epsilon", "delta", "note")
        typer.echo(text_table(headers, rows, right=(1, 2, 3, 4)))
        typer.echo("")
        _echo_pool(pool)
        if weak:
            typer.echo(
                "blurred: the average count of the middle table is below ten times its noise; drowned: below its "
                "noise. Trust what is selected among such clients little; 'fedsel schema noise' shows what would help"
            )
    if scores.used and not builder.protocols:
        problems.append("the releases hold scores only; a pool needs the clients' tables too")
    if len(problems) > 1:
        for problem in problems:
            typer.echo(f"problem: {problem}", err=True)
        raise PoolError(f"{len(problems)} problems in {len(files)} files")
    if problems:
        raise PoolError(problems[0])
    typer.echo("no problems")


@pool_app.command("build")
def pool_build(
    files: Files,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write.", show_default=False)],
    rule: RuleFile = None,
    allow_mixed: AllowMixed = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a stored pool.")] = False,
) -> None:
    """Check release files and store them as one pool, which opens at once however large it is."""
    from fedsel.pool import Pool

    if out.exists() and not force:
        raise PoolError(f"{out}: exists already; --force replaces a stored pool")
    pool = Pool.open(files, rule=None if rule is None else read_rule(rule), allow_mixed=allow_mixed)
    pool.save(out, overwrite=force)
    _echo_pool(pool)
    typer.echo(f"wrote {out}")


@pool_app.command("prepare")
def pool_prepare(
    folder: Annotated[Path, typer.Argument(help="Folder made by 'fedsel pool build'.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write.", show_default=False)],
    sensitive: options.SensitiveOption = None,
    denoise: options.Denoise = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Denoise a stored pool and lay it out for searches, once, for pools of many thousands of clients.

    [bold]fedsel pool prepare pool/ -o pool.rows && fedsel select pool/ --prepared pool.rows -k 500[/]

    The file is mapped into memory by searches: they start without denoising, and read what they look at.
    """
    from fedsel.pool import Pool
    from fedsel.selection import prepare

    pool = Pool.load(folder)
    file = prepare(pool, out, sensitive=options.split_names(sensitive) or None, denoise_method=denoise, overwrite=force)
    _echo_pool(pool)
    typer.echo(f"denoise {file.denoise}; wrote {out}, {out.stat().st_size:,} bytes")


def _echo_pool(pool: Pool) -> None:
    tables, cells = len(pool.workload.sets), pool.workload.cells
    clients = f"{len(pool)} client{'' if len(pool) == 1 else 's'}"
    scores = "" if pool.scores is None else f", {len(pool.scores.rule.queries.names)} scores"
    typer.echo(f"{clients}, round {pool.round}: {tables} tables, {cells:,} cells{scores}, schema {pool.schema.name}")
    typer.echo(pool.private.sentence)
    if pool.mixed:
        typer.echo(f"mixed: clients differ in {'; '.join(pool.mixed)}")


def _broken_promises(promises: Mapping[str, NoisePlan]) -> list[str]:
    """Recompute what each plan guarantees, all rounds together; a client may state less than its noise gives."""
    from fedsel.errors import PrivacyError
    from fedsel.privacy.calibration import EXACT_TABLES, certify, concentrated_delta

    first: dict[NoisePlan, str] = {}
    for client, plan in promises.items():
        first.setdefault(plan, client)
    problems = []
    for number, (plan, client) in enumerate(first.items()):
        if plan.mechanism == "none":
            continue
        try:
            if len(plan.weights) > EXACT_TABLES or number >= _MOST_PLANS:
                raise PrivacyError("too long to be examined exactly")
            true, proof = certify(plan), "gives"
        except PrivacyError:
            # an honest plan that is out of the exact accounting's reach was calibrated by this bound
            true, proof = concentrated_delta(plan), "is known to give at most"
        if true > plan.delta * (1 + 1e-6):
            problems.append(
                f"client {client!r}: delta: expected {true:.3g}, what its noise {proof} at epsilon {plan.epsilon:g}, "
                f"got {plan.delta:.3g}"
            )
    return problems
