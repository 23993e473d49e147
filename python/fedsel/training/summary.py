"""A comparison as the figures of its tables: means with intervals, and paired tests against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsel.repetitions import Estimate, corrected_mean, holm
from fedsel.training.comparison import REFERENCE, Comparison, split_ratio

Pair = tuple[str, str]

SHOWN = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "loss": "log loss",
    "f1": "F1",
    "eod": "|EOD|",
    "spd": "|SPD|",
    "mad": "MAD",
}
"""Metrics of the tables; the differences by their size, since signs of single runs would cancel."""

HIGHER_IS_BETTER = {"balanced_accuracy", "accuracy", "f1"}
TESTED = ("balanced_accuracy", "accuracy", "loss", "eod")


@dataclass(frozen=True)
class Line:
    """One choice with one aggregator on one population's test rows.

    Parameters
    ----------
    choice, aggregator, population : str
        Which.
    training_rows : float
        Mean number of training rows of the federation.
    metrics : dict of str to Estimate
        By name, over repetitions, of which each is the mean of its draws.
    signed_eod : Estimate
        Mean of the signed equal opportunity difference.
    """

    choice: str
    aggregator: str
    population: str
    training_rows: float
    metrics: dict[str, Estimate]
    signed_eod: Estimate


@dataclass(frozen=True)
class Test:
    """The reference minus another choice with an aggregator, paired by repetition.

    Parameters
    ----------
    choice, aggregator, population, metric : str
        Which.
    difference : Estimate
        Mean of the paired differences.
    adjusted : float or None
        p-value, adjusted by Holm's method for all tests of a population: every metric and every other choice.
    """

    choice: str
    aggregator: str
    population: str
    metric: str
    difference: Estimate
    adjusted: float | None


def summarise(comparison: Comparison) -> list[Line]:
    """Return one line per population, choice and aggregator, in the order in which they were run."""
    ratio = split_ratio()
    lines = []
    for population, pair in _groups(comparison):
        rows = _rows(comparison, population, pair)
        metrics = {
            name: corrected_mean(list(_by_seed(rows, name, absolute=True).values()), test_share=ratio) for name in SHOWN
        }
        signed = corrected_mean(list(_by_seed(rows, "eod", absolute=False).values()), test_share=ratio)
        records = float(np.mean([row["training_rows"] for row in rows]))
        lines.append(Line(*pair, population, records, metrics, signed))
    return lines


def paired_tests(comparison: Comparison, *, metrics: Sequence[str] = TESTED) -> list[Test]:
    """Test the reference, fedsel with FedAvg, against everything else; empty where the reference was not run."""
    tests: list[Test] = []
    groups = _groups(comparison)
    for population in dict.fromkeys(population for population, _ in groups):
        pairs = [pair for other, pair in groups if other == population and pair != REFERENCE]
        if (population, REFERENCE) not in groups:
            continue
        found: list[tuple[Pair, str, Estimate]] = []
        for metric in metrics:
            reference = _by_seed(_rows(comparison, population, REFERENCE), metric, absolute=True)
            for pair in pairs:
                other = _by_seed(_rows(comparison, population, pair), metric, absolute=True)
                differences = [reference[seed] - other[seed] for seed in reference if seed in other]
                found.append((pair, metric, corrected_mean(differences, test_share=split_ratio())))
        tested = [estimate.p_value for _, _, estimate in found if estimate.p_value is not None]
        adjusted = iter(holm(tested))
        tests += [
            Test(*pair, population, metric, estimate, None if estimate.p_value is None else next(adjusted))
            for pair, metric, estimate in found
        ]
    return tests


def _groups(comparison: Comparison) -> list[tuple[str, Pair]]:
    pairs = dict.fromkeys((row["choice"], row["aggregator"]) for row in comparison.results)
    populations = dict.fromkeys(row["population"] for row in comparison.results)
    return [(population, pair) for population in populations for pair in pairs]


def _rows(comparison: Comparison, population: str, pair: Pair) -> list[dict[str, Any]]:
    return [
        row
        for row in comparison.results
        if row["population"] == population and (row["choice"], row["aggregator"]) == pair
    ]


def _by_seed(rows: list[dict[str, Any]], metric: str, *, absolute: bool) -> dict[int, float]:
    """Mean over the draws of each repetition, undefined values left out."""
    values: dict[int, list[float]] = {}
    for row in rows:
        if row[metric] is not None:
            values.setdefault(row["seed"], []).append(abs(row[metric]) if absolute else row[metric])
    return {seed: float(np.mean(found)) for seed, found in values.items()}
