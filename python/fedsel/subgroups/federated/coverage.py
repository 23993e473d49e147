"""Whom what was found speaks of: records, clients, and whether it leans towards those of large budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsel.subgroups.federated.belief import Belief
from fedsel.subgroups.federated.ranking import Scored

_STANDS_OUT = 2.0  # standard errors


@dataclass(frozen=True)
class Coverage:
    """Means over the subgroups whose tables were released.

    Parameters
    ----------
    records : float
        Share of all records that a subgroup covers.
    by_budget : float or None
        The same with every record weighted by its client's epsilon: where it is larger, what was found speaks more of
        clients with large budgets than their records warrant. None where an epsilon is infinite.
    clients : float
        Share of the clients with records in which a subgroup's own records stand out from the noise.
    """

    records: float
    by_budget: float | None
    clients: float


def coverage(belief: Belief, found: Sequence[Scored], epsilons: Sequence[float]) -> Coverage | None:
    """Diagnose the bias of coverage; None where nothing was released of what was found.

    Parameters
    ----------
    belief : Belief
        What the releases say.
    found : sequence of Scored
        What was found.
    epsilons : sequence of float
        Of each client.
    """
    sizes = belief.sizes.weights().sum(axis=1)
    there = sizes > 0
    seen = []
    for scored in found:
        table = belief.evidence.get(scored.attributes)
        if table is not None:
            records = table.cell(scored.codes).sum(axis=1)
            error = np.sqrt(table.variance.sum(axis=1))
            shares = np.clip(records / np.where(there, sizes, 1.0), 0.0, 1.0)
            seen.append((shares, (records > _STANDS_OUT * error)[there].mean()))
    if not seen or not there.any():
        return None
    shares = np.mean([one for one, _ in seen], axis=0)[there]
    weights = sizes[there]
    by_budget = None
    if all(math.isfinite(epsilon) for epsilon in epsilons):
        budget = weights * np.array(epsilons)[there]
        by_budget = float(budget @ shares / budget.sum())
    return Coverage(
        float(weights @ shares / weights.sum()), by_budget, float(np.mean([clients for _, clients in seen]))
    )
