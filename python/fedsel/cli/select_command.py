"""``fedsel select``."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from fedsel import __version__
from fedsel.cli import select_options as options
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.select_output import to_json, to_text
from fedsel.selection import GeometricSchedule, LogarithmicSchedule, Schedule
from fedsel.selection.certificates import CertificateMode
from fedsel.selection.select import SearchMethod, select

ScheduleName = Literal["fitted", "paper", "logarithmic"]

_SCHEDULES: dict[ScheduleName, Schedule | None] = {
    "fitted": None,
    "paper": GeometricSchedule(),
    "logarithmic": LogarithmicSchedule(),
}
_SEARCH = "Search"
_REPORT = "Report"


def select_command(
    *,
    releases: options.Releases = None,
    k: Annotated[str, typer.Option("-k", metavar="N", help="Number of members, or a range such as 3-8.")],
    tolerance: Annotated[
        float,
        typer.Option(help="With a range of k: bits of loss that the smallest good federation may be worse."),
    ] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    example: options.Example = None,
    schema: options.SchemaFile = None,
    rule: options.RuleFile = None,
    allow_mixed: options.AllowMixed = False,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    adjacency: options.AdjacencyOption = None,
    mechanism: options.MechanismOption = None,
    precision: options.PrecisionOption = None,
    noise_seed: options.NoiseSeed = None,
    weights: options.Weights = None,
    sensitive: options.SensitiveOption = None,
    denoise: options.Denoise = "auto",
    prepared: options.Prepared = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    min_records: options.MinRecords = None,
    clients: options.Clients = None,
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    budget: options.Budget = None,
    cost_column: options.CostColumn = "cost",
    search: Annotated[
        SearchMethod,
        typer.Option(help="Search method; auto is expand; greedy and descent are baselines.", rich_help_panel=_SEARCH),
    ] = "auto",
    certificate: Annotated[
        CertificateMode,
        typer.Option(
            help="enumerate evaluates every federation: a proof; bound proves the same by branch and bound, or says by "
            "how much a better one is better at most; model goes through all of them under a second-order model of the "
            "loss: strong evidence; auto does what takes a second or two.",
            rich_help_panel=_SEARCH,
        ),
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Exhaustive search, certificates enumerate and bound: keep how far they have come; the same command "
            "goes on from there after a stop or a kill.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    schedule: Annotated[
        ScheduleName,
        typer.Option(
            help="Annealing: temperatures fitted to the pool, or a published schedule.", rich_help_panel=_SEARCH
        ),
    ] = "fitted",
    chains: Annotated[int, typer.Option(help="Annealing: independent chains.", rich_help_panel=_SEARCH)] = 5,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Annealing (one a chain) and descent: members to start from, separated by commas; may be repeated.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one HTML page about the selection: why these members, beside random federations, at what cost. "
            "Needs the extra 'report'.",
            rich_help_panel=_REPORT,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a report that exists.", rich_help_panel=_REPORT)
    ] = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = float("inf"),
) -> None:
    """Choose the k clients whose union has the lowest federation loss.

    [bold]fedsel select --example acs-income -k 5 --epsilon 1[/]

    [bold]fedsel select releases/*.parquet -k 10 --schema schema.toml[/]

    [bold]fedsel select releases/*.parquet -k 3-8 --include CT --clients facts.csv --at-least region=south:2[/]

    The result says which certificate it carries: [bold]proof[/] (every federation was evaluated, or
    proved not to be better), [bold]model[/]
    (every one was enumerated or bounded under a second-order model, close ones evaluated), [bold]swap-optimal[/] (no
    single exchange improves it) or [bold]none[/]. Ctrl-C returns the best federation so far.
    """
    started = time.perf_counter()
    size = options.parse_size(k)
    loss_weights = options.parse_weights(weights)
    constraints = options.parse_constraints(
        include=include,
        exclude=exclude,
        min_records=min_records,
        clients=clients,
        at_least=at_least,
        at_most=at_most,
        budget=budget,
        cost_column=cost_column,
    )
    if report is not None:
        from fedsel.report import check_report

        check_report(report, overwrite=force)
    pool = options.gather_pool(
        releases,
        example=example,
        schema=schema,
        rule=rule,
        allow_mixed=allow_mixed,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        mechanism=mechanism,
        precision=precision,
        noise_seed=noise_seed,
    )
    with DelayedProgress("evaluating federations") as progress:
        selection = select(
            pool,
            size,
            search=search,
            weights=loss_weights,
            sensitive=options.split_names(sensitive) or None,
            constraints=constraints,
            tolerance=tolerance,
            denoise_method=denoise,
            prepared=prepared,
            certificate=certificate,
            schedule=_SCHEDULES[schedule],
            chains=len(start) if start and search in ("anneal", "temper", "model") else chains,
            initial=[options.split_names(names) for names in start or ()],
            seed=seed,
            threads=threads,
            time_limit=time_limit,
            progress=progress,
            checkpoint=checkpoint,
        )
    command = shlex.join(["fedsel", *sys.argv[1:]])
    if report is not None:
        from fedsel.report import write_report

        write_report(
            selection, pool, report, constraints=constraints, command=command, threads=threads, overwrite=force
        )
    if as_json:
        elapsed = time.perf_counter() - started
        typer.echo(to_json(selection, command=command, version=__version__, wall_seconds=elapsed))
    else:
        typer.echo(to_text(selection))
