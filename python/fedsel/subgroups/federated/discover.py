"""From the releases of all rounds to ranked subgroups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsel.errors import SubgroupError
from fedsel.pool import Pool
from fedsel.privacy.statement import state
from fedsel.schema import Schema
from fedsel.subgroups.conditions import Condition
from fedsel.subgroups.federated.belief import Belief, believe
from fedsel.subgroups.federated.confirming import confirm
from fedsel.subgroups.federated.coverage import coverage
from fedsel.subgroups.federated.evidence import Evidence, read_round
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.ranking import Direction, Scored, rank, score
from fedsel.subgroups.federated.result import ClientRate, FederatedSubgroup, FederatedSubgroups

ESTIMAND = "weighted relative accuracy n/N (p - p0) among the records of all clients together"

CONFIRMING = 3
"""The round that measures afresh."""

_STANDS_OUT = 2.0  # standard errors that a client's records must be above 0 for a rate there to be stated


def discover(
    protocol: SubgroupProtocol,
    rounds: Sequence[Pool],
    *,
    k: int = 10,
    depth: int = 2,
    direction: Direction = "higher",
    base: float | None = None,
    measured_only: bool = False,
    level: float = 0.95,
) -> FederatedSubgroups:
    """Find the subgroups whose outcome differs most, from private releases alone.

    Parameters
    ----------
    protocol : SubgroupProtocol
        What was agreed.
    rounds : sequence of Pool
        The releases of each round so far, in order; the same clients in all.
    k : int
        Number of subgroups.
    depth : {1, 2}
        Most conditions of a description.
    direction : {'higher', 'lower', 'both'}
        Which deviations of the outcome count.
    base : float, optional
        A public share of positives to compare with; that of the clients' records, as released, if not given.
    measured_only : bool
        Leave out descriptions whose table was not released.
    level : float
        Of the intervals of a confirmation round.

    Returns
    -------
    FederatedSubgroups
        None at all where one of the two outcomes does not stand out from the noise.

    Raises
    ------
    SubgroupError
        If a parameter is out of range or the rounds do not fit the protocol.
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise SubgroupError(f"k must be a whole number of at least 1, got {k!r}")
    if depth not in (1, 2):
        raise SubgroupError(f"depth must be 1 or 2, what tables of two attributes by the outcome hold, got {depth!r}")
    if base is not None and not 0 <= base <= 1:
        raise SubgroupError(f"base must be between 0 and 1, got {base}")
    if not 0 < level < 1:
        raise SubgroupError(f"level must be between 0 and 1 (exclusive), got {level}")
    belief = believe(protocol, rounds)
    # What a last round confirms is chosen and ordered without it: its noise must know nothing of the choice.
    earlier = belief if len(rounds) < CONFIRMING else believe(protocol, rounds[: CONFIRMING - 1])
    chosen = rank(earlier, k, depth=depth, direction=direction, base=base, measured_only=measured_only)
    found = [score(belief, scored.attributes, scored.codes, base) for scored in chosen]
    notes = _notes(protocol, belief, rounds)
    if not belief.varies:
        found = []
    last = rounds[-1]
    fresh: dict[tuple[int, ...], Evidence] = {}
    if len(rounds) == CONFIRMING and len(last) == len(rounds[0]):
        fresh = {table.attributes: table for table in read_round(protocol, last, rounds[0].clients)}
    p0 = belief.base if base is None else base
    subgroups = tuple(
        FederatedSubgroup(
            conditions=conditions(protocol.schema, scored),
            quality=scored.quality,
            error=scored.error,
            coverage=scored.coverage,
            rate=scored.rate,
            base=p0,
            measured=scored.measured,
            confirmed=confirmed,
            clients=_rates(rounds[0].clients, belief.evidence.get(scored.attributes), scored),
        )
        for scored, confirmed in zip(found, confirm(belief, fresh, found, base, level), strict=True)
    )
    first = rounds[0]
    epsilons = tuple(first.plans[index].epsilon for index in first.plan_index)
    assert protocol.schema.target is not None
    return FederatedSubgroups(
        subgroups=subgroups,
        estimand=ESTIMAND,
        target=protocol.schema.target,
        positive=protocol.schema.labels(protocol.schema.target)[protocol.positive],
        clients=first.clients,
        epsilons=epsilons,
        records=belief.records,
        records_error=float(np.sqrt(belief.sizes.records_variance)),
        base=p0,
        base_error=belief.base_error if base is None else 0.0,
        rounds=len(rounds),
        planned=protocol.rounds,
        private=state(
            [first.plans[index] for index in first.plan_index],
            seeded=[any(_seeded(pool, name) for pool in rounds) for name in first.clients],
            rounds=protocol.rounds,
        ),
        coverage=coverage(belief, found, epsilons),
        notes=notes,
    )


