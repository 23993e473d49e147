"""Rules a federation must keep, as the linear constraints that the searches understand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.attributes import ClientAttributes

NO_LOWER, NO_UPPER = -(2**62), 2**62
_DECIMALS = 6
_MOST = 1e15  # records or cost units


@dataclass(frozen=True)
class Quota:
    """How many members may have a value of an attribute.

    Parameters
    ----------
    attribute, value : str
        Members with this value are counted.
    at_least : int
        Least number of them.
    at_most : int or None
        Largest number of them, None for no bound.
    """

    attribute: str
    value: str
    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        if self.at_least < 0 or (self.at_most is not None and self.at_most < self.at_least):
            raise SelectionError(
                f"quota {self.attribute}={self.value}: bounds must satisfy 0 <= at_least <= at_most, "
                f"got {self.at_least} and {self.at_most}"
            )


@dataclass(frozen=True)
class Constraints:
    """What every chosen federation must satisfy.

    Parameters
    ----------
    include, exclude : tuple of str
        Clients that must, or must not, be members.
    min_records : float or None
        Least total number of records, as estimated from the (noisy) releases.
    quotas : tuple of Quota
        Bounds on the number of members with a value of a client attribute.
    budget : float or None
        Largest total of the members' costs.
    cost : str
        The attribute that holds a client's cost.
    attributes : ClientAttributes
        Public facts about the clients; needed for quotas and costs.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    min_records: float | None = None
    quotas: tuple[Quota, ...] = ()
    budget: float | None = None
    cost: str = "cost"
    attributes: ClientAttributes = field(default_factory=ClientAttributes)

    def __post_init__(self) -> None:
        both = sorted(set(self.include) & set(self.exclude))
        if both:
            raise SelectionError(f"client {both[0]!r} cannot be both included and excluded")
        for name, value in (("min_records", self.min_records), ("budget", self.budget)):
            if value is not None and not 0 <= value <= _MOST:
                raise SelectionError(f"{name} must be between 0 and {_MOST:g}, got {value}")

    @property
    def empty(self) -> bool:
        """Whether nothing is asked."""
        return not (self.include or self.exclude or self.quotas or self.min_records or self.budget is not None)


@dataclass(frozen=True, eq=False)
class Rule:
    """One linear rule: lower <= sum over members of amounts <= upper.

    Parameters
    ----------
    label : str
        The rule in words.
    amounts : ndarray of int64, shape (clients,)
        What each client adds.
    lower, upper : int
        Bounds of the sum.
    """

    label: str
    amounts: npt.NDArray[np.int64]
    lower: int = NO_LOWER
    upper: int = NO_UPPER


@dataclass(frozen=True, eq=False)
class Ruleset:
    """Constraints in the terms of one pool.

    Parameters
    ----------
    fixed, excluded : tuple of int
        Pool rows that must, or must not, be members.
    rules : tuple of Rule
        The other constraints.
    """

    fixed: tuple[int, ...]
    excluded: tuple[int, ...]
    rules: tuple[Rule, ...]

    def labels(self, clients: Sequence[str]) -> tuple[str, ...]:
        """Every rule in words."""
        included = [f"include {clients[row]}" for row in self.fixed]
        excluded = [f"exclude {clients[row]}" for row in self.excluded]
        return (*included, *excluded, *(rule.label for rule in self.rules))

    def free(self, clients: int) -> list[int]:
        """Pool rows that may or may not be members."""
        taken = set(self.fixed) | set(self.excluded)
        return [row for row in range(clients) if row not in taken]


def resolve(constraints: Constraints, pool: Pool) -> Ruleset:
    """Express constraints in the rows of a pool.

    Raises
    ------
    SelectionError
        If a client, attribute, value or cost is unknown.
    """
    fixed = tuple(sorted({_row(pool, name, "include") for name in constraints.include}))
    excluded = tuple(sorted({_row(pool, name, "exclude") for name in constraints.exclude}))
    rules = []
    for quota in constraints.quotas:
        held = [constraints.attributes.text(name, quota.attribute) == quota.value for name in pool.clients]
        if not any(held):
            raise SelectionError(f"quota: no client has {quota.attribute}={quota.value}")
        amounts = np.array(held, dtype=np.int64)
        if quota.at_least:
            label = f"at least {quota.at_least} with {quota.attribute}={quota.value}"
            rules.append(Rule(label, amounts, lower=quota.at_least))
        if quota.at_most is not None and quota.at_most < len(pool):
            label = f"at most {quota.at_most} with {quota.attribute}={quota.value}"
            rules.append(Rule(label, amounts, upper=quota.at_most))
    if constraints.min_records:
        amounts = np.maximum(0, np.rint(pool.totals().estimate)).astype(np.int64)
        needed = math.ceil(constraints.min_records)
        rules.append(Rule(f"at least {needed:,} records", amounts, lower=needed))
    if constraints.budget is not None:
        costs = [constraints.attributes.number(name, constraints.cost) for name in pool.clients]
        whole, limit = _whole(costs, Fraction(str(constraints.budget)))
        rules.append(Rule(f"total {constraints.cost} at most {constraints.budget:.15g}", whole, upper=limit))
    return Ruleset(fixed, excluded, tuple(rules))


def _row(pool: Pool, name: str, what: str) -> int:
    if name not in pool.clients:
        raise SelectionError(f"{what}: the pool has no client {name!r}")
    return pool.index(name)


def _whole(costs: Sequence[Fraction], budget: Fraction) -> tuple[npt.NDArray[np.int64], int]:
    """Return costs and budget in a common whole unit."""
    for decimals in range(_DECIMALS + 1):
        unit = 10**decimals
        if all((value * unit).denominator == 1 for value in (*costs, budget)):
            break
    else:
        raise SelectionError(f"costs and budget must have at most {_DECIMALS} decimals")
    amounts = [int(cost * unit) for cost in costs]
    if max(amounts) > NO_UPPER // len(amounts):
        raise SelectionError("costs are too large to add up exactly")
    return np.array(amounts, dtype=np.int64), min(int(budget * unit), NO_UPPER)
