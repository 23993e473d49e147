"""Choosing a federation: the main entry point of the library."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import index
from pathlib import Path
from typing import Literal, get_args

from fedsel.errors import InfeasibleError, SelectionError
from fedsel.pool import Pool
from fedsel.privacy.sufficiency import noise_bounds
from fedsel.selection import enumeration, methods
from fedsel.selection.arguments import check_effort, check_numbers, is_whole
from fedsel.selection.certificates import ROUNDING, CertificateMode, describe, seek
from fedsel.selection.checkpoint import Checkpoint, work_key
from fedsel.selection.constraints import Constraints, Ruleset, resolve
from fedsel.selection.denoising import DenoiseMethod, denoise, resolve_method
from fedsel.selection.loss import FederationLoss
from fedsel.selection.loss_tables import Sensitive
from fedsel.selection.methods import Effort, Found, Progress, Starts, Task
from fedsel.selection.result import Certificate, Member, RunnerUp, Selection, SizeResult, StopReason
from fedsel.selection.schedule import Schedule
from fedsel.selection.weights import LossWeights

SearchMethod = Literal["auto", "expand", "anneal", "temper", "model", "exhaustive", "greedy", "descent"]


_ANNEALING = {"anneal": methods.anneal, "temper": methods.temper, "model": methods.anneal_model}


def select(
    pool: Pool,
    k: int | tuple[int, int],
    *,
    search: SearchMethod = "auto",
    weights: LossWeights | None = None,
    sensitive: Sensitive = None,
    constraints: Constraints | None = None,
    tolerance: float = 0.01,
    denoise_method: DenoiseMethod = "auto",
    prepared: str | os.PathLike[str] | None = None,
    certificate: CertificateMode = "auto",
    schedule: Schedule | None = None,
    chains: int = 5,
    initial: Sequence[Sequence[str | int]] = (),
    seed: int = 0,
    threads: int | None = None,
    time_limit: float = math.inf,
    runner_ups: int = 5,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Selection:
    """Choose the k clients whose union has the lowest federation loss.

    Parameters
    ----------
    pool : Pool
        The candidates' releases.
    k : int or (int, int)
        Number of members, between 1 and the number of clients; or the smallest and largest number, both tried: the best
        federation of any of these sizes is returned, with the best of each size, and the smallest of them whose loss is
        within `tolerance` of the best.
    search : {"auto", "expand", "anneal", "temper", "model", "exhaustive", "greedy", "descent"}
        ``expand`` minimises the loss's linear-fractional part and polishes by swaps; ``anneal`` runs simulated
        annealing (PCS, arXiv 2605.20975, algorithm 2), ``temper`` replica exchange; ``model`` anneals under a
        second-order model of the loss, at nanoseconds a swap, and polishes by swaps; ``exhaustive`` evaluates every
        federation; ``greedy`` (forward
        selection) and ``descent`` (steepest swaps from random federations) are baselines. ``auto`` is ``expand``.
    weights : LossWeights or None
        Weights of the loss, by default those of PCS.
    sensitive : str, sequence of str or None
        The active sensitive attributes, by default the schema's first.
    constraints : Constraints or None
        What the federation must satisfy.
    tolerance : float
        Bits of loss that a smaller federation may be worse; used with a range of sizes.
    denoise_method : {"auto", "none", "clip", "consistent", "shrink", "reference"}
        What is done to the noisy tables first; see `denoise`.
    prepared : path or None
        A file in which `prepare` has laid out this pool, denoised already: it is mapped, so that a pool needs neither
        denoising nor memory for all its tables.
    certificate : {"auto", "enumerate", "bound", "model", "none"}
        What to do after the search to know how good its result is. ``enumerate`` evaluates every federation, which
        proves the optimum. ``bound`` proves it by branch and bound, where the pool's tables agree (exact and denoised
        ones do), or says by how much a better federation is better at most. ``model`` goes through all of them under a
        second-order model of the loss, most by bounds, and evaluates exactly those that the model puts within its error
        band of the best: strong evidence, no proof. ``auto`` enumerates up to 3,000,000 federations; else it tries
        bounds and, where they end without proof, the model, for about a second each.
    schedule : Schedule or None
        Annealing only: temperatures; by default fitted to the pool. `GeometricSchedule` is the paper's.
    chains : int
        Annealing only: independent chains; with ``temper`` one at each temperature, at least 2.
    initial : sequence of federations
        Annealing (one a chain) and descent only: members to start from, as names or pool rows.
    seed : int
        Seed of the search; the same seed gives the same result for any number of threads.
    threads : int or None
        Threads to use, by default all that this process may run on.
    time_limit : float
        Seconds for search and certificate together; the best federation so far is returned when they are over.
    runner_ups : int
        How many further federations to return.
    progress : callable or None
        Called on this thread with (evaluations, planned evaluations or 0); what it raises stops the search and is
        raised here.
    checkpoint : Path or None
        A file that keeps how far enumeration, or branch and bound, has come. After a stop or a kill, the same call goes
        on from there and ends at the same result. For one size, with search ``exhaustive`` or certificate
        ``enumerate`` or ``bound``.

    Returns
    -------
    Selection

    Raises
    ------
    SelectionError
        If an argument is out of range, or no federation of any size asked for satisfies the constraints: the message
        says which of them clash (`InfeasibleError`).

    Notes
    -----
    Ctrl-C stops the search and returns the best federation so far, with ``stop_reason == "interrupted"``.
    """
    started = time.perf_counter()
    low, high = _range(k)
    _check_choices(search=search, certificate=certificate)
    methods.check_size(low, pool)
    check_numbers(
        chains=(chains, 1, 10_000),
        runner_ups=(runner_ups, 0, 10_000),
    )
    if high != low:
        check_numbers(**{"the largest k": (high, low, len(pool))})
    check_effort(seed, threads, time_limit)
    if not (isinstance(tolerance, float | int) and tolerance >= 0):
        raise SelectionError(f"tolerance must be at least 0, got {tolerance!r}")
    resumable = search == "exhaustive" or certificate in ("enumerate", "bound")
    if checkpoint is not None and (low != high or not resumable):
        raise SelectionError("a checkpoint goes with one size, and search exhaustive or certificate enumerate or bound")
    if checkpoint is not None and prepared is not None:
        raise SelectionError("a checkpoint does not go with a prepared pool")
    if prepared is None:
        denoised = denoise(pool, method=denoise_method)
        loss = FederationLoss(denoised, weights=weights, sensitive=sensitive)
    else:
        loss = FederationLoss.prepared(
            pool, prepared, denoise_method=denoise_method, weights=weights, sensitive=sensitive
        )
    ruleset = resolve(constraints or Constraints(), pool)
    starts = [loss.rows(members) for members in initial]
    method: SearchMethod = "expand" if search == "auto" else search
    if starts and method not in ("anneal", "temper", "model", "descent"):
        raise SelectionError(f"initial federations go with search anneal, temper, model or descent, got {method}")

    kept = None
    if checkpoint is not None:
        kept = Checkpoint(checkpoint, work_key(denoised, loss, ruleset, low, runner_ups + 1))

    def effort(sizes_left: int) -> Effort:
        left = max(0.0, time_limit - (time.perf_counter() - started)) / sizes_left
        workers = methods.available_threads(threads)
        return Effort(seed, workers, left, runner_ups + 1, progress, kept)

    outcomes: list[_Outcome] = []
    impossible: list[str] = []
    for size in range(low, high + 1):
        try:
            task = Task.of(loss, size, ruleset)
        except InfeasibleError as error:
            if size == high and not outcomes:
                raise
            impossible.append(f"k = {size} was left out: {error}")
            continue
        share = partial(effort, high + 1 - size)
        outcomes.append(_solve(task, method, certificate, share, schedule, chains, starts))
        if outcomes[-1].stop_reason == "interrupted":
            break
    best = min(outcomes, key=lambda outcome: (outcome.loss, outcome.task.k))
    sizes = tuple(outcome.size_result() for outcome in outcomes) if high > low else ()
    within = [result for result in sizes if result.loss <= best.loss + tolerance]
    return replace(
        _selection(pool, best, ruleset, method, seed, runner_ups),
        evaluations=sum(outcome.found.evaluations for outcome in outcomes),
        search_seconds=sum(outcome.found.seconds for outcome in outcomes),
        certificate_seconds=sum(outcome.certificate_seconds for outcome in outcomes),
        wall_seconds=time.perf_counter() - started,
        stop_reason=_first_stop([outcome.stop_reason for outcome in outcomes]),
        sizes=sizes,
        smallest=within[0] if within else None,
        denoise=resolve_method(pool, denoise_method),
        notes=(
            *impossible,
            *_rounding_notes(loss),
            *(f"mixed pool: {difference}" for difference in pool.mixed),
            *_noise_notes(pool, best.members),
        ),
    )


def _first_stop(reasons: Sequence[StopReason]) -> StopReason:
    """Return why the sizes' searches did not all complete, if one did not."""
    return next((reason for reason in reasons if reason != "completed"), "completed")


