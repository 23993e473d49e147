"""``fedsel experiment``: figures to judge the methods by, from exact tables or rows."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from fedsel.cli.text_table import text_table
from fedsel.errors import FedselError

if TYPE_CHECKING:
    from fedsel.experiments.fidelity import FidelityRow

experiment_app = typer.Typer(no_args_is_help=True, help="Measure the methods on exact data; nothing here is private.")


@experiment_app.command("fidelity")
def fidelity_command(
    data: Annotated[
        Path | None, typer.Option(help="Rows of all clients, CSV or Parquet; by default the embedded example's tables.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the rows.")] = None,
    client_column: Annotated[str, typer.Option(help="Column that names the client.")] = "client",
    thin: Annotated[float, typer.Option(help="Share of the rows to keep, drawn at random; needs --data.")] = 1.0,
    thinnings: Annotated[int, typer.Option(min=1, help="How many thinned data sets to average over.")] = 1,
    k: Annotated[list[int] | None, typer.Option("-k", help="Sizes. (default: 5, 10 and 15)")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Budgets. (default: 3, 1, 0.3, 0.1 and 0.05)")] = None,
    accounting: Annotated[
        Literal["exact", "zcdp", "rdp"], typer.Option(help="Calibration; rdp is the paper's.")
    ] = "exact",
    precision: Annotated[Literal["equal", "loss"], typer.Option(help="How the tables share the noise.")] = "equal",
    federations: Annotated[int, typer.Option(min=3, help="Random federations of each size.")] = 1000,
    draws: Annotated[int, typer.Option(min=2, help="Noise draws.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of federations, noise and thinning.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Compare the order of federations by private tables with their order by true loss.

    rho is the rank correlation over random federations.
    regret is how much worse the chosen federation truly is than the best, in standard deviations of random ones.
    """
    from fedsel.experiments.fidelity import exact_pool, fidelity
    from fedsel.experiments.thinning import example_counts, thinned_counts

    if (data is None) != (schema is None):
        raise FedselError("--data and --schema go together")
    if not 0 < thin <= 1:
        raise FedselError(f"--thin must be above 0 and at most 1, got {thin}")
    if data is None and thin < 1:
        raise FedselError("--thin needs --data: tables without rows cannot be thinned")
    rows: list[FidelityRow] = []
    for thinning in range(thinnings if thin < 1 else 1):
        if data is None or schema is None:
            source = example_counts()
        else:
            source = thinned_counts(data, schema, client_column, share=thin, seed=seed + thinning)
        truth = exact_pool(*source)
        for row in fidelity(
            truth,
            sizes=k or (5, 10, 15),
            epsilons=epsilon or (3.0, 1.0, 0.3, 0.1, 0.05),
            accounting=accounting,
            precision=precision,
            federations=federations,
            draws=draws,
            seed=seed + 1000 * thinning,
            threads=threads,
        ):
            rows.append(row)
            if as_json:
                command = shlex.join(["fedsel", *sys.argv[1:]])
                typer.echo(
                    json.dumps(
                        {
                            "command": command,
                            "evaluation": "non-private",
                            "seed": seed,
                            "thinning": thinning,
                            "share": thin,
                            **asdict(row),
                        }
                    )
                )
    if not as_json:
        typer.echo(_table(rows))
        typer.echo("\nnon-private evaluation: exact data, seeded noise")


def _table(rows: list[FidelityRow]) -> str:
    """One line per budget, size and method, averaged over thinnings."""
    keys = sorted({(-row.epsilon, row.k, row.method) for row in rows}, key=lambda key: key)
    lines = []
    for negative, size, method in keys:
        group = [row for row in rows if (row.epsilon, row.k, row.method) == (-negative, size, method)]

        def mean(field: str, group: list[FidelityRow] = group) -> float:
            return float(np.mean([getattr(row, field) for row in group]))

        lines.append(
            (
                f"{-negative:g}",
                str(size),
                method,
                f"{mean('rho'):.3f}",
                f"{mean('rho_error'):.3f}",
                f"{mean('regret'):.2f}",
                f"{mean('overlap'):.2f}",
                str(sum(row.draws for row in group)),
                f"{sum(row.seconds for row in group):.1f}",
            )
        )
    headers = ("epsilon", "k", "denoising", "rho", "+-", "regret", "overlap", "draws", "seconds")
    return text_table(headers, lines, right=(0, 1, 3, 4, 5, 6, 7, 8))
