"""One repetition of a comparison: everything that its choices and aggregators share."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedsel.errors import TrainingError
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.training.comparison_settings import ComparisonSettings
from fedsel.training.data import FederatedData
from fedsel.training.models import Mlp
from fedsel.training.simulation import Simulation
from fedsel.training.sources import Source
from fedsel.training.splitting import TEST_SHARE, VALIDATION_SHARE, Split, split, stream_seed


class Repetition:
    """Candidates, their rows with a split, and their releases, all drawn from one seed when they are first asked for.

    Parameters
    ----------
    source : Source
        All clients.
    plan : NoisePlan
        What their releases spend.
    settings : ComparisonSettings
        What is compared.
    candidates : int
        How many clients are candidates.
    seed : int
        Seed of all draws.
    """

    def __init__(
        self, source: Source, plan: NoisePlan, settings: ComparisonSettings, candidates: int, seed: int
    ) -> None:
        self.seed = seed
        self._source, self._plan, self._settings = source, plan, settings
        rng = np.random.default_rng(stream_seed(seed, "candidates"))
        drawn = sorted(rng.choice(len(source.clients), candidates, replace=False).tolist())
        self.candidates = tuple(source.clients[number] for number in drawn)

    @cached_property
    def pool(self) -> Pool:
        """Releases of the candidates."""
        return self._source.pool(self._plan, seed=self.seed).subset(list(self.candidates))

    @cached_property
    def data(self) -> FederatedData:
        """Rows of all clients, thinned."""
        return self._source.rows(self._settings.rows, seed=self.seed, part="results")

    @cached_property
    def split(self) -> Split:
        """Rows of the candidates."""
        return split(self.data.subset(self.candidates), seed=self.seed)

    @cached_property
    def simulation(self) -> Simulation:
        """The candidates in training."""
        model = Mlp(self._source.task, self._settings.hidden, device=self._settings.device)
        return Simulation(self.split, model, memory_mb=self._settings.memory_mb)


class TuningRepetition(Repetition):
    """Rows that no other repetition trains or tests on, about as many to train on as there if there are so many."""

    @cached_property
    def data(self) -> FederatedData:
        """Rows of all clients, thinned; there will be no test rows."""
        most = self._settings.rows
        kept = None if most is None else max(1, round(most * (1 - TEST_SHARE)))
        return self._source.rows(kept, seed=self.seed, part="tuning")

    @cached_property
    def split(self) -> Split:
        """Rows of the candidates, to train and to validate."""
        share = VALIDATION_SHARE / (1 - TEST_SHARE)
        return split(self.data.subset(self.candidates), seed=self.seed, test=0.0, validation=share)

    def members(self) -> tuple[str, ...]:
        """Draw a federation of k candidates that have rows here.

        Raises
        ------
        TrainingError
            If there are not k of them.
        """
        train = self.split.train
        usable = [name for name, rows in zip(train.names, train.rows, strict=True) if rows]
        k = self._settings.k
        if len(usable) < k:
            raise TrainingError(
                f"tuning needs {k} candidates with rows set apart for it, a fifth of each client's rounded down; "
                f"{len(usable)} have some"
            )
        drawn = np.random.default_rng(stream_seed(self.seed, "tuning members")).choice(len(usable), k, replace=False)
        return tuple(usable[number] for number in sorted(drawn.tolist()))
