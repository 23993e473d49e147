"""SCAFFOLD: Karimireddy, Kale, Mohri, Reddi, Stich & Suresh 2020, algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.aggregators.fedavg import FedAvg, Weighting
from fedsel.training.aggregators.round import Round, Setup
from fedsel.training.local import LocalRule, Update
from fedsel.training.optimisers import Optimiser

Option = Literal["I", "II"]


@dataclass(kw_only=True, eq=False)
class Scaffold(FedAvg):
    """Local steps corrected by control variates: y_i <- y_i - eta_l (g_i(y_i) - c_i + c).

    A client sends the change of its model and the change of its variate, Delta c_i. The server adds the mean of the
    Delta c_i over *all* N clients: c <- c + (|S| / N) mean over S of Delta c_i.

    Parameters
    ----------
    option : {"I", "II"}
        New variate: the gradient at the global model (I), or c_i - c + (x - y_i) / (K eta_l) (II), K local steps.
    server_rate : float
        Step size of the server, eta_g.
    weighting : {"records", "uniform"}
        Of the model updates; uniform in the paper.

    Raises
    ------
    TrainingError
        If the option is another, or the step size is not positive.
    """

    name: ClassVar[str] = "scaffold"
    optimisers: ClassVar[tuple[Optimiser, ...]] = ("sgd",)  # option II reads gradients off the distance travelled

    weighting: Weighting = "uniform"
    option: Option = "II"
    server_rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.option not in ("I", "II"):
            raise TrainingError(f"option must be I or II, got {self.option!r}")
        if not (math.isfinite(self.server_rate) and self.server_rate > 0):
            raise TrainingError(f"server_rate must be positive and finite, got {self.server_rate}")

    def begin(self, setup: Setup) -> None:
        """Start with variates of zero."""
        super().begin(setup)
        self._local_rate = setup.local.learning_rate
        self._variate = torch.zeros_like(setup.initial)
        self._variates = setup.initial.new_zeros(len(setup.records), len(setup.initial))

    def rule(self, round_: Round) -> LocalRule:
        """Add c - c_i to the gradient."""
        self._change = torch.zeros_like(self._variate)
        return LocalRule(
            correction=lambda slots: self._variate - self._variates[[round_.clients[slot] for slot in slots]]
        )

    def receive(self, round_: Round, update: Update) -> None:
        """Option II: renew the variates; `delta` is y_i - x."""
        if self.option == "II":
            steps = update.steps.to(update.delta)[:, None]
            self._renew(round_, update.slots, -self._variate - update.delta / (steps * self._local_rate))

    def step(self, round_: Round, mean: Tensor) -> Tensor:
        """Move the model and the server's variate."""
        if self.option == "I":
            for gradients in round_.gradients():
                old = self._variates[[round_.clients[slot] for slot in gradients.slots]]
                self._renew(round_, gradients.slots, gradients.delta - old)
        # |S| / N times the mean over S is the sum over S by N.
        self._variate = self._variate + self._change / len(self._variates)
        return super().step(round_, mean * self.server_rate)

    def _renew(self, round_: Round, slots: list[int], change: Tensor) -> None:
        """Add Delta c_i, (clients, size), to the variates of some participants, and to the sum that they send."""
        self._variates[[round_.clients[slot] for slot in slots]] += change
        self._change += change.sum(dim=0)

    def state(self) -> dict[str, Tensor]:
        """Return all variates."""
        return {"variate": self._variate, "variates": self._variates}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from stored variates."""
        self._variate, self._variates = state["variate"], state["variates"]
