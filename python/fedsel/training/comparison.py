"""Choices of a federation and aggregators, compared over repetitions.

A repetition draws everything anew from its seed: the rows, their split, which clients are candidates, the noise of
their releases, the first model. Within it, all choices and aggregators share all of that, so that differences are
paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsel.errors import TrainingError
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.training.aggregators import make_aggregator
from fedsel.training.choices import CHOICES, REPEATED, choose
from fedsel.training.fairness import METRIC_NAMES
from fedsel.training.models import MLP_HIDDEN, Mlp
from fedsel.training.optimisers import Optimiser
from fedsel.training.simulation import RunSettings, Simulation
from fedsel.training.sources import Source
from fedsel.training.splitting import TEST_SHARE, VALIDATION_SHARE, Split, split, stream_seed
from fedsel.training.tuning import RATES, Tuned, tune

Progress = Callable[[int, int], object]

REFERENCE = ("fedsel", "fedavg")
"""Choice and aggregator that all others are tested against."""


@dataclass(frozen=True)
class ComparisonSettings:
    """What is compared, and how often.

    Parameters
    ----------
    k : int
        Members of a federation.
    pairs : tuple of (str, str)
        Choices with aggregators; see `claim_pairs` and `all_pairs`.
    seeds : int
        Repetitions.
    first_seed : int
        Seed of the first; the next ones follow.
    draws : int
        Random federations a repetition, whose metrics are averaged.
    candidates : float
        Share of the clients, drawn at random, that are candidates in a repetition: one best federation would be a
        sample of one.
    rows : int or None
        Most rows of all clients together; every client keeps the same share of its own.
    run : RunSettings
        How federations train; optimisers and learning rates come from tuning.
    optimiser : {"adam", "sgd"}
        Local optimiser where an aggregator's paper allows it.
    rates : tuple of float
        Learning rates to try; empty for the default ones.
    hidden : tuple of int
        Hidden widths of the model.
    memory_mb : int
        As in `Simulation`.
    device : str
        Where to train.

    Raises
    ------
    TrainingError
        If a name is unknown, or a number out of range.
    """

    k: int
    pairs: tuple[tuple[str, str], ...]
    seeds: int = 3
    first_seed: int = 0
    draws: int = 3
    candidates: float = 0.75
    rows: int | None = 120_000
    run: RunSettings = field(default_factory=lambda: RunSettings(rounds=20))
    optimiser: Optimiser = "adam"
    rates: tuple[float, ...] = ()
    hidden: tuple[int, ...] = MLP_HIDDEN
    memory_mb: int = 16
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.pairs:
            raise TrainingError("a comparison needs at least one choice and one aggregator, got none")
        for choice, aggregator in self.pairs:
            if choice not in CHOICES:
                raise TrainingError(f"choice must be one of {', '.join(CHOICES)}, got {choice!r}")
            make_aggregator(aggregator)
        for name in ("k", "seeds", "draws"):
            if getattr(self, name) < 1:
                raise TrainingError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.candidates <= 1:
            raise TrainingError(f"share of candidates must be above 0 and at most 1, got {self.candidates:g}")

    @property
    def aggregators(self) -> tuple[str, ...]:
        """The different aggregators, in the order in which they come up."""
        return tuple(dict.fromkeys(aggregator for _, aggregator in self.pairs))


@dataclass(frozen=True)
class Comparison:
    """What came out. Everything in it was computed from rows: it is a non-private evaluation.

    Parameters
    ----------
    results : list of dict
        One row per repetition, choice, draw, aggregator and population: members, training rows and test metrics.
    history : list of dict
        The same per round, without members.
    tuned : dict of str to Tuned
        Learning rates.
    tuned_on : tuple of str
        The federation that they were tried on.
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
    thinning: str
    candidates: int
    clients: int
    notes: tuple[str, ...]


