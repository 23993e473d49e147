"""Whether any federation keeps all rules, and if not, which of them clash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.selection.constraints import NO_LOWER, NO_UPPER, Rule, Ruleset


def feasible_federation(ruleset: Ruleset, k: int, clients: Sequence[str]) -> list[int]:
    """Find one federation of k members that keeps all rules.

    Parameters
    ----------
    ruleset : Ruleset
        The rules.
    k : int
        Number of members.
    clients : sequence of str
        Names of the pool's clients, for messages.

    Returns
    -------
    list of int
        Pool rows.

    Raises
    ------
    SelectionError
        If there is none; the message names a smallest set of rules that cannot be kept together.
    """
    members = [_single(row, clients, True) for row in ruleset.fixed]
    members += [_single(row, clients, False) for row in ruleset.excluded]
    rules = [*members, *ruleset.rules]
    found = _solve(rules, k, len(clients))
    if found is not None:
        return found
    # Drop every rule without which the rest still clash: what remains clashes, and does not without any one of it.
    clash = list(rules)
    for rule in rules:
        rest = [other for other in clash if other is not rule]
        if _solve(rest, k, len(clients)) is None:
            clash = rest
    labels = "; ".join(rule.label for rule in clash)
    raise SelectionError(
        f"no federation of k = {k} of {len(clients)} clients keeps all constraints; these clash: {labels}"
    )


def _single(row: int, clients: Sequence[str], member: bool) -> Rule:
    amounts = np.zeros(len(clients), dtype=np.int64)
    amounts[row] = 1
    if member:
        return Rule(f"include {clients[row]}", amounts, lower=1)
    return Rule(f"exclude {clients[row]}", amounts, upper=0)


def _solve(rules: Sequence[Rule], k: int, clients: int) -> list[int] | None:
    """Solve the feasibility problem with scipy's mixed-integer solver."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    amounts = np.array([np.ones(clients), *(rule.amounts for rule in rules)], dtype=np.float64)
    lower = np.array([k, *(rule.lower if rule.lower > NO_LOWER else -np.inf for rule in rules)], dtype=np.float64)
    upper = np.array([k, *(rule.upper if rule.upper < NO_UPPER else np.inf for rule in rules)], dtype=np.float64)
    scale = np.maximum(np.abs(amounts).max(axis=1), 1.0)  # the solver's tolerances are absolute
    result = milp(
        np.zeros(clients),
        integrality=np.ones(clients),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(amounts / scale[:, None], lower / scale, upper / scale),
    )
    if result.x is None:
        return None
    members = [int(row) for row in np.flatnonzero(result.x > 0.5)]
    return members if _keeps(members, rules, k) else None


def _keeps(members: list[int], rules: Sequence[Rule], k: int) -> bool:
    """Check in whole numbers, which the solver's tolerances are not."""
    chosen: npt.NDArray[np.int64] = np.array(members, dtype=np.int64)
    return len(members) == k and all(rule.lower <= int(rule.amounts[chosen].sum()) <= rule.upper for rule in rules)
