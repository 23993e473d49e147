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
    from fedsel.privacy.budget import Budget, Composition
    from fedsel.privacy.composition import Cost
    from fedsel.privacy.ledger import Ledger
    from fedsel.privacy.plan import Adjacency, NoisePlan
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
class Grant:
    """What the command line says about the budget of a ledger; None where it says nothing.

    Parameters
    ----------
    epsilon, delta : float or None
        ``--budget-epsilon`` and ``--budget-delta``.
    composition : {"basic", "zcdp"} or None
        ``--composition``.
    """

    epsilon: float | None = None
    delta: float | None = None
    composition: Composition | None = None


@dataclass(frozen=True)
class Account:
    """What a client's ledger holds, or will hold once it is made.

    Parameters
    ----------
    file : Path
        The ledger.
    client : str
        Whose it is.
    adjacency : {"add-remove", "replace-one"}
        What its budget protects.
    budget : Cost
        Whole budget.
    composition : {"basic", "zcdp"}
        How charges use it up.
    left, after : str
        What is left of it before and after the charge.
    new : bool
        Whether the ledger has yet to be made.
    """

    file: Path
    client: str
    adjacency: Adjacency
    budget: Cost
    composition: Composition
    left: str
    after: str
    new: bool

    def open(self) -> Ledger:
        """Open the ledger; one yet to be made is made with its first charge."""
        from fedsel.privacy.ledger import Ledger

        return Ledger.open_or_create(
            self.file,
            client=self.client,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            adjacency=self.adjacency,
            composition=self.composition,
        )


def client_name(text: str) -> str:
    """Return a client's name in normal form, or refuse it."""
    from fedsel.release import check_client_name

    return check_client_name(unicodedata.normalize("NFC", text))


def file_name(client: str) -> str:
    """Return a client's name as it may stand in a file's name."""
    return "".join(character if character.isalnum() or character in "._- " else "_" for character in client)


def check_consent(plan: NoisePlan, *, non_private: bool) -> None:
    """Refuse an exact release that was not confirmed."""
    if plan.mechanism == "none" and not non_private:
        raise ReleaseError("--epsilon inf releases exact counts without any privacy; confirm with --non-private")


def describe(schema: Schema, workload: Workload, plan: NoisePlan, *, seed: int | None, together: bool = False) -> str:
    """Return lines on tables, scores, noise and guarantee, all of it public knowledge.

    `together` says that the guarantee is that of several rounds, of which `plan` is one.
    """
    lines = [f"schema     {schema.name} ({schema.fingerprint[:12]})"]
    if workload.sets:
        lines.append(
            f"tables     {len(workload.sets)} pairs of {len(workload.names)} variables, {workload.cells:,} cells"
        )
    if plan.scores:
        when = "in a second round, under a rule made from the first" if len(plan.rounds) > 1 else "in this round"
        lines.append(f"scores     {len(plan.scores)} sums over the rows, {when}")
    if plan.mechanism == "none":
        lines.append("noise      none")
        lines.append("guarantee  NOT PRIVATE: exact counts (epsilon = inf)")
        return "\n".join(lines)
    symbol = "sigma" if plan.mechanism == "discrete-gaussian" else "scale"
    kind = _MECHANISMS[plan.mechanism]
    if workload.sets:
        tables = plan.scale[: plan.tables]
        width = _range(tables.min(), tables.max())
        drowned, blurred = noise_bounds(workload, plan)
        lines += [
            f"noise      {kind}, {symbol} = {width} records on every cell ({plan.accounting} accounting)",
            f"enough?    this noise drowns a client of {drowned:,.0f} records (cells x {symbol} of the middle table) "
            "and",
            f"           blurs one of {blurred:,.0f}; to need fewer: fewer variables, coarser categories",
        ]
    if plan.scores:
        in_rows = plan.scale[plan.tables :] / plan.scores
        lines.append(
            f"noise      {kind}, {symbol} = {_range(in_rows.min(), in_rows.max())} times what a row adds at most"
        )
    joint = " (both rounds together)" if together or len(plan.rounds) > 1 else ""
    lines.append(f"guarantee  epsilon {plan.epsilon:g}, delta {plan.delta:g}, for {PROTECTS[plan.adjacency]}{joint}")
    if seed is not None:
        lines.append(f"WARNING    noise from seed {seed}: experiments only, whoever knows the seed can remove it")
    return "\n".join(lines)


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if math.isclose(low, high) else f"{low:.4g} to {high:.4g}"


