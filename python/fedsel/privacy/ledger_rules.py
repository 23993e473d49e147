"""What a ledger admits: the terms it was made with, and whether a charge keeps them."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from fedsel.errors import BudgetError
from fedsel.privacy.budget import Budget, Composition, Price, make_budget
from fedsel.privacy.charge import Charge, private_prices
from fedsel.privacy.plan import Adjacency, NoisePlan


@dataclass(frozen=True)
class Admission:
    """How a release may go ahead.

    Parameters
    ----------
    plan : NoisePlan
        What it is to be charged, unless it is covered.
    cover : Charge or None
        The earlier charge of a plan of several rounds that covers it.
    """

    plan: NoisePlan
    cover: Charge | None = None


@dataclass(frozen=True)
class Terms:
    """Whose ledger it is, and what it grants; never changed once written.

    Parameters
    ----------
    path : Path
        The file, for messages.
    client : str
        Whose ledger.
    adjacency : {"add-remove", "replace-one"}
        What the budget protects.
    created : str
        When it was made, UTC, ISO 8601.
    account : Budget
        The whole budget and its composition.
    """

    path: Path
    client: str
    adjacency: Adjacency
    created: str
    account: Budget

    def write(self, connection: sqlite3.Connection) -> None:
        """Insert into an empty ledger, inside the caller's transaction."""
        connection.execute(
            "INSERT INTO ledger (only, client, adjacency, epsilon, delta, created, composition)"
            " VALUES (1, ?, ?, ?, ?, ?, ?)",
            (
                self.client,
                self.adjacency,
                self.account.limit.epsilon,
                self.account.limit.delta,
                self.created,
                self.account.composition,
            ),
        )

    def check_client(self, client: str | None) -> None:
        """Refuse the ledger of another client than the one expected, if any is.

        Raises
        ------
        BudgetError
            If the names differ.
        """
        if client is not None and client != self.client:
            raise BudgetError(f"{self.path}: expected the ledger of client {client!r}, got that of {self.client!r}")

    def check_adjacency(self, adjacency: str) -> None:
        """Refuse a charge for another adjacency.

        Raises
        ------
        BudgetError
            If it is not the budget's.
        """
        if adjacency != self.adjacency:
            raise BudgetError(
                f"{self.path}: the budget is for adjacency {self.adjacency}, got a charge for {adjacency}"
            )

    def check_price(self, charges: Sequence[Charge], price: Price) -> None:
        """Refuse what does not fit into what is left of the budget.

        Raises
        ------
        BudgetError
            If it does not fit.
        """
        if not math.isfinite(price.cost.epsilon):
            raise BudgetError(f"{self.path}: expected a finite epsilon, got {price.cost.epsilon}")
        spent = private_prices(charges)
        if not self.account.fits([*spent, price]):
            raise BudgetError(
                f"{self.path}: the budget of client {self.client!r} is {self.account.limit_text()}, of which "
                f"{self.account.spent_text(spent)} is spent; a charge of {self.account.price_text(price)} does not fit"
            )

    def admit(
        self,
        charges: Sequence[Charge],
        plan: NoisePlan,
        *,
        round: int | None,
        part: int,
        again: bool,
        non_private: bool,
    ) -> Admission:
        """Decide on the release of one round of a plan; parameters as for `Ledger.spend`.

        Raises
        ------
        BudgetError
            If it is refused.
        """
        self.check_adjacency(plan.adjacency)
        if not 1 <= part <= len(plan.rounds):
            raise BudgetError(f"{self.path}: part must be between 1 and {len(plan.rounds)}, got {part}")
        if round is None and len(plan.rounds) > 1:
            raise BudgetError(f"{self.path}: a plan of {len(plan.rounds)} rounds needs the number of the round")
        if plan.mechanism == "none" and not non_private:
            raise BudgetError(f"{self.path}: an exact release (epsilon = inf) must be declared non-private explicitly")
        charged = plan
        if part > 1 and round is not None:
            cover = self._cover(charges, plan, round, part, again=again)
            if cover is not None:
                return Admission(plan, cover)
            charged = plan.part(part)
        elif round is not None and not again:
            self._check_rounds(charges, range(round, round + len(plan.rounds)))
        if charged.mechanism != "none":
            self.check_price(charges, Price.of(charged))
        return Admission(charged)

    def _check_rounds(self, charges: Sequence[Charge], wanted: range) -> None:
        """Refuse rounds that a charge pays for already."""
        for charge in reversed(charges):
            taken = [number for number in wanted if number in charge.rounds]
            if not taken:
                continue
            if taken[0] == charge.round:
                done = "released" if charge.released else "charged, but its release was not completed,"
                when = f"was {done} on {charge.charged}"
            else:
                when = f"is covered by charge {charge.number} of {charge.charged}, for a plan of several rounds"
            raise BudgetError(
                f"{self.path}: round {taken[0]} of client {self.client!r} {when}; charging it again must be asked for"
            )

    def _cover(
        self, charges: Sequence[Charge], plan: NoisePlan, round: int, part: int, *, again: bool
    ) -> Charge | None:
        """Find the charge that covers a later round; None if all of them have been used up and that is fine."""
        first = round - part + 1
        covers = [charge for charge in charges if charge.plan == plan and charge.round == first]
        if not covers:
            raise BudgetError(
                f"{self.path}: round {round} of client {self.client!r}, part {part} of its plan, expected a charge of "
                f"the same plan at round {first}, got none"
            )
        for charge in reversed(covers):
            if all(covered.part != part for covered in charge.covered):
                return charge
        if again:
            return None
        last = next(covered for covered in covers[-1].covered if covered.part == part)
        done = "released" if last.released else "begun, but its release was not completed,"
        raise BudgetError(
            f"{self.path}: round {round} of client {self.client!r} was {done} on {last.begun}; "
            "charging it again must be asked for"
        )


def read_terms(connection: sqlite3.Connection, path: Path) -> Terms:
    """Read and check the terms of a ledger.

    Raises
    ------
    BudgetError
        If they are missing or damaged.
    """
    row = connection.execute("SELECT client, adjacency, epsilon, delta, created, composition FROM ledger").fetchone()
    if row is None:
        raise BudgetError(f"{path}: expected a ledger, got one without a budget")
    client, adjacency, epsilon, delta, created, composition = row
    if (
        [type(value) for value in row] != [str, str, float, float, str, str]
        or adjacency not in get_args(Adjacency)
        or composition not in get_args(Composition)
    ):
        raise BudgetError(
            f"{path}: expected a ledger with client, adjacency, epsilon, delta, date and composition, got damaged ones"
        )
    try:
        account = make_budget(cast(Composition, composition), epsilon, delta)
    except BudgetError as error:
        raise BudgetError(f"{path}: {error}") from None
    return Terms(path, client, cast(Adjacency, adjacency), created, account)
