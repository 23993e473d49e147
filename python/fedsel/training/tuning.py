"""Learning rates by equal effort: every aggregator tries as many, on one federation, judged on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fedsel.errors import DivergedError, TrainingError
from fedsel.training.aggregators import make_aggregator
from fedsel.training.cells import Cells
from fedsel.training.local import LocalSettings
from fedsel.training.optimisers import Optimiser
from fedsel.training.simulation import MEMBERS, VALIDATION, RunSettings, Simulation

RATES: dict[Optimiser, tuple[float, ...]] = {"adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), "sgd": (0.01, 0.03, 0.1, 0.3, 1.0)}
"""Learning rates tried."""


@dataclass(frozen=True)
class Tuned:
    """What an aggregator will train with.

    Parameters
    ----------
    aggregator : str
        Its name.
    local : LocalSettings
        With the learning rate that did best.
    tried : tuple of (float, float or None)
        Learning rates and the validation losses they came to, in nats; None where training diverged.
    """

    aggregator: str
    local: LocalSettings
    tried: tuple[tuple[float, float | None], ...]


def tune(
    simulation: Callable[[], Simulation],
    members: Sequence[str],
    aggregators: Sequence[str],
    settings: RunSettings,
    *,
    optimiser: Optimiser,
    rates: Sequence[float] | None = None,
    cells: Cells | None = None,
    progress: Callable[[], object] = lambda: None,
) -> dict[str, Tuned]:
    """Try learning rates.

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
        Learning rates to try, by default `RATES` of the optimiser.
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
        If every learning rate of an aggregator diverges, or the members have no validation rows.
    """
    keep = Cells(None, {}) if cells is None else cells
    found = {}
    for name in aggregators:
        allowed = make_aggregator(name).optimisers
        own = optimiser if optimiser in allowed else allowed[0]
        tried: list[tuple[float, float | None]] = []
        for rate in rates or RATES[own]:
            local = replace(settings.local, optimiser=own, learning_rate=rate)
            run = partial(_loss, simulation, members, name, replace(settings, local=local))
            tried.append((rate, keep.kept({"part": "tuning", "aggregator": name, "rate": rate}, run)))
            progress()
        usable = [(loss, rate) for rate, loss in tried if loss is not None]
        if not usable:
            raise TrainingError(f"{name}: no learning rate among {', '.join(f'{r:g}' for r, _ in tried)} trains")
        best = replace(settings.local, optimiser=own, learning_rate=min(usable)[1])
        found[name] = Tuned(name, best, tuple(tried))
    return found


def _loss(
    simulation: Callable[[], Simulation], members: Sequence[str], aggregator: str, settings: RunSettings
) -> float | None:
    """Train, and return the members' validation loss after the last round; None where training diverged."""
    world = simulation()
    if not world.split.validation.subset(tuple(members)).rows.any():
        raise TrainingError("learning rates are chosen on validation rows, and the members have none")
    try:
        history = world.run(members, make_aggregator(aggregator), settings).history
    except DivergedError:
        return None
    losses: list[float] = [row["loss"] for row in history if row["part"] == VALIDATION and row["population"] == MEMBERS]
    return losses[-1]
