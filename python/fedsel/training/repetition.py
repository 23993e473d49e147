"""One repetition of a comparison: everything that its choices and aggregators share."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.training.comparison_settings import ComparisonSettings
from fedsel.training.data import FederatedData
from fedsel.training.models import Mlp
from fedsel.training.simulation import Simulation
from fedsel.training.sources import Source
from fedsel.training.splitting import Split, split, stream_seed


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
        return self._source.rows(self._settings.rows, seed=self.seed)

    @cached_property
    def split(self) -> Split:
        """Rows of the candidates."""
        return split(self.data.subset(self.candidates), seed=self.seed)

    @cached_property
    def simulation(self) -> Simulation:
        """The candidates in training."""
        model = Mlp(self._source.task, self._settings.hidden, device=self._settings.device)
        return Simulation(self.split, model, memory_mb=self._settings.memory_mb)
