"""FedAdam: Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar & McMahan 2021, algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.aggregators.fedavg import FedAvg
from fedsel.training.aggregators.round import Round, Setup
from fedsel.training.aggregators.tunable import Tunable
from fedsel.training.optimisers import Optimiser


@dataclass(kw_only=True, eq=False)
class FedAdam(FedAvg):
    """Adam at the server, with the mean update Delta as its (negative) gradient.

    m <- beta1 m + (1 - beta1) Delta, v <- beta2 v + (1 - beta2) Delta^2, x <- x + eta m / (sqrt(v) + tau); no
    correction for the start, with m = 0 and v = tau^2, as in the paper.

    Parameters
    ----------
    server_rate : float
        Step size eta.
    beta1, beta2 : float
        Decay of the moments, at least 0 and below 1.
    tau : float
        Degree of adaptivity.
    weighting : {"records", "uniform"}
        As in FedAvg.

    Raises
    ------
    TrainingError
        If a constant is out of range.
    """

    name: ClassVar[str] = "fedadam"
    optimisers: ClassVar[tuple[Optimiser, ...]] = ("sgd",)
    tunable: ClassVar[Tunable | None] = Tunable("server_rate", 0.01, 3)

    server_rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("server_rate", self.server_rate), ("tau", self.tau)):
            if not (math.isfinite(value) and value > 0):
                raise TrainingError(f"{name} must be positive and finite, got {value}")
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= value < 1:
                raise TrainingError(f"{name} must be at least 0 and below 1, got {value}")

    def begin(self, setup: Setup) -> None:
        """Start with moments m = 0 and v = tau^2."""
        super().begin(setup)
        self._mean = torch.zeros_like(setup.initial, dtype=torch.float64)
        self._square = torch.full_like(self._mean, self.tau**2)

    def step(self, round_: Round, mean: Tensor) -> Tensor:
        """Take one step of Adam."""
        self._mean = self.beta1 * self._mean + (1 - self.beta1) * mean
        self._square = self.beta2 * self._square + (1 - self.beta2) * mean**2
        return super().step(round_, self.server_rate * self._mean / (self._square.sqrt() + self.tau))

    def state(self) -> dict[str, Tensor]:
        """Return the moments."""
        return {"mean": self._mean, "square": self._square}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from stored moments."""
        self._mean, self._square = state["mean"], state["square"]
