"""Constants by equal effort: every aggregator spends as many trainings, on one federation, judged on validation rows.

The learning rate is searched first, then the one constant of its own that an aggregator has (`FedAvg.tunable`), then
what is left of the effort goes into a finer grid of learning rates. Where the best is at an end of a grid, the grid
grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from fedsel.errors import DivergedError, TrainingError
from fedsel.training.aggregators import AGGREGATORS, FedAvg, make_aggregator
from fedsel.training.aggregators.tunable import Tunable
from fedsel.training.cells import Cell, Cells
from fedsel.training.local import LocalSettings
from fedsel.training.optimisers import Optimiser
from fedsel.training.simulation import MEMBERS, VALIDATION, RunSettings, Simulation

RATES: dict[Optimiser, tuple[float, ...]] = {"adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), "sgd": (0.01, 0.03, 0.1, 0.3, 1.0)}
"""Learning rates tried first."""

EFFORT = 10
"""Trainings that every aggregator spends."""

EXTENSIONS = 2
"""How often a grid grows while its best is at an end."""

TOLERANCE = 0.01
"""By how much of the lowest loss the loss may rise where a constant is chosen for fairness."""

_RATIO = math.sqrt(10)  # between learning rates, where only one is given


@dataclass(frozen=True)
class Trial:
    """One training.

    Parameters
    ----------
    rate : float
        Local learning rate.
    value : float or None
        Of the aggregator's own constant; None where it has none.
    loss : float or None
        Validation loss of the members, in nats; None where training diverged.
    eod : float or None
        Size of their equal opportunity difference; None where undefined.
    """

    rate: float
    value: float | None
    loss: float | None
    eod: float | None


@dataclass(frozen=True)
class Tuned:
    """What an aggregator will train with.

    Parameters
    ----------
    aggregator : str
        Its name.
    local : LocalSettings
        With the learning rate taken.
    option : str or None
        Name of its own constant.
    value : float or None
        Value taken.
    trials : tuple of Trial
        All trainings, in their order.
    """

    aggregator: str
    local: LocalSettings
    option: str | None
    value: float | None
    trials: tuple[Trial, ...]

    def make(self) -> FedAvg:
        """Return a new aggregator with the constant taken."""
        return make_aggregator(self.aggregator, **({} if self.option is None else {self.option: self.value}))

    @property
    def value_trials(self) -> list[Trial]:
        """Those at the learning rate where values of the own constant were compared, by value."""
        first = self.trials[0].value
        rates = [trial.rate for trial in self.trials if trial.value != first] or [self.local.learning_rate]
        return sorted((trial for trial in self.trials if trial.rate == rates[0]), key=lambda trial: trial.value or 0.0)

    @property
    def edges(self) -> tuple[str, ...]:
        """Which of "learning rate" and the constant's name were taken from an end of what was tried."""
        found = []
        for name, taken, tried in (
            ("learning rate", self.local.learning_rate, [trial.rate for trial in self.trials]),
            (self.option, self.value, [trial.value for trial in self.trials if trial.value is not None]),
        ):
            if name is not None and len(set(tried)) > 1 and taken in (min(tried), max(tried)):
                found.append(name)
        return tuple(found)


def tune(
    simulation: Callable[[], Simulation],
    members: Sequence[str],
    aggregators: Sequence[str],
    settings: RunSettings,
    *,
    optimiser: Optimiser,
    rates: Sequence[float] | None = None,
    effort: int = EFFORT,
    cells: Cells | None = None,
    progress: Callable[[], object] = lambda: None,
) -> dict[str, Tuned]:
    """Search every aggregator's constants.

    Parameters
    ----------
    simulation : callable
        Returns rows and model, of which only training and validation rows matter; called when a training is due.
    members : sequence of str
        The federation to try them on.
    aggregators : sequence of str
        Names.
    settings : RunSettings
        How to train; the local optimiser and its learning rate are replaced.
    optimiser : {"adam", "sgd"}
        Local optimiser of those whose paper allows it; the others take their own.
    rates : sequence of float, optional
        Learning rates to try first, by default `RATES` of the optimiser.
    effort : int
        Trainings of each aggregator, at least as many as there are rates.
    cells : Cells, optional
        Keeps finished trainings.
    progress : callable
        Called after every training.

    Returns
    -------
    dict of str to Tuned

    Raises
    ------
    TrainingError
        If every learning rate of an aggregator diverges, the members have no validation rows, or the effort is too
        small.
    """
    keep = Cells(None, {}) if cells is None else cells
    found = {}
    for name in aggregators:
        allowed = AGGREGATORS[name].optimisers
        own = optimiser if optimiser in allowed else allowed[0]
        grid = sorted(set(rates or RATES[own]))
        check_effort(effort, len(grid))
        local = replace(settings.local, optimiser=own)
        run = replace(settings, local=local)

        def train(rate: float, value: float | None, name: str = name, run: RunSettings = run) -> Trial:
            work = partial(_train, simulation, members, name, run, rate, value)
            cell: Cell = {"part": "tuning", "aggregator": name, "rate": rate, "value": value}
            trial = Trial(rate, value, *keep.kept(cell, work))
            progress()
            return trial

        search = _Search(AGGREGATORS[name].tunable, train, effort)
        rate, value = search.run(grid)
        if rate is None:
            tried = ", ".join(f"{trial.rate:g}" for trial in search.trials)
            raise TrainingError(f"{name}: no learning rate among {tried} trains")
        option = None if search.tunable is None else search.tunable.name
        found[name] = Tuned(name, replace(local, learning_rate=rate), option, value, tuple(search.trials))
    return found


