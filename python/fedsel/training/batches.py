"""Rows as tensors, and the batches of many clients side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedsel.training.data import FederatedData
from fedsel.training.models import Batch
from fedsel.training.splitting import stream_seed


class Rows:
    """Rows of all clients under one another, as positions of ones.

    Parameters
    ----------
    data : FederatedData
        The rows.
    dtype : torch.dtype
        Of numbers and targets.
    device : torch.device or str
        Where tensors are.

    Attributes
    ----------
    positions : Tensor of int16 or int32, shape (rows, inputs + 1)
        One-hot position of every categorical input, and last that of the constant.
    numeric : Tensor, shape (rows, numeric inputs)
        Standardised numbers.
    target : Tensor, shape (rows,)
        0 or 1.
    first : ndarray of int64, shape (clients + 1,)
        First row of each client, and the number of all rows.
    """

    def __init__(self, data: FederatedData, *, dtype: torch.dtype, device: torch.device | str) -> None:
        task = data.task
        self.names = data.names
        self.first = np.concatenate([[0], np.cumsum(data.rows)]).astype(np.int64)
        small = np.int16 if task.categories < 2**15 else np.int32
        total = int(self.first[-1])
        positions = np.full((total, len(task.inputs) + 1), task.categories, dtype=small)
        for client, start in zip(data.clients, self.first, strict=False):
            positions[start : start + client.rows, :-1] = client.codes + task.offsets[:-1]
        self.positions = torch.from_numpy(positions).to(device)
        numeric = np.concatenate([client.numeric for client in data.clients])
        self.numeric = torch.from_numpy(numeric).to(device, dtype)
        target = np.concatenate([client.target for client in data.clients])
        self.target = torch.from_numpy(target).to(device, dtype)

    @cached_property
    def count(self) -> npt.NDArray[np.int64]:
        """Rows of each client, (clients,)."""
        return np.diff(self.first)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Which row every client of a chunk takes at which step.

    Parameters
    ----------
    clients : tuple of int
        Numbers of the clients, those with most steps first: clients that still train are always the first few.
    steps : tuple of int
        Steps of each client, descending.
    order : ndarray of int64, shape (clients, most steps * batch)
        Rows in the order in which they are taken; batches are padded with row 0.
    weight : ndarray of float64, shape (clients, most steps * batch)
        Factor of each row in the loss, 0 for padding.
    batch : int
        Rows of a batch.
    """

    clients: tuple[int, ...]
    steps: tuple[int, ...]
    order: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    batch: int

    def blocks(self, rows: Rows, most: int) -> Iterator[tuple[int, Batch]]:
        """Gather all batches, a few steps at a time.

        Parameters
        ----------
        rows : Rows
            The rows.
        most : int
            Rows to gather at a time; one step is gathered whatever it takes.

        Yields
        ------
        active : int
            How many clients take these steps; never rises.
        batch : Batch
            With a leading axis of steps.
        """
        start = 0
        for active in range(len(self.clients), 0, -1):
            length = max(1, most // (active * self.batch))
            while start < self.steps[active - 1]:
                end = min(start + length, self.steps[active - 1])
                yield active, self._gathered(rows, start, end, active)
                start = end

    def _gathered(self, rows: Rows, start: int, end: int, active: int) -> Batch:
        def by_step(values: npt.NDArray[Any]) -> Tensor:
            cut = values[:active, start * self.batch : end * self.batch].reshape(active, end - start, self.batch)
            return torch.from_numpy(np.ascontiguousarray(cut.transpose(1, 0, 2))).to(rows.target.device)

        order = by_step(self.order)
        flat = order.view(-1)
        return Batch(
            rows.positions.index_select(0, flat).long().view(*order.shape, -1),
            rows.numeric.index_select(0, flat).view(*order.shape, rows.numeric.shape[1]),
            rows.target.index_select(0, flat).view(*order.shape, 1),
            by_step(self.weight).to(rows.target.dtype).unsqueeze(-1),
        )


def shuffled(rows: Rows, clients: Sequence[int], *, batch: int, epochs: int, seed: int, round_: int) -> Schedule:
    """Return epochs of batches in random order; a client's order depends on seed, round and its name alone.

    The last batch of an epoch holds what is left, and its loss is the mean over its own rows.

    Parameters
    ----------
    rows : Rows
        Rows of all clients.
    clients : sequence of int
        Numbers of the clients that train, each with at least one row.
    batch : int
        Most rows of a batch.
    epochs : int
        Passes over a client's rows.
    seed, round_ : int
        Seed of the run, and number of the round.
    """
    generator = torch.Generator()
    ordered = sorted(clients, key=lambda client: -rows.count[client])
    lengths = [-(-int(rows.count[client]) // batch) for client in ordered]
    order = np.zeros((len(ordered), epochs * lengths[0] * batch), dtype=np.int64)
    weight = np.zeros(order.shape, dtype=np.float64)
    for slot, (client, length) in enumerate(zip(ordered, lengths, strict=True)):
        count = int(rows.count[client])
        full = count - count % batch
        generator.manual_seed(stream_seed(seed, "batches", round_, rows.names[client]))
        for epoch in range(epochs):
            start = epoch * length * batch
            order[slot, start : start + count] = torch.randperm(count, generator=generator).numpy()
            order[slot, start : start + count] += rows.first[client]
            weight[slot, start : start + full] = 1.0 / batch
            weight[slot, start + full : start + count] = 1.0 / max(1, count - full)
    return Schedule(tuple(ordered), tuple(epochs * length for length in lengths), order, weight, batch)


def in_order(rows: Rows, clients: Sequence[int], *, batch: int) -> Schedule:
    """Return one pass over every client's rows as they stand, weighted so that gradients add up to those of the mean.

    Parameters
    ----------
    rows : Rows
        Rows of all clients.
    clients : sequence of int
        Numbers of the clients, each with at least one row.
    batch : int
        Most rows of a batch.
    """
    ordered = sorted(clients, key=lambda client: -rows.count[client])
    lengths = [-(-int(rows.count[client]) // batch) for client in ordered]
    order = np.zeros((len(ordered), lengths[0] * batch), dtype=np.int64)
    weight = np.zeros(order.shape, dtype=np.float64)
    for slot, client in enumerate(ordered):
        count = int(rows.count[client])
        order[slot, :count] = np.arange(rows.first[client], rows.first[client + 1])
        weight[slot, :count] = 1.0 / count
    return Schedule(tuple(ordered), tuple(lengths), order, weight, batch)
