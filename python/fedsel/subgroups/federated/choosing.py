"""Which tables to ask for next, by what has been released so far and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from fedsel.errors import SubgroupError
from fedsel.pool import Pool
from fedsel.subgroups.federated.belief import Belief, believe
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.questions import Questions
from fedsel.subgroups.federated.ranking import Direction, qualities, rank, strength

Sets = tuple[tuple[int, ...], ...]

_LOOKED_AT = 10_000  # descriptions among which the tables to confirm are chosen


def next_questions(
    protocol: SubgroupProtocol,
    rounds: Sequence[Pool],
    *,
    direction: Direction = "higher",
    base: float | None = None,
) -> Questions:
    """Choose the tables of the next round.

    Parameters
    ----------
    protocol : SubgroupProtocol
        What was agreed.
    rounds : sequence of Pool
        The rounds so far, in order.
    direction : {'higher', 'lower', 'both'}
        Which deviations count.
    base : float, optional
        Public p0; that of the releases if not given.

    Raises
    ------
    SubgroupError
        If the rounds do not fit, or all have been released.
    """
    if len(rounds) == protocol.rounds:
        raise SubgroupError(f"all {protocol.rounds} rounds have been released: there is nothing left to ask")
    belief = believe(protocol, rounds)
    number = protocol.tables[len(rounds)]
    choose = _pairs if len(rounds) == 1 else _confirmed
    return Questions(protocol.identity, len(rounds) + 1, choose(belief, number, direction, base))


def _pairs(belief: Belief, number: int, direction: Direction, base: float | None) -> Sets:
    """Choose the pairs whose best cell is predicted to go furthest."""
    best = {
        members: float(strength(qualities(belief, table, base)[0], direction).max())
        for members, table in belief.tables.items()
        if len(members) == 2
    }
    return tuple(sorted(sorted(best, key=lambda members: -best[members])[:number]))


def _confirmed(belief: Belief, number: int, direction: Direction, base: float | None) -> Sets:
    """Choose the tables of the best descriptions, one by one until there are enough."""
    chosen: dict[tuple[int, ...], None] = {}
    for scored in rank(belief, _LOOKED_AT, depth=2, direction=direction, base=base):
        if len(chosen) < number:
            chosen.setdefault(scored.attributes)
    for members in belief.tables:
        if len(chosen) < number:
            chosen.setdefault(members)
    if len(chosen) < number:
        raise SubgroupError(f"confirm must be at most {len(belief.tables)}, the number of tables, got {number}")
    return tuple(sorted(chosen))