def check_effort(effort: int, rates: int) -> None:
    """Refuse an effort that does not cover the first grid.

    Raises
    ------
    TrainingError
        If it is smaller than the number of learning rates to try.
    """
    if effort < rates:
        raise TrainingError(f"tuning effort must be at least {rates}, the learning rates to try, got {effort}")


@dataclass
class _Search:
    """The trainings of one aggregator."""

    tunable: Tunable | None
    train: Callable[[float, float | None], Trial]
    effort: int
    trials: list[Trial] = field(default_factory=list)

    def run(self, rates: Sequence[float]) -> tuple[float | None, float | None]:
        """Spend the effort; return the learning rate and the value taken, None for the rate if all diverged."""
        value = None if self.tunable is None else self.tunable.start
        for rate in rates:
            self._try(rate, value)
        ratio = rates[1] / rates[0] if len(rates) > 1 else _RATIO
        for _ in range(EXTENSIONS):
            tried, best = self._rates(value), self._best_rate(value)
            if best is None or best not in (tried[0], tried[-1]):
                break
            self._try(*_beyond(tried, best, ratio), value)
        found = self._best_rate(value)
        if found is None:
            return None, value
        if self.tunable is not None:
            value = self._search_value(self.tunable, found)
        while len(self.trials) < self.effort:
            self._try(self._finer(value), value)
        return self._best_rate(value), value

    def _search_value(self, tunable: Tunable, rate: float) -> float:
        """Try the constant's neighbours at one learning rate, further ones while the best is at an end."""
        for value in (tunable.start / tunable.ratio, tunable.start * tunable.ratio):
            self._try(rate, _rounded(value))
        for _ in range(EXTENSIONS):
            tried, best = self._values(rate), self._best_value(tunable, rate)
            if best not in (tried[0], tried[-1]):
                break
            self._try(rate, *_beyond(tried, best, tunable.ratio))
        return self._best_value(tunable, rate)

    def _try(self, rate: float, value: float | None) -> None:
        if len(self.trials) < self.effort:
            self.trials.append(self.train(rate, value))

    def _rates(self, value: float | None) -> list[float]:
        return sorted(trial.rate for trial in self.trials if trial.value == value)

    def _values(self, rate: float) -> list[float]:
        return sorted(trial.value for trial in self.trials if trial.rate == rate and trial.value is not None)

    def _best_rate(self, value: float | None) -> float | None:
        losses = [(trial.loss, trial.rate) for trial in self.trials if trial.value == value and trial.loss is not None]
        return min(losses)[1] if losses else None

    def _best_value(self, tunable: Tunable, rate: float) -> float:
        """Return the value of lowest loss; or, where it is there for fairness, of lowest |EOD| near the lowest loss."""
        usable = [(t.loss, t.eod, t.value) for t in self.trials if t.rate == rate and t.loss is not None]
        lowest = min(loss for loss, _, _ in usable)
        scored = [
            ((math.inf if eod is None else eod, loss) if tunable.fairness else (loss, loss), value)
            for loss, eod, value in usable
            if value is not None and (not tunable.fairness or loss <= lowest * (1 + TOLERANCE))
        ]
        return min(scored)[1]

    def _finer(self, value: float | None) -> float:
        """Halve, on a log scale, the wider of the gaps beside the best learning rate."""
        tried, best = sorted({trial.rate for trial in self.trials}), self._best_rate(value)
        place = tried.index(best) if best is not None else 0
        beside = [tried[i] for i in (place - 1, place + 1) if 0 <= i < len(tried)]
        if not beside:
            return _rounded(tried[place] * _RATIO)
        other = max(beside, key=lambda rate: abs(math.log(rate / tried[place])))
        return _rounded(math.sqrt(tried[place] * other))


def _beyond(tried: Sequence[float], best: float, ratio: float) -> tuple[float]:
    """Return the next value of a grid behind the end that the best is at."""
    return (_rounded(best / ratio if best == tried[0] else best * ratio),)


def _rounded(value: float) -> float:
    """Three digits, to be printed as they are used."""
    return float(f"{value:.3g}")


def _train(
    simulation: Callable[[], Simulation],
    members: Sequence[str],
    aggregator: str,
    settings: RunSettings,
    rate: float,
    value: float | None,
) -> tuple[float | None, float | None]:
    """Train, and return loss and |EOD| on the members' validation rows; None for the loss where training diverged."""
    world = simulation()
    if not world.split.validation.subset(tuple(members)).rows.any():
        raise TrainingError("learning rates are chosen on validation rows, and the members have none")
    tunable = AGGREGATORS[aggregator].tunable
    method = make_aggregator(aggregator, **({} if tunable is None else {tunable.name: value}))
    if settings.patience is None:  # only the last model is judged
        settings = replace(settings, evaluate_every=settings.rounds)
    try:
        result = world.run(members, method, replace(settings, local=replace(settings.local, learning_rate=rate)))
    except DivergedError:
        return None, None
    row = next(
        row
        for row in result.history
        if (row["part"], row["population"], row["round"]) == (VALIDATION, MEMBERS, result.round)
    )
    return row["loss"], None if row["eod"] is None else abs(row["eod"])
