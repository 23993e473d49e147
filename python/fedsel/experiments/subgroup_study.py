"""Studies of subgroup discovery: which methods are run, on what, and what is measured of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.stats import spearmanr

from fedsel.errors import DataError
from fedsel.experiments.subgroup_corpus import Corpus
from fedsel.experiments.subgroup_methods import (
    TOP,
    Score,
    Trial,
    central,
    covers,
    descriptions,
    fedpsd,
    from_marginals,
    judge,
    local_only,
    quality,
    variant,
)
from fedsel.privacy.plan import Adjacency, Mechanism
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.fedpsd import FedPsdSettings, personalised_budgets, uniform_budgets
from fedsel.subgroups.fedpsd.descriptions import Description

Study = Literal["marginals", "tables", "routing", "beta", "dispersion", "factorial"]

CLIENTS = 8
REFINEMENTS = 65
"""Count pairs beyond those of single conditions: with 46 and 18 of these, the 111 and 83 of the manuscript."""

ADULT_SUPPORT = 0.035
"""Support that keeps about 46 of Adult's conditions, the manuscript's screening being unstated."""

SCREENED_ATTRIBUTES = 6
"""Attributes of breast cancer that the manuscript keeps, by supervised screening on pooled rows."""


@dataclass(frozen=True)
class Promise:
    """What a method's epsilon means.

    Parameters
    ----------
    kind : str
        "exact" (nothing is protected), "pure", or "delta = 1e-5"; with what is left uncharged.
    adjacency : str
        "add-remove", "replace-one" or "none".
    largest, mean : float
        Largest epsilon of a client, and the mean over records.
    """

    kind: str
    adjacency: str
    largest: float
    mean: float


@dataclass(frozen=True)
class Outcome:
    """One method on one trial.

    Parameters
    ----------
    corpus, method : str
        What ran.
    seed : int
        Of the trial.
    promise : Promise
        Its privacy.
    score : Score
        Quality on held-out rows, overlap with the central beam search of three conditions, depth.
    gap : float
        Quality less that of the exact search of two conditions on the same trial.
    statistics : int
        Numbers sent by all clients, where that is a count of messages; else 0.
    coverage : tuple of float
        Share of the training records that the top ten cover together: of all records, and with every record weighted by
        the personalised budget of its client.
    fidelity : float or None
        Spearman's correlation between estimated and true qualities of all candidates that were asked for; None for
        methods that do not ask for candidates.
    seconds : float
        Wall time.
    """

    corpus: str
    method: str
    seed: int
    promise: Promise
    score: Score
    gap: float
    statistics: int
    coverage: tuple[float, float]
    fidelity: float | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """What a method returns; fields as in `Outcome`."""

    descriptions: list[Description]
    promise: Promise
    statistics: int = 0
    fidelity: float | None = None


Runner = Callable[[Trial], Found]

EXACT = Promise("exact", "none", float("inf"), float("inf"))


def run_study(study: str, corpus: Corpus, seeds: Sequence[int]) -> Iterator[Outcome]:
    """Run every method of a study on every seed.

    Parameters
    ----------
    study : {'marginals', 'tables', 'routing', 'beta', 'dispersion', 'factorial'}
        Which.
    corpus : Corpus
        On what.
    seeds : sequence of int
        Of samples, divisions and noise.

    Yields
    ------
    Outcome
        Seed by seed.

    Raises
    ------
    DataError
        If there is no such study.
    """
    if study not in get_args(Study):
        raise DataError(f"study must be one of {', '.join(get_args(Study))}, got {study!r}")
    for seed in seeds:
        if study == "factorial":
            yield from _factorial(corpus, seed)
            continue
        trial = Trial.draw(corpus, seed, clients=CLIENTS)
        reference = central(trial, trial.train, search="beam", depth=3)
        oracle = judge(trial, central(trial, trial.train, search="exhaustive", depth=2), reference)
        for name, run in METHODS[study](corpus).items():
            yield measure(corpus, trial, name, run, reference, oracle)


def measure(
    corpus: Corpus, trial: Trial, name: str, run: Runner, reference: list[Description], oracle: Score
) -> Outcome:
    """Run one method on one trial."""
    started = time.perf_counter()
    found = run(trial)
    seconds = time.perf_counter() - started
    score = judge(trial, found.descriptions, reference)
    coverage = _coverage(trial, found.descriptions)
    return Outcome(
        corpus.name,
        name,
        trial.seed,
        found.promise,
        score,
        score.quality - oracle.quality,
        found.statistics,
        coverage,
        found.fidelity,
        seconds,
    )


def _coverage(trial: Trial, found: Sequence[Description]) -> tuple[float, float]:
    shares = []
    for part in trial.parts:
        cover = np.zeros(part.rows, dtype=np.bool_)
        for description in found[:TOP]:
            cover |= covers(part, description)
        shares.append(float(cover.mean()) if part.rows else 0.0)
    sizes = np.array(trial.sizes, dtype=np.float64)
    budgets = np.array(personalised_budgets(trial.sizes)) * sizes
    return float(sizes @ shares / sizes.sum()), float(budgets @ shares / budgets.sum())


# Methods ------------------------------------------------------------------------------------------------------------


def _marginals(
    epsilons: float | Callable[[Trial], Sequence[float]],
    *,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    once: bool = False,
    public_base: bool = False,
) -> Runner:
    def run(trial: Trial) -> Found:
        own = [float(epsilons)] * len(trial.parts) if isinstance(epsilons, (int, float)) else list(epsilons(trial))
        schema = trial.corpus.schema
        left_out = [n for i, n in enumerate(schema.names) if i not in trial.attributes and n != schema.target]
        protocol = SubgroupProtocol.make(schema, exclude=left_out)
        base = trial.base if public_base else None
        found = from_marginals(trial, own, protocol, adjacency=adjacency, mechanism=mechanism, once=once, base=base)
        kind = "delta = 1e-5" if mechanism == "discrete-gaussian" else "pure"
        return Found(descriptions(trial, found), Promise(kind, adjacency, max(own), _mean(trial, own)))

    return run


def _study_marginals(corpus: Corpus) -> dict[str, Runner]:
    found: dict[str, Runner] = {
        "exact search, depth 2": lambda trial: Found(central(trial, trial.train, search="exhaustive", depth=2), EXACT),
    }
    for epsilon in (0.1, 0.25, 0.5, 1.0, 4.0):
        at = f", epsilon {epsilon:g}"
        found[f"marginals{at}"] = _marginals(epsilon)
        found[f"marginals, p0 public{at}"] = _marginals(epsilon, public_base=True)
        found[f"marginals, replace-one{at}"] = _marginals(epsilon, adjacency="replace-one")
        found[f"marginals, pure{at}"] = _marginals(epsilon, mechanism="discrete-laplace")
        found[f"marginals, pure, replace-one{at}"] = _marginals(
            epsilon, mechanism="discrete-laplace", adjacency="replace-one"
        )
        found[f"marginals, noise once{at}"] = _marginals(epsilon, once=True)
    return found


def _settings(corpus: Corpus, trial: Trial, **changes: object) -> FedPsdSettings:
    """Return the manuscript's setting: Q pre-registered pairs, screening by support on Adult."""
    adult = corpus.name == "adult"
    settings = FedPsdSettings(
        queries=111 if adult else 83, base=trial.base, least_support=ADULT_SUPPORT if adult else 0.0
    )
    return variant(settings, **changes)


