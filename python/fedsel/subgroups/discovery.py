"""Subgroup discovery with the face of a scikit-learn estimator."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.errors import DataError
from fedsel.selection.methods import available_threads
from fedsel.subgroups.attributes import AttributeRules, Intervals, MissingValues
from fedsel.subgroups.bins import Binning
from fedsel.subgroups.choosing import ChoiceRules, choose
from fedsel.subgroups.estimator import Parameters
from fedsel.subgroups.frames import named_columns
from fedsel.subgroups.outcome import TargetValues, read_target
from fedsel.subgroups.quality import (
    Direction,
    QualityFunction,
    check_direction,
    core_quality,
    quality_function,
    rows_of,
)
from fedsel.subgroups.redundancy import Found, jaccard
from fedsel.subgroups.result import Subgroup, to_frame
from fedsel.subgroups.search import Diversity, Engine, Progress, Search, SearchSettings, engine_for
from fedsel.subgroups.significance import Significance, SignificanceTest
from fedsel.subgroups.space import SearchSpace, build_space, encode_as


class SubgroupDiscovery(Parameters):
    """Find the descriptions whose rows deviate most in an outcome.

    Equal qualities are ordered by number of conditions, fewest first, then by the conditions' order: columns as they
    come, categories sorted, bins ascending. The result does not depend on the engine or the number of threads.

    Parameters
    ----------
    quality : str or float
        Name of a quality function (see `QUALITIES`), or the exponent a of ``(n/N)^a (p - p0)``, 0 to 1.
    direction : {'higher', 'lower', 'both'}
        Whether higher or lower outcomes count, or both.
    search : {'beam', 'exhaustive'}
        Beam search, or the proved best of all descriptions.
    depth : int
        Most conditions of a description.
    width : int
        Descriptions that a beam holds and refines.
    k : int
        Subgroups wanted.
    min_support, max_support : int or float
        Least and most rows of a subgroup, or shares of the rows if floats of at most 1.
    min_quality : float, optional
        Only qualities above it are reported; by default that of a subgroup like all rows.
    positive : optional
        The value of the outcome that counts as yes.
    exclude : sequence of str
        Columns to leave out.
    bins, cuts, binning, intervals, set_size, missing, max_categories, categorical
        How columns become conditions, see `AttributeRules`.
    min_improvement : float, optional
        Leave out a subgroup unless it is better, and by at least this much, than without any one of its conditions.
    max_overlap : float
        Leave out a subgroup that shares more than this of its rows with a better one (Jaccard). 1 leaves none out.
    diversity : {'none', 'description', 'cover'}
        Choose beams and results for diversity, by van Leeuwen and Knobbe (2012); results are then in order of choice.
    diversity_weight : float
        For covers: weight of a row per time it is covered already.
    significance : {'none', 'bonferroni', 'permutation'}
        Test the subgroups, and adjust for all descriptions there are, or by repeating the search on shuffled outcomes.
    permutations : int
        Number of shuffles.
    max_p_value : float
        Report only subgroups of an adjusted p-value of at most this.
    seed : int
        Seed of the shuffles.
    engine : {'auto', 'bitsets', 'marginals'}
        What counts for an exhaustive search.
    threads : int, optional
        Threads, by default all that this process may run on.
    time_limit : float
        Seconds after which the best so far is taken.
    max_memory : float
        Most bytes for the conditions' bit sets.

    Attributes
    ----------
    subgroups_ : tuple of Subgroup
        What was found.
    rows_ : int
        Rows of the data.
    base_ : float
        Share of positives among them, or mean of their outcomes.
    conditions_ : tuple of Condition
        What descriptions were made of.
    descriptions_ : int
        Number of descriptions there are.
    evaluations_ : int
        How many were looked at.
    engine_ : str
        What counted.
    stop_reason_ : {'completed', 'time limit', 'interrupted'}
        Why the search ended. Ctrl-C ends it with the best so far.
    permutations_ : int
        Shuffles made.
    seconds_ : float
        Wall time of `fit`.

    Examples
    --------
    >>> from fedsel.subgroups import SubgroupDiscovery
    >>> rows = {"sex": ["f", "m"] * 50, "age": list(range(100))}
    >>> y = [sex == "f" and age >= 60 for sex, age in zip(rows["sex"], rows["age"])]
    >>> found = SubgroupDiscovery(k=1, cuts={"age": [60]}).fit(rows, y).subgroups_[0]
    >>> found.description, found.rows, found.mean
    ('sex = f and age >= 60', 20, 1.0)
    """

    def __init__(
        self,
        *,
        quality: str | float = "wracc",
        direction: Direction = "higher",
        search: Search = "beam",
        depth: int = 3,
        width: int = 20,
        k: int = 10,
        min_support: float = 1,
        max_support: float = 1.0,
        min_quality: float | None = None,
        positive: Any = None,
        exclude: Sequence[str] = (),
        bins: int = 5,
        cuts: Mapping[str, Sequence[float]] | None = None,
        binning: Binning = "quantile",
        intervals: Intervals = "bins",
        set_size: int = 1,
        missing: MissingValues = "exclude",
        max_categories: int = 1000,
        categorical: Sequence[str] = (),
        min_improvement: float | None = None,
        max_overlap: float = 1.0,
        diversity: Diversity = "none",
        diversity_weight: float = 0.9,
        significance: Significance = "none",
        permutations: int = 1000,
        max_p_value: float = 1.0,
        seed: int = 0,
        engine: Engine = "auto",
        threads: int | None = None,
        time_limit: float = math.inf,
        max_memory: float = 4e9,
    ) -> None:
        self.quality = quality
        self.direction: Direction = direction
        self.search: Search = search
        self.depth = depth
        self.width = width
        self.k = k
        self.min_support = min_support
        self.max_support = max_support
        self.min_quality = min_quality
        self.positive = positive
        self.exclude = exclude
        self.bins = bins
        self.cuts = cuts
        self.binning: Binning = binning
        self.intervals: Intervals = intervals
        self.set_size = set_size
        self.missing: MissingValues = missing
        self.max_categories = max_categories
        self.categorical = categorical
        self.min_improvement = min_improvement
        self.max_overlap = max_overlap
        self.diversity: Diversity = diversity
        self.diversity_weight = diversity_weight
        self.significance: Significance = significance
        self.permutations = permutations
        self.max_p_value = max_p_value
        self.seed = seed
        self.engine: Engine = engine
        self.threads = threads
        self.time_limit = time_limit
        self.max_memory = max_memory

    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> SubgroupDiscovery:
        """Search.

        Parameters
        ----------
        X : pandas DataFrame, pyarrow Table or RecordBatch, mapping of names to arrays, or two-dimensional array
            The rows.
        y : array of length rows, or str
            The outcome, or the name of its column in `X`; see `read_target`.
        progress : callable, optional
            Gets (descriptions looked at, 0) during the search, and (shuffles made, shuffles to make) after it.

        Returns
        -------
        SubgroupDiscovery
            Itself.

        Raises
        ------
        DataError
            If a parameter, a column or the outcome cannot be used.
        """
        started = time.perf_counter()
        self._check()
        columns, target = self._read(X, y)
        settings = self._settings(len(target.values), target)
        space = build_space(columns, self._rules(), least_rows=settings.least_rows, max_memory=self.max_memory)
        rules = ChoiceRules(self.k, self.min_improvement, self.max_overlap)
        choice = choose(settings, rules, space, target, progress=progress)
        subgroups = [self._subgroup(space, target, subgroup) for subgroup in choice.found]
        self.permutations_ = 0
        if self.significance != "none" and subgroups:
            test = SignificanceTest(self.significance, self.permutations, self.seed, self.max_p_value)
            left = self.time_limit - (time.perf_counter() - started)
            subgroups, self.permutations_ = test.apply(
                settings, space, target, subgroups, time_limit=left, progress=progress
            )
        self.subgroups_ = tuple(subgroups)
        self.rows_ = space.rows
        self.base_ = target.mean
        self.conditions_ = space.conditions
        self.descriptions_ = space.descriptions(self.depth)
        self.evaluations_ = choice.evaluations
        self.engine_ = engine_for(settings, space, target)
        self.stop_reason_ = choice.stop_reason
        self._space = space
        self.seconds_ = time.perf_counter() - started
        return self

    def transform(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return which rows the subgroups cover, (rows, subgroups).

        Parameters
        ----------
        X : as in `fit`
            Rows with the same columns; a category not seen before meets no condition.

        Raises
        ------
        DataError
            If nothing was fitted, or a column is missing or of another kind.
        """
        space = encode_as(self._fitted(), named_columns(X))
        covers = [space.cover(self._numbers(subgroup)) for subgroup in self.subgroups_]
        return np.stack(covers, axis=1) if covers else np.zeros((space.rows, 0), dtype=np.bool_)

    def evaluate(self, X: Any, y: Any) -> tuple[Subgroup, ...]:
        """Return the same subgroups with what they are on other rows; quality and mean are NaN where none is covered.

        Parameters
        ----------
        X, y : as in `fit`
            Other rows, such as a part held out.

        Raises
        ------
        DataError
            As `transform` and `fit`.
        """
        self._fitted()
        columns, target = self._read(X, y)
        space = encode_as(self._space, columns)
        table = space.bit_table(target, self._threads())
        descriptions = [self._numbers(subgroup) for subgroup in self.subgroups_]
        measure = core_quality(self._function(target), self.direction, least_rows=1, most_rows=space.rows)
        values = _core.subgroup_values(table, measure, descriptions)
        return tuple(
            self._subgroup(space, target, (quality, numbers, rows, total))
            for numbers, (quality, rows, total) in zip(descriptions, values, strict=True)
        )

    def overlaps(self) -> npt.NDArray[np.float64]:
        """Return the rows in both over the rows in either of any two subgroups, (subgroups, subgroups)."""
        space = self._fitted()
        covers = [np.packbits(space.cover(self._numbers(subgroup))) for subgroup in self.subgroups_]
        values = [jaccard(a, b) for a in covers for b in covers]
        return np.array(values, dtype=np.float64).reshape(len(covers), len(covers))

    def to_frame(self) -> Any:
        """Return the subgroups as a pandas DataFrame."""
        self._fitted()
        return to_frame(self.subgroups_)

    # --- parts of fit ----------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_direction(self.direction)
        for name in ("k", "permutations", "threads"):
            value = getattr(self, name)
            if name == "threads" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise DataError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.min_quality is not None and (isinstance(self.min_quality, (str, bool)) or math.isnan(self.min_quality)):
            raise DataError(f"min_quality must be a number, got {self.min_quality!r}")
        if self.significance not in get_args(Significance):
            raise DataError(f"significance must be none, bonferroni or permutation, got {self.significance!r}")
        for name in ("max_overlap", "max_p_value"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise DataError(f"{name} must be between 0 and 1, got {getattr(self, name)!r}")
        if self.max_p_value < 1.0 and self.significance == "none":
            raise DataError("max_p_value needs significance bonferroni or permutation, got none")

    def _rules(self) -> AttributeRules:
        return AttributeRules(
            bins=self.bins,
            cuts=dict(self.cuts or {}),
            binning=self.binning,
            intervals=self.intervals,
            set_size=self.set_size,
            missing=self.missing,
            max_categories=self.max_categories,
            categorical=tuple(self.categorical),
        )

    def _function(self, target: TargetValues) -> QualityFunction:
        function = quality_function(self.quality)
        if function.yes_no_only and target.kind != "yes/no":
            raise DataError(f"quality {self.quality} needs a yes/no outcome, got numbers")
        return function

    def _settings(self, rows: int, target: TargetValues) -> SearchSettings:
        function = self._function(target)
        return SearchSettings(
            function=function,
            direction=self.direction,
            search=self.search,
            engine=self.engine,
            depth=self.depth,
            width=self.width,
            floor=function.neutral if self.min_quality is None else float(self.min_quality),
            least_rows=rows_of(self.min_support, rows, "min_support", up=True),
            most_rows=rows_of(self.max_support, rows, "max_support", up=False),
            diversity=self.diversity,
            diversity_weight=self.diversity_weight,
            threads=self._threads(),
            time_limit=self.time_limit,
        )

    def _threads(self) -> int:
        return available_threads(self.threads)

    def _read(self, X: Any, y: Any) -> tuple[dict[str, Any], TargetValues]:
        columns = named_columns(X)
        if isinstance(y, str):
            if y not in columns:
                raise DataError(f"X: no column {y}; it has {', '.join(list(columns)[:10])}")
            y = columns.pop(y)
        there = ", ".join(list(columns)[:10])
        for name in (*(self.cuts or ()), *self.categorical):
            if name not in columns:
                raise DataError(f"cuts and categorical: no column {name}; X has {there}")
        for name in self.exclude:
            if name not in columns:
                raise DataError(f"X: no column {name} to exclude; it has {there}")
            del columns[name]
        if not columns:
            raise DataError("X: at least one column is needed besides the outcome, got none")
        target = read_target(y, self.positive)
        rows = len(next(iter(columns.values())))
        if len(target.values) != rows:
            raise DataError(f"y must have one outcome a row of X, got {len(target.values):,} for {rows:,} rows")
        return columns, target

    def _subgroup(self, space: SearchSpace, target: TargetValues, found: Found) -> Subgroup:
        quality, numbers, rows, steps = found
        if target.kind == "yes/no":
            mean = steps / rows if rows else math.nan
        else:
            covered = target.values[space.cover(numbers)]
            mean = float(covered.mean()) if rows else math.nan
        return Subgroup(
            conditions=tuple(space.conditions[number] for number in numbers),
            quality=quality,
            rows=rows,
            share=rows / space.rows,
            positives=steps if target.kind == "yes/no" else None,
            mean=mean,
            base=target.mean,
        )

    def _fitted(self) -> SearchSpace:
        if not hasattr(self, "_space"):
            raise DataError("nothing was found yet: call fit first")
        return self._space

    def _numbers(self, subgroup: Subgroup) -> list[int]:
        position = {condition: number for number, condition in enumerate(self._space.conditions)}
        return [position[condition] for condition in subgroup.conditions]
