"""``fedsel pareto``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from fedsel.cli import select_options as options
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.text_table import text_table
from fedsel.selection import ParetoFront, pareto_front


def pareto_command(
    *,
    releases: options.Releases = None,
    k: Annotated[int, typer.Option("-k", help="Number of members.")],
    steps: Annotated[int, typer.Option(help="Number of trade-offs tried.")] = 21,
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
    include: options.Include = None,
    exclude: options.Exclude = None,
    min_records: options.MinRecords = None,
    clients: options.Clients = None,
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    budget: options.Budget = None,
    cost_column: options.CostColumn = "cost",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = float("inf"),
) -> None:
    """Show federations that trade bias against utility: no other found is better in both.

    [bold]fedsel pareto --example acs-income -k 5 --epsilon 1[/]

    The loss that [bold]fedsel select[/] minimises is unfairness minus utility; this shows what each costs the other.
    """
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
        front = pareto_front(
            pool,
            k,
            weights=options.parse_weights(weights),
            sensitive=options.split_names(sensitive) or None,
            constraints=options.parse_constraints(
                include=include,
                exclude=exclude,
                min_records=min_records,
                clients=clients,
                at_least=at_least,
                at_most=at_most,
                budget=budget,
                cost_column=cost_column,
            ),
            denoise_method=denoise,
            steps=steps,
            seed=seed,
            threads=threads,
            time_limit=time_limit,
            progress=progress,
        )
    if as_json:
        fields = asdict(front)
        fields["privacy"] = front.privacy.to_dict()
        typer.echo(json.dumps(fields, ensure_ascii=False, indent=2))
    else:
        typer.echo(_to_text(front, pool_size=len(pool)))


def _to_text(front: ParetoFront, *, pool_size: int) -> str:
    rows = [
        (
            f"{point.unfairness:.6f}",
            f"{point.utility:.6f}",
            f"{point.unfairness - point.utility:.6f}",
            ", ".join(point.members),
        )
        for point in front.points
    ]
    return "\n".join(
        [
            f"federations of {front.k} of {pool_size} clients that no other found beats in both, in bits",
            "",
            text_table(("unfairness", "utility", "loss", "members"), rows, right=(0, 1, 2)),
            "",
            f"search   {front.evaluations:,} evaluations in {front.seconds:.3f} s",
            f"privacy  {front.privacy.sentence}",
        ]
    )
