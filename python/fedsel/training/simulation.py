"""Federated training in simulation: rounds of local training, aggregation and evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedsel.errors import DivergedError, TrainingError
from fedsel.training.aggregators.fedavg import FedAvg
from fedsel.training.aggregators.round import Round, Setup
from fedsel.training.batches import Rows
from fedsel.training.checkpoint import Checkpoint, run_key
from fedsel.training.evaluation import Evaluator
from fedsel.training.extra import torch_threads
from fedsel.training.fairness import METRIC_NAMES, Metrics
from fedsel.training.local import LocalSettings, LocalTrainer
from fedsel.training.memory import MEBIBYTE
from fedsel.training.models import StackedModel
from fedsel.training.splitting import Split, stream_seed

Progress = Callable[[int, int], object]

MEMORY_MB = 256

MEMBERS, ALL_CLIENTS = "members", "all clients"
VALIDATION, TEST = "validation", "test"


@dataclass(frozen=True)
class RunSettings:
    """How a federation is trained.

    Parameters
    ----------
    rounds : int
        Most rounds.
    local : LocalSettings
        What a client does in a round.
    clients_per_round : int or None
        Participants of a round, drawn uniformly; by default all members.
    patience : int or None
        Stop after this many evaluations in a row without a better validation loss of the members, and return the best
        model; by default all rounds run and the last model is returned.
    evaluate_every : int
        Rounds between evaluations; the last round is always evaluated.
    seed : int
        Seed of participants, batches and first model.

    Raises
    ------
    TrainingError
        If a number is not positive.
    """

    rounds: int = 50
    local: LocalSettings = field(default_factory=LocalSettings)
    clients_per_round: int | None = None
    patience: int | None = None
    evaluate_every: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "clients_per_round", "patience", "evaluate_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise TrainingError(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained federation. Everything in it was computed from rows: it is a non-private evaluation.

    Parameters
    ----------
    members : tuple of str
        Clients that trained.
    aggregator, model : str
        What trained, in words.
    parameters : Tensor, shape (size,)
        The global model.
    round : int
        The round it is from.
    rounds : int
        Rounds that ran.
    stop_reason : {"completed", "early stop"}
        Why no more ran.
    history : list of dict
        One row per evaluated round, part ("validation" or "test") and population ("members" or "all clients"): loss in
        nats and the metrics of `fedsel.training.fairness.Metrics`, None where undefined.
    test : dict of str to Metrics
        The model's metrics on the test rows of each population.
    notes : tuple of str
        What a reader of the result must know.
    seconds : float
        Wall time.
    """

    members: tuple[str, ...]
    aggregator: str
    model: str
    parameters: Tensor
    round: int
    rounds: int
    stop_reason: str
    history: list[dict[str, Any]]
    test: dict[str, Metrics]
    notes: tuple[str, ...]
    seconds: float


