"""From the best descriptions to those reported: redundancy filters and diversity."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fedsel import _core
from fedsel.subgroups.outcome import TargetValues
from fedsel.subgroups.redundancy import Found, Improvement, Overlap, filtered
from fedsel.subgroups.search import Progress, SearchSettings, engine_for, find, with_time
from fedsel.subgroups.space import SearchSpace

POOL = 10
"""Descriptions found per subgroup wanted, where filters or diversity choose among them."""

_MOST_POOL = 20_000  # filters ask for more descriptions, up to this many, until enough pass


@dataclass(frozen=True)
class ChoiceRules:
    """How many subgroups are reported, and which.

    Parameters
    ----------
    k : int
        Subgroups wanted.
    min_improvement : float or None
        See `fedsel.subgroups.redundancy.Improvement`; None for no such filter.
    max_overlap : float
        See `fedsel.subgroups.redundancy.Overlap`; 1 for no such filter.
    """

    k: int
    min_improvement: float | None
    max_overlap: float


@dataclass(frozen=True)
class Choice:
    """What is reported, how many descriptions were looked at, and why the search ended."""

    found: list[Found]
    evaluations: int
    stop_reason: str


def choose(
    settings: SearchSettings,
    rules: ChoiceRules,
    space: SearchSpace,
    target: TargetValues,
    *,
    progress: Progress | None = None,
) -> Choice:
    """Search, filter, and choose for diversity.

    Parameters
    ----------
    settings : SearchSettings
        The search.
    rules : ChoiceRules
        What is reported.
    space : SearchSpace
        The conditions and rows.
    target : TargetValues
        The outcome.
    progress : callable or None
        As `fedsel.subgroups.search.find`.

    Returns
    -------
    Choice
    """
    started = time.perf_counter()
    diverse = settings.diversity != "none"
    filters = rules.min_improvement is not None or rules.max_overlap < 1.0
    table = None
    if engine_for(settings, space, target) == "bitsets" or diverse or rules.min_improvement is not None:
        table = space.bit_table(target, settings.threads)
    wanted = POOL * rules.k if diverse else rules.k
    keep = POOL * rules.k if diverse or filters else rules.k
    evaluations = 0
    while True:
        left = settings.time_limit - (time.perf_counter() - started)
        result = find(with_time(settings, left), space, target, keep, table=table, progress=progress)
        evaluations += result["evaluations"]
        kept = _passing(result["found"], settings, rules, space, table, wanted) if filters else result["found"]
        everything = len(result["found"]) < keep or keep >= _MOST_POOL or result["stop_reason"] != "completed"
        if not filters or len(kept) >= wanted or everything:
            break
        keep = min(POOL * keep, _MOST_POOL)
    if diverse:
        assert table is not None
        chosen = _core.select_diverse(
            table,
            [(quality, description, rows) for quality, description, rows, _ in kept],
            count=rules.k,
            diversity=settings.diversity,
            alpha=settings.diversity_weight,
            threads=settings.threads,
        )
        kept = [kept[position] for position in chosen]
    return Choice(kept, evaluations, result["stop_reason"])


def _passing(
    found: list[Found],
    settings: SearchSettings,
    rules: ChoiceRules,
    space: SearchSpace,
    table: _core.BitTable | None,
    wanted: int,
) -> list[Found]:
    improvement = None
    if rules.min_improvement is not None:
        assert table is not None
        improvement = Improvement(table, settings.core(), settings.function, rules.min_improvement)
    overlap = Overlap(space, rules.max_overlap) if rules.max_overlap < 1.0 else None
    kept: list[Found] = []
    for subgroup in filtered(found, improvement, overlap):
        kept.append(subgroup)
        if len(kept) == wanted:
            break
    return kept
