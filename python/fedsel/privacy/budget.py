"""Budgets of a ledger: what adaptively chosen charges cost together, and whether one more still fits.

A budget is a privacy filter: the size of every charge may depend on what earlier releases said, and the guarantee of
the budget holds for whatever was charged, because a charge that does not fit is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol

from fedsel.errors import BudgetError
from fedsel.privacy.composition import Cost, SequentialComposition
from fedsel.privacy.events import Event, event_of
from fedsel.privacy.limits import LARGEST_EPSILON, LEAST_EPSILON
from fedsel.privacy.plan import NoisePlan
from fedsel.privacy.rdp import zcdp_distance, zcdp_epsilon
from fedsel.privacy.renyi import concentration, rounded_up

Composition = Literal["basic", "zcdp"]


@dataclass(frozen=True)
class Price:
    """What one charge costs, in both terms.

    Parameters
    ----------
    cost : Cost
        As (epsilon, delta).
    what : NoisePlan or Event
        What is charged.
    """

    cost: Cost
    what: NoisePlan | Event

    @classmethod
    def of(cls, plan: NoisePlan) -> Price:
        """Return the price of releasing all queries of a plan."""
        return cls(Cost(plan.epsilon, plan.delta), plan)

    @cached_property
    def rho(self) -> float:
        """As zero-concentrated differential privacy, rounded up; infinite for an exact release."""
        if not isinstance(self.what, NoisePlan):
            return concentration(self.what)
        return math.inf if self.what.mechanism == "none" else concentration(event_of(self.what))


class Budget(Protocol):
    """A client's whole budget and the rule by which charges use it up. All prices are of one adjacency."""

    composition: Composition
    limit: Cost

    def fits(self, prices: Sequence[Price]) -> bool:
        """Return whether charges with these prices stay within the budget together."""
        ...

    def spent(self, prices: Sequence[Price]) -> Cost:
        """Return a guarantee that charges with these prices have together."""
        ...

    def remaining(self, prices: Sequence[Price]) -> Cost:
        """Return the difference between the limit and `spent`, not below 0."""
        ...

    def limit_text(self) -> str:
        """Say what the budget is."""
        ...

    def price_text(self, price: Price) -> str:
        """Say what one charge costs."""
        ...

    def spent_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges cost together."""
        ...

    def remaining_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges leave."""
        ...


class BasicBudget:
    """Epsilons add up and so do deltas: a filter for adaptively chosen costs (Rogers et al. 2016, theorem 3.6)."""

    composition: Composition = "basic"

    def __init__(self, limit: Cost) -> None:
        self.limit = limit

    def fits(self, prices: Sequence[Price]) -> bool:
        """Return whether both sums stay within the limit, exactly on the numbers as they are written."""
        return SequentialComposition().fits([price.cost for price in prices], self.limit)

    def spent(self, prices: Sequence[Price]) -> Cost:
        """Return both sums."""
        return SequentialComposition().total([price.cost for price in prices])

    def remaining(self, prices: Sequence[Price]) -> Cost:
        """Return what both sums leave."""
        return SequentialComposition().remaining([price.cost for price in prices], self.limit)

    def limit_text(self) -> str:
        """Say what the budget is."""
        return str(self.limit)

    def price_text(self, price: Price) -> str:
        """Say what one charge costs."""
        return str(price.cost)

    def spent_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges cost together."""
        return str(self.spent(prices))

    def remaining_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges leave."""
        return str(self.remaining(prices))


class ConcentratedBudget:
    """The zCDP parameters of charges add up to at most rho, the largest that implies the limit.

    Fully adaptive: since the sum of the parameters, each fixed before its own charge, never exceeds rho, everything
    together is rho-zCDP (Feldman and Zrnic 2021, "Individual privacy accounting via a Renyi filter", theorem 3.1;
    Whitehouse et al. 2023, "Fully adaptive composition in differential privacy").

    Parameters
    ----------
    limit : Cost
        Its delta must be positive.

    Raises
    ------
    BudgetError
        If delta is 0.
    """

    composition: Composition = "zcdp"

    def __init__(self, limit: Cost) -> None:
        if limit.delta == 0:
            raise BudgetError("a budget with composition 'zcdp' needs a delta above 0, got 0.0")
        self.limit = limit
        self.rho = zcdp_distance(limit.epsilon, limit.delta) ** 2 / 2

    def fits(self, prices: Sequence[Price]) -> bool:
        """Return whether the sum of all rho stays within the budget's, exactly."""
        return all(math.isfinite(price.rho) for price in prices) and _sum(prices) <= Fraction(self.rho)

    def spent(self, prices: Sequence[Price]) -> Cost:
        """Return the epsilon of the sum of all rho, at the budget's delta."""
        if not prices:
            return Cost(0.0, 0.0)
        if not self.fits(prices):
            return Cost(zcdp_epsilon(self.spent_rho(prices), self.limit.delta), self.limit.delta)
        return Cost(min(self.limit.epsilon, zcdp_epsilon(self.spent_rho(prices), self.limit.delta)), self.limit.delta)

    def remaining(self, prices: Sequence[Price]) -> Cost:
        """Return what `spent` leaves of epsilon; delta is that of the whole budget, whatever is charged."""
        return Cost(max(0.0, self.limit.epsilon - self.spent(prices).epsilon), self.limit.delta)

    def spent_rho(self, prices: Sequence[Price]) -> float:
        """Return the sum of all rho, rounded up."""
        return math.inf if any(math.isinf(price.rho) for price in prices) else rounded_up(_sum(prices))

    def limit_text(self) -> str:
        """Say what the budget is."""
        return f"{self.limit} (rho {self.rho:.4g})"

    def price_text(self, price: Price) -> str:
        """Say what one charge costs."""
        return f"rho {price.rho:.4g} ({price.cost} by itself)"

    def spent_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges cost together."""
        spent = self.spent(prices)
        return f"rho {self.spent_rho(prices):.4g} (epsilon {spent.epsilon:.4g}, delta {spent.delta:g})"

    def remaining_text(self, prices: Sequence[Price]) -> str:
        """Say what these charges leave."""
        left = max(0.0, self.rho - self.spent_rho(prices))
        return f"rho {left:.4g} (epsilon {self.remaining(prices).epsilon:.4g} at the budget's delta)"


def make_budget(composition: Composition, epsilon: float, delta: float) -> Budget:
    """Return a budget of this limit, checked.

    Raises
    ------
    BudgetError
        If the limit is out of range, or does not go with the composition.
    """
    check_budget(epsilon, delta)
    limit = Cost(float(epsilon), float(delta))
    if composition == "basic":
        return BasicBudget(limit)
    if composition == "zcdp":
        return ConcentratedBudget(limit)
    raise BudgetError(f"composition must be one of basic, zcdp, got {composition!r}")


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that bounds nothing, or is too small for any release.

    Raises
    ------
    BudgetError
        If epsilon is not between 1e-9 and 1e6, or delta not of [0, 1).
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise BudgetError(f"the budget's epsilon must be a finite number above 0, got {epsilon}")
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"the budget's epsilon must be between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}, got {epsilon}"
        )
    if not 0 <= delta < 1:
        raise BudgetError(f"the budget's delta must be at least 0 and below 1, got {delta}")


def _sum(prices: Sequence[Price]) -> Fraction:
    return sum((Fraction(price.rho) for price in prices), Fraction(0))
