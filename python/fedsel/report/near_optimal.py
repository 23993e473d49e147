"""How often each client is in the federations that are almost as good as the best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from fedsel.report.comparison import Comparison
from fedsel.report.contributions import Contributions
from fedsel.report.frame import Frame
from fedsel.selection.certificates import AFFORDABLE
from fedsel.selection.schedule import GeometricSchedule
from fedsel.selection.select import select

SHARE = 0.01
FEWEST, MOST = 10, 1_000
BEST_EXCHANGES = 100
CHAINS = 8

Scored = dict[tuple[int, ...], float]


@dataclass(frozen=True, eq=False)
class NearOptimal:
    """The best hundredth of the federations of the size that keep the constraints, at least 10 and at most 1,000.

    Parameters
    ----------
    complete : bool
        Whether they are the best of *all* federations of the size. Otherwise they are the best of those evaluated:
        everything the search reported, every exchange of one member, pairs of the best such exchanges, the random
        federations of the comparison, and what seeded annealing chains passed through.
    federations : ndarray of int64, shape (federations, k)
        Pool rows, by rising loss.
    losses : ndarray of float64, shape (federations,)
        In bits.
    frequency : ndarray of float64, shape (clients,)
        Share of these federations that hold the client, 0 to 1.
    """

    complete: bool
    federations: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    frequency: npt.NDArray[np.float64]


def near_optimal(frame: Frame, exchanges: Contributions, comparison: Comparison, *, seed: int) -> NearOptimal:
    """Gather the near-optimal federations and count their members.

    Parameters
    ----------
    frame : Frame
        The chosen federation in its pool.
    exchanges : Contributions
        Every exchange of one member tried.
    comparison : Comparison
        Other federations of the size.
    seed : int
        Seed of the annealing chains.

    Returns
    -------
    NearOptimal
    """
    wanted = min(frame.total, MOST, max(FEWEST, -int(-frame.total * SHARE // 1)))
    scored: Scored = {}
    complete = comparison.complete
    if complete:
        _add(scored, comparison.federations, comparison.losses)
    elif frame.total <= AFFORDABLE and frame.selection.certificate.kind == "proof":  # it was affordable before
        complete = _enumerate(frame, scored, wanted)
    if not complete:
        _sample(frame, scored, exchanges, comparison, wanted, seed)
    ranked = sorted((loss, federation) for federation, loss in scored.items())[:wanted]
    federations = np.array([federation for _, federation in ranked], dtype=np.int64)
    counts = np.bincount(federations.ravel(), minlength=len(frame.pool))
    return NearOptimal(
        complete=complete,
        federations=federations,
        losses=np.array([loss for loss, _ in ranked]),
        frequency=counts / len(ranked),
    )


def _add(scored: Scored, federations: npt.NDArray[np.int64], losses: npt.NDArray[np.float64]) -> None:
    for federation, loss in zip(federations.tolist(), losses.tolist(), strict=True):
        scored[tuple(federation)] = loss


def _enumerate(frame: Frame, scored: Scored, wanted: int) -> bool:
    """Take the best of all federations; False if the enumeration was interrupted."""
    best = select(
        frame.pool,
        frame.k,
        search="exhaustive",
        weights=frame.selection.weights,
        sensitive=frame.selection.sensitive,
        constraints=frame.constraints,
        denoise_method=frame.selection.denoise,  # type: ignore[arg-type]
        threads=frame.threads,
        runner_ups=wanted,
    )
    scored[frame.rows(best.names)] = best.loss
    scored.update((frame.rows(other.members), other.loss) for other in best.runner_ups)
    return best.certificate.kind == "proof"


def _sample(
    frame: Frame, scored: Scored, exchanges: Contributions, comparison: Comparison, wanted: int, seed: int
) -> None:
    known = np.array(sorted(set(frame.known())), dtype=np.int64)
    _add(scored, known, frame.losses(known))
    _add(scored, comparison.federations, comparison.losses)
    order = np.argsort(exchanges.losses, kind="stable")[:wanted]
    scored.update((exchanges.exchanged(frame, int(i)), float(exchanges.losses[i])) for i in order)
    pairs = _pairs(frame, exchanges, order[:BEST_EXCHANGES])
    if len(pairs):
        _add(scored, pairs, frame.losses(pairs))
    _anneal(frame, scored, comparison, wanted, seed)


def _pairs(frame: Frame, exchanges: Contributions, best: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Federations after two of the best exchanges at once, (federations, k)."""
    found = []
    members = frame.members.tolist()
    for a, b in islice(combinations(best.tolist(), 2), frame.affordable(frame.k) // 4):
        out = {int(exchanges.leaving[a]), int(exchanges.leaving[b])}
        into = {int(exchanges.entering[a]), int(exchanges.entering[b])}
        if len(out) == len(into) == 2:
            found.append(sorted([*(row for row in members if row not in out), *into]))
    federations = np.array(found, dtype=np.int64).reshape(-1, frame.k)
    return federations[frame.allowed(federations)]


def _anneal(frame: Frame, scored: Scored, comparison: Comparison, wanted: int, seed: int) -> None:
    """Let annealing walk near the optimum: from the spread of random federations down to a hundredth of it."""
    spread = max(comparison.deviation, 1e-9)
    found = select(
        frame.pool,
        frame.k,
        search="anneal",
        weights=frame.selection.weights,
        sensitive=frame.selection.sensitive,
        constraints=frame.constraints,
        denoise_method=frame.selection.denoise,  # type: ignore[arg-type]
        certificate="none",
        schedule=GeometricSchedule(initial=spread, final=spread / 100),
        chains=CHAINS,
        seed=seed,
        threads=frame.threads,
        runner_ups=wanted,
    )
    scored[frame.rows(found.names)] = found.loss
    scored.update((frame.rows(other.members), other.loss) for other in found.runner_ups)
