"""The search methods, each one call into the C++ core with its defaults."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.arguments import is_whole
from fedsel.selection.checkpoint import Checkpoint
from fedsel.selection.constraints import Ruleset
from fedsel.selection.evidence import BoundEvidence, ModelEvidence
from fedsel.selection.feasibility import feasible_federation
from fedsel.selection.loss import FederationLoss
from fedsel.selection.result import ChainResult, StopReason
from fedsel.selection.schedule import GeometricSchedule, Schedule, fitted_schedule

if TYPE_CHECKING:
    from fedsel._core import Annealing, SearchResult

Progress = Callable[[int, int], object]
"""Called now and then on the calling thread with (evaluations so far, evaluations planned or 0 if unknown)."""

Starts = Sequence[Sequence[int]]
"""Pool rows of federations to start from."""

RANDOM_STARTS = 15
"""Random federations that expansion search expands around, besides the whole pool."""

DESCENTS = 16
"""Random federations that steepest descent starts from, where no others are given."""

MODEL_SAMPLE = 10_000
"""Random federations, and best ones, that the error of the second-order model is measured on."""

_ROUND = 500  # steps of replica exchange between two exchanges
_GAPS = 500  # swaps looked at to fit an annealing schedule


@dataclass(frozen=True)
class Effort:
    """What every search may spend, and how its randomness is seeded.

    Parameters
    ----------
    seed : int
        Seed of the search, 0 to 2^64 - 1.
    threads : int
        Threads to use; the result does not depend on it.
    time_limit : float
        Seconds, infinite for none.
    keep : int
        How many of the best federations to return.
    progress : callable or None
        See `Progress`.
    checkpoint : Checkpoint or None
        Where enumeration, or branch and bound, keeps how far it has come.
    """

    seed: int
    threads: int
    time_limit: float
    keep: int
    progress: Progress | None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """A loss, a size and rules, ready to be searched.

    Parameters
    ----------
    loss : FederationLoss
        What to minimise.
    k : int
        Number of members.
    problem : fedsel._core.Problem
        Size and rules for the core.
    free : int
        Number of clients that may or may not be members.
    choices : int
        Number of members to choose among them.
    constrained : bool
        Whether there are any rules.
    """

    loss: FederationLoss
    k: int
    problem: _core.Problem
    free: int
    choices: int
    constrained: bool

    @classmethod
    def of(cls, loss: FederationLoss, k: int, ruleset: Ruleset) -> Task:
        """Set up a search.

        Raises
        ------
        SelectionError
            If no federation of the size keeps the rules.
        """
        restricted = bool(ruleset.fixed or ruleset.excluded or ruleset.rules)
        fallback = feasible_federation(ruleset, k, loss.clients) if restricted else []
        free = ruleset.free(len(loss.clients))
        rules = [(rule.amounts.tolist(), rule.lower, rule.upper) for rule in ruleset.rules]
        problem = _core.Problem(
            loss.model, k, fixed=list(ruleset.fixed), free=free, constraints=rules, fallback=fallback
        )
        return cls(loss, k, problem, len(free), k - len(ruleset.fixed), restricted)

    @property
    def subsets(self) -> int:
        """Number of federations of the size, those that break rules included; at most 2^64 - 1."""
        return _core.binomial(self.free, self.choices)


@dataclass(frozen=True)
class Found:
    """Raw result of one search: pool rows, losses as the search saw them.

    `certified` are the rows of a federation that no exchange of up to `exchanged` members improves, if one is known;
    `model` says what a search under the second-order model came to, `bounds` what branch and bound did.
    """

    best: tuple[tuple[float, tuple[int, ...]], ...]
    evaluations: int
    seconds: float
    stop_reason: StopReason
    certified: tuple[int, ...] = ()
    exchanged: int = 1
    complete: bool = False
    model: ModelEvidence | None = None
    bounds: BoundEvidence | None = None
    chains: tuple[ChainResult, ...] = ()


def available_threads(threads: int | None) -> int:
    """Return the given number of threads, or that of the processors this process may run on."""
    if threads is not None:
        return threads
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_size(k: Any, pool: Pool) -> None:
    """Refuse a size that no federation of the pool has, with a `SelectionError`."""
    if not is_whole(k) or not 1 <= index(k) <= len(pool):
        raise SelectionError(f"k must be between 1 and {len(pool)}, got {k}")


def as_found(result: SearchResult, started: float, **known: Any) -> Found:
    """Return a result of the core as found since `started`, with what else is known."""
    return Found(
        best=tuple((loss, tuple(rows)) for loss, rows in result["best"]),
        evaluations=result["evaluations"],
        seconds=time.perf_counter() - started,
        stop_reason=result["stop_reason"],
        **known,
    )


def expand(task: Task, effort: Effort) -> Found:
    """Expansion search: minimise the loss's linear-fractional part around ever better references, then swap.

    Starts from the whole pool and from random federations; ends at a federation that no single swap improves.
    """
    started = time.perf_counter()
    result = _core.expand(
        task.problem,
        random_starts=RANDOM_STARTS,
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return as_found(result, started, certified=tuple(result["certified"]))


def certify_model(task: Task, effort: Effort, *, known: Sequence[int], most: int, most_prefixes: int) -> Found:
    """Enumerate under the second-order model and evaluate exactly what its error band holds.

    Parameters
    ----------
    known : sequence of int
        Pool rows of the best federation known.
    most : int
        Federations evaluated exactly before the band counts as too wide.
    most_prefixes : int
        Bounds computed before the enumeration counts as too long.
    """
    started = time.perf_counter()
    result = _refusing(
        _core.certify,
        task.problem,
        known=list(known),
        sample=MODEL_SAMPLE,
        most=most,
        most_prefixes=most_prefixes,
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    evidence = ModelEvidence(
        outcome=result["outcome"],
        covered=math.comb(task.free, task.choices),
        rechecked=result["evaluations"],
        compared=result["compared"],
        band=result["band"],
    )
    return as_found(result, started, model=evidence)


def exchanges(task: Task, size: int) -> int:
    """Return the number of exchanges of one to `size` members for outsiders."""
    outsiders = task.free - task.choices
    return sum(math.comb(task.choices, leaving) * math.comb(outsiders, leaving) for leaving in range(1, size + 1))


def exchange(task: Task, effort: Effort, *, start: Sequence[int], size: int) -> Found:
    """Descend from a federation by exchanges of up to `size` members, each found by enumeration."""
    started = time.perf_counter()
    result = _core.exchange(
        task.problem,
        start=list(start),
        size=size,
        keep=effort.keep,
        threads=effort.threads,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return as_found(result, started, certified=tuple(result["certified"]), exchanged=size)


def greedy(task: Task, effort: Effort) -> Found:
    """Forward selection: add the client that lowers the loss most, k times. A baseline."""
    started = time.perf_counter()
    result = _core.greedy(
        task.problem, keep=effort.keep, seed=effort.seed, time_limit=effort.time_limit, progress=effort.progress
    )
    return as_found(result, started, certified=tuple(result["certified"]))


def descend(task: Task, effort: Effort, *, starts: Starts = ()) -> Found:
    """Steepest descent by swaps from the given or from random federations. A baseline."""
    started = time.perf_counter()
    result = _refusing(
        _core.descend,
        task.problem,
        starts=[list(start) for start in starts],
        random_starts=DESCENTS,
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return as_found(result, started, certified=tuple(result["certified"]))


def anneal(
    task: Task, effort: Effort, *, schedule: Schedule | None = None, chains: int = 5, starts: Starts = ()
) -> Found:
    """Independent annealing chains (PCS, arXiv 2605.20975, algorithm 2); the best federation of all is returned.

    Without a schedule, one is fitted to the loss gaps of random swaps.
    """
    started = time.perf_counter()
    result = _refusing(_core.anneal, task.problem, **_annealing(task, effort, schedule, chains, starts))
    return as_found(result, started, chains=_chains(task, result))


def temper(
    task: Task, effort: Effort, *, schedule: Schedule | None = None, chains: int = 5, starts: Starts = ()
) -> Found:
    """Replica exchange: one chain at each of as many temperatures, from the schedule's first to its last.

    Each chain takes as many steps as the schedule has, and now and then neighbours trade temperatures.
    """
    if chains < 2:
        raise SelectionError(f"replica exchange needs at least 2 chains, got {chains}")
    started = time.perf_counter()
    schedule = fit_schedule(task, seed=effort.seed) if schedule is None else schedule
    temperatures = schedule.temperatures()
    steps = len(temperatures) * schedule.evaluations_per_level
    if schedule.max_evaluations is not None:
        steps = min(steps, schedule.max_evaluations)
    result = _refusing(
        _core.temper,
        task.problem,
        temperatures=np.geomspace(temperatures[0], temperatures[-1], chains).tolist(),
        evaluations_per_round=_ROUND,
        rounds=math.ceil(steps / _ROUND),
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        initial_states=[list(start) for start in starts],
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return as_found(result, started, chains=_chains(task, result))


def _chains(task: Task, result: Annealing) -> tuple[ChainResult, ...]:
    clients = task.loss.clients
    return tuple(
        ChainResult(tuple(clients[row] for row in rows), value, evaluations, tuple(trace))
        for value, rows, evaluations, trace in result["chains"]
    )


def anneal_model(
    task: Task, effort: Effort, *, schedule: Schedule | None = None, chains: int = 5, starts: Starts = ()
) -> Found:
    """Annealing under the second-order model, at nanoseconds a swap; its results are polished by the exact loss.

    Evaluations under the model count like exact ones. Pools of more than 4,096 clients are annealed by the exact loss:
    the model is one matrix over all clients, and without it costs as much as the exact loss.
    """
    started = time.perf_counter()
    result = _refusing(_core.anneal_quadratic, task.problem, **_annealing(task, effort, schedule, chains, starts))
    return as_found(result, started, certified=tuple(result["certified"]))


def _annealing(task: Task, effort: Effort, schedule: Schedule | None, chains: int, starts: Starts) -> dict[str, Any]:
    if schedule is None:
        schedule = fit_schedule(task, seed=effort.seed)
    return {
        "temperatures": schedule.temperatures().tolist(),
        "evaluations_per_level": schedule.evaluations_per_level,
        "max_evaluations": 2**62 if schedule.max_evaluations is None else schedule.max_evaluations,
        "chains": chains,
        "keep": effort.keep,
        "threads": effort.threads,
        "seed": effort.seed,
        "initial_states": [list(start) for start in starts],
        "time_limit": effort.time_limit,
        "progress": effort.progress,
    }


def fit_schedule(task: Task, *, seed: int) -> GeometricSchedule:
    """Return the annealing schedule that suits a task; see `fedsel.selection.schedule.fitted_schedule`."""
    gaps = _core.swap_gaps(task.problem, count=_GAPS, seed=seed)
    return fitted_schedule(gaps, neighbours=task.choices * (task.free - task.choices))


def _refusing(search: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call the core; what it refuses (a bad start) is the user's."""
    try:
        return search(*arguments, **options)
    except ValueError as error:
        raise SelectionError(str(error)) from None
