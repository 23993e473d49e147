"""What each member brings, and who could take its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.report.frame import Frame
from fedsel.selection.result import Member

MOST_MEMBERS = 50
"""Larger federations are examined for their largest members only."""


@dataclass(frozen=True)
class Contribution:
    """One member.

    Parameters
    ----------
    member : Member
        Its name and estimated size.
    share : float
        Its estimated share of the federation's records, 0 to 1.
    required : bool
        Whether the selection was told to include it.
    without : float or None
        Loss in bits of the federation without it; None for a federation of one.
    replacement : str or None
        The outsider whose entry in its place gives the lowest loss, the constraints kept; None if there is none to try.
    replaced : float or None
        That loss, in bits.
    """

    member: Member
    share: float
    required: bool
    without: float | None
    replacement: str | None
    replaced: float | None


@dataclass(frozen=True, eq=False)
class Contributions:
    """All members examined, and every exchange tried.

    Parameters
    ----------
    examined : tuple of Contribution
        The members by falling estimated size, at most `MOST_MEMBERS`.
    outsiders : int
        Clients that could join.
    tried : int
        Outsiders tried in every member's place; fewer than `outsiders` where all would take too long.
    leaving, entering : ndarray of int64, shape (exchanges,)
        Pool rows of the member and the outsider of every exchange tried.
    losses : ndarray of float64, shape (exchanges,)
        Loss after the exchange, in bits.
    """

    examined: tuple[Contribution, ...]
    outsiders: int
    tried: int
    leaving: npt.NDArray[np.int64]
    entering: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]

    def exchanged(self, frame: Frame, number: int) -> tuple[int, ...]:
        """Return the federation after one exchange, as ascending pool rows."""
        kept = frame.without(int(self.leaving[number])).tolist()
        return tuple(sorted([*kept, int(self.entering[number])]))


def contributions(frame: Frame, *, seed: int) -> Contributions:
    """Evaluate the federation without each member and with each member exchanged for each outsider.

    Parameters
    ----------
    frame : Frame
        The chosen federation in its pool.
    seed : int
        Seed for the choice of outsiders where not all can be tried.

    Returns
    -------
    Contributions
    """
    sizes = {member.name: member.records for member in frame.selection.members}
    order = sorted(frame.selection.members, key=lambda member: (-member.records, member.name))[:MOST_MEMBERS]
    rows = np.array([frame.pool.index(member.name) for member in order], dtype=np.int64)
    whole = sum(max(size, 0.0) for size in sizes.values())
    without = _without(frame, rows)
    movable = np.array([row for row in rows if row not in frame.ruleset.fixed], dtype=np.int64)
    candidates = _candidates(frame, len(movable), seed)
    table = np.full((len(movable), len(candidates)), np.inf)
    for position, row in enumerate(movable):
        if len(candidates):
            federations = _replacing(frame, int(row), candidates)
            allowed = frame.allowed(federations)
            table[position, allowed] = frame.losses(federations[allowed])
    best: dict[int, tuple[str, float]] = {}
    for position, row in enumerate(movable):
        if len(candidates):
            choice = int(np.argmin(table[position]))
            if np.isinf(table[position, choice]):
                continue  # the rules allow nobody in this member's place
            best[int(row)] = (frame.pool.clients[candidates[choice]], float(table[position, choice]))
    tried = np.isfinite(table.ravel())
    return Contributions(
        examined=tuple(
            Contribution(
                member=member,
                share=max(member.records, 0.0) / whole if whole > 0 else 0.0,
                required=int(row) in frame.ruleset.fixed,
                without=None if frame.k == 1 else float(without[position]),
                replacement=best[int(row)][0] if int(row) in best else None,
                replaced=best[int(row)][1] if int(row) in best else None,
            )
            for position, (member, row) in enumerate(zip(order, rows, strict=True))
        ),
        outsiders=len(frame.outsiders),
        tried=len(candidates),
        leaving=np.repeat(movable, len(candidates))[tried],
        entering=np.tile(candidates, len(movable))[tried],
        losses=table.ravel()[tried],
    )


def _without(frame: Frame, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    if frame.k == 1:
        return np.full(len(rows), np.nan)
    return frame.losses(np.stack([frame.without(int(row)) for row in rows]))


def _replacing(frame: Frame, row: int, candidates: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    federations = np.repeat(frame.members[None, :], len(candidates), axis=0)
    federations[:, np.searchsorted(frame.members, row)] = candidates
    return federations


def _candidates(frame: Frame, members: int, seed: int) -> npt.NDArray[np.int64]:
    """Outsiders to try: all, or as many random ones as are affordable, those of the search's own runner-ups first."""
    outsiders = frame.outsiders
    room = max(1, frame.affordable(frame.k) // max(1, members))
    if len(outsiders) <= room:
        return outsiders
    met = sorted({row for federation in frame.known() for row in federation} & set(outsiders.tolist()))
    shuffled = np.random.default_rng([seed, 1]).permutation(outsiders).tolist()
    ordered = dict.fromkeys([*met, *shuffled])
    return np.array(sorted(list(ordered)[:room]), dtype=np.int64)