def _rounding_notes(loss: FederationLoss) -> list[str]:
    """Say that counts were rounded to fit the search's sums."""
    if not loss.shift:
        return []
    return [f"counts are so large that they were divided by {2**loss.shift} and rounded: nothing is proved exactly"]


def _noise_notes(pool: Pool, members: Sequence[int]) -> list[str]:
    """Say which members hold too few records for their noise."""
    estimates = pool.totals().estimate
    drowned: list[str] = []
    blurred: list[str] = []
    for row in members:
        low, high = noise_bounds(pool.workload, pool.plans[pool.plan_index[row]])
        if estimates[row] < high:
            (drowned if estimates[row] < low else blurred).append(pool.clients[row])
    notes = []
    if drowned:
        notes.append(f"the noise drowns the counts of {', '.join(drowned)}: choosing them is close to a guess")
    if blurred:
        notes.append(f"the noise blurs the counts of {', '.join(blurred)}")
    return notes


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Search and certificate of one size, joined: the best members, and the others seen in order of loss."""

    task: Task
    found: Found
    steps: tuple[Found, ...]
    members: tuple[int, ...]
    loss: float
    others: tuple[tuple[float, tuple[int, ...]], ...]

    @property
    def stop_reason(self) -> StopReason:
        return _first_stop([self.found.stop_reason, *(step.stop_reason for step in self.steps)])

    @property
    def certificate_seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def certificate(self) -> Certificate:
        return describe(self.task, self.found, self.steps, self.members, self.loss)

    def size_result(self) -> SizeResult:
        clients = self.task.loss.clients
        return SizeResult(self.task.k, self.loss, tuple(clients[row] for row in self.members), self.certificate.kind)


def _solve(
    task: Task,
    method: SearchMethod,
    certificate: CertificateMode,
    effort: Callable[[], Effort],
    schedule: Schedule | None,
    chains: int,
    starts: Starts,
) -> _Outcome:
    if method == "exhaustive":
        found = enumeration.enumerate_all(task, effort())
    elif method in _ANNEALING:
        found = _ANNEALING[method](task, effort(), schedule=schedule, chains=chains, starts=starts)
    elif method == "descent":
        found = methods.descend(task, effort(), starts=starts)
    elif method == "greedy":
        found = methods.greedy(task, effort())
    else:
        found = methods.expand(task, effort())
    steps = seek(task, found, certificate, effort)
    # All losses from one kernel, so that they compare; the same federation may come from search and proof.
    results = (found, *steps)
    certified = [result.certified for result in reversed(results) if result.certified]
    seen = {rows for result in results for _, rows in result.best} | set(certified)
    federations = sorted(seen)
    losses = task.loss.losses_of(federations)
    ranking = sorted(zip((float(value) for value in losses), federations, strict=True))
    # Of federations that tie within rounding, the one something is known about is the one to report.
    tied = [entry for entry in ranking if entry[0] <= ranking[0][0] + ROUNDING]
    known = next((rows for rows in certified if any(rows == entry[1] for entry in tied)), None)
    best = next((entry for entry in tied if entry[1] == known), ranking[0])
    ranking.remove(best)
    return _Outcome(task, found, steps, best[1], best[0], tuple(ranking))


def _selection(
    pool: Pool, outcome: _Outcome, ruleset: Ruleset, method: SearchMethod, seed: int, runner_ups: int
) -> Selection:
    loss, totals = outcome.task.loss, pool.totals()
    return Selection(
        members=tuple(
            Member(pool.clients[row], float(totals.estimate[row]), float(totals.standard_error[row]))
            for row in outcome.members
        ),
        loss=outcome.loss,
        components=loss.components(outcome.members),
        weights=loss.weights,
        sensitive=loss.sensitive,
        k=outcome.task.k,
        pool_size=len(pool),
        search=method,
        seed=seed,
        evaluations=outcome.found.evaluations,
        search_seconds=outcome.found.seconds,
        certificate_seconds=outcome.certificate_seconds,
        wall_seconds=0.0,
        stop_reason=outcome.stop_reason,
        certificate=outcome.certificate,
        runner_ups=tuple(
            RunnerUp(tuple(loss.clients[row] for row in rows), value) for value, rows in outcome.others[:runner_ups]
        ),
        chains=outcome.found.chains,
        constraints=ruleset.labels(pool.clients),
        sizes=(),
        smallest=None,
        denoise="none",
        notes=(),
        privacy=pool.private,
    )


def _range(k: object) -> tuple[int, int]:
    bounds = k if isinstance(k, tuple) else (k, k)
    if len(bounds) != 2 or not (is_whole(bounds[0]) and is_whole(bounds[1])):
        raise SelectionError(f"k must be a number, or a smallest and a largest one, got {k!r}")
    return index(bounds[0]), index(bounds[1])


def _check_choices(*, search: str, certificate: str) -> None:
    for name, value, allowed in (
        ("search", search, get_args(SearchMethod)),
        ("certificate", certificate, get_args(CertificateMode)),
    ):
        if value not in allowed:
            raise SelectionError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
