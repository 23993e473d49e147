"""Methods of subgroup discovery on one division of a corpus into clients, from exact ones to private ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedsel.encode import Codes
from fedsel.errors import DataError
from fedsel.experiments.subgroup_corpus import Corpus
from fedsel.pool import Pool
from fedsel.privacy.entropy import SeededEntropy
from fedsel.privacy.plan import Adjacency, Mechanism, NoisePlan
from fedsel.subgroups.discovery import SubgroupDiscovery
from fedsel.subgroups.federated.choosing import next_questions
from fedsel.subgroups.federated.client import answer, asked
from fedsel.subgroups.federated.discover import discover
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.result import FederatedSubgroups
from fedsel.subgroups.federated.secure_sum import noisy_sum
from fedsel.subgroups.fedpsd import FedPsdClient, FedPsdResult, FedPsdSettings, run_fedpsd
from fedsel.subgroups.fedpsd.channel import Channel
from fedsel.subgroups.fedpsd.descriptions import Description
from fedsel.subgroups.search import Search
from fedsel.tables import count

TOP = 10
"""Descriptions that a method is judged by."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One division of one sample.

    Parameters
    ----------
    corpus : Corpus
        The population.
    seed : int
        Of sample, division and noise.
    parts : tuple of Codes
        Each client's rows.
    train, test : Codes
        All rows for training, and those held out.
    only : tuple of int or None
        Attributes that conditions may speak of; all if not given.
    """

    corpus: Corpus
    seed: int
    parts: tuple[Codes, ...]
    train: Codes
    test: Codes
    only: tuple[int, ...] | None = None

    @classmethod
    def draw(cls, corpus: Corpus, seed: int, *, clients: int = 8, alpha: float | None = None) -> Trial:
        """Draw sample and division."""
        train, test = corpus.split(seed)
        parts = tuple(corpus.rows(part) for part in corpus.clients(train, seed, clients=clients, alpha=alpha))
        return cls(corpus, seed, parts, corpus.rows(train), corpus.rows(test))

    @classmethod
    def divided(cls, corpus: Corpus, seed: int, *, clients: int, skew: bool, heterogeneous: bool) -> Trial:
        """Draw a sample and divide it by sizes and shares of positives that are skewed or not.

        Skewed sizes are Dirichlet(0.4), as in the manuscript's Adult; uneven labels give every client a share of
        positives of its own, Beta-distributed around that of all with concentration 2.
        """
        train, test = corpus.split(seed)
        rng = np.random.default_rng([seed, 4])
        sizes = rng.dirichlet([0.4] * clients) if skew else np.full(clients, 1 / clients)
        outcome = corpus.outcome[train]
        positive = outcome == outcome.max()
        base = float(positive.mean())
        rates = rng.beta(2 * base, 2 * (1 - base), size=clients) if heterogeneous else np.full(clients, base)
        owner = np.empty(len(train), dtype=np.int64)
        for label, share in ((True, sizes * rates), (False, sizes * (1 - rates))):
            mine = positive == label
            owner[mine] = rng.choice(clients, size=int(mine.sum()), p=share / share.sum())
        parts = tuple(corpus.rows(train[owner == client]) for client in range(clients))
        return cls(corpus, seed, parts, corpus.rows(train), corpus.rows(test))

    @property
    def target(self) -> int:
        """Position of the outcome."""
        return self.corpus.schema.names.index(self.corpus.schema.target or "")

    @property
    def attributes(self) -> tuple[int, ...]:
        """Positions of the attributes of two or more categories."""
        domain = self.corpus.schema.domain
        able = (a for a in range(len(domain)) if a != self.target and domain[a] > 1)
        return tuple(a for a in able if self.only is None or a in self.only)

    def best_attributes(self, number: int) -> Trial:
        """Keep the attributes whose best condition is best on all training rows, as exact counts say: not private."""
        outcome = self.outcome(self.train).astype(np.float64) - self.base
        domain = self.corpus.schema.domain
        best = {
            a: max(float(outcome[covers(self.train, ((a, code),))].sum()) for code in range(domain[a]))
            for a in self.attributes
        }
        kept = sorted(best, key=lambda a: -best[a])[:number]
        return replace(self, only=tuple(sorted(kept)))

    @property
    def positive(self) -> int:
        """Code that counts as positive: the last."""
        return self.corpus.schema.domain[self.target] - 1

    def outcome(self, rows: Codes) -> npt.NDArray[np.bool_]:
        """Return which rows are positive."""
        result: npt.NDArray[np.bool_] = rows.columns[self.target] == self.positive
        return result

    @cached_property
    def base(self) -> float:
        """Share of positives of all training rows."""
        return float(self.outcome(self.train).mean())

    @property
    def sizes(self) -> list[int]:
        """Rows of each client."""
        return [part.rows for part in self.parts]


def covers(rows: Codes, description: Description) -> npt.NDArray[np.bool_]:
    """Return which rows a description covers."""
    result = np.ones(rows.rows, dtype=np.bool_)
    for attribute, code in description:
        result &= rows.columns[attribute] == code
    return result


def quality(trial: Trial, description: Description) -> float:
    """Return the weighted relative accuracy of a description on all training rows."""
    outcome, cover = trial.outcome(trial.train), covers(trial.train, description)
    return float((outcome[cover].sum() - trial.base * cover.sum()) / trial.train.rows)


def held_out(trial: Trial, description: Description) -> float:
    """Return the weighted relative accuracy of a description on the test rows."""
    outcome, cover = trial.outcome(trial.test), covers(trial.test, description)
    return float((outcome[cover].sum() - outcome.mean() * cover.sum()) / trial.test.rows)


def central(trial: Trial, rows: Codes, *, search: Search, depth: int) -> list[Description]:
    """Return the ten best descriptions of rows in one place, as `SubgroupDiscovery` finds them. Not private."""
    outcome = trial.outcome(rows)
    if outcome.all() or not outcome.any():
        return []
    schema = trial.corpus.schema
    columns = {
        schema.names[a]: pd.Series(pd.Categorical.from_codes(rows.columns[a], range(schema.domain[a]), ordered=True))
        for a in trial.attributes
    }
    found = SubgroupDiscovery(search=search, depth=depth, k=TOP, threads=1).fit(columns, outcome)
    return [
        tuple((schema.names.index(c.attribute), c.ranges[0][0]) for c in subgroup.conditions)
        for subgroup in found.subgroups_
    ]


def local_only(trial: Trial, *, depth: int) -> list[Description]:
    """Return what clients find alone, ranked by the exact counts of those that found it. Not private.

    A client that did not find a description adds nothing to its counts, as the manuscript has it.
    """
    gains: dict[Description, float] = {}
    for part in trial.parts:
        outcome = trial.outcome(part).astype(np.float64) - trial.base
        for description in central(trial, part, search="beam", depth=depth):
            gains[description] = gains.get(description, 0.0) + float(outcome[covers(part, description)].sum())
    return sorted(gains, key=lambda d: -gains[d])[:TOP]


def fedpsd(trial: Trial, budgets: Sequence[float], settings: FedPsdSettings) -> FedPsdResult:
    """Run FedPSD on the trial's clients with seeded noise."""
    channel = Channel(private=settings.private)
    clients = [
        FedPsdClient(
            f"client {place}",
            part.columns,
            trial.outcome(part),
            epsilon=epsilon,
            channel=channel,
            entropy=SeededEntropy(np.random.SeedSequence([trial.seed, 3, place])),
        )
        for place, (part, epsilon) in enumerate(zip(trial.parts, budgets, strict=True))
    ]
    return run_fedpsd(clients, channel, settings, attributes=trial.attributes, domain=trial.corpus.schema.domain)