class Simulation:
    """Clients with their rows and a model: everything that does not change between runs.

    Parameters
    ----------
    split : Split
        Rows of all clients, of which the members of a run are some.
    model : StackedModel
        The model.
    memory_mb : int
        Most mebibytes that a round may take at any time (stacked models, optimisers, activations, batches, evaluation),
        besides the rows, the global model and what the aggregator keeps between rounds: fewer clients train side by
        side, and fewer rows are looked at together, if need be.
    threads : int
        Threads of torch. One is best for small models: two can be many times slower.

    Raises
    ------
    TrainingError
        If a number is not positive, or the memory does not suffice for predicting a single row.
    """

    def __init__(self, split: Split, model: StackedModel, *, memory_mb: int = MEMORY_MB, threads: int = 1) -> None:
        for name, value in (("memory_mb", memory_mb), ("threads", threads)):
            if value < 1:
                raise TrainingError(f"{name} must be at least 1, got {value}")
        self.split, self.model, self._threads = split, model, threads
        train, validation, test = (
            Rows(data, dtype=model.dtype, device=model.device) for data in (split.train, split.validation, split.test)
        )
        memory = memory_mb * MEBIBYTE
        self._trainer = LocalTrainer(model, train, memory=memory)
        self._training = Evaluator(split.train, model, train, memory=memory)
        self._validation = Evaluator(split.validation, model, validation, memory=memory)
        self._test = Evaluator(split.test, model, test, memory=memory)

    def run(
        self,
        members: Sequence[str],
        aggregator: FedAvg,
        settings: RunSettings,
        *,
        checkpoint: Path | None = None,
        checkpoint_every: int = 10,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Train the members.

        Parameters
        ----------
        members : sequence of str
            Clients to train; their order does not matter.
        aggregator : FedAvg
            The aggregator, FedAvg or one derived from it.
        settings : RunSettings
            How to train.
        checkpoint : Path, optional
            File that holds the run's state; if it is there already, the run goes on from it, to the same numbers.
        checkpoint_every : int
            Rounds between writes; the last round is written too.
        progress : callable, optional
            Called after every round with (rounds done, rounds).

        Returns
        -------
        TrainingResult

        Raises
        ------
        TrainingError
            If a member is unknown or has no training rows, more clients shall take part than there are, the memory
            does not suffice for one of them, or the checkpoint is damaged or of another run.
        DivergedError
            If an update is not finite; the message names the client.
        """
        started = time.perf_counter()
        with torch_threads(self._threads), torch.no_grad():
            run = _Run(self, members, aggregator, settings)
            if checkpoint is not None and checkpoint.exists():
                run.restore(Checkpoint.load(checkpoint, key=run.key, device=self.model.device))
            while not run.finished:
                run.advance()
                if checkpoint is not None and (run.finished or run.number % checkpoint_every == 0):
                    run.checkpoint().save(checkpoint)
                if progress is not None:
                    progress(run.number, settings.rounds)
            return run.result(time.perf_counter() - started)


class _Run:
    """One training run between rounds."""

    def __init__(self, world: Simulation, members: Sequence[str], aggregator: FedAvg, settings: RunSettings) -> None:
        self._world, self._aggregator, self._settings = world, aggregator, settings
        data = world.split.train
        self._clients = sorted(data.index(list(members)))  # by name, so that the order given does not matter
        self._everyone = list(range(len(data)))
        self._names = [data.names[client] for client in self._clients]
        records = data.rows[self._clients]
        for name, rows in zip(self._names, records, strict=True):
            if rows == 0:
                raise TrainingError(f"client {name!r} has no training rows")
        self._participants = len(self._clients) if settings.clients_per_round is None else settings.clients_per_round
        if self._participants > len(self._clients):
            raise TrainingError(
                f"clients_per_round must be between 1 and {len(self._clients)}, the members, got {self._participants}"
            )
        self.number = 0
        self._parameters = world.model.initial(stream_seed(settings.seed, "model"))
        self._best = self._parameters
        self._history: list[dict[str, Any]] = []
        aggregator.begin(Setup(records, self._parameters, settings.local, data.task.privileged))
        rounds_apart = {name: value for name, value in asdict(settings).items() if name != "rounds"}
        self.key = run_key(
            data.subset(self._names), self._parameters, aggregator.description, world.model.description, rounds_apart
        )

    @property
    def finished(self) -> bool:
        """Whether no round is left."""
        return self.number >= self._settings.rounds or self._stale

    @property
    def _losses(self) -> list[tuple[float, int]]:
        """Validation losses of the members, with their rounds."""
        return [
            (row["loss"], row["round"])
            for row in self._history
            if row["part"] == VALIDATION and row["population"] == MEMBERS and row["loss"] is not None
        ]

    @property
    def _stale(self) -> bool:
        patience, losses = self._settings.patience, self._losses
        return patience is not None and bool(losses) and len(losses) - 1 - losses.index(min(losses)) >= patience

    def advance(self) -> None:
        """Run a round."""
        self.number += 1
        world, aggregator, local = self._world, self._aggregator, self._settings.local
        rng = np.random.default_rng(stream_seed(self._settings.seed, "participants", self.number))
        drawn = rng.choice(len(self._clients), self._participants, replace=False)
        slots = tuple(sorted(int(slot) for slot in drawn))
        clients = [self._clients[slot] for slot in slots]
        before = self._parameters
        round_ = Round(
            self.number,
            before,
            slots,
            counts=lambda: world._training.evaluate(before, clients).counts,
            gradients=lambda: world._trainer.gradients(before, clients, seed=self._settings.seed, round_=self.number),
        )
        shares = torch.from_numpy(aggregator.shares(round_)).to(before.device)
        mean = torch.zeros_like(before, dtype=torch.float64)
        updates = world._trainer.train(
            before, clients, local, aggregator.rule(round_), seed=self._settings.seed, round_=self.number
        )
        for update in updates:
            self._check(update.delta, [clients[slot] for slot in update.slots])
            aggregator.receive(round_, update)
            mean += shares[update.slots] @ update.delta.double()
        self._parameters = aggregator.step(round_, mean)
        trained = world.model.layout.trained.size
        if trained < len(before):  # buffers are averaged, whatever the aggregator makes of parameters
            self._parameters = torch.cat([self._parameters[:trained], (before + mean).to(before.dtype)[trained:]])
        if not bool(torch.isfinite(self._parameters).all()):
            raise DivergedError(f"round {self.number}: the global model is not finite; lower the learning rates")
        if self.number % self._settings.evaluate_every == 0 or self.number == self._settings.rounds:
            self._evaluate()

    def _check(self, delta: Tensor, clients: list[int]) -> None:
        finite = torch.isfinite(delta).all(dim=1)
        if not bool(finite.all()):
            name = self._world.split.train.names[clients[int((~finite).int().argmax())]]
            raise DivergedError(
                f"round {self.number}: client {name!r} diverged, its update is not finite; lower the learning rate, "
                f"{self._settings.local.learning_rate:g}"
            )

    def _evaluate(self) -> None:
        world = self._world
        validation = world._validation.evaluate(self._parameters, self._clients)
        test = world._test.evaluate(self._parameters, self._everyone)
        for part, evaluator, outcome, population, places in (
            (VALIDATION, world._validation, validation, MEMBERS, None),
            (TEST, world._test, test, MEMBERS, self._clients),
            (TEST, world._test, test, ALL_CLIENTS, None),
        ):
            metrics, loss = evaluator.metrics(outcome, places)
            values = {name: getattr(metrics, name) for name in METRIC_NAMES}
            self._history.append(
                {"round": self.number, "part": part, "population": population, "rows": metrics.rows, "loss": loss}
                | values
            )
        losses = self._losses
        if losses and min(losses)[1] == self.number:
            self._best = self._parameters

    def checkpoint(self) -> Checkpoint:
        """Return the state after the last round."""
        return Checkpoint(
            self.key, self.number, self._parameters, self._best, self._aggregator.state(), list(self._history)
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a state."""
        self.number, self._history = checkpoint.round, list(checkpoint.history)
        self._parameters, self._best = checkpoint.parameters, checkpoint.best
        self._aggregator.restore(checkpoint.aggregator)

    def result(self, seconds: float) -> TrainingResult:
        """Return what came out."""
        losses, best = self._losses, self._settings.patience is not None
        parameters = self._best if best and losses else self._parameters
        outcome = self._world._test.evaluate(parameters, self._everyone)
        test = {
            population: self._world._test.metrics(outcome, places)[0]
            for population, places in ((MEMBERS, self._clients), (ALL_CLIENTS, None))
        }
        undefined = tuple(
            f"{population}: {reason}" for population, metrics in test.items() for reason in metrics.undefined
        )
        return TrainingResult(
            members=tuple(self._names),
            aggregator=self._aggregator.description,
            model=self._world.model.description,
            parameters=parameters,
            round=min(losses)[1] if best and losses else self.number,
            rounds=self.number,
            stop_reason="early stop" if self.number < self._settings.rounds else "completed",
            history=self._history,
            test=test,
            notes=(*self._aggregator.notes(), *undefined),
            seconds=seconds,
        )
