"""What a release will spend on what, said and checked before a row is read or anything is charged."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from fedsel.errors import BudgetError, ReleaseError
from fedsel.privacy.sufficiency import noise_bounds

if TYPE_CHECKING:
    from fedsel.privacy.composition import Cost
    from fedsel.privacy.plan import NoisePlan
    from fedsel.schema import Schema
    from fedsel.tables import Workload

PROTECTS = {
    "add-remove": "adding or removing one record of this client",
    "replace-one": "replacing one record of this client",
}
_MECHANISMS = {
    "discrete-gaussian": "discrete Gaussian",
    "discrete-laplace": "discrete Laplace",
}


@dataclass(frozen=True)
class Account:
    """What a client's ledger holds, or will hold once it is made.

    Parameters
    ----------
    budget : Cost
        Whole budget.
    left : Cost
        What is left of it before the charge.
    new : bool
        Whether the ledger has yet to be made.
    """

    budget: Cost
    left: Cost
    new: bool


def client_name(text: str) -> str:
    """Return a client's name in normal form, or refuse it."""
    from fedsel.release import check_client_name

    return check_client_name(unicodedata.normalize("NFC", text))


def file_name(client: str) -> str:
    """Return a client's name as it may stand in a file's name."""
    return "".join(character if character.isalnum() or character in "._- " else "_" for character in client)


def cost_text(cost: Cost) -> str:
    """Return a cost as text."""
    return f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"


def check_consent(plan: NoisePlan, *, non_private: bool) -> None:
    """Refuse an exact release that was not confirmed."""
    if plan.mechanism == "none" and not non_private:
        raise ReleaseError("--epsilon inf releases exact counts without any privacy; confirm with --non-private")


def describe(schema: Schema, workload: Workload, plan: NoisePlan, *, seed: int | None) -> str:
    """Return lines on tables, noise and guarantee, all of it public knowledge."""
    lines = [
        f"schema     {schema.name} ({schema.fingerprint[:12]})",
        f"tables     {len(workload.sets)} pairs of {len(workload.names)} variables, {workload.cells:,} cells",
    ]
    if plan.mechanism == "none":
        lines.append("noise      none")
        lines.append("guarantee  NOT PRIVATE: exact counts (epsilon = inf)")
        return "\n".join(lines)
    symbol = "sigma" if plan.mechanism == "discrete-gaussian" else "scale"
    low, high = plan.scale.min(), plan.scale.max()
    width = f"{low:.4g}" if math.isclose(low, high) else f"{low:.4g} to {high:.4g}"
    kind = _MECHANISMS[plan.mechanism]
    drowned, blurred = noise_bounds(workload, plan)
    lines += [
        f"noise      {kind}, {symbol} = {width} records on every cell ({plan.accounting} accounting)",
        f"enough?    this noise drowns a client of {drowned:,.0f} records (cells x {symbol} of the middle table) and",
        f"           blurs one of {blurred:,.0f}; to need fewer: fewer variables, coarser categories",
        f"guarantee  epsilon {plan.epsilon:g}, delta {plan.delta:g}, for {PROTECTS[plan.adjacency]}",
    ]
    if seed is not None:
        lines.append(f"WARNING    noise from seed {seed}: experiments only, whoever knows the seed can remove it")
    return "\n".join(lines)


def announce(
    file: Path,
    client: str,
    plan: NoisePlan,
    budget_epsilon: float | None,
    budget_delta: float | None,
    *,
    round_: int,
    again: bool,
    say: Callable[[str], object],
) -> Account:
    """Say what a ledger will be charged and refuse what it would refuse; nothing is made or charged yet."""
    from fedsel.privacy.composition import Cost, SequentialComposition
    from fedsel.privacy.ledger import Ledger, check_budget

    exact = plan.mechanism == "none"
    charge = None if exact else Cost(plan.epsilon, plan.delta)
    new = not file.exists() or (file.is_file() and file.stat().st_size == 0)
    if new:
        if exact and budget_epsilon is None:
            raise BudgetError(f"{file}: a new ledger needs --budget-epsilon with an exact release, or say --no-ledger")
        epsilon = plan.epsilon if budget_epsilon is None else budget_epsilon
        check_budget(epsilon, 0.0)
        if budget_delta is None:
            # as many releases like this one as the epsilon allows
            releases = 1 if exact else max(1, int(Fraction(repr(epsilon)) / Fraction(repr(plan.epsilon))))
            budget_delta = float(Fraction(repr(plan.delta)) * releases)
            if budget_delta >= 1:
                raise BudgetError(
                    f"{file}: the deltas of a budget must add up to less than 1, got epsilon {epsilon:g}, enough for "
                    f"{releases:,} releases with delta {plan.delta:g}: give --budget-delta, or less --budget-epsilon"
                )
        check_budget(epsilon, budget_delta)
        budget = left = Cost(epsilon, budget_delta)
        own = "" if budget_epsilon else ", this release's own"
        say(f"ledger     {file} (new): budget {cost_text(budget)}{own}")
        if charge is not None and not SequentialComposition().fits([charge], budget):
            raise BudgetError(f"{file}: a charge of {cost_text(charge)} does not fit the budget of {cost_text(budget)}")
    else:
        with Ledger(file, client=client) as ledger:
            budget, left = ledger.budget, ledger.remaining
            for option, stated, held in (
                ("--budget-epsilon", budget_epsilon, budget.epsilon),
                ("--budget-delta", budget_delta, budget.delta),
            ):
                if stated is not None and stated != held:
                    raise BudgetError(
                        f"{file}: the ledger's budget is {cost_text(budget)} already, got {option} {stated:g}"
                    )
            say(f"ledger     {file}: budget {cost_text(budget)}; left {cost_text(left)}")
            done = [charge.round for charge in ledger.charges if charge.round is not None]
            try:
                ledger.check(plan, round=round_, again=again, non_private=exact)
            except BudgetError as error:
                if round_ not in done or again:
                    raise
                options = f"--round {max(done) + 1} for a new round, --force for this one"
                raise BudgetError(f"{error}: {options}") from None
    if charge is None:
        say("charge     recorded as not private, outside the budget")
    else:
        after = SequentialComposition().remaining([charge], left)
        say(f"charge     {cost_text(charge)}; then left {cost_text(after)}")
    return Account(budget, left, new)
