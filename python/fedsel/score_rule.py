"""Scores: what a client may sum over its rows, besides counting them, and the public rule that says how.

Every row has a score, a sum of one number for each table it falls into; a client releases the total over its rows, a
single integer. The rule is public and fixed before any row is read. It clips what one row adds, so that the total
changes by at most a known integer when a record comes or goes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError, RuleError
from fedsel.schema import Schema
from fedsel.tables import Workload

Number = TypeVar("Number", np.int64, np.float64)

RECORDS = "records"
"""Name of the last score of every rule: each row adds the resolution, so the total counts the rows."""

MAX_SCORES = 100
MAX_RESOLUTION = 1 << 20
MAX_MAGNITUDE = 1e9  # of any number of a rule; what is computed from them stays far inside a float
MIN_BOUND = 1e-6
MAX_NUMBERS = 20_000_000  # scores times cells: what a rule makes of a client's memory

FRACTION_BITS = 16
"""Binary digits kept of a count while a row is summed over its tables."""

_FAR = 2.0**40  # above any bound, and 2^22 tables of it stay below 2^63
_BLOCK = 1 << 14  # rows scored together: their numbers stay in the second-level cache


@dataclass(frozen=True)
class ScoreQueries:
    """What the scores of a release are.

    Parameters
    ----------
    names : tuple of str
        Unique names, `RECORDS` the last.
    resolution : int
        D: the most that one row adds to a score, in either direction.
    units : tuple of float
        Value of one count of each score: bits, and records for the last. Positive and finite.
    rule : str
        Identity of the rule, `ScoreRule.identity`.

    Raises
    ------
    RuleError
        If the parts do not fit each other.
    """

    names: tuple[str, ...]
    resolution: int
    units: tuple[float, ...]
    rule: str

    def __post_init__(self) -> None:
        check_names(self.names)
        check_resolution(self.resolution)
        if len(self.units) != len(self.names) or not all(0 < unit < math.inf for unit in self.units):
            raise RuleError(
                f"scores: units: expected {len(self.names)} positive finite numbers, got {list(self.units)}"
            )
        if len(self.rule) != 64 or not set(self.rule) <= set("0123456789abcdef"):
            raise RuleError(f"scores: rule: expected 64 hexadecimal digits, got {self.rule[:80]!r}")


@dataclass(frozen=True, eq=False)
class ScoreTotals:
    """Exact scores of one client's rows. Never leaves the client.

    Parameters
    ----------
    queries : ScoreQueries
        What they are.
    counts : ndarray of int64, shape (scores,)
        Totals, in counts.
    """

    queries: ScoreQueries
    counts: npt.NDArray[np.int64]

    def __add__(self, other: ScoreTotals) -> ScoreTotals:
        if self.queries != other.queries:
            raise DataError("scores of different rules cannot be added")
        return ScoreTotals(self.queries, self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """How rows are scored. Public.

    Score j of a row is the sum over tables t of ``coefficients[j, t]`` times ``information`` of the cell that the row
    falls into. Its distance from ``centres[j]``, clipped to plus or minus ``bounds[j]`` and rounded to a multiple of
    ``bounds[j] / resolution``, is what the row adds.

    Parameters
    ----------
    schema : Schema
        What the categories mean.
    workload : Workload
        The tables that score a row.
    names : tuple of str
        Unique names of the scores, without `RECORDS`.
    coefficients : ndarray of float64, shape (scores, tables)
        Factor of each table in each score.
    information : ndarray of float64, shape (cells,)
        Number of each cell, in bits.
    proportions : ndarray of float64, shape (cells,)
        Distribution that the information is about, each table adding up to about 1; positive. Scoring does not need it.
    centres, bounds : tuple of float
        Of each score, in bits; bounds are positive.
    resolution : int
        D: the most that one row adds to a score, in either direction, in counts.

    Raises
    ------
    RuleError
        If a part is out of range or two parts do not fit each other.
    """

    schema: Schema
    workload: Workload
    names: tuple[str, ...]
    coefficients: npt.NDArray[np.float64]
    information: npt.NDArray[np.float64]
    proportions: npt.NDArray[np.float64]
    centres: tuple[float, ...]
    bounds: tuple[float, ...]
    resolution: int

    def __post_init__(self) -> None:
        check_names((*self.names, RECORDS))
        check_resolution(self.resolution)
        if (self.workload.names, self.workload.domain) != (self.schema.names, self.schema.domain):
            raise RuleError("score rule: the workload is not over the variables of the schema")
        if len(self.names) * self.workload.cells > MAX_NUMBERS:
            raise RuleError(
                f"score rule: scores times cells: expected at most {MAX_NUMBERS}, "
                f"got {len(self.names) * self.workload.cells}"
            )
        for field, array, shape in (
            ("coefficients", self.coefficients, (len(self.names), len(self.workload.sets))),
            ("information", self.information, (self.workload.cells,)),
            ("proportions", self.proportions, (self.workload.cells,)),
        ):
            if array.shape != shape or array.dtype != np.float64:
                raise RuleError(
                    f"score rule: {field}: expected float64 of shape {shape}, got {array.dtype} {array.shape}"
                )
            if array.size and not np.abs(array).max() <= MAX_MAGNITUDE:
                raise RuleError(f"score rule: {field}: expected numbers of magnitude at most {MAX_MAGNITUDE:g}")
        if not self.proportions.min(initial=1.0) > 0:
            raise RuleError("score rule: proportions: expected positive numbers")
        for field, values, least in (("centres", self.centres, -MAX_MAGNITUDE), ("bounds", self.bounds, MIN_BOUND)):
            if len(values) != len(self.names) or not all(least <= value <= MAX_MAGNITUDE for value in values):
                kind = f"numbers between {least:g} and {MAX_MAGNITUDE:g}"
                raise RuleError(f"score rule: {field}: expected {len(self.names)} {kind}, got {list(values)}")

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the rule as `to_json` writes it, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def queries(self) -> ScoreQueries:
        """What a release under this rule holds."""
        units = tuple(bound / self.resolution for bound in self.bounds)
        return ScoreQueries((*self.names, RECORDS), self.resolution, (*units, 1.0 / self.resolution), self.identity)

    @cached_property
    def _steps(self) -> npt.NDArray[np.int64]:
        """What each cell adds to each score of a row, (scores, cells), in counts / 2^FRACTION_BITS."""
        factors = np.repeat(self.coefficients, self.workload.sizes, axis=1) / np.array(self.bounds)[:, None]
        return _fixed_point(factors * self.information, self.resolution)

    def total(self, columns: Sequence[npt.NDArray[np.generic]]) -> ScoreTotals:
        """Sum what each row adds to each score.

        Parameters
        ----------
        columns : sequence of ndarray, each of shape (rows,)
            Category codes, one column per variable of the schema, each in ``[0, domain)``.

        Returns
        -------
        ndarray of int64, shape (scores + 1,)
            Totals in counts, the last `RECORDS`. Adding a row changes none by more than the resolution: what a row adds
        is worked out in integers, so it is the same whatever rows surround it.

        Raises
        ------
        DataError
            If the number of columns, their lengths, or a code does not fit.
        """
        _check_columns(columns, self.workload)
        rows = len(columns[0])
        totals = np.zeros(len(self.names) + 1, dtype=np.int64)
        totals[-1] = rows * self.resolution
        centres = _fixed_point(np.array(self.centres) / np.array(self.bounds), self.resolution)[:, None]
        bound, half = self.resolution << FRACTION_BITS, 1 << (FRACTION_BITS - 1)
        for first in range(0, rows, _BLOCK):
            block = [column[first : first + _BLOCK] for column in columns]
            distance = np.clip(sum_over_tables(block, self.workload, self._steps) - centres, -bound, bound)
            totals[:-1] += ((distance + half) >> FRACTION_BITS).sum(axis=1)
        return ScoreTotals(self.queries, totals)

    def to_json(self) -> str:
        """Return the rule as canonical JSON."""
        content = {
            "format": 1,
            "kind": "score-rule",
            "schema": self.schema.to_json(),
            "sets": [list(members) for members in self.workload.sets],
            "names": list(self.names),
            "coefficients": self.coefficients.tolist(),
            "information": self.information.tolist(),
            "proportions": self.proportions.tolist(),
            "centres": [float(value) for value in self.centres],
            "bounds": [float(value) for value in self.bounds],
            "resolution": self.resolution,
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def sum_over_tables(
    columns: Sequence[npt.NDArray[np.generic]], workload: Workload, numbers: npt.NDArray[Number]
) -> npt.NDArray[Number]:
    """Add up, for every row, the numbers of the cells that it falls into.

    Parameters
    ----------
    columns : sequence of ndarray, each of shape (rows,)
        Category codes, one column per variable of the workload.
    workload : Workload
        The tables.
    numbers : ndarray of int64 or float64, shape (scores, cells)
        A number for each cell and score.

    Returns
    -------
    ndarray, shape (scores, rows)
    """
    rows = len(columns[0])
    sums = np.zeros((len(numbers), rows), dtype=numbers.dtype)
    for t, members in enumerate(workload.sets):
        cell = np.zeros(rows, dtype=np.intp)
        for variable, size in zip(members, workload.shapes[t], strict=True):
            cell *= size
            cell += columns[variable].astype(np.intp, copy=False)
        here = numbers[:, workload.offsets[t] : workload.offsets[t + 1]]
        for score in np.flatnonzero(here.any(axis=1)):
            sums[score] += here[score].take(cell)
    return sums


def _fixed_point(values: npt.NDArray[np.float64], resolution: int) -> npt.NDArray[np.int64]:
    """Turn multiples of a score's bound into counts / 2^FRACTION_BITS; what is far beyond any bound becomes _FAR."""
    return np.rint(np.clip(values * (resolution << FRACTION_BITS), -_FAR, _FAR)).astype(np.int64)