def claim_pairs(choices: Sequence[str], aggregators: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pair every choice with the first aggregator, and every other aggregator with random federations."""
    first, *others = aggregators
    return (
        *((choice, first) for choice in choices),
        *(("random", aggregator) for aggregator in others if "random" in choices),
    )


def all_pairs(choices: Sequence[str], aggregators: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pair every choice with every aggregator."""
    return tuple((choice, aggregator) for choice in choices for aggregator in aggregators)


def compare(
    source: Source, plan: NoisePlan, settings: ComparisonSettings, *, progress: Progress | None = None
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
    progress : callable, optional
        Called after every training with (trainings done, trainings).

    Returns
    -------
    Comparison

    Raises
    ------
    TrainingError
        If k exceeds the number of candidates, or as `Simulation.run` does.
    """
    candidates = max(1, round(settings.candidates * len(source.clients)))
    if settings.k > candidates:
        raise TrainingError(f"k must be between 1 and {candidates}, the candidates of a repetition, got {settings.k}")
    drawn = [settings.draws if choice in REPEATED else 1 for choice, _ in settings.pairs]
    rates = len(settings.rates or RATES[settings.optimiser])
    counter = _Counter(progress, rates * len(settings.aggregators) + settings.seeds * sum(drawn))
    world = _World(source, plan, settings, candidates, stream_seed(settings.first_seed, "tuning") % 2**31)
    tuned_on = choose("random", world.pool, settings.k, seed=world.seed)
    tuned = tune(
        world.simulation,
        tuned_on,
        settings.aggregators,
        replace(settings.run, seed=world.seed),
        optimiser=settings.optimiser,
        rates=settings.rates or None,
        progress=counter,
    )
    thinning = world.thinning
    results: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        world = _World(source, plan, settings, candidates, seed)
        for (choice, aggregator), draws in zip(settings.pairs, drawn, strict=True):
            for draw in range(draws):
                members = choose(choice, world.pool, settings.k, seed=stream_seed(seed, "choice", draw))
                run = replace(settings.run, seed=seed, local=tuned[aggregator].local)
                result = world.simulation.run(members, make_aggregator(aggregator), run)
                counter()
                about = {"seed": seed, "choice": choice, "draw": draw, "aggregator": aggregator}
                rows = int(world.split.train.subset(list(members)).rows.sum())
                for population, metrics in result.test.items():
                    values = {name: getattr(metrics, name) for name in METRIC_NAMES}
                    results.append(
                        {**about, "population": population, "members": list(result.members), "training_rows": rows}
                        | {"round": result.round, "test_rows": metrics.rows, "seconds": result.seconds}
                        | values
                    )
                history += [{**about, **row} for row in result.history]
                notes |= dict.fromkeys(f"{choice}, {aggregator}, seed {seed}: {note}" for note in result.notes)
    return Comparison(results, history, tuned, tuned_on, thinning, candidates, len(source.clients), tuple(notes))


def split_ratio() -> float:
    """Return test rows by training rows of a split, for the corrected t-test."""
    return TEST_SHARE / (1 - TEST_SHARE - VALIDATION_SHARE)


class _Counter:
    """Counts trainings for a progress callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


class _World:
    """One repetition: candidates, their releases, rows and split."""

    split: Split
    pool: Pool

    def __init__(
        self, source: Source, plan: NoisePlan, settings: ComparisonSettings, candidates: int, seed: int
    ) -> None:
        self.seed = seed
        rng = np.random.default_rng(stream_seed(seed, "candidates"))
        drawn = sorted(rng.choice(len(source.clients), candidates, replace=False).tolist())
        names = [source.clients[number] for number in drawn]
        data = source.rows(settings.rows, seed=seed)
        kept = int(data.rows.sum())
        share = "all of them" if kept >= source.total else f"{kept / source.total:.1%} of each client's"
        self.thinning = f"{kept:,} of {source.total:,} rows, {share}"
        self.pool = source.pool(plan, seed=seed).subset(names)
        self.split = split(data.subset(names), seed=seed)
        model = Mlp(source.task, settings.hidden, device=settings.device)
        self.simulation = Simulation(self.split, model, memory_mb=settings.memory_mb)
