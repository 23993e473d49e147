"""How the costs of several charges add up, and whether one more still fits a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fedsel.errors import PrivacyError


@dataclass(frozen=True)
class Cost:
    """A guarantee of (epsilon, delta)-differential privacy, as a price.

    Parameters
    ----------
    epsilon : float
        Not negative; infinite for an exact release.
    delta : float
        Of [0, 1].
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise PrivacyError(f"epsilon must not be negative, got {self.epsilon}")
        if not 0 <= self.delta <= 1:
            raise PrivacyError(f"delta must be between 0 and 1, got {self.delta}")

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"


class SequentialComposition:
    """Epsilons add up and so do deltas; valid for adaptively chosen mechanisms (Dwork and Roth 2014, theorem 3.16).

    Sums are exact on the decimal numbers as they are written, so that three times 0.1 fits a budget of 0.3.
    """

    def total(self, costs: Sequence[Cost]) -> Cost:
        """Return the sums, as the nearest floats."""
        if any(math.isinf(cost.epsilon) for cost in costs):
            return Cost(math.inf, min(1.0, float(sum(_exact(cost.delta) for cost in costs))))
        epsilon, delta = _sums(costs)
        return Cost(float(epsilon), float(min(delta, Fraction(1))))

    def fits(self, costs: Sequence[Cost], budget: Cost) -> bool:
        """Return whether both sums stay within the budget."""
        if any(math.isinf(cost.epsilon) for cost in costs):
            return math.isinf(budget.epsilon)
        epsilon, delta = _sums(costs)
        return (math.isinf(budget.epsilon) or epsilon <= _exact(budget.epsilon)) and delta <= _exact(budget.delta)

    def remaining(self, costs: Sequence[Cost], budget: Cost) -> Cost:
        """Return what is left of the budget, nothing if it is overdrawn."""
        if math.isinf(budget.epsilon) or any(math.isinf(cost.epsilon) for cost in costs):
            return Cost(budget.epsilon if math.isinf(budget.epsilon) else 0.0, 0.0)
        epsilon, delta = _sums(costs)
        left = max(_exact(budget.epsilon) - epsilon, Fraction(0)), max(_exact(budget.delta) - delta, Fraction(0))
        return Cost(float(left[0]), float(left[1]))


def _exact(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def _sums(costs: Sequence[Cost]) -> tuple[Fraction, Fraction]:
    return (
        sum((_exact(cost.epsilon) for cost in costs), Fraction(0)),
        sum((_exact(cost.delta) for cost in costs), Fraction(0)),
    )
