"""FedProx: Li, Sahu, Zaheer, Sanjabi, Talwalkar & Smith 2020, algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fedsel.errors import TrainingError
from fedsel.training.aggregators.fedavg import FedAvg
from fedsel.training.aggregators.round import Round
from fedsel.training.aggregators.tunable import Tunable
from fedsel.training.local import LocalRule


@dataclass(kw_only=True, eq=False)
class FedProx(FedAvg):
    """Local losses with (mu / 2) ||theta - theta_global||^2 added.

    Parameters
    ----------
    mu : float
        Strength of the pull towards the global model; 0 is FedAvg.
    weighting : {"records", "uniform"}
        As in FedAvg.

    Raises
    ------
    TrainingError
        If mu is negative or not finite.
    """

    name: ClassVar[str] = "fedprox"
    tunable: ClassVar[Tunable | None] = Tunable("mu", 0.01, 10)

    mu: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.mu) and self.mu >= 0):
            raise TrainingError(f"mu must be at least 0 and finite, got {self.mu}")

    def rule(self, round_: Round) -> LocalRule:
        """Add the gradient of the proximal term, mu (theta - theta_global)."""
        return LocalRule(proximal=self.mu)
