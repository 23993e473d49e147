"""FedAvg: McMahan, Moore, Ramage, Hampson & Agüera y Arcas 2017, algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.aggregators.round import Round, Setup
from fedsel.training.aggregators.tunable import Tunable
from fedsel.training.local import LocalRule, Update
from fedsel.training.optimisers import Optimiser

Weighting = Literal["records", "uniform"]
Shares = npt.NDArray[np.float64]


@dataclass(kw_only=True, eq=False)
class FedAvg:
    """The mean of the clients' models; other aggregators change one of its steps.

    Parameters
    ----------
    weighting : {"records", "uniform"}
        Weight clients by their training rows, or all alike.

    Raises
    ------
    TrainingError
        If the weighting is another.
    """

    name: ClassVar[str] = "fedavg"
    optimisers: ClassVar[tuple[Optimiser, ...]] = ("adam", "sgd")
    """Local optimisers that the method allows, its default first."""
    tunable: ClassVar[Tunable | None] = None
    """The constant that a comparison searches besides the learning rate."""

    weighting: Weighting = "records"

    def __post_init__(self) -> None:
        if self.weighting not in ("records", "uniform"):
            raise TrainingError(f"weighting must be records or uniform, got {self.weighting!r}")

    @property
    def description(self) -> str:
        """Its name and all its options, such as ``fedprox(weighting=records, mu=0.01)``."""
        options = [f"{field.name}={getattr(self, field.name)}" for field in fields(self)]
        return f"{self.name}({', '.join(options)})"

    def begin(self, setup: Setup) -> None:
        """Start from nothing but the federation."""
        if setup.local.optimiser not in self.optimisers:
            raise TrainingError(
                f"{self.name} needs the local optimiser {' or '.join(self.optimisers)}, got {setup.local.optimiser}"
            )
        records = setup.records if self.weighting == "records" else np.ones(len(setup.records))
        self.base: Shares = records / records.sum()

    def shares(self, round_: Round) -> Shares:
        """Return the weights of the round's updates, (participants,), which sum to 1."""
        return normalised(self.base[list(round_.clients)])

    def rule(self, round_: Round) -> LocalRule:
        """Return what clients add to their gradients."""
        return LocalRule()

    def receive(self, round_: Round, update: Update) -> None:
        """Take note of some clients' updates."""

    def step(self, round_: Round, mean: Tensor) -> Tensor:
        """Return the next global model, (size,), from the weighted mean of the updates, (size,) of float64."""
        return (round_.parameters.double() + mean).to(round_.parameters.dtype)

    def state(self) -> dict[str, Tensor]:
        """Return what the next round depends on, besides the global model."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a state, after `begin`."""

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the results must know."""
        return ()


def normalised(weights: Shares) -> Shares:
    """Return weights that sum to 1."""
    return np.asarray(weights / weights.sum())
