"""``fedsel schema noise``: what a schema costs in noise, before anyone releases anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedsel.cli.release_options import AdjacencyChoice, AdjacencyOption, DeltaOption, MechanismChoice, MechanismOption
from fedsel.privacy.sufficiency import noise_bounds

_LARGEST = 3


def noise_command(
    schema: Annotated[Path, typer.Argument(help="Schema file.", show_default=False)],
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            help="Privacy cost of a release; may be given several times (default: 0.1 0.3 1 3 10).", show_default=False
        ),
    ] = None,
    delta: DeltaOption = None,
    adjacency: AdjacencyOption = AdjacencyChoice.add_remove,
    mechanism: MechanismOption = MechanismChoice.discrete_gaussian,
) -> None:
    """Show how much noise a schema's tables will carry, and how many records a client should have.

    [bold]fedsel schema noise schema.toml --epsilon 0.5 --epsilon 1[/]

    Needs no data.
    A client with fewer records than the first bound drowns in the noise:
    the average count of the middle table is below the noise on it.
    Below the second, ten times as many, its counts are blurred.
    Fewer variables and coarser categories lower both.
    """
    from fedsel.cli.text_table import text_table
    from fedsel.privacy.calibration import plan_noise
    from fedsel.schema import Schema
    from fedsel.tables import Workload

    agreed = Schema.from_toml(schema)
    workload = Workload.pairs(agreed)
    rows = []
    for value in epsilon or (0.1, 0.3, 1.0, 3.0, 10.0):
        plan = plan_noise(
            len(workload.sets), epsilon=value, delta=delta, adjacency=adjacency.value, mechanism=mechanism.value
        )
        drowned, blurred = noise_bounds(workload, plan)
        scale = f"{float(plan.scale.max()):.4g}"
        rows.append((f"{value:g}", f"{plan.delta:g}", scale, f"{drowned:,.0f}", f"{blurred:,.0f}"))
    largest = sorted(range(len(workload.sets)), key=lambda table: -int(workload.sizes[table]))[:_LARGEST]
    symbol = "sigma" if mechanism is MechanismChoice.discrete_gaussian else "scale"
    typer.echo(f"{agreed.name}: {len(workload.sets)} pairs of {len(agreed.names)} variables, {workload.cells:,} cells")
    typer.echo(
        "largest tables: " + ", ".join(f"{workload.label(table)} ({workload.sizes[table]} cells)" for table in largest)
    )
    typer.echo("")
    headers = ("epsilon", "delta", symbol, "drowned below", "blurred below")
    typer.echo(text_table(headers, rows, right=range(len(headers))))