def _charged(trial: Trial, **changes: object) -> FedPsdSettings:
    """Everything charged: no screening, so as many pairs as there are conditions, and refinements."""
    domain = trial.corpus.schema.domain
    conditions = sum(domain[a] for a in trial.attributes)
    return variant(FedPsdSettings(queries=conditions + REFINEMENTS, base=trial.base), **changes)


def _fedpsd(
    corpus: Corpus,
    budgets: Callable[[Trial], Sequence[float]],
    *,
    charged: bool = False,
    **changes: object,
) -> Runner:
    def run(trial: Trial) -> Found:
        if not charged and corpus.name == "breast-cancer":
            trial = trial.best_attributes(SCREENED_ATTRIBUTES)
        own = list(budgets(trial))
        settings = _charged(trial, **changes) if charged else _settings(corpus, trial, **changes)
        result = fedpsd(trial, own, settings)
        screened = not charged and (corpus.name == "breast-cancer" or settings.least_support > 0)
        uncharged = [
            *(["screening"] if screened else []),
            *(["proposals"] if settings.proposal == "exact" else []),
        ]
        kind = "pure" + (f", {' and '.join(uncharged)} uncharged" if uncharged else "")
        promise = Promise(kind, "replace-one", max(own), _mean(trial, own))
        estimated = [scored.quality for scored in result.ranked]
        true = [quality(trial, scored.description) for scored in result.ranked]
        fidelity = float(spearmanr(estimated, true).statistic) if len(true) > 2 else None
        return Found(result.top(TOP), promise, result.statistics, fidelity)

    return run


def _mean(trial: Trial, epsilons: Sequence[float]) -> float:
    return float(np.dot(trial.sizes, epsilons) / sum(trial.sizes))


def _uniform(epsilon: float) -> Callable[[Trial], Sequence[float]]:
    return lambda trial: uniform_budgets(len(trial.parts), epsilon)


def _personal(trial: Trial) -> Sequence[float]:
    return personalised_budgets(trial.sizes)


def _largest(trial: Trial) -> Sequence[float]:
    return [max(_personal(trial))] * len(trial.parts)


