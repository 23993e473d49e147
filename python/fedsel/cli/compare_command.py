"""``fedsel compare``."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli import training_options as options
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.select_options import split_names
from fedsel.errors import TrainingError
from fedsel.training.extra import check_device, require_torch

_WHAT = "What is compared"
_RELEASES = "Releases"
_FILES = ("results.parquet", "history.parquet", "curves.svg", "table.txt")


def compare_command(
    *,
    data: options.Data = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Members of a federation.")],
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 3,
    example: options.Example = None,
    schema: options.SchemaFile = None,
    client_column: options.ClientColumn = None,
    delimiter: options.Delimiter = None,
    rows: options.MostRows = 120_000,
    sensitive: options.Sensitive = None,
    privileged: options.Privileged = None,
    numeric: options.Numeric = None,
    choices: Annotated[
        str | None,
        typer.Option(
            help="Of fedsel, random, random-matched, all, largest, nearest, utility, fairness. (default: all of them)",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    aggregators: Annotated[
        str | None,
        typer.Option(
            help="The first trains every choice; the others train random federations. "
            "(default: fedavg, fedprox, scaffold, fedadam, fairfed)",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Train every choice with every aggregator.", rich_help_panel=_WHAT)
    ] = False,
    draws: Annotated[int, typer.Option(min=1, help="Random federations a repetition.", rich_help_panel=_WHAT)] = 3,
    candidates: Annotated[
        float,
        typer.Option(
            help="Share of the clients, drawn at random, that are candidates in a repetition.", rich_help_panel=_WHAT
        ),
    ] = 0.75,
    optimiser: Annotated[
        options.OptimiserName,
        typer.Option(help="Local optimiser where a method's paper allows it.", rich_help_panel=_WHAT),
    ] = "adam",
    learning_rates: Annotated[
        str | None,
        typer.Option(
            help="Step sizes that every aggregator tries first, separated by commas. "
            "(default: 0.0001, 0.0003, 0.001, 0.003, 0.01 for adam, 0.01, 0.03, 0.1, 0.3, 1 for sgd)",
            rich_help_panel=_WHAT,
            show_default=False,
        ),
    ] = None,
    tuning_effort: Annotated[
        int,
        typer.Option(
            min=1,
            help="Trainings that every aggregator spends on its learning rate and the constant of its own; as many as "
            "there are learning rates tries these alone.",
            rich_help_panel=_WHAT,
        ),
    ] = 10,
    hidden: options.Hidden = "32,32,32",
    rounds: options.Rounds = 20,
    batch_size: options.Batch = 32,
    epochs: options.Epochs = 1,
    clients_per_round: options.PerRound = None,
    epsilon: Annotated[
        float, typer.Option(help="Privacy budget of each client's release, or inf.", rich_help_panel=_RELEASES)
    ] = 1.0,
    delta: Annotated[float, typer.Option(help="Its delta.", rich_help_panel=_RELEASES)] = 1e-5,
    memory_mb: options.Memory = 256,
    device: options.Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="First seed; repetitions count up from it.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Folder for the table, metrics per run and per round (Parquet), and curves (SVG).",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps every finished training; a comparison that was stopped goes on from it.",
            show_default=False,
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Compare ways of choosing a federation, and aggregators, by training and testing (extra train).

    [bold]fedsel compare --example acs-income -k 5 --seeds 3[/]

    [bold]fedsel compare census.csv --client-column ST --schema schema.toml -k 5 --seeds 10 -o comparison[/]

    Every result is shown on the members' own test rows and on those of all candidates, with confidence intervals and
    paired tests. The machine must hold the rows of all clients: this evaluates, and is not private.
    """
    require_torch()
    from fedsel.atomic_file import AtomicFile, make_folder
    from fedsel.cli.compare_output import to_text
    from fedsel.privacy.calibration import plan_noise
    from fedsel.tables import Workload
    from fedsel.training.aggregators import AGGREGATORS
    from fedsel.training.choices import CHOICES
    from fedsel.training.comparison import compare
    from fedsel.training.comparison_settings import ComparisonSettings, all_pairs, claim_pairs
    from fedsel.training.local import LocalSettings
    from fedsel.training.metric_tables import write_metrics
    from fedsel.training.plots import curves, require_matplotlib
    from fedsel.training.simulation import RunSettings

    started = time.perf_counter()
    check_device(device)
    chosen = tuple(dict.fromkeys(split_names(choices))) or tuple(CHOICES)
    crossed = full or "random" in chosen
    methods = tuple(dict.fromkeys(split_names(aggregators))) or (tuple(AGGREGATORS) if crossed else ("fedavg",))
    if len(methods) > 1 and not crossed:
        raise TrainingError(f"{methods[1]} would train random federations: add random to --choices, or use --full")
    settings = ComparisonSettings(
        k=k,
        pairs=(all_pairs if full else claim_pairs)(chosen, methods),
        seeds=seeds,
        first_seed=seed,
        draws=draws,
        candidates=candidates,
        rows=rows or None,
        run=RunSettings(
            rounds, LocalSettings(batch_size=batch_size, epochs=epochs), clients_per_round=clients_per_round
        ),
        optimiser=optimiser,
        rates=_parse_rates(learning_rates),
        effort=tuning_effort,
        hidden=options.parse_hidden(hidden),
        memory_mb=memory_mb,
        device=device,
    )
    if out is not None and not force:
        for name in _FILES:
            if (out / name).exists():
                raise TrainingError(f"{out / name} exists; use --force to replace it")
    source = options.open_source(
        data,
        example=example,
        schema=schema,
        client_column=client_column,
        delimiter=delimiter,
        sensitive=sensitive,
        privileged=privileged,
        numeric=numeric,
    )
    plan = plan_noise(len(Workload.pairs(source.task.schema).sets), epsilon=epsilon, delta=delta)
    if out is not None:
        require_matplotlib()
        make_folder(out, error=TrainingError)
    with DelayedProgress("training federations") as progress:
        comparison = compare(source, plan, settings, checkpoint=checkpoint, progress=progress)
    groups = source.task.groups
    text = to_text(
        comparison,
        settings,
        source=source.description,
        release=f"pairs of variables, epsilon {epsilon:g}, delta {delta:g}, seeded noise",
        sensitive=f"{source.task.sensitive}, privileged: {groups[source.task.privileged]}",
        seconds=time.perf_counter() - started,
    )
    typer.echo(text)
    if out is None:
        return
    about = {"command": shlex.join(["fedsel", *sys.argv[1:]]), "version": __version__, "settings": asdict(settings)}
    write_metrics(out / "results.parquet", comparison.results, metadata=about, overwrite=True)
    write_metrics(out / "history.parquet", comparison.history, metadata=about, overwrite=True)
    with AtomicFile(out / "curves.svg", overwrite=True, error=TrainingError) as file:
        file.publish(curves(comparison.history))
    with AtomicFile(out / "table.txt", overwrite=True, error=TrainingError) as file:
        file.publish(f"$ {about['command']}\n\n{text}\n".encode())
    typer.echo(f"\n{out}: {', '.join(_FILES)}")


def _parse_rates(text: str | None) -> tuple[float, ...]:
    try:
        rates = tuple(float(part) for part in split_names(text))
    except ValueError:
        rates = (0.0,)
    if any(not 0 < rate < float("inf") for rate in rates):
        raise TrainingError(f"--learning-rates must be positive numbers separated by commas, got {text!r}")
    return rates
