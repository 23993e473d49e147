"""From shares to qualities: every description scored, the best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fedsel.errors import SubgroupError
from fedsel.subgroups.federated.belief import Belief, Estimate
from fedsel.subgroups.federated.evidence import FloatArray

Direction = Literal["higher", "lower", "both"]

_DIGITS = 12  # qualities that agree to so many decimals are ties: sums in another order differ beyond


@dataclass(frozen=True)
class Scored:
    """A description with its quality.

    Parameters
    ----------
    attributes, codes : tuple of int
        Positions of the attributes, and the code of each.
    quality : float
        Weighted relative accuracy, n/N (p - p0).
    error : float
        Its standard deviation, given the model.
    coverage, rate : float
        n/N, and p; the rate is the base where nothing seems covered.
    measured : bool
        Whether the table was released.
    """

    attributes: tuple[int, ...]
    codes: tuple[int, ...]
    quality: float
    error: float
    coverage: float
    rate: float
    measured: bool


def qualities(belief: Belief, table: Estimate, base: float | None) -> tuple[FloatArray, FloatArray]:
    """Return the quality of every cell of a table and its standard deviation, (*categories,).

    With q the share of positives among all records, a cell that holds the share s1 of the positives and s0 of the
    negatives has n/N (p - p0) = q s1 - p0 (q s1 + (1 - q) s0). Where p0 is q itself that is q (1 - q) (s1 - s0): the
    order of descriptions then depends on neither, only on shares.
    """
    q = belief.base
    p0 = q if base is None else base
    negative, positive = table.shares[..., 0], table.shares[..., 1]
    quality = q * (1 - p0) * positive - p0 * (1 - q) * negative
    by_base = (1 - 2 * q) * (positive - negative) if base is None else (1 - p0) * positive + p0 * negative
    variance = (
        (q * (1 - p0)) ** 2 * table.variance[..., 1]
        + (p0 * (1 - q)) ** 2 * table.variance[..., 0]
        + (by_base * belief.base_error) ** 2
    )
    return quality, np.sqrt(variance)


def strength(quality: FloatArray, direction: Direction) -> FloatArray:
    """Return how far qualities go in the direction asked for.

    Raises
    ------
    SubgroupError
        If the direction is unknown.
    """
    if direction not in get_args(Direction):
        raise SubgroupError(f"direction must be one of {', '.join(get_args(Direction))}, got {direction!r}")
    return quality if direction == "higher" else -quality if direction == "lower" else np.abs(quality)


def rank(
    belief: Belief, k: int, *, depth: int, direction: Direction, base: float | None, measured_only: bool = False
) -> list[Scored]:
    """Return the k descriptions that go furthest in the direction, the best first, none that go the other way.

    Ties are ordered by the number of conditions, fewest first, then by the conditions' order in the schema.
    """
    found = [
        (members, strength(qualities(belief, table, base)[0], direction))
        for members, table in belief.tables.items()
        if len(members) <= depth and (table.measured or not measured_only)
    ]
    flat = np.round(np.concatenate([values.ravel() for _, values in found]), _DIGITS)
    ends = np.cumsum([values.size for _, values in found])
    best = []
    for place in np.argsort(-flat, kind="stable")[:k]:
        if flat[place] <= 0:
            break
        index = int(np.searchsorted(ends, place, side="right"))
        members, values = found[index]
        cell = np.unravel_index(place - (ends[index] - values.size), values.shape)
        best.append(score(belief, members, tuple(int(code) for code in cell), base))
    return best


def score(belief: Belief, attributes: tuple[int, ...], codes: tuple[int, ...], base: float | None) -> Scored:
    """Score one description."""
    table, q = belief.tables[attributes], belief.base
    quality, error = qualities(belief, table, base)
    negative, positive = (1 - q) * table.shares[(*codes, 0)], q * table.shares[(*codes, 1)]
    coverage = float(negative + positive)
    rate = float(np.clip(positive / coverage, 0.0, 1.0)) if coverage > 0 else q
    return Scored(attributes, codes, float(quality[codes]), float(error[codes]), coverage, rate, table.measured)
