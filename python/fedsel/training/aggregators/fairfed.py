"""FairFed: Ezzeldin, Yan, He, Ferrara & Avestimehr 2023 (arXiv 2110.00857), algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.aggregators.fedavg import FedAvg, Shares, normalised
from fedsel.training.aggregators.round import Round, Setup
from fedsel.training.aggregators.secure_sum import PlainSum, SecureSum
from fedsel.training.aggregators.tunable import Tunable
from fedsel.training.fairness import Counts
from fedsel.training.fairness_terms import FairnessMetric, base_counts, global_terms, local_difference


@dataclass(kw_only=True, eq=False)
class FairFed(FedAvg):
    """Less weight for clients whose own fairness is far from the federation's.

    At the global model, a participant's gap is Delta_k = |F - F_k|, or |Acc_k - Acc| where its F_k is undefined
    (equation 6); with eta below 1, eta |F - F_k| + (1 - eta) |Acc_k - Acc| (appendix D, "uniform accuracy"). Its weight
    becomes wbar_k <- wbar_k - beta (Delta_k - mean Delta), and the wbar of the participants, normalised, weigh their
    updates.

    Settled here: a negative wbar_k is set to 0; where those of all participants are 0, they return to their first
    values, n_k / n; the wbar that is carried to the next round is not normalised. Sums and means are over the round's
    participants. If a group has no rows at any of them, F itself is undefined and all gaps are of accuracy.

    Parameters
    ----------
    beta : float
        Fairness budget; 0 is FedAvg.
    metric : {"eod", "spd"}
        Which F.
    eta : float
        Between 0 and 1; 1 is the main method.
    secure_sum : SecureSum
        How sums over clients are formed; by default in the clear.
    weighting : {"records", "uniform"}
        First weights.

    Raises
    ------
    TrainingError
        If a constant is out of range.
    """

    name: ClassVar[str] = "fairfed"
    tunable: ClassVar[Tunable | None] = Tunable("beta", 1.0, 3, fairness=True)

    beta: float = 1.0
    metric: FairnessMetric = "eod"
    eta: float = 1.0
    secure_sum: SecureSum = field(default_factory=PlainSum)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise TrainingError(f"beta must be at least 0 and finite, got {self.beta}")
        if self.metric not in ("eod", "spd"):
            raise TrainingError(f"metric must be eod or spd, got {self.metric!r}")
        if not hasattr(self.secure_sum, "total"):
            raise TrainingError(f"secure_sum must be a SecureSum, got {self.secure_sum!r}")
        if not 0 <= self.eta <= 1:
            raise TrainingError(f"eta must be between 0 and 1, got {self.eta}")

    def begin(self, setup: Setup) -> None:
        """Start with weights n_k / n."""
        super().begin(setup)
        self._privileged = setup.privileged
        self._weights = self.base.copy()
        self._by_accuracy = self._gaps_seen = 0

    def shares(self, round_: Round) -> Shares:
        """Renew the participants' weights, and normalise them."""
        clients = list(round_.clients)
        gaps = self._gaps(round_.counts())
        mean = float(self.secure_sum.total(gaps)) / len(gaps)
        weights = np.maximum(self._weights[clients] - self.beta * (gaps - mean), 0.0)
        if not weights.any():
            weights = self.base[clients]
        self._weights[clients] = weights
        return normalised(weights)

    def _gaps(self, counts: Counts) -> npt.NDArray[np.float64]:
        """Return Delta_k of the participants."""
        right = counts[..., 0, 0].sum(axis=1) + counts[..., 1, 1].sum(axis=1)
        rows = counts.sum(axis=(1, 2, 3))
        correct, everyone = self.secure_sum.total(np.stack([right, rows], axis=1).astype(np.float64))
        accuracy_gap = np.abs(right / rows - correct / everyone)
        totals = self.secure_sum.total(base_counts(counts, self.metric, self._privileged).astype(np.float64))
        if not (totals > 0).all():
            defined = np.zeros(len(counts), dtype=np.bool_)
            fairness_gap = np.zeros(len(counts))
        else:
            own, defined = local_difference(counts, self.metric, self._privileged)
            terms = global_terms(counts, (totals[0], totals[1]), self.metric, self._privileged)
            fairness_gap = np.abs(float(self.secure_sum.total(terms)) - own)
        self._gaps_seen += len(counts)
        self._by_accuracy += int((~defined).sum())
        mixed = self.eta * fairness_gap + (1 - self.eta) * accuracy_gap
        return np.asarray(np.where(defined, mixed, accuracy_gap), dtype=np.float64)

    def state(self) -> dict[str, Tensor]:
        """Return the weights, and how often which gap was used."""
        return {
            "weights": torch.from_numpy(self._weights.copy()),
            "gaps": torch.tensor([self._by_accuracy, self._gaps_seen]),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from stored weights."""
        self._weights = state["weights"].cpu().numpy().copy()
        self._by_accuracy, self._gaps_seen = state["gaps"].tolist()

    def notes(self) -> tuple[str, ...]:
        """Say how sums were formed, and how often a client's own fairness was undefined."""
        used = (
            f"the accuracy gap stood in for an undefined one in {self._by_accuracy} of {self._gaps_seen} client rounds"
        )
        return (f"fairfed: {self.secure_sum.label}", f"fairfed: {used}")
