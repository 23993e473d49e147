"""Choices of a federation and aggregators, compared over repetitions.

A repetition draws everything anew from its seed: the rows, their split, which clients are candidates, the noise of
their releases, the first model. Within it, all choices and aggregators share all of that, so that differences are
paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fedsel import __version__
from fedsel.errors import DivergedError, TrainingError
from fedsel.privacy.plan import NoisePlan
from fedsel.training.cells import Cell, Cells
from fedsel.training.choices import REPEATED, choose
from fedsel.training.comparison_settings import ComparisonSettings
from fedsel.training.fairness import METRIC_NAMES
from fedsel.training.repetition import Repetition, TuningRepetition
from fedsel.training.simulation import ALL_CLIENTS, MEMBERS, TEST
from fedsel.training.sources import Source
from fedsel.training.splitting import TEST_SHARE, VALIDATION_SHARE, stream_seed
from fedsel.training.tuning import Tuned, tune

Progress = Callable[[int, int], object]

REFERENCE = ("fedsel", "fedavg")
"""Choice and aggregator that all others are tested against."""


@dataclass(frozen=True)
class Comparison:
    """What came out. Everything in it was computed from rows: it is a non-private evaluation.

    Parameters
    ----------
    results : list of dict
        One row per repetition, choice, draw, aggregator and population: members, training rows and test metrics. Where
        training diverged, everything from the round on is None.
    history : list of dict
        The same per round, without members.
    tuned : dict of str to Tuned
        Constants of each aggregator, and what was tried.
    tuned_on : tuple of str
        The federation that they were tried on.
    tuning_rows : int
        Its training rows, which no repetition trains or tests on.
    thinning : str
        Which share of the rows was used, in words.
    candidates : int
        Candidates of a repetition.
    clients : int
        All clients.
    notes : tuple of str
        What a reader must know.
    """

    results: list[dict[str, Any]]
    history: list[dict[str, Any]]
    tuned: dict[str, Tuned]
    tuned_on: tuple[str, ...]
    tuning_rows: int
    thinning: str
    candidates: int
    clients: int
    notes: tuple[str, ...]


def compare(
    source: Source,
    plan: NoisePlan,
    settings: ComparisonSettings,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Tune, then train and test every choice with every aggregator asked for, over repetitions.

    Parameters
    ----------
    source : Source
        Clients with their rows.
    plan : NoisePlan
        What their releases spend.
    settings : ComparisonSettings
        What is compared.
    checkpoint : Path, optional
        Folder that keeps every finished training; those that are there already are not repeated. More repetitions,
        draws or pairs may be asked for than the folder holds; all else must be as it was.
    progress : callable, optional
        Called after every training with (trainings done, trainings).

    Returns
    -------
    Comparison

    Raises
    ------
    TrainingError
        If k exceeds the number of candidates, the checkpoint is damaged or of another comparison, every training
        diverges, or as `Simulation.run` does.
    """
    candidates = max(1, round(settings.candidates * len(source.clients)))
    if settings.k > candidates:
        raise TrainingError(f"k must be between 1 and {candidates}, the candidates of a repetition, got {settings.k}")
    cells = Cells(checkpoint, _facts(source, plan, settings))
    drawn = [settings.draws if choice in REPEATED else 1 for choice, _ in settings.pairs]
    counter = _Counter(progress, settings.effort * len(settings.aggregators) + settings.seeds * sum(drawn))
    seed = stream_seed(settings.first_seed, "tuning") % 2**31
    apart = TuningRepetition(source, plan, settings, candidates, seed)
    tuned_on = cells.kept({"part": "tuning"}, lambda: _tuning_federation(apart))
    tuned = tune(
        lambda: apart.simulation,
        tuned_on["members"],
        settings.aggregators,
        replace(settings.run, seed=seed),
        optimiser=settings.optimiser,
        rates=settings.rates or None,
        effort=settings.effort,
        cells=cells,
        progress=counter,
    )
    trained: list[dict[str, Any]] = []
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        world = Repetition(source, plan, settings, candidates, seed)
        for (choice, aggregator), draws in zip(settings.pairs, drawn, strict=True):
            for draw in range(draws):
                cell: Cell = {"seed": seed, "choice": choice, "aggregator": aggregator, "draw": draw}
                work = partial(_train, world, settings, tuned[aggregator], choice, draw)
                trained.append(cells.kept(cell, work))
                counter()
    if not any(part["history"] for part in trained):
        raise TrainingError(f"every training diverged; the last: {trained[-1]['notes'][-1]}")
    return Comparison(
        results=[row for part in trained for row in part["results"]],
        history=[row for part in trained for row in part["history"]],
        tuned=tuned,
        tuned_on=tuple(tuned_on["members"]),
        tuning_rows=tuned_on["rows"],
        thinning=_thinning(trained[0]["rows"], source.total),
        candidates=candidates,
        clients=len(source.clients),
        notes=tuple(dict.fromkeys(note for part in trained for note in part["notes"])),
    )


