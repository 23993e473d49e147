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
    descriptions of two conditions. Covered: share of the training records that any of the ten covers, then with clients
    weighted by personalised budget instead of size.
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
