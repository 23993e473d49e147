"""Running a search on a search space."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from fedsel import _core
from fedsel.errors import DataError
from fedsel.subgroups.outcome import TargetValues
from fedsel.subgroups.quality import Direction, QualityFunction, core_quality
from fedsel.subgroups.space import SearchSpace

Search = Literal["beam", "exhaustive"]
Engine = Literal["auto", "bitsets", "marginals"]
Diversity = Literal["none", "description", "cover"]
Progress = Callable[[int, int], object]

MARGINAL_DEPTH = 3
_MOST_CELLS = 2**26
_WEAK_PRUNING = 0.01  # of the rows: without a least support of this, bounds of gain and lift leave out little


@dataclass(frozen=True)
class SearchSettings:
    """What to search for, and how.

    Parameters
    ----------
    function : QualityFunction
        The quality function.
    direction : {'higher', 'lower', 'both'}
        Which deviations count.
    search : {'beam', 'exhaustive'}
        The search.
    engine : {'auto', 'bitsets', 'marginals'}
        What counts for an exhaustive search; the result is the same.
    depth, width : int
        Most conditions of a description; width of the beam.
    floor : float
        Only qualities above it count.
    least_rows, most_rows : int
        Rows of a subgroup.
    diversity : {'none', 'description', 'cover'}
        How the beam is chosen.
    diversity_weight : float
        Weight of a row per time it is covered already.
    threads : int
        Threads.
    time_limit : float
        Seconds.
    """

    function: QualityFunction
    direction: Direction
    search: Search
    engine: Engine
    depth: int
    width: int
    floor: float
    least_rows: int
    most_rows: int
    diversity: Diversity
    diversity_weight: float
    threads: int
    time_limit: float = math.inf

    def __post_init__(self) -> None:
        for field, options in (("search", Search), ("engine", Engine), ("diversity", Diversity)):
            if getattr(self, field) not in get_args(options):
                raise DataError(f"{field} must be one of {', '.join(get_args(options))}, got {getattr(self, field)!r}")
        for field in ("depth", "width"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise DataError(f"{field} must be a whole number of at least 1, got {value!r}")
        if not 0.0 <= self.diversity_weight <= 1.0:
            raise DataError(f"diversity_weight must be between 0 and 1, got {self.diversity_weight!r}")
        if not self.time_limit > 0:
            raise DataError(f"time_limit must be above 0 seconds, got {self.time_limit!r}")
        if self.least_rows > self.most_rows:
            raise DataError(
                f"min_support must not exceed max_support, got {self.least_rows:,} and {self.most_rows:,} rows"
            )

    def core(self) -> _core.SubgroupQuality:
        """Return the quality function as the core knows it."""
        return core_quality(self.function, self.direction, least_rows=self.least_rows, most_rows=self.most_rows)


def engine_for(settings: SearchSettings, space: SearchSpace, target: TargetValues) -> Engine:
    """Return what counts: ``'bitsets'`` or ``'marginals'``.

    Marginals need an exhaustive search of at most three conditions, one category or bin each, and a yes/no outcome.
    Left to choose, they are taken where bounds would leave out little.

    Raises
    ------
    DataError
        If marginals are asked for and cannot count this.
    """
    if settings.search == "beam" or settings.engine == "bitsets":
        if settings.search == "beam" and settings.engine == "marginals":
            raise DataError("engine marginals needs search exhaustive, got beam")
        return "bitsets"
    depth = min(settings.depth, len(space.attributes))
    reasons = [
        (depth > MARGINAL_DEPTH, f"a depth of at most {MARGINAL_DEPTH}, got {settings.depth}"),
        (not space.disjoint, "conditions of one category or bin each, got intervals or sets"),
        (target.kind != "yes/no", "a yes/no outcome, got numbers"),
        (
            depth <= MARGINAL_DEPTH and space.cells(depth) > _MOST_CELLS,
            f"at most {_MOST_CELLS:,} cells of all tables",
        ),
    ]
    unfit = [reason for applies, reason in reasons if applies]
    if settings.engine == "marginals":
        if unfit:
            raise DataError(f"engine marginals needs {unfit[0]}")
        return "marginals"
    flat = settings.function.exponent == 0.0
    weak = flat and depth == MARGINAL_DEPTH and settings.least_rows < _WEAK_PRUNING * space.rows
    return "marginals" if weak and not unfit else "bitsets"


def find(
    settings: SearchSettings,
    space: SearchSpace,
    target: TargetValues,
    keep: int,
    *,
    table: _core.BitTable | None = None,
    progress: Progress | None = None,
) -> _core.FoundSubgroups:
    """Search for the `keep` best descriptions.

    Parameters
    ----------
    settings : SearchSettings
        What to search for.
    space : SearchSpace
        The conditions and rows.
    target : TargetValues
        The outcome.
    keep : int
        Descriptions wanted.
    table : BitTable or None
        The rows as bit sets, if made already.
    progress : callable or None
        Gets the number of descriptions looked at and 0.

    Returns
    -------
    dict
        ``found``: quality, condition numbers, rows and sum of steps of each, best first; ``evaluations``;
        ``stop_reason``.
    """
    effort = {"threads": settings.threads, "time_limit": settings.time_limit, "progress": progress}
    limits = {"depth": settings.depth, "keep": keep, "floor": settings.floor}
    if engine_for(settings, space, target) == "marginals":
        limits["depth"] = min(settings.depth, len(space.attributes))
        return _core.subgroup_marginals(
            list(space.codes),
            space.category_conditions(),
            target.steps.astype(np.uint8),
            settings.core(),
            **limits,  # type: ignore[arg-type]
            **effort,  # type: ignore[arg-type]
        )
    if table is None:
        table = space.bit_table(target, settings.threads)
    if settings.search == "exhaustive":
        return _core.subgroup_exact(table, settings.core(), **limits, **effort)  # type: ignore[arg-type]
    return _core.subgroup_beam(
        table,
        settings.core(),
        width=settings.width,
        diversity=settings.diversity,
        alpha=settings.diversity_weight,
        **limits,  # type: ignore[arg-type]
        **effort,  # type: ignore[arg-type]
    )


def with_time(settings: SearchSettings, seconds: float) -> SearchSettings:
    """Return the same settings with the time that is left, a millisecond at least."""
    return replace(settings, time_limit=max(seconds, 1e-3))
