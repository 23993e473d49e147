"""``fedsel experiment subgroups``: methods of subgroup discovery, side by side."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.text_table import text_table
from fedsel.errors import DataError

SUBJECT, OTHERS = "FedPSD", ("uniform 1", "uniform 4", "uniform 16")
"""The contrasts that the FedPSD manuscript tests."""


def subgroups_command(
    study: Annotated[
        str, typer.Option(help="marginals, tables, routing, beta, dispersion or factorial: what to run.")
    ] = "marginals",
    corpus: Annotated[str, typer.Option(help="adult, breast-cancer or made.")] = "made",
    data: Annotated[Path | None, typer.Option(help="adult.data or adult.test of UCI Adult.")] = None,
    public: Annotated[
        Path | None, typer.Option(help="The file from which categories and bins are taken. (default: --data)")
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Repetitions: samples, divisions and noise.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a method and seed.")] = False,
) -> None:
    """Compare methods of subgroup discovery by the quality of what they find on held-out rows.

    [bold]fedsel experiment subgroups --study tables --corpus breast-cancer --seeds 3[/]

    Quality: mean weighted relative accuracy of the ten best on rows held out. Gap: less that of an exact search of all
    descriptions of two conditions. Covered: share of the training records that any of the ten covers, then with records
    weighted by their client's personalised budget. Fidelity: rank correlation between estimated and true qualities.
    """
    from fedsel.experiments.subgroup_corpus import load_corpus
    from fedsel.experiments.subgroup_study import Outcome, run_study
    from fedsel.experiments.subgroup_table import HEADERS, contrasts, summarise

    population = load_corpus(corpus, adult=data, public=public)
    command = shlex.join(["fedsel", *sys.argv[1:]])
    outcomes: list[Outcome] = []
    wanted = range(first_seed, first_seed + seeds)
    with DelayedProgress("running methods") as progress:
        for outcome in run_study(study, population, wanted):
            outcomes.append(outcome)
            progress(len({one.seed for one in outcomes}) - 1, seeds)
            if as_json:
                stamp = {"command": command, "version": __version__, "evaluation": "non-private", "study": study}
                typer.echo(json.dumps({**stamp, **outcome.to_dict()}))
    if as_json:
        return
    lines = summarise(outcomes)
    typer.echo(text_table(HEADERS, [line.texts() for line in lines], right=range(3, len(HEADERS))))
    typer.echo(
        f"\nseeds {wanted[0]} to {wanted[-1]}, {population.train} rows for training and {population.test} held out"
    )
    for text in contrasts(lines, SUBJECT, OTHERS, test_share=population.test / population.train):
        typer.echo(text)
    typer.echo("non-private evaluation: exact rows, seeded noise")


def checks_command(
    check: Annotated[
        str, typer.Option(help="calibration (intervals), null (false discoveries) or planted (recovery).")
    ] = "planted",
    corpus: Annotated[str, typer.Option(help="adult, breast-cancer or made; planted is always made.")] = "made",
    data: Annotated[Path | None, typer.Option(help="adult.data or adult.test of UCI Adult.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Budgets. (default: 0.25, 1 and 4)")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a seed and budget.")] = False,
) -> None:
    """Check what a private discovery says of itself against the truth.

    [bold]fedsel experiment subgroup-checks --check null --corpus breast-cancer --seeds 5[/]
    """
    from fedsel.experiments.subgroup_checks import CHECKS, mean_fields
    from fedsel.experiments.subgroup_corpus import load_corpus

    if check not in CHECKS:
        raise DataError(f"check must be one of {', '.join(CHECKS)}, got {check!r}")
    budgets = epsilon or [0.25, 1.0, 4.0]
    population = load_corpus(corpus, adult=data)
    command = shlex.join(["fedsel", *sys.argv[1:]])
    rows = []
    for row in CHECKS[check](population, range(first_seed, first_seed + seeds), budgets):
        rows.append(row)
        if as_json:
            typer.echo(json.dumps({"command": command, "evaluation": "non-private", **row.to_dict()}))
    if as_json:
        return
    means = [mean_fields([row for row in rows if row.epsilon == budget]) for budget in budgets]
    headers = list(means[0])
    lines = [[f"{value:.4g}" for value in line.values()] for line in means]
    typer.echo(text_table(headers, lines, right=range(len(headers))))
    typer.echo(f"\nmeans over seeds {first_seed} to {first_seed + seeds - 1}")
    typer.echo("non-private evaluation: exact rows, seeded noise")
