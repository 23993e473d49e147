"""Leaving out subgroups that say again what a better one says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.subgroups.quality import QualityFunction
from fedsel.subgroups.space import SearchSpace

Found = tuple[float, list[int], int, int]
"""Quality, condition numbers, rows, sum of the outcome's steps."""


class Improvement:
    """Whether a description is better than every one that lacks one of its conditions.

    Parameters
    ----------
    table : BitTable
        The rows.
    quality : SubgroupQuality
        The quality function.
    function : QualityFunction
        The same by name; what has no condition has its neutral value.
    least : float
        How much better it must be; at 0, better at all.
    """

    def __init__(
        self, table: _core.BitTable, quality: _core.SubgroupQuality, function: QualityFunction, least: float
    ) -> None:
        self._table = table
        self._quality = quality
        self._neutral = function.neutral
        self._least = least
        self._known: dict[tuple[int, ...], float] = {}

    def __call__(self, quality: float, description: Sequence[int]) -> bool:
        """Return whether it is."""
        shorter = [tuple(c for c in description if c != left_out) for left_out in description]
        gain = quality - max(self._value(conditions) for conditions in shorter)
        return gain > 0 and gain >= self._least

    def _value(self, description: tuple[int, ...]) -> float:
        if not description:
            return self._neutral
        if description not in self._known:
            value = _core.subgroup_values(self._table, self._quality, [description])[0][0]
            self._known[description] = -math.inf if math.isnan(value) else value
        return self._known[description]


class Overlap:
    """Whether a subgroup shares little with those kept before.

    Parameters
    ----------
    space : SearchSpace
        The conditions and rows.
    most : float
        Largest share of rows in both among rows in either (Jaccard), with any subgroup kept.
    """

    def __init__(self, space: SearchSpace, most: float) -> None:
        self._space = space
        self._most = most
        self._kept: list[npt.NDArray[np.uint8]] = []

    def __call__(self, description: Sequence[int]) -> bool:
        """Return whether it does; if so it is kept."""
        cover = np.packbits(self._space.cover(description))
        if any(jaccard(cover, other) > self._most for other in self._kept):
            return False
        self._kept.append(cover)
        return True


def jaccard(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> float:
    """Return the rows in both over the rows in either, of two packed covers; 0 if both are empty."""
    either = int(np.bitwise_count(a | b).sum())
    return int(np.bitwise_count(a & b).sum()) / either if either else 0.0


def filtered(found: Sequence[Found], improvement: Improvement | None, overlap: Overlap | None) -> Iterator[Found]:
    """Yield what both filters let pass, in order."""
    for subgroup in found:
        quality, description = subgroup[:2]
        if improvement is not None and not improvement(quality, description):
            continue
        if overlap is None or overlap(description):
            yield subgroup
