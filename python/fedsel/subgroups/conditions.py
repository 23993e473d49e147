"""Conditions on one attribute, and the descriptions they form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CodeRange = tuple[int, int]


@dataclass(frozen=True)
class Condition:
    """A set of an attribute's category codes, which a row's value must be in.

    Parameters
    ----------
    attribute : str
        Name of the column.
    text : str
        The condition in words, such as ``"age in [25, 40)"``.
    ranges : tuple of (int, int)
        First and last code of each run of codes in the set, both included.
    """

    attribute: str
    text: str
    ranges: tuple[CodeRange, ...]

    @property
    def single(self) -> bool:
        """Whether the condition is one code."""
        return len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]

    def holds(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return where it holds, given the attribute's codes, (rows,)."""
        result = np.zeros(codes.shape, dtype=np.bool_)
        for first, last in self.ranges:
            result |= (codes == first) if first == last else (codes >= first) & (codes <= last)
        return result


def describe(conditions: Iterable[Condition]) -> str:
    """Return a description in words: its conditions, joined by "and"."""
    return " and ".join(condition.text for condition in conditions)