def _study_tables(corpus: Corpus) -> dict[str, Runner]:
    ours = {"adjacency": "replace-one", "mechanism": "discrete-laplace"}
    local = "exact"
    return {
        "central beam, depth 3": lambda trial: Found(central(trial, trial.train, search="beam", depth=3), EXACT),
        "central beam, depth 2": lambda trial: Found(central(trial, trial.train, search="beam", depth=2), EXACT),
        "exact search, depth 2": lambda trial: Found(central(trial, trial.train, search="exhaustive", depth=2), EXACT),
        "local only, depth 3": lambda trial: Found(local_only(trial, depth=3), EXACT),
        "uniform 1": _fedpsd(corpus, _uniform(1.0), estimand="population"),
        "uniform 4": _fedpsd(corpus, _uniform(4.0), estimand="population"),
        "uniform 16": _fedpsd(corpus, _uniform(16.0), estimand="population"),
        "FedPSD": _fedpsd(corpus, _personal, proposal=local, baseline="matching"),
        "FedPSD, public p0": _fedpsd(corpus, _personal, proposal=local),
        "FedPSD, no precision weights": _fedpsd(
            corpus, _personal, proposal=local, baseline="matching", precision=False
        ),
        "FedPSD, no local proposals": _fedpsd(corpus, _personal, baseline="matching"),
        "FedPSD, uniform 8": _fedpsd(corpus, _uniform(8.0), proposal=local, baseline="matching"),
        "FedPSD, population estimand": _fedpsd(corpus, _personal, proposal=local, estimand="population"),
        "FedPSD, depth 3": _fedpsd(corpus, _personal, proposal=local, baseline="matching", depth=3),
        "FedPSD, all charged, exponential": _fedpsd(
            corpus, _personal, charged=True, proposal="exponential", baseline="matching"
        ),
        "FedPSD, all charged, permute-and-flip": _fedpsd(
            corpus, _personal, charged=True, proposal="permute-and-flip", baseline="matching"
        ),
        "FedPSD, all charged, public candidates": _fedpsd(corpus, _personal, charged=True, baseline="matching"),
        "marginals, pure, personalised": _marginals(_personal, **ours),  # type: ignore[arg-type]
        "marginals, pure, equal mean (4)": _marginals(4.0, **ours),  # type: ignore[arg-type]
        "marginals, pure, equal maximum": _marginals(_largest, **ours),  # type: ignore[arg-type]
        "marginals, delta, personalised": _marginals(_personal, adjacency="replace-one"),
        "marginals, delta, equal mean (4)": _marginals(4.0, adjacency="replace-one"),
    }


def _study_routing(corpus: Corpus) -> dict[str, Runner]:
    """Return runs for H2: what confirming at the clients with most budget left finds, and its bias of coverage."""
    found = {"no confirmation": _fedpsd(corpus, _personal, estimand="population")}
    for least in (1, 3, CLIENTS):
        found[f"confirmed by at least {least}"] = _fedpsd(
            corpus, _personal, estimand="population", confirm_share=0.3, least_clients=least
        )
    return found


def _study_beta(corpus: Corpus) -> dict[str, Runner]:
    """Return runs for H3: from the mixture that noise prefers to the population."""
    return {
        f"beta {beta:g}": _fedpsd(corpus, _personal, baseline="matching", beta=beta)
        for beta in (0.0, 0.25, 0.5, 0.75, 1.0)
    }


def _study_dispersion(corpus: Corpus) -> dict[str, Runner]:
    """Return runs for H1: precision weights against equal ones as budgets spread, at one mean over records."""
    found: dict[str, Runner] = {}
    for least, most in ((4.0, 4.0), (2.0, 8.0), (1.0, 16.0), (0.5, 32.0)):
        for precision in (True, False):

            def budgets(trial: Trial, least: float = least, most: float = most) -> Sequence[float]:
                return personalised_budgets(trial.sizes, mean=4.0, least=least, most=most)

            weights = "precision" if precision else "equal"
            found[f"budgets {least:g} to {most:g}, {weights} weights"] = _fedpsd(
                corpus, budgets, baseline="matching", precision=precision
            )
    return found


METHODS: dict[str, Callable[[Corpus], dict[str, Runner]]] = {
    "marginals": _study_marginals,
    "tables": _study_tables,
    "routing": _study_routing,
    "beta": _study_beta,
    "dispersion": _study_dispersion,
}


def _factorial(corpus: Corpus, seed: int) -> Iterator[Outcome]:
    """Run size skew x heterogeneity x budget dispersion x estimand, two levels each."""
    for skew in (False, True):
        for heterogeneous in (False, True):
            trial = Trial.divided(corpus, seed, clients=CLIENTS, skew=skew, heterogeneous=heterogeneous)
            reference = central(trial, trial.train, search="beam", depth=3)
            oracle = judge(trial, central(trial, trial.train, search="exhaustive", depth=2), reference)
            for personal in (False, True):
                budgets = _personal if personal else _uniform(4.0)
                for estimand in ("mixture", "population"):
                    name = ", ".join(
                        [
                            "skewed sizes" if skew else "equal sizes",
                            "mixed labels" if not heterogeneous else "uneven labels",
                            "personalised" if personal else "uniform",
                            estimand,
                        ]
                    )
                    baseline = "matching" if estimand == "mixture" else "public"
                    run = _fedpsd(corpus, budgets, estimand=estimand, baseline=baseline)
                    yield measure(corpus, trial, name, run, reference, oracle)