def split_ratio() -> float:
    """Return test rows by training rows of a split, for the corrected t-test."""
    return TEST_SHARE / (1 - TEST_SHARE - VALIDATION_SHARE)


def _facts(source: Source, plan: NoisePlan, settings: ComparisonSettings) -> dict[str, Any]:
    """Return all that a training depends on, as names and values of JSON."""
    task = source.task
    return {
        "fedsel": __version__,
        "torch": torch.__version__,
        **settings.facts(),
        "sensitive": task.sensitive,
        "privileged": task.groups[task.privileged],
        "inputs": task.inputs,
        "numeric": [asdict(number) for number in task.numeric],
        "noise": asdict(plan),
        "rows of": source.fingerprint,
    }


def _tuning_federation(apart: TuningRepetition) -> dict[str, Any]:
    members = apart.members()
    return {"members": list(members), "rows": int(apart.split.train.subset(members).rows.sum())}


def _train(world: Repetition, settings: ComparisonSettings, tuned: Tuned, choice: str, draw: int) -> dict[str, Any]:
    """Choose, train and test once; returned as JSON."""
    seed, aggregator = world.seed, tuned.aggregator
    members = choose(choice, world.pool, settings.k, seed=stream_seed(seed, "choice", draw))
    run = replace(settings.run, seed=seed, local=tuned.local)
    about = {"seed": seed, "choice": choice, "draw": draw, "aggregator": aggregator}
    who = {"members": list(members), "training_rows": int(world.split.train.subset(members).rows.sum())}
    try:
        result = world.simulation.run(members, tuned.make(), run)
    except DivergedError as error:  # one of many trainings: stated, and no reason to lose the others
        nothing = dict.fromkeys(("round", "test_rows", "seconds", "loss", *METRIC_NAMES))
        results = [{**about, "population": name, **who, **nothing} for name in (MEMBERS, ALL_CLIENTS)]
        history, notes = [], [str(error)]
    else:
        losses = {
            row["population"]: row["loss"]
            for row in result.history
            if (row["part"], row["round"]) == (TEST, result.round)
        }
        results = [
            {**about, "population": population, **who}
            | {"round": result.round, "test_rows": metrics.rows, "seconds": result.seconds, "loss": losses[population]}
            | {name: getattr(metrics, name) for name in METRIC_NAMES}
            for population, metrics in result.test.items()
        ]
        history, notes = [{**about, **row} for row in result.history], list(result.notes)
    return {
        "results": results,
        "history": history,
        "notes": [f"{choice}, {aggregator}, seed {seed}: {note}" for note in notes],
        "rows": int(world.data.rows.sum()),
    }


def _thinning(kept: int, total: int) -> str:
    share = "all of them" if kept >= total else f"{kept / total:.1%} of each client's"
    return f"{kept:,} of {total:,} rows, {share}"


class _Counter:
    """Counts trainings for a progress callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)
