"""Choosing a federation: the main entry point of the library."""

from __future__ import annotations

import math
import os
import time
from dataclasses import astuple
from typing import Literal, get_args

import numpy as np

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.denoise import DenoiseMethod, denoise
from fedsel.selection.loss import FederationLoss
from fedsel.selection.methods import Effort, Found, Progress, anneal, enumerate_all, expand
from fedsel.selection.result import Certificate, Member, RunnerUp, Selection, StopReason
from fedsel.selection.schedule import GeometricSchedule, Schedule
from fedsel.selection.weights import Components, LossWeights

SearchMethod = Literal["auto", "expand", "anneal", "exhaustive"]
CertificateMode = Literal["auto", "enumerate", "none"]

AFFORDABLE = 3_000_000
"""Most federations that are enumerated unasked for a certificate: a few seconds on one core."""


def select(
    pool: Pool,
    k: int,
    *,
    search: SearchMethod = "auto",
    weights: LossWeights | None = None,
    sensitive: str | None = None,
    denoise_method: DenoiseMethod = "none",
    certificate: CertificateMode = "auto",
    schedule: Schedule | None = None,
    chains: int = 5,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float = math.inf,
    runner_ups: int = 5,
    progress: Progress | None = None,
) -> Selection:
    """Choose the k clients whose union has the lowest federation loss.

    Parameters
    ----------
    pool : Pool
        The candidates' releases.
    k : int
        Number of members, between 1 and the number of clients.
    search : {"auto", "expand", "anneal", "exhaustive"}
        ``expand`` minimises the loss's linear-fractional part and polishes by swaps; ``anneal`` runs simulated
        annealing (PCS, arXiv 2605.20975, algorithm 2); ``exhaustive`` evaluates every federation. ``auto`` is
        ``expand``.
    weights : LossWeights or None
        Weights of the loss, by default those of PCS.
    sensitive : str or None
        The active sensitive attribute, by default the schema's first.
    denoise_method : {"none", "clip"}
        What is done to the noisy tables first; see `denoise`.
    certificate : {"auto", "enumerate", "none"}
        Whether to evaluate every federation after the search, to prove the optimum: ``auto`` does where there are at
        most 3,000,000.
    schedule : Schedule or None
        Annealing only: temperatures, by default the paper's.
    chains : int
        Annealing only: independent chains.
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

    Returns
    -------
    Selection

    Raises
    ------
    SelectionError
        If an argument is out of range.

    Notes
    -----
    Ctrl-C stops the search and returns the best federation so far, with ``stop_reason == "interrupted"``.
    """
    started = time.perf_counter()
    _check(pool, k, search, certificate, chains, seed, threads, time_limit, runner_ups)
    loss = FederationLoss(denoise(pool, method=denoise_method), weights=weights, sensitive=sensitive)
    workers = len(os.sched_getaffinity(0)) if threads is None else threads
    method: SearchMethod = "expand" if search == "auto" else search

    def effort() -> Effort:
        left = max(0.0, time_limit - (time.perf_counter() - started))
        return Effort(seed=seed, threads=workers, time_limit=left, keep=runner_ups + 1, progress=progress)

    if method == "exhaustive":
        found = enumerate_all(loss, k, effort())
        if not found.best:
            raise SelectionError("the time limit ended the search before one federation was evaluated")
    elif method == "anneal":
        found = anneal(loss, k, effort(), schedule=schedule or GeometricSchedule(), chains=chains)
    else:
        found = expand(loss, k, effort())

    subsets = _core.binomial(len(pool), k)
    proof: Found | None = None
    wanted = certificate == "enumerate" or (certificate == "auto" and subsets <= AFFORDABLE)
    if wanted and method != "exhaustive" and found.stop_reason == "completed":
        proof = enumerate_all(loss, k, effort())
    members, ranking = _merge(loss, found, proof)
    components = loss.components(members)
    stop: StopReason = found.stop_reason if proof is None else proof.stop_reason
    totals = pool.totals()
    return Selection(
        members=tuple(
            Member(pool.clients[row], float(totals.estimate[row]), float(totals.standard_error[row]))
            for row in sorted(members)
        ),
        loss=_value(loss, components),
        components=components,
        weights=loss.weights,
        sensitive=loss.sensitive,
        k=k,
        pool_size=len(pool),
        search=method,
        seed=seed,
        evaluations=found.evaluations,
        search_seconds=found.seconds,
        certificate_seconds=0.0 if proof is None else proof.seconds,
        wall_seconds=time.perf_counter() - started,
        stop_reason=stop,
        certificate=_certify(found, proof, subsets, members),
        runner_ups=tuple(RunnerUp(tuple(loss.clients[r] for r in rows), value) for value, rows in ranking[:runner_ups]),
        chains=found.chains,
        denoise=denoise_method,
        notes=pool.mixed,
        privacy=pool.private,
    )


def _check(
    pool: Pool,
    k: int,
    search: str,
    certificate: str,
    chains: int,
    seed: int,
    threads: int | None,
    time_limit: float,
    runner_ups: int,
) -> None:
    for name, value, allowed in (
        ("search", search, get_args(SearchMethod)),
        ("certificate", certificate, get_args(CertificateMode)),
    ):
        if value not in allowed:
            raise SelectionError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    for name, number, low, high in (
        ("k", k, 1, len(pool)),
        ("chains", chains, 1, 10_000),
        ("seed", seed, 0, 2**64 - 1),
        ("threads", 1 if threads is None else threads, 1, 1024),
        ("runner_ups", runner_ups, 0, 10_000),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise SelectionError(f"{name} must be between {low} and {high}, got {number}")
    if not time_limit > 0:
        raise SelectionError(f"time_limit must be positive, got {time_limit}")


def _value(loss: FederationLoss, components: Components) -> float:
    return float(np.dot(astuple(components), loss.weights.signed))


def _merge(
    loss: FederationLoss, found: Found, proof: Found | None
) -> tuple[tuple[int, ...], list[tuple[float, tuple[int, ...]]]]:
    """Best members, and the other federations seen in order of loss, all losses from one kernel."""
    seen = {rows for _, rows in found.best} | ({rows for _, rows in proof.best} if proof else set())
    ordered = sorted(seen)
    losses = loss.components_of(ordered) @ loss.weights.signed
    ranking = sorted(zip((float(value) for value in losses), ordered, strict=True))
    return ranking[0][1], ranking[1:]


def _certify(found: Found, proof: Found | None, subsets: int, members: tuple[int, ...]) -> Certificate:
    if found.complete or (proof is not None and proof.complete):
        statement = f"all {subsets:,} federations of this size were evaluated; none has a lower loss"
        return Certificate("proof", statement, proof.evaluations if proof else 0)
    if found.swap_optimal and members == found.best[0][1]:
        statement = "no exchange of one member for one outsider lowers the loss"
        return Certificate("swap-optimal", statement, proof.evaluations if proof else 0)
    return Certificate("none", "nothing is proved about this federation", proof.evaluations if proof else 0)
