"""Predictions of a model on every client's rows, counted by client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedsel.training.batches import Rows
from fedsel.training.data import FederatedData
from fedsel.training.fairness import Counts, Metrics, count_outcomes, measure
from fedsel.training.memory import too_little
from fedsel.training.models import StackedModel

_BLOCK_ROWS = 4_096
_ROW_BYTES = 192  # of a row's number, owner, target, group, logit, loss and cell, with copies


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
    memory : int
        Bytes that predicting may take at any time, besides the rows.

    Raises
    ------
    TrainingError
        If it does not suffice for a single row.
    """

    def __init__(self, data: FederatedData, model: StackedModel, rows: Rows, *, memory: int) -> None:
        self._model, self._rows, self._task = model, rows, data.task
        need = model.row_need
        # Positions in both widths, and numbers.
        gathered = 10 * rows.positions.shape[1] + rows.target.element_size() * rows.numeric.shape[1]
        per_row = need.per_row + gathered + _ROW_BYTES
        if need.fixed + per_row > memory:
            raise too_little("predicting a single row", need.fixed + per_row, memory)
        self._block = min(_BLOCK_ROWS, (memory - need.fixed) // per_row)
        self._group = np.concatenate([client.group for client in data.clients])
        self._target = np.concatenate([client.target for client in data.clients])

    def evaluate(self, parameters: Tensor, clients: Sequence[int]) -> Outcome:
        """Predict the positive category where the logit is above 0, and count.

        Parameters
        ----------
        parameters : Tensor, shape (size,)
            The model's.
        clients : sequence of int
            Numbers of the clients whose rows are looked at.

        Returns
        -------
        Outcome
            In the order of `clients`.
        """
        ends = np.cumsum(self._rows.count[list(clients)])
        starts = self._rows.first[list(clients)]
        counts = np.zeros((len(clients), len(self._task.groups), 2, 2), dtype=np.int64)
        sums = np.zeros(len(clients))
        for begin in range(0, int(ends[-1]), self._block):
            place = np.arange(begin, min(begin + self._block, int(ends[-1])))  # among the rows of all these clients
            owner = np.searchsorted(ends, place, side="right")
            rows = starts[owner] + place - (ends[owner] - self._rows.count[list(clients)][owner])
            target = self._target[rows]
            logits = self._logits(parameters, rows)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, torch.from_numpy(target).to(logits.dtype), reduction="none"
            ).numpy()
            counts += count_outcomes(
                target,
                (logits > 0).numpy(),
                self._group[rows],
                len(self._task.groups),
                client=owner,
                clients=len(clients),
            )
            sums += np.bincount(owner, weights=loss, minlength=len(clients))
        return Outcome(counts, sums)

    def _logits(self, parameters: Tensor, rows: npt.NDArray[np.int64]) -> Tensor:
        held = torch.from_numpy(rows).to(self._rows.target.device)
        positions = self._rows.positions.index_select(0, held).long()
        return self._model.logits(parameters, positions, self._rows.numeric.index_select(0, held)).cpu()

    def metrics(self, outcome: Outcome, places: list[int] | None = None) -> tuple[Metrics, float | None]:
        """Return the metrics of some clients' rows together, and their mean loss in nats (None without rows).

        Parameters
        ----------
        outcome : Outcome
            What `evaluate` returned.
        places : list of int, optional
            Where in it the clients are; by default all of them.
        """
        chosen = list(range(len(outcome.loss))) if places is None else places
        counts = outcome.counts[chosen].sum(axis=0)
        metrics = measure(counts, groups=self._task.groups, privileged=self._task.privileged)
        loss = float(outcome.loss[chosen].sum()) / metrics.rows if metrics.rows else None
        return metrics, loss
