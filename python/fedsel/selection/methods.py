"""The search methods, each one call into the C++ core with its defaults."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedsel import _core
from fedsel.selection.loss import FederationLoss
from fedsel.selection.result import ChainResult, StopReason
from fedsel.selection.schedule import Schedule

if TYPE_CHECKING:
    from fedsel._core import SearchResult

Progress = Callable[[int, int], object]
"""Called now and then on the calling thread with (evaluations so far, evaluations planned or 0 if unknown)."""

RANDOM_STARTS = 15
NO_LIMIT = float("inf")


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
    """

    seed: int
    threads: int
    time_limit: float
    keep: int
    progress: Progress | None


@dataclass(frozen=True)
class Found:
    """Raw result of one search: pool rows, losses as the search saw them."""

    best: tuple[tuple[float, tuple[int, ...]], ...]
    evaluations: int
    seconds: float
    stop_reason: StopReason
    swap_optimal: bool = False
    complete: bool = False
    chains: tuple[ChainResult, ...] = ()


def _found(result: SearchResult, started: float, **known: Any) -> Found:
    return Found(
        best=tuple((loss, tuple(rows)) for loss, rows in result["best"]),
        evaluations=result["evaluations"],
        seconds=time.perf_counter() - started,
        stop_reason=result["stop_reason"],
        **known,
    )


def expand(loss: FederationLoss, k: int, effort: Effort) -> Found:
    """Expansion search: minimise the loss's linear-fractional part around ever better references, then swap.

    Starts from the whole pool and from random federations; ends at a federation that no single swap improves.
    """
    started = time.perf_counter()
    result = _core.expand(
        loss.model,
        k,
        random_starts=RANDOM_STARTS,
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return _found(result, started, swap_optimal=result["swap_optimal"])


def enumerate_all(loss: FederationLoss, k: int, effort: Effort) -> Found:
    """Evaluate every federation of k members."""
    started = time.perf_counter()
    result = _core.enumerate(
        loss.model,
        k,
        keep=effort.keep,
        threads=effort.threads,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return _found(result, started, complete=result["complete"], swap_optimal=result["complete"])


def anneal(
    loss: FederationLoss,
    k: int,
    effort: Effort,
    *,
    schedule: Schedule,
    chains: int,
    initial: Sequence[Sequence[int]] = (),
) -> Found:
    """Independent annealing chains (PCS, arXiv 2605.20975, algorithm 2); the best federation of all is returned."""
    started = time.perf_counter()
    result = _core.anneal(
        loss.model,
        k,
        temperatures=schedule.temperatures().tolist(),
        evaluations_per_level=schedule.evaluations_per_level,
        max_evaluations=2**62 if schedule.max_evaluations is None else schedule.max_evaluations,
        chains=chains,
        keep=effort.keep,
        threads=effort.threads,
        seed=effort.seed,
        initial_states=[list(state) for state in initial],
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    described = tuple(
        ChainResult(tuple(loss.clients[row] for row in rows), value, evaluations, tuple(trace))
        for value, rows, evaluations, trace in result["chains"]
    )
    return _found(result, started, chains=described)