def announce(
    file: Path,
    client: str,
    plan: NoisePlan,
    grant: Grant,
    *,
    round_: int,
    again: bool,
    say: Callable[[str], object],
    part: int = 1,
) -> Account:
    """Say what a ledger will be charged and refuse what it would refuse; nothing is made or charged yet."""
    from fedsel.privacy.budget import Price
    from fedsel.privacy.ledger import Ledger
    from fedsel.privacy.ledger_file import is_blank

    exact = plan.mechanism == "none"
    new = is_blank(file)
    if new:
        epsilon, delta = _new_budget(file, plan, grant)
        opened = Ledger.open_or_create(
            file,
            client=client,
            epsilon=epsilon,
            delta=delta,
            adjacency=plan.adjacency,
            composition=grant.composition or "basic",
        )
    else:
        opened = Ledger(file, client=client)
    with opened as ledger:
        terms = ledger.terms.account
        if new:
            own = "" if grant.epsilon else ", this release's own"
            say(f"ledger     {file} (new): budget {terms.limit_text()}{own}")
        else:
            _check_grant(file, terms, grant)
            say(f"ledger     {file}: budget {terms.limit_text()}; left {terms.remaining_text(ledger.prices)}")
        try:
            admission = ledger.check(plan, round=round_, part=part, again=again, non_private=exact)
        except BudgetError as error:
            done = [number for charge in ledger.charges for number in charge.rounds]
            if round_ not in done or again:
                raise
            instead = f"--round {max(done) + 1} for a new round, " if part == 1 else ""
            options = f"{instead}--force for this one"
            raise BudgetError(f"{error}: {options}") from None
        before = ledger.prices
        after = before if exact or admission.cover is not None else [*before, Price.of(admission.plan)]
        if exact:
            say("charge     recorded as not private, outside the budget")
        elif admission.cover is not None:
            say(f"charge     none: covered by that of round {admission.cover.round}")
        else:
            say(f"charge     {terms.price_text(after[-1])}; then left {terms.remaining_text(after)}")
        return Account(
            file,
            client,
            ledger.adjacency,
            ledger.budget,
            terms.composition,
            left=terms.remaining_text(before),
            after=terms.remaining_text(after),
            new=new,
        )


def _new_budget(file: Path, plan: NoisePlan, grant: Grant) -> tuple[float, float]:
    """Return epsilon and delta of the budget of a ledger yet to be made."""
    from fedsel.privacy.budget import check_budget

    exact = plan.mechanism == "none"
    if exact and grant.epsilon is None:
        raise BudgetError(f"{file}: a new ledger needs --budget-epsilon with an exact release, or say --no-ledger")
    epsilon = plan.epsilon if grant.epsilon is None else grant.epsilon
    check_budget(epsilon, 0.0)
    delta = grant.delta
    if delta is None:
        # as many releases like this one as the epsilon allows
        releases = 1 if exact else max(1, int(Fraction(repr(epsilon)) / Fraction(repr(plan.epsilon))))
        delta = float(Fraction(repr(plan.delta)) * releases)
        if delta >= 1:
            raise BudgetError(
                f"{file}: the deltas of a budget must add up to less than 1, got epsilon {epsilon:g}, enough for "
                f"{releases:,} releases with delta {plan.delta:g}: give --budget-delta, or less --budget-epsilon"
            )
    check_budget(epsilon, delta)
    return epsilon, delta


def _check_grant(file: Path, terms: Budget, grant: Grant) -> None:
    """Refuse options that contradict a ledger that is there."""
    for option, stated, held in (
        ("--budget-epsilon", grant.epsilon, terms.limit.epsilon),
        ("--budget-delta", grant.delta, terms.limit.delta),
    ):
        if stated is not None and stated != held:
            raise BudgetError(f"{file}: the ledger's budget is {terms.limit} already, got {option} {stated:g}")
    if grant.composition is not None and grant.composition != terms.composition:
        raise BudgetError(
            f"{file}: the ledger's composition is {terms.composition} already, got --composition {grant.composition}"
        )
