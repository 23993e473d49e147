"""``fedsel train``."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsel import __version__
from fedsel.cli import training_options as options
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.text_table import text_table
from fedsel.errors import TrainingError
from fedsel.training.extra import check_device, require_torch

if TYPE_CHECKING:
    from fedsel.training.simulation import TrainingResult

_METHOD = "Method"
_OUTPUT = "Output"


def train_command(
    *,
    data: options.Data = None,
    members: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAMES",
            help="What 'fedsel select --json' printed, as a file; or names of clients, separated by commas.",
        ),
    ],
    example: options.Example = None,
    schema: options.SchemaFile = None,
    client_column: options.ClientColumn = None,
    delimiter: options.Delimiter = None,
    rows: options.MostRows = 120_000,
    sensitive: options.Sensitive = None,
    privileged: options.Privileged = None,
    numeric: options.Numeric = None,
    aggregator: Annotated[
        str, typer.Option(help="fedavg, fedprox, scaffold, fedadam or fairfed.", rich_help_panel=_METHOD)
    ] = "fedavg",
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of the aggregator, such as mu=0.1; may be repeated. See docs/training.md.",
            rich_help_panel=_METHOD,
            show_default=False,
        ),
    ] = None,
    optimiser: Annotated[
        options.OptimiserName | None,
        typer.Option(
            help="Local optimiser. (default: adam where the method allows it)",
            rich_help_panel=_METHOD,
            show_default=False,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Local step size. (default: 0.001 for adam, 0.1 for sgd)", rich_help_panel=_METHOD, show_default=False
        ),
    ] = None,
    hidden: options.Hidden = "32,32,32",
    rounds: options.Rounds = 50,
    batch_size: options.Batch = 32,
    epochs: options.Epochs = 1,
    clients_per_round: options.PerRound = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after this many rounds without a better validation loss. (default: run all rounds)",
            rich_help_panel=_METHOD,
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep the run's state in this file, and go on from it where it is there.",
            rich_help_panel=_OUTPUT,
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Write metrics per round to this Parquet file.", rich_help_panel=_OUTPUT, show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_OUTPUT)] = False,
    force: options.Force = False,
    memory_mb: options.Memory = 256,
    device: options.Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of rows, split, model and batches.")] = 0,
) -> None:
    """Train a federation in simulation, and test it on the members' and on all clients' rows (extra train).

    [bold]fedsel train --example acs-income --members CT,MA,MD,RI,VA[/]

    [bold]fedsel train hospitals/*.csv --schema schema.toml --members result.json --aggregator fairfed[/]

    The machine must hold the rows of all clients: this evaluates, and is not private.
    """
    require_torch()
    from fedsel.training.aggregators import make_aggregator
    from fedsel.training.local import LocalSettings
    from fedsel.training.metric_tables import write_metrics
    from fedsel.training.models import Mlp
    from fedsel.training.simulation import RunSettings, Simulation
    from fedsel.training.splitting import split

    check_device(device)
    names = read_members(members)
    method = make_aggregator(aggregator, **_parse_options(option or ()))
    local = optimiser or method.optimisers[0]
    rate = learning_rate if learning_rate is not None else {"adam": 1e-3, "sgd": 0.1}[local]
    settings = RunSettings(
        rounds, LocalSettings(local, rate, batch_size, epochs), clients_per_round, patience, seed=seed
    )
    widths = options.parse_hidden(hidden)
    if history is not None and history.exists() and not force:
        raise TrainingError(f"{history} exists; use --force to replace it")
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
    table = source.rows(rows or None, seed=seed)
    simulation = Simulation(split(table, seed=seed), Mlp(source.task, widths, device=device), memory_mb=memory_mb)
    with DelayedProgress("training") as progress:
        result = simulation.run(names, method, settings, checkpoint=checkpoint, progress=progress)
    about = {
        "command": shlex.join(["fedsel", *sys.argv[1:]]),
        "version": __version__,
        "rows": options.thinning_text(int(table.rows.sum()), source.total),
        "source": source.description,
        "settings": asdict(settings),
    }
    if history is not None:
        write_metrics(history, result.history, metadata={**about, "members": result.members}, overwrite=force)
    typer.echo(_to_json(result, about) if as_json else _to_text(result, settings, about, source.task.sensitive))


def read_members(text: str) -> list[str]:
    """Read names of members from the JSON that ``fedsel select --json`` prints, or from a list.

    Raises
    ------
    TrainingError
        If the file cannot be read, or holds no list of names under ``members``.
    """
    path = Path(text)
    if not (path.is_file() or text.lower().endswith(".json")):
        return [name.strip() for name in text.split(",") if name.strip()]
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise TrainingError(f"{path}: is not JSON: {error}") from None
    names = found.get("members") if isinstance(found, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise TrainingError(f"{path}: expected an object with a list of names under 'members'")
    return names


def _parse_options(texts: list[str] | tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise TrainingError(f"--option must have the form NAME=VALUE, got {text!r}")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            found[name.strip()] = value.strip()
    return found


def _to_json(result: TrainingResult, about: dict[str, Any]) -> str:
    from fedsel.training.stamp import STAMP

    fields = {
        "evaluation": STAMP,
        **about,
        "members": list(result.members),
        "aggregator": result.aggregator,
        "model": result.model,
        "round": result.round,
        "rounds": result.rounds,
        "stop_reason": result.stop_reason,
        "loss": [
            {name: row[name] for name in ("round", "part", "population", "loss")}
            for row in result.history[-3:]  # of the last evaluation
        ],
        "test": {population: asdict(metrics) for population, metrics in result.test.items()},
        "notes": result.notes,
        "seconds": result.seconds,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2, allow_nan=False)


def _to_text(result: TrainingResult, settings: Any, about: dict[str, Any], sensitive: str) -> str:
    from fedsel.training.fairness import METRIC_NAMES
    from fedsel.training.stamp import EXPLANATION, STAMP

    local = settings.local
    populations = list(result.test)
    metrics = [("rows", *(f"{result.test[name].rows:,}" for name in populations))]
    metrics += [
        (label, *(options.number_text(getattr(result.test[name], label)) for name in populations))
        for label in METRIC_NAMES
    ]
    groups = [
        (
            name,
            rates.group,
            f"{rates.rows:,}",
            *map(
                options.number_text,
                (rates.accuracy, rates.true_positive_rate, rates.false_positive_rate, rates.selection_rate),
            ),
        )
        for name in populations
        for rates in result.test[name].groups
    ]
    facts = [
        ("members", ", ".join(result.members)),
        ("rows", about["rows"]),
        ("source", about["source"]),
        ("split", "60% of each client's rows to train, 15% to validate, 25% to test, drawn once"),
        ("model", result.model),
        ("aggregator", result.aggregator),
        ("local", f"{local.optimiser}, step {local.learning_rate:g}, batch {local.batch_size}, epochs {local.epochs}"),
        ("rounds", f"{result.rounds}, {result.stop_reason}; the model of round {result.round}; {result.seconds:.1f} s"),
    ]
    return "\n".join(
        [
            STAMP.upper(),
            "",
            *[f"{label:<10}  {fact}" for label, fact in facts],
            "",
            f"[{STAMP}]",
            text_table(("metric", *(f"{name}' test rows" for name in populations)), metrics, right=(1, 2)),
            "",
            f"[{STAMP}]",
            text_table(
                ("test rows of", sensitive, "rows", "accuracy", "TPR", "FPR", "selected"), groups, right=(2, 3, 4, 5, 6)
            ),
            "",
            *[f"note        {note}" for note in result.notes],
            EXPLANATION,
        ]
    )
