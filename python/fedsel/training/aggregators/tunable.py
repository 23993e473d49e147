"""Which constant of an aggregator is worth a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tunable:
    """A constant that is searched before a comparison, besides the learning rate.

    Parameters
    ----------
    name : str
        Field of the aggregator.
    start : float
        Its default, tried first.
    ratio : float
        Between neighbouring values.
    fairness : bool
        Whether it trades loss for fairness, so that the lowest loss cannot choose it.
    """

    name: str
    start: float
    ratio: float
    fairness: bool = False
