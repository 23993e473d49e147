"""Whether any federation keeps all rules, and if not, which of them clash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedsel.errors import InfeasibleError, SelectionError
from fedsel.selection.constraints import NO_LOWER, NO_UPPER, Rule, Ruleset

_INFEASIBLE = 2  # status of scipy.optimize.milp
_MOST_CUTS = 200


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
    InfeasibleError
        If there is none; the message names a smallest set of rules that cannot be kept together.
    SelectionError
        If the solver's arithmetic cannot decide.
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
    raise InfeasibleError(
        f"no federation of k = {k} of {len(clients)} clients keeps all constraints; these clash: {labels}"
    )


def _single(row: int, clients: Sequence[str], member: bool) -> Rule:
    amounts = np.zeros(len(clients), dtype=np.int64)
    amounts[row] = 1
    if member:
        return Rule(f"include {clients[row]}", amounts, lower=1)
    return Rule(f"exclude {clients[row]}", amounts, upper=0)


def _solve(rules: Sequence[Rule], k: int, clients: int) -> list[int] | None:
    """Solve the feasibility problem with scipy's mixed-integer solver; None if it has no solution.

    The solver works with tolerances, so its answers are checked in whole numbers; one that breaks a rule by less than
    the tolerance is forbidden, and the solver asked again.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = [np.ones(clients), *(rule.amounts.astype(np.float64) for rule in rules)]
    lower = [float(k), *(float(rule.lower) if rule.lower > NO_LOWER else -np.inf for rule in rules)]
    upper = [float(k), *(float(rule.upper) if rule.upper < NO_UPPER else np.inf for rule in rules)]
    for _ in range(_MOST_CUTS):
        scale = np.array([max(float(np.abs(row).max()), 1.0) for row in rows])  # the tolerances are absolute
        result = milp(
            np.zeros(clients),
            integrality=np.ones(clients),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(
                np.array(rows) / scale[:, None], np.array(lower) / scale, np.array(upper) / scale
            ),
        )
        if result.status == _INFEASIBLE:
            return None
        if result.x is None:
            break
        members = [int(row) for row in np.flatnonzero(result.x > 0.5)]
        if _keeps(members, rules, k):
            return members
        # Forbid exactly this federation: of its members and the others' absences, one at least must differ.
        cut = np.full(clients, -1.0)
        cut[members] = 1.0
        rows.append(cut)
        lower.append(-np.inf)
        upper.append(len(members) - 1.0)
    raise SelectionError("the constraints are too tight, for amounts of such different size, to be decided")


def _keeps(members: list[int], rules: Sequence[Rule], k: int) -> bool:
    """Check in whole numbers."""
    chosen: npt.NDArray[np.int64] = np.array(members, dtype=np.int64)
    return len(members) == k and all(rule.lower <= int(rule.amounts[chosen].sum()) <= rule.upper for rule in rules)