@lru_cache(maxsize=512)
def _plan(
    protocol: SubgroupProtocol, epsilon: float, delta: float | None, adjacency: Adjacency, mechanism: Mechanism
) -> NoisePlan:
    return protocol.plan(epsilon, delta=delta, adjacency=adjacency, mechanism=mechanism)


def from_marginals(
    trial: Trial,
    epsilons: Sequence[float],
    protocol: SubgroupProtocol,
    *,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    once: bool = False,
    base: float | None = None,
    noise_seed: int | None = None,
) -> FederatedSubgroups:
    """Discover from marginals, every round released as a client would, with seeded noise.

    Parameters
    ----------
    trial : Trial
        Clients and rows.
    epsilons : sequence of float
        Budget of each client; with `once`, the same for all.
    protocol : SubgroupProtocol
        What was agreed.
    adjacency, mechanism
        As for `plan_noise`.
    once : bool
        Noise added once, under secure aggregation.
    base : float, optional
        Public p0; that of the releases if not given.
    noise_seed : int, optional
        By default the trial's.
    """
    delta = None if mechanism == "discrete-gaussian" else 0.0
    plans = [_plan(protocol, epsilon, delta, adjacency, mechanism) for epsilon in epsilons]
    seed = trial.seed if noise_seed is None else noise_seed
    if once and len(set(epsilons)) > 1:
        raise DataError("noise that is added once has one epsilon, got several")
    rounds: list[Pool] = []
    questions = None
    for number in range(1, protocol.rounds + 1):
        if once:
            workload, _ = asked(protocol, questions)
            exact = [count(part.columns, workload) for part in trial.parts]
            releases = [noisy_sum(exact, protocol.schema, plans[0], round=number, seed=seed)]
        else:
            releases = [
                answer(protocol, part, plan, client=f"client {place}", questions=questions, seed=seed)
                for place, (part, plan) in enumerate(zip(trial.parts, plans, strict=True))
            ]
        rounds.append(Pool.from_releases(releases, allow_mixed=True))
        if number < protocol.rounds:
            questions = next_questions(protocol, rounds, base=base)
    return discover(protocol, rounds, k=TOP, base=base)


