"""``fedsel experiment``: figures to judge the methods by, from exact tables or rows."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsel.cli.experiment_subgroups_command import checks_command, subgroups_command
from fedsel.cli.text_table import text_table
from fedsel.errors import FedselError

if TYPE_CHECKING:
    from fedsel.experiments.fidelity import FidelityRow
    from fedsel.experiments.population import Population

experiment_app = typer.Typer(no_args_is_help=True, help="Measure the methods on exact data; nothing here is private.")
experiment_app.command("subgroups")(subgroups_command)
experiment_app.command("subgroup-checks")(checks_command)

_SIZES = (5, 10, 15)
_EPSILONS = (3.0, 1.0, 0.3, 0.1, 0.05, 0.02, 0.01)


@experiment_app.command("fidelity")
def fidelity_command(
    data: Annotated[
        Path | None, typer.Option(help="Rows of all clients, CSV or Parquet; by default the embedded example's tables.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the rows.")] = None,
    client_column: Annotated[str, typer.Option(help="Column that names the client.")] = "client",
    made: Annotated[
        int | None, typer.Option(min=0, help="Rows made from latent classes with this seed, instead of --data.")
    ] = None,
    thin: Annotated[float, typer.Option(help="Share of the rows to keep, drawn at random; needs rows.")] = 1.0,
    thinnings: Annotated[int, typer.Option(min=1, help="How many thinned data sets to average over.")] = 1,
    k: Annotated[list[int] | None, typer.Option("-k", help="Sizes. (default: 5, 10 and 15)")] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Budgets. (default: 3, 1, 0.3, 0.1, 0.05, 0.02 and 0.01)")
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare: paper, as-released, clip, consistent, shrink, shrink-precision, "
            "reference-precision or scores; may be repeated. (default: all; scores only where there are rows)"
        ),
    ] = None,
    federations: Annotated[int, typer.Option(min=3, help="Random federations of each size.")] = 1000,
    draws: Annotated[int, typer.Option(min=2, help="Noise draws of each data set.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of federations, noise and thinning.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a noise draw and size.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw rho against epsilon (SVG, PNG or PDF). Needs the extra 'experiments'.")
    ] = None,
) -> None:
    """Compare the order of federations by what is released with their order by true loss.

    rho is the rank correlation over random federations, rho (whole) that with the true loss before thinning.
    regret is how much worse the chosen federation truly is than the best, in standard deviations of random ones.
    """
    from fedsel.experiments.fidelity import fidelity
    from fedsel.experiments.fidelity_table import CONSTANTS, summary
    from fedsel.experiments.recipes import RECIPES

    whole = _population(data, schema, client_column, made)
    if not 0 < thin <= 1:
        raise FedselError(f"--thin must be above 0 and at most 1, got {thin}")
    if thin < 1 and whole.columns is None:
        raise FedselError("--thin needs rows, --data or --made: tables without rows cannot be thinned")
    if plot is not None:
        from fedsel.plot_file import check_plotting

        check_plotting(plot)
    recipes = recipe or [name for name, one in RECIPES.items() if whole.columns is not None or not one.scores]

    def measured() -> Iterator[tuple[int, FidelityRow]]:
        for thinning in range(thinnings if thin < 1 else 1):
            part = whole if thin == 1 else whole.thinned(thin, seed=seed + thinning)
            for row in fidelity(
                part,
                whole=whole,
                recipes=recipes,
                sizes=k or _SIZES,
                epsilons=epsilon or _EPSILONS,
                federations=federations,
                draws=draws,
                seed=seed + 1000 * thinning,
                threads=threads,
            ):
                yield thinning, row

    command = shlex.join(["fedsel", *sys.argv[1:]])
    rows: list[FidelityRow] = []
    for thinning, row in measured():
        rows.append(row)
        if as_json:
            stamp = {"command": command, "evaluation": "non-private", "seed": seed, "constants": CONSTANTS}
            typer.echo(json.dumps({**stamp, "thinning": thinning, "share": thin, **asdict(row)}))
    lines = summary(rows)
    if not as_json:
        headers = ("epsilon", "k", "recipe", "rho", "+-", "rho (whole)", "regret", "+-", "overlap", "draws", "seconds")
        typer.echo(text_table(headers, [line.texts() for line in lines], right=(0, 1, 3, 4, 5, 6, 7, 8, 9, 10)))
        typer.echo("\nnon-private evaluation: exact data, seeded noise")
        typer.echo(f"constants: {CONSTANTS}")
    if plot is not None:
        from fedsel.experiments.fidelity_plot import draw_fidelity

        draw_fidelity(lines, plot)


def _population(data: Path | None, schema: Path | None, column: str, made: int | None) -> Population:
    from fedsel.experiments.population import example_population, made_population, read_population

    if (data is None) != (schema is None):
        raise FedselError("--data and --schema go together")
    if made is not None:
        if data is not None:
            raise FedselError("give either --data or --made, got both")
        return made_population(made)
    return example_population() if data is None or schema is None else read_population(data, schema, column)
