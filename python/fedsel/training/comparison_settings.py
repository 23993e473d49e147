"""What a comparison compares, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fedsel.errors import TrainingError
from fedsel.training.aggregators import AGGREGATORS, make_aggregator
from fedsel.training.choices import CHOICES
from fedsel.training.models import MLP_HIDDEN
from fedsel.training.optimisers import Optimiser
from fedsel.training.simulation import MEMORY_MB, RunSettings
from fedsel.training.tuning import EFFORT, RATES, check_effort


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
    effort : int
        Trainings that every aggregator spends on tuning; see `fedsel.training.tuning`.
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
    effort: int = EFFORT
    hidden: tuple[int, ...] = MLP_HIDDEN
    memory_mb: int = MEMORY_MB
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
        for name in self.aggregators:
            optimisers = AGGREGATORS[name].optimisers
            own = self.optimiser if self.optimiser in optimisers else optimisers[0]
            check_effort(self.effort, len(set(self.rates or RATES[own])))
        if not 0 < self.candidates <= 1:
            raise TrainingError(f"share of candidates must be above 0 and at most 1, got {self.candidates:g}")

    @property
    def aggregators(self) -> tuple[str, ...]:
        """The different aggregators, in the order in which they come up."""
        return tuple(dict.fromkeys(aggregator for _, aggregator in self.pairs))

    def facts(self) -> dict[str, Any]:
        """Return what every single training depends on, by name: all but how many and which trainings there are."""
        fields = asdict(self)
        for name in ("pairs", "seeds", "draws"):
            del fields[name]
        run = fields.pop("run")
        local = run.pop("local")
        for name in ("seed", "optimiser", "learning_rate"):  # replaced for every training
            run.pop(name, None)
            local.pop(name, None)
        return {**fields, **run, **local}


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