def check_names(names: tuple[str, ...]) -> None:
    """Refuse names of scores that are too many, empty, repeated or do not end with `RECORDS`."""
    if not 2 <= len(names) <= MAX_SCORES:
        raise RuleError(f"scores: expected 2 to {MAX_SCORES} names, got {len(names)}")
    if not all(isinstance(name, str) and name.isprintable() and 1 <= len(name) <= 100 for name in names):
        raise RuleError(f"scores: names must be printable and of 1 to 100 characters, got {list(names)!r:.80}")
    if len(set(names)) != len(names) or names[-1] != RECORDS:
        raise RuleError(f"scores: names must differ and end with {RECORDS!r}, got {list(names)!r:.80}")


def check_resolution(resolution: object) -> None:
    """Refuse a resolution that is not an integer between 1 and 2^20."""
    whole = isinstance(resolution, int) and not isinstance(resolution, bool)
    if not whole or not 1 <= resolution <= MAX_RESOLUTION:  # type: ignore[operator]
        raise RuleError(f"scores: resolution must be an integer between 1 and {MAX_RESOLUTION}, got {resolution!r}")


def _check_columns(columns: Sequence[npt.NDArray[np.generic]], workload: Workload) -> None:
    if len(columns) != len(workload.names):
        raise DataError(f"scores: expected {len(workload.names)} columns, one per variable, got {len(columns)}")
    for name, size, column in zip(workload.names, workload.domain, columns, strict=True):
        if column.shape != columns[0].shape or column.ndim != 1:
            raise DataError(f"scores: column {name}: expected as many rows as the first, got shape {column.shape}")
        if column.dtype.kind not in "iu":
            raise DataError(f"scores: column {name}: expected integer codes, got {column.dtype}")
        if column.size and not (column.min() >= 0 and column.max() < size):
            raise DataError(f"scores: column {name}: expected codes between 0 and {size - 1}")
