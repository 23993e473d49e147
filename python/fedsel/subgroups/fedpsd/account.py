"""A client's budget during a run: charged before anything leaves, and never exceeded."""

from __future__ import annotations

from dataclasses import dataclass

from fedsel.errors import BudgetError
from fedsel.privacy.budget import BasicBudget, Price
from fedsel.privacy.composition import Cost
from fedsel.privacy.events import Event
from fedsel.privacy.plan import NoisePlan


@dataclass(frozen=True)
class Entry:
    """One charge.

    Parameters
    ----------
    number : int
        From 1.
    purpose : str
        What for.
    price : Price
        What it cost.
    """

    number: int
    purpose: str
    price: Price


class Account:
    """An account in memory, by the rule of a ledger of basic composition: epsilons add up (Rogers et al. 2016).

    Parameters
    ----------
    client : str
        Whose.
    epsilon : float
        The whole budget, pure.
    """

    def __init__(self, client: str, epsilon: float) -> None:
        self.client = client
        self._budget = BasicBudget(Cost(epsilon, 0.0))
        self._entries: list[Entry] = []

    @property
    def epsilon(self) -> float:
        """The whole budget."""
        return self._budget.limit.epsilon

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        return tuple(self._entries)

    @property
    def spent(self) -> float:
        """Epsilon charged so far."""
        return self._budget.spent([entry.price for entry in self._entries]).epsilon

    @property
    def left(self) -> float:
        """Epsilon that is left."""
        return self._budget.remaining([entry.price for entry in self._entries]).epsilon

    def affordable(self, epsilon: float) -> int:
        """Return how many charges of so much each would be admitted."""
        number = int(self.left / epsilon * (1 + 1e-9))
        while number > 0 and not self.fits(epsilon * number):
            number -= 1
        return number

    def fits(self, epsilon: float) -> bool:
        """Return whether a charge of so much would be admitted."""
        price = Price(Cost(epsilon, 0.0), _PLACEHOLDER)
        return self._budget.fits([*(entry.price for entry in self._entries), price])

    def charge(self, what: NoisePlan | Event, epsilon: float, purpose: str) -> Entry:
        """Charge what is about to leave.

        Raises
        ------
        BudgetError
            If it does not fit; nothing is charged then.
        """
        price = Price(Cost(epsilon, 0.0), what)
        if not self._budget.fits([*(entry.price for entry in self._entries), price]):
            raise BudgetError(
                f"client {self.client!r}: {purpose} for epsilon {epsilon:g} does not fit a budget of {self.epsilon:g}, "
                f"of which {self.spent:g} is spent"
            )
        entry = Entry(len(self._entries) + 1, purpose, price)
        self._entries.append(entry)
        return entry


_PLACEHOLDER = NoisePlan("none", "replace-one", float("inf"), 0.0, 0, (1,), "none")
