"""Predictions of a model on every client's rows, counted by client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedsel.training.batches import Rows
from fedsel.training.data import FederatedData
from fedsel.training.fairness import Counts, Metrics, count_outcomes, measure
from fedsel.training.models import StackedModel

_BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model did on each client's rows.

    Parameters
    ----------
    counts : ndarray of int64, shape (clients, groups, 2, 2)
        Rows per group, target and prediction.
    loss : ndarray of float64, shape (clients,)
        Sum of the rows' cross-entropy, in nats.
    """

    counts: Counts
    loss: npt.NDArray[np.float64]


class Evaluator:
    """Evaluates models on fixed rows.

    Parameters
    ----------
    data : FederatedData
        The rows.
    model : StackedModel
        The model.
    rows : Rows
        The same rows as tensors.
    """

    def __init__(self, data: FederatedData, model: StackedModel, rows: Rows) -> None:
        self._model, self._rows, self._task = model, rows, data.task
        self._client = np.repeat(np.arange(len(data)), data.rows)
        self._group = np.concatenate([client.group for client in data.clients])
        self._target = np.concatenate([client.target for client in data.clients])
        self._clients = len(data)

    def evaluate(self, parameters: Tensor) -> Outcome:
        """Predict the positive category where the logit is above 0, and count."""
        logits = torch.empty(len(self._target), dtype=parameters.dtype)
        for start in range(0, len(logits), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            logits[block] = self._model.logits(
                parameters, self._rows.positions[block].long(), self._rows.numeric[block]
            ).cpu()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, self._rows.target.cpu(), reduction="none"
        ).numpy()
        counts = count_outcomes(
            self._target,
            (logits > 0).numpy(),
            self._group,
            len(self._task.groups),
            client=self._client,
            clients=self._clients,
        )
        sums = np.bincount(self._client, weights=loss, minlength=self._clients).astype(np.float64)
        return Outcome(counts, sums)

    def metrics(self, outcome: Outcome, clients: list[int]) -> tuple[Metrics, float | None]:
        """Return the metrics of some clients' rows together, and their mean loss in nats (None without rows)."""
        metrics = measure(
            outcome.counts[clients].sum(axis=0), groups=self._task.groups, privileged=self._task.privileged
        )
        loss = float(outcome.loss[clients].sum()) / metrics.rows if metrics.rows else None
        return metrics, loss
