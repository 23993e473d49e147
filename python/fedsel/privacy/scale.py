"""The noise distribution of one table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from fedsel.privacy.plan import NoisePlan


@dataclass(frozen=True)
class Scale:
    """One symmetric distribution on the integers.

    Parameters
    ----------
    mechanism : {"discrete-gaussian", "discrete-laplace"}
        P(y) proportional to exp(-y^2 / (2 ratio)), or to exp(-|y| / ratio).
    ratio : Fraction
        sigma^2 or b, in counts (squared or not).
    """

    mechanism: Literal["discrete-gaussian", "discrete-laplace"]
    ratio: Fraction

    @classmethod
    def of(cls, plan: NoisePlan, table: int) -> Scale:
        """Scale of one table of a plan that has noise."""
        assert plan.mechanism != "none"
        return cls(plan.mechanism, Fraction(plan.numerator, plan.weights[table]))
