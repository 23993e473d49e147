"""Means over seeds of what a study of subgroup discovery measured, as a table and with tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fedsel.experiments.subgroup_study import Outcome
from fedsel.repetitions import corrected_mean, holm

HEADERS = (
    *("method", "kind of epsilon", "adjacency", "largest", "mean", "quality", "+-", "gap", "+-", "repeated", "jaccard"),
    *("depth", "fidelity", "sent", "covered", "by budget", "seconds"),
)


@dataclass(frozen=True)
class StudyLine:
    """One method: means over seeds and their standard errors.

    Parameters
    ----------
    method, kind, adjacency : str
        What ran, and what its epsilon means.
    largest, mean : float
        Largest epsilon of a client and mean over records, both averaged over seeds.
    values : tuple of float
        Quality by seed.
    gaps : tuple of float
        Quality less that of the exact search of two conditions, by seed.
    repeated, jaccard, depth, fidelity, statistics, covered, by_budget, seconds : float
        Means.
    """

    method: str
    kind: str
    adjacency: str
    largest: float
    mean: float
    values: tuple[float, ...]
    gaps: tuple[float, ...]
    repeated: float
    jaccard: float
    depth: float
    fidelity: float | None
    statistics: float
    covered: float
    by_budget: float
    seconds: float

    def texts(self) -> tuple[str, ...]:
        """Return the line as text, in the order of `HEADERS`."""
        return (
            self.method,
            self.kind,
            self.adjacency,
            _number(self.largest),
            _number(self.mean),
            f"{np.mean(self.values):.4f}",
            f"{_error(self.values):.4f}",
            f"{np.mean(self.gaps):+.4f}",
            f"{_error(self.gaps):.4f}",
            f"{self.repeated:.4f}",
            f"{self.jaccard:.3f}",
            f"{self.depth:.2f}",
            "" if self.fidelity is None else f"{self.fidelity:.3f}",
            f"{self.statistics:.0f}" if self.statistics else "",
            f"{self.covered:.1%}",
            f"{self.by_budget:.1%}",
            f"{self.seconds:.2f}",
        )


def summarise(outcomes: Sequence[Outcome]) -> list[StudyLine]:
    """Average over seeds, methods in the order they ran."""
    lines = []
    for method in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == method]
        lines.append(
            StudyLine(
                method,
                own[0].promise.kind,
                own[0].promise.adjacency,
                float(np.mean([o.promise.largest for o in own])),
                float(np.mean([o.promise.mean for o in own])),
                tuple(o.score.quality for o in own),
                tuple(o.gap for o in own),
                float(np.mean([o.score.repeated for o in own])),
                float(np.mean([o.score.jaccard for o in own])),
                float(np.mean([o.score.depth for o in own])),
                _mean_of([o.fidelity for o in own]),
                float(np.mean([o.statistics for o in own])),
                float(np.mean([o.coverage[0] for o in own])),
                float(np.mean([o.coverage[1] for o in own])),
                float(np.mean([o.seconds for o in own])),
            )
        )
    return lines


def contrasts(lines: Sequence[StudyLine], subject: str, others: Sequence[str], *, test_share: float) -> list[str]:
    """Compare one method with others on the same seeds: Wilcoxon and Friedman with Holm, and the corrected t test."""
    by_name = {line.method: np.array(line.values) for line in lines}
    present = [other for other in others if other in by_name]
    if subject not in by_name or not present or len(by_name[subject]) < 2:
        return []
    differences = [by_name[subject] - by_name[other] for other in present]
    # no difference anywhere is no evidence, which the signed-rank test itself refuses to say
    ranks = [(0.0, 1.0) if not d.any() else tuple(stats.wilcoxon(d)) for d in differences]
    adjusted = holm([p for _, p in ranks])
    corrected = holm([corrected_mean(d.tolist(), test_share=test_share).p_value or 0.0 for d in differences])
    found = [
        f"{subject} less {other}: {d.mean():+.4f}, {int((d > 0).sum())} of {len(d)} seeds; Wilcoxon W = {w:g}, "
        f"Holm p = {p:.3g}; corrected for overlapping samples, Holm p = {q:.3g}"
        for other, d, (w, _), p, q in zip(present, differences, ranks, adjusted, corrected, strict=True)
    ]
    if len(present) > 1:
        statistic, p = stats.friedmanchisquare(*(by_name[name] for name in (subject, *present)))
        found.append(f"Friedman over these {len(present) + 1}: {statistic:.2f}, p = {p:.3g}")
    return found


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def _number(value: float) -> str:
    return "" if math.isinf(value) else f"{value:.3g}"
