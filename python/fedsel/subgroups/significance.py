"""Could a subgroup be chance? Tests, and what a search over many descriptions makes of them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedsel.subgroups.outcome import TargetValues
from fedsel.subgroups.quality import Direction
from fedsel.subgroups.result import Subgroup
from fedsel.subgroups.search import Progress, SearchSettings, find, with_time
from fedsel.subgroups.space import SearchSpace

Significance = Literal["none", "bonferroni", "permutation"]


def p_value(target: TargetValues, direction: Direction, rows: int, total: float) -> float:
    """Return how likely a random set of as many rows deviates as much.

    Parameters
    ----------
    target : TargetValues
        The outcome of all rows.
    direction : {'higher', 'lower', 'both'}
        Which deviations count; for both, twice the smaller of the two one-sided values.
    rows : int
        Rows of the subgroup, at least 1.
    total : float
        Its positives, or the sum of its outcomes.

    Returns
    -------
    float
        Of Fisher's exact test for a yes/no outcome. For numbers, of the mean of a sample drawn without replacement, in
        the normal approximation.
    """
    from scipy import stats

    everyone = len(target.values)
    if target.kind == "yes/no":
        positives = int(target.values.sum())
        above = float(stats.hypergeom.sf(total - 1, everyone, positives, rows))
        below = float(stats.hypergeom.cdf(total, everyone, positives, rows))
    else:
        if rows == everyone:
            return 1.0
        variance = float(target.values.var()) / rows * (everyone - rows) / (everyone - 1)
        z = (total / rows - target.mean) / math.sqrt(variance)
        above, below = float(stats.norm.sf(z)), float(stats.norm.cdf(z))
    return {"higher": above, "lower": below, "both": min(1.0, 2 * min(above, below))}[direction]


def bonferroni(values: Sequence[float], descriptions: int) -> list[float]:
    """Return p-values times the number of descriptions the search could have reported, at most 1."""
    return [min(1.0, value * descriptions) for value in values]


def permutation(
    settings: SearchSettings,
    space: SearchSpace,
    target: TargetValues,
    qualities: Sequence[float],
    *,
    permutations: int,
    seed: int,
    time_limit: float,
    progress: Progress | None,
) -> tuple[list[float], int]:
    """Repeat the search on shuffled outcomes and compare with the best it finds there.

    The chance to report anything at all from outcomes that have nothing to do with the columns is at most the value
    below which one reports (maxT of Westfall and Young 1993).

    Parameters
    ----------
    settings : SearchSettings
        The search.
    space : SearchSpace
        The conditions and rows.
    target : TargetValues
        The outcome.
    qualities : sequence of float
        Of the subgroups found.
    permutations : int
        How often to shuffle.
    seed : int
        Seed of the shuffles.
    time_limit : float
        Seconds after which to stop with the shuffles made so far.
    progress : callable or None
        Gets the number of shuffles made and to make.

    Returns
    -------
    values : list of float
        One a subgroup: (1 + shuffles with a best quality at least as high) / (1 + shuffles).
    made : int
        Shuffles made.
    """
    rng = np.random.default_rng(seed)
    reached = np.zeros(len(qualities), dtype=np.int64)
    started, made = time.perf_counter(), 0
    for _ in range(permutations):
        left = time_limit - (time.perf_counter() - started)
        if left <= 0:
            break
        order = rng.permutation(space.rows)
        shuffled = replace(target, values=target.values[order], steps=target.steps[order])
        result = find(with_time(settings, left), space, shuffled, 1)
        if result["stop_reason"] != "completed":
            break
        best = result["found"][0][0] if result["found"] else -math.inf
        reached += best >= np.asarray(qualities)
        made += 1
        if progress is not None:
            progress(made, permutations)
    return [(1 + int(count)) / (1 + made) for count in reached], made


@dataclass(frozen=True)
class SignificanceTest:
    """How subgroups are tested, and which are reported.

    Parameters
    ----------
    method : {'bonferroni', 'permutation'}
        How the search is taken into account.
    permutations, seed : int
        Number of shuffles and their seed.
    most : float
        Largest adjusted p-value reported.
    """

    method: Significance
    permutations: int
    seed: int
    most: float

    def apply(
        self,
        settings: SearchSettings,
        space: SearchSpace,
        target: TargetValues,
        subgroups: Sequence[Subgroup],
        *,
        time_limit: float,
        progress: Progress | None,
    ) -> tuple[list[Subgroup], int]:
        """Return the subgroups with p-values, those above the limit left out, and the number of shuffles made."""
        totals = [s.positives if s.positives is not None else s.mean * s.rows for s in subgroups]
        values = [
            p_value(target, settings.direction, subgroup.rows, total)
            for subgroup, total in zip(subgroups, totals, strict=True)
        ]
        made = 0
        if self.method == "bonferroni":
            adjusted = bonferroni(values, space.descriptions(settings.depth))
        else:
            adjusted, made = permutation(
                settings,
                space,
                target,
                [subgroup.quality for subgroup in subgroups],
                permutations=self.permutations,
                seed=self.seed,
                time_limit=time_limit,
                progress=progress,
            )
        tested = [
            replace(subgroup, p_value=value, adjusted_p_value=other)
            for subgroup, value, other in zip(subgroups, values, adjusted, strict=True)
        ]
        return [subgroup for subgroup, other in zip(tested, adjusted, strict=True) if other <= self.most], made