def conditions(schema: Schema, scored: Scored) -> tuple[Condition, ...]:
    """Return a description's conditions, in the schema's words."""
    result = []
    for position, code in zip(scored.attributes, scored.codes, strict=True):
        variable = schema.variables[position]
        numeric = variable.bins is not None and variable.labels is None and code < len(variable.bins) - 1
        sign = "in" if numeric else "="
        result.append(Condition(variable.name, f"{variable.name} {sign} {variable.shown[code]}", ((code, code),)))
    return tuple(result)


def _seeded(pool: Pool, client: str) -> bool:
    return client in pool.clients and pool.seeded[pool.index(client)]


def _rates(clients: Sequence[str], table: Evidence | None, scored: Scored) -> tuple[ClientRate, ...]:
    if table is None:
        return ()
    result = []
    for row, client in enumerate(clients):
        negative, positive = table.counts[(row, *scored.codes)]
        noise_negative, noise_positive = table.variance[row]
        if not np.isfinite(noise_negative + noise_positive):
            result.append(ClientRate(client, None, None, None, None))
            continue
        records, error = float(negative + positive), float(np.sqrt(noise_negative + noise_positive))
        if records <= _STANDS_OUT * error or records <= 0:
            result.append(ClientRate(client, None, None, records, error))
            continue
        rate = float(np.clip(positive / records, 0.0, 1.0))
        spread = float(np.sqrt((1 - rate) ** 2 * noise_positive + rate**2 * noise_negative) / records)
        result.append(ClientRate(client, rate, spread, records, error))
    return tuple(result)


def _notes(protocol: SubgroupProtocol, belief: Belief, rounds: Sequence[Pool]) -> tuple[str, ...]:
    notes = []
    if not belief.varies:
        few = "positives" if belief.sizes.totals[1] <= belief.sizes.totals[0] else "negatives"
        notes.append(f"the {few} of all clients together do not stand out from the noise: there is nothing to compare")
    elif len(rounds) == 1 and protocol.rounds > 1:
        notes.append("round 1 only: descriptions of two conditions are predicted, not measured")
    kept = belief.sizes.weights().sum(axis=1)
    for number, pool in enumerate(rounds[1:], start=2):
        absent = np.array([name not in pool.clients for name in rounds[0].clients])
        if absent.any():
            share = float(kept[absent].sum() / max(kept.sum(), 1.0))
            notes.append(
                f"round {number} lacks {int(absent.sum())} of {len(absent)} clients, with {share:.0%} of the records "
                "as estimated; they are taken to be like the others there, and nothing is confirmed for them"
            )
    empty = int((kept == 0).sum())
    if empty:
        notes.append(f"{empty} of {len(kept)} clients hold too few records to stand out from their noise")
    largest = float(kept.max() / kept.sum()) if kept.sum() > 0 else 0.0
    if len(kept) > 1 and largest > 0.5:
        notes.append(f"one client holds {largest:.0%} of the records, as estimated")
    return tuple(notes)
