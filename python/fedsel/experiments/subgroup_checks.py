"""Whether what a private discovery says of itself holds: intervals, tests and planted truths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from fedsel.encode import Codes
from fedsel.experiments.subgroup_corpus import PLANTED, Corpus, made_corpus
from fedsel.experiments.subgroup_methods import TOP, Trial, central, descriptions, from_marginals, quality
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.fedpsd.descriptions import Description


@dataclass(frozen=True)
class Calibration:
    """Intervals of the ten best of one trial, against the truth among the clients' records.

    Parameters
    ----------
    seed : int
        Of the trial.
    epsilon : float
        Of every client.
    reported : float
        Mean bias of the reported qualities, in their standard deviations: above 0 is the winner's curse.
    fresh : float
        The same of the confirmations, whose noise knows nothing of the choice.
    model : float
        Share of subgroups whose quality lies within its reported value plus or minus 1.96 standard deviations.
    confirmed : float
        Share whose confirmed interval covers the quality.
    subgroups, confirmations : int
        How many of each there were.
    """

    seed: int
    epsilon: float
    reported: float
    fresh: float
    model: float
    confirmed: float
    subgroups: int
    confirmations: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def calibration(corpus: Corpus, seeds: Sequence[int], epsilons: Sequence[float]) -> Iterator[Calibration]:
    """Compare what is said of the ten best with the truth; a third round confirms ten tables."""
    protocol = SubgroupProtocol.make(corpus.schema, confirm=TOP)
    for seed in seeds:
        trial = Trial.draw(corpus, seed)
        for epsilon in epsilons:
            found = from_marginals(trial, [epsilon] * len(trial.parts), protocol)
            own = descriptions(trial, found)
            truth = [quality(trial, description) for description in own]
            errors = [(s.quality - t) / s.error for s, t in zip(found.subgroups, truth, strict=True)]
            fresh = [(s.confirmed, t) for s, t in zip(found.subgroups, truth, strict=True) if s.confirmed is not None]
            unbiased = [(c.estimate - t) / max(c.high - c.low, 1e-12) * 2 * 1.96 for c, t in fresh]
            yield Calibration(
                seed,
                epsilon,
                float(np.mean(errors)) if errors else 0.0,
                float(np.mean(unbiased)) if unbiased else 0.0,
                float(np.mean([abs(e) <= 1.96 for e in errors])) if errors else 1.0,
                float(np.mean([c.low <= t <= c.high for c, t in fresh])) if fresh else 1.0,
                len(errors),
                len(fresh),
            )


@dataclass(frozen=True)
class Null:
    """A discovery on outcomes that were shuffled within clients, so that there is nothing to find.

    Parameters
    ----------
    seed : int
        Of the trial.
    epsilon : float
        Of every client.
    p_values : tuple of float
        Of the confirmed subgroups, unadjusted.
    discoveries : int
        Subgroups whose adjusted p is at most 0.1: all of them false.
    """

    seed: int
    epsilon: float
    p_values: tuple[float, ...]
    discoveries: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def null(corpus: Corpus, seeds: Sequence[int], epsilons: Sequence[float], *, level: float = 0.1) -> Iterator[Null]:
    """Test the method where nothing is to be found. Not a private output."""
    protocol = SubgroupProtocol.make(corpus.schema, confirm=TOP)
    for seed in seeds:
        trial = shuffled(Trial.draw(corpus, seed))
        for epsilon in epsilons:
            found = from_marginals(trial, [epsilon] * len(trial.parts), protocol)
            fresh = [s.confirmed for s in found.subgroups if s.confirmed is not None]
            discoveries = sum(one.adjusted_p_value <= level for one in fresh)
            yield Null(seed, epsilon, tuple(one.p_value for one in fresh), discoveries)


def shuffled(trial: Trial) -> Trial:
    """Shuffle the outcomes among the rows of every client."""
    rng = np.random.default_rng([trial.seed, 5])
    parts = []
    for part in trial.parts:
        columns = list(part.columns)
        columns[trial.target] = rng.permutation(columns[trial.target])
        parts.append(Codes(tuple(columns), part.rows, part.dropped, part.unmatched))
    return replace(trial, parts=tuple(parts), train=Codes.join(parts))


@dataclass(frozen=True)
class Planted:
    """Recovery of what was planted in made rows.

    Parameters
    ----------
    seed : int
        Of rows, division and noise.
    epsilon : float
        Of every client.
    recall : float
        Share of the planted descriptions among the ten best.
    exact_recall : float
        The same of an exact search of all rows: what could be found at all.
    precision : float
        Share of the ten best that are planted, one of its conditions, or a planted one's condition with another.
    rank_correlation : float
        Spearman's, between reported and true qualities of the ten best.
    """

    seed: int
    epsilon: float
    recall: float
    exact_recall: float
    precision: float
    rank_correlation: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def planted(corpus: Corpus, seeds: Sequence[int], epsilons: Sequence[float]) -> Iterator[Planted]:
    """Look for planted descriptions in made rows, those of each seed; the corpus given is not looked at."""
    truth: list[Description] = [tuple(sorted((first, second))) for first, second, _ in PLANTED]
    parts = {pair for description in truth for pair in description}
    for seed in seeds:
        made = made_corpus(seed)
        protocol = SubgroupProtocol.make(made.schema)
        trial = Trial.draw(made, seed)
        exact = central(trial, trial.train, search="exhaustive", depth=2)
        for epsilon in epsilons:
            found = from_marginals(trial, [epsilon] * len(trial.parts), protocol)
            own = descriptions(trial, found)
            true = [quality(trial, description) for description in own]
            order = stats.spearmanr([s.quality for s in found.subgroups], true).statistic if len(own) > 2 else 0.0
            yield Planted(
                seed,
                epsilon,
                sum(description in own for description in truth) / len(truth),
                sum(description in exact for description in truth) / len(truth),
                sum(bool(set(description) & parts) for description in own) / TOP,
                float(order) if np.isfinite(order) else 0.0,
            )


Check = Calibration | Null | Planted

CHECKS: dict[str, Callable[[Corpus, Sequence[int], Sequence[float]], Iterator[Check]]] = {
    "calibration": calibration,
    "null": null,
    "planted": planted,
}


def mean_fields(rows: Sequence[Check]) -> dict[str, float]:
    """Average every number over rows; of p-values, the share of those at most 0.05."""
    fields: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.to_dict().items():
            if name == "p_values":
                fields.setdefault("p <= 0.05", []).extend(float(p <= 0.05) for p in value)
            elif name != "seed":
                fields.setdefault(name, []).append(float(value))
    return {name: float(np.mean(values)) if values else 0.0 for name, values in fields.items()}