def descriptions(trial: Trial, found: FederatedSubgroups) -> list[Description]:
    """Return what was discovered as attribute positions and codes."""
    names = trial.corpus.schema.names
    return [
        tuple((names.index(condition.attribute), condition.ranges[0][0]) for condition in subgroup.conditions)
        for subgroup in found.subgroups
    ]


@dataclass(frozen=True)
class Score:
    """How good a list of descriptions is.

    Parameters
    ----------
    quality : float
        Mean weighted relative accuracy of the top ten on held-out rows; a list that is short counts 0 for the rest.
    jaccard : float
        Descriptions in common with a reference over those in either.
    depth : float
        Mean number of conditions.
    repeated : float
        Quality where conditions that cover everything, on attributes of one category, make further descriptions: every
        one of a single condition is then there again with each of them, as in earlier figures for Adult.
    """

    quality: float
    jaccard: float
    depth: float
    repeated: float


def judge(trial: Trial, found: Sequence[Description], reference: Sequence[Description]) -> Score:
    """Judge the first ten of a list."""
    top = list(found[:TOP])
    mean = sum(held_out(trial, description) for description in top) / TOP
    both, either = len(set(top) & set(reference)), len(set(top) | set(reference))
    depth = float(np.mean([len(description) for description in top])) if top else 0.0
    domain = trial.corpus.schema.domain
    trivial = sum(domain[a] == 1 for a in range(len(domain)))
    again = [d for description in top for d in [description] * (1 + trivial * (len(description) == 1))][:TOP]
    repeated = sum(held_out(trial, description) for description in again) / TOP
    return Score(mean, both / either if either else 1.0, depth, repeated)


def variant(settings: FedPsdSettings, **changes: object) -> FedPsdSettings:
    """Return settings with some of them changed."""
    return replace(settings, **changes)  # type: ignore[arg-type]
