"""Local training of many clients as one batched computation.

Every step takes the next batch of every client that still has one, and moves all their parameters together. What a
client computes is what it would compute alone: its batches, its gradient, its optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.batches import Rows, Schedule, in_order, shuffled
from fedsel.training.memory import too_little
from fedsel.training.models import Stack, StackedModel
from fedsel.training.optimisers import Optimiser, local_optimiser
from fedsel.training.splitting import stream_seed

_GRADIENT_BATCH = 256  # rows, where only the sum of gradients matters
_ORDER_BYTES = 16  # of a row's number and weight
_VECTORS = 6  # of a model's size that are in use at every step: parameters, gradient, moments, scratch
# At most: parameters, gradient, two moments, start, shift, correction, result and a difference; and while clients
# leave, the first four twice.
_MOST_VECTORS = 13
_BLOCKS = 2  # of batches gathered ahead: the next one is made before the last one is let go

FAST_BYTES = 16 * 2**20
"""What clients side by side touch again and again; more would leave the caches, and gain nothing."""


@dataclass(frozen=True)
class LocalSettings:
    """What a client does in a round.

    Parameters
    ----------
    optimiser : {"adam", "sgd"}
        Started afresh every round.
    learning_rate : float
        Its step size.
    batch_size : int
        Most rows of a batch.
    epochs : int
        Passes over the rows.

    Raises
    ------
    TrainingError
        If a value is out of range.
    """

    optimiser: Optimiser = "adam"
    learning_rate: float = 1e-3
    batch_size: int = 32
    epochs: int = 1

    def __post_init__(self) -> None:
        if self.optimiser not in ("adam", "sgd"):
            raise TrainingError(f"optimiser must be adam or sgd, got {self.optimiser!r}")
        if not 0 < self.learning_rate < float("inf"):
            raise TrainingError(f"learning rate must be positive and finite, got {self.learning_rate}")
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise TrainingError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class LocalRule:
    """What an aggregator changes in the gradient at the clients.

    Parameters
    ----------
    proximal : float
        Factor mu of mu (theta - theta_global), which is added to the gradient.
    correction : callable or None
        Returns what is added to the gradients of some clients, (clients, size), for their places among the clients
        asked for.
    """

    proximal: float = 0.0
    correction: Callable[[list[int]], Tensor] | None = None


@dataclass(frozen=True, eq=False)
class Update:
    """What came out of some clients' local training.

    Parameters
    ----------
    slots : list of int
        Places of the clients among those asked for.
    delta : Tensor, shape (clients, size)
        Their parameters minus the global ones.
    steps : Tensor of int64, shape (clients,)
        Steps they took.
    """

    slots: list[int]
    delta: Tensor
    steps: Tensor


class LocalTrainer:
    """Trains clients from common parameters.

    Parameters
    ----------
    model : StackedModel
        The model.
    rows : Rows
        Training rows of all clients.
    memory : int
        Bytes that training may take at any time, besides the rows, the global model and what the aggregator keeps;
        fewer clients train side by side if need be.
    side_by_side : int
        Bytes of clients side by side beyond which no more are put there, for speed.
    """

    def __init__(self, model: StackedModel, rows: Rows, *, memory: int, side_by_side: int = FAST_BYTES) -> None:
        self._model, self._rows, self._memory, self._side_by_side = model, rows, memory, side_by_side
        element, inputs = rows.target.element_size(), rows.positions.shape[1]
        # Number, weight in both precisions, positions in both widths, numbers, target.
        self._row_bytes = 24 + 10 * inputs + element * (rows.numeric.shape[1] + 2)

    def train(
        self,
        parameters: Tensor,
        clients: Sequence[int],
        settings: LocalSettings,
        rule: LocalRule,
        *,
        seed: int,
        round_: int,
    ) -> Iterator[Update]:
        """Train every client for a round, chunk by chunk.

        Parameters
        ----------
        parameters : Tensor, shape (size,)
            The global model.
        clients : sequence of int
            Numbers of the clients; each must have a row.
        settings : LocalSettings
            What they do.
        rule : LocalRule
            What is added to their gradients.
        seed, round_ : int
            Seed of the run, and number of the round.

        Yields
        ------
        Update
            Every client comes up in one of them.

        Raises
        ------
        TrainingError
            If the memory does not suffice for a client alone; the message names it, and the need.
        """
        batch, epochs = settings.batch_size, settings.epochs
        for slots, most in self._chunks(clients, batch, epochs):
            numbers = [clients[slot] for slot in slots]
            schedule = shuffled(self._rows, numbers, batch=batch, epochs=epochs, seed=seed, round_=round_)
            correction = None if rule.correction is None else rule.correction(slots)
            seeds = self._seeds(schedule, "local training", seed, round_)
            delta = self._trained(parameters, schedule, settings, rule.proximal, correction, seeds, most)
            yield Update(slots, delta, torch.tensor(schedule.steps))

    def gradients(self, parameters: Tensor, clients: Sequence[int], *, seed: int, round_: int) -> Iterator[Update]:
        """Compute every client's gradient of its mean loss at common parameters; arguments as `train`.

        Yields
        ------
        Update
            `delta` holds the gradient.
        """
        layout = self._model.layout
        for slots, most in self._chunks(clients, _GRADIENT_BATCH, 1):
            schedule = in_order(self._rows, [clients[slot] for slot in slots], batch=_GRADIENT_BATCH)
            total = parameters.new_zeros(len(slots), layout.size)
            stack = self._stack(parameters, self._seeds(schedule, "full gradient", seed, round_))
            training = len(slots)
            for active, block in schedule.blocks(self._rows, most):
                if active < training:
                    stack, training = stack.first(active), active
                for batch in block._replace(positions=stack.prepare(block.positions)).steps():
                    stack.backward(batch)
                    total[:active, : layout.trained.size] += layout.trained.unpack(stack.gradient, active)
            yield Update(slots, total, torch.tensor(schedule.steps))

    def _trained(
        self,
        parameters: Tensor,
        schedule: Schedule,
        settings: LocalSettings,
        proximal: float,
        correction: Tensor | None,
        seeds: list[int],
        block_rows: int,
    ) -> Tensor:
        """Return parameters minus the global ones of the schedule's clients, (clients, size)."""
        layout, clients = self._model.layout, len(schedule.clients)
        trained = layout.trained  # buffers lie behind what moves
        stack = self._stack(parameters, seeds)
        moving = stack.parameters[: clients * trained.size]
        start = moving.clone() if proximal else None
        shift = None if correction is None else trained.pack(correction[:, : trained.size])
        optimiser = local_optimiser(settings.optimiser, moving, settings.learning_rate)
        result = torch.empty(clients, layout.size, dtype=parameters.dtype, device=parameters.device)
        training = clients
        for active, block in schedule.blocks(self._rows, block_rows):
            if active < training:
                result[:training] = layout.unpack(stack.parameters, training)
                first = partial(trained.first, clients=training, kept=active)
                stack = stack.first(active)
                moving = stack.parameters[: active * trained.size]
                optimiser.shrink(first)
                start = None if start is None else first(start)
                shift = None if shift is None else first(shift)
                training = active
            for batch in block._replace(positions=stack.prepare(block.positions)).steps():
                stack.backward(batch)
                if start is not None:
                    stack.gradient.add_(moving - start, alpha=proximal)
                if shift is not None:
                    stack.gradient.add_(shift)
                optimiser.step(moving, stack.gradient)
        result[:training] = layout.unpack(stack.parameters, training)
        return result.sub_(parameters)

    def _stack(self, parameters: Tensor, seeds: list[int]) -> Stack:
        clients = len(seeds)
        return self._model.stack(self._model.layout.pack(parameters.expand(clients, -1)), clients, seeds)

    def _seeds(self, schedule: Schedule, purpose: str, seed: int, round_: int) -> list[int]:
        """Return the seed of every client's random numbers, which depends on nothing but what is named here."""
        return [stream_seed(seed, purpose, round_, self._rows.names[client]) for client in schedule.clients]

    def _chunks(self, clients: Sequence[int], batch: int, epochs: int) -> Iterator[tuple[list[int], int]]:
        """Yield slots of clients that train side by side, and the rows of their batches to gather at a time.

        Those with most rows come first, as `Schedule` has them, so that the first of a chunk needs most.
        """
        count = self._rows.count
        slots = sorted(range(len(clients)), key=lambda slot: -count[clients[slot]])
        vector = self._model.layout.size * self._rows.target.element_size()
        ahead = self._memory // 4  # for batches; at least one step of all clients, which is among their needs
        start = 0
        while start < len(slots):
            client = clients[slots[start]]
            order = -(-int(count[client]) // batch) * epochs * batch * _ORDER_BYTES
            need = _MOST_VECTORS * vector + order + self._model.step_need.of(batch) + _BLOCKS * batch * self._row_bytes
            many = min(
                (self._memory - ahead) // need,
                max(1, self._side_by_side // 2 // (_VECTORS * vector + order)),
                len(slots) - start,
            )
            if many == 0:
                what = f"training client {self._rows.names[client]!r} alone, batches of {batch} rows,"
                raise too_little(what, -(-need * 4 // 3), self._memory)
            yield slots[start : start + many], min(ahead, self._side_by_side // 2) // (_BLOCKS * self._row_bytes)
            start += many
