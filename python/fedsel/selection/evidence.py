"""What the work for a certificate came to, before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ModelEvidence:
    """What enumeration under the second-order model came to.

    Parameters
    ----------
    outcome : {"certified", "too wide", "too long", "stopped"}
        Whether every federation was enumerated or bounded and all inside the error band evaluated exactly; or that too
        many are inside the band, or the bounds leave too much to enumerate, or that it was stopped.
    covered : int
        Federations whose value under the model a complete search computes or bounds.
    rechecked : int
        Federations evaluated exactly.
    compared : int
        How many of the model's best federations its error was measured on, besides random ones.
    band : float
        Twice the largest error, in bits.
    """

    outcome: Literal["certified", "too wide", "too long", "stopped"]
    covered: int
    rechecked: int
    compared: int
    band: float


@dataclass(frozen=True)
class BoundEvidence:
    """What branch and bound came to.

    Parameters
    ----------
    applies : bool
        Whether there are bounds for this pool: its tables must agree, and every client have records.
    optimal : bool
        Whether every federation was evaluated or proved to have no lower loss than the best.
    bound : float
        No federation has a lower loss, in bits; minus infinity if nothing closed.
    nodes : int
        Subproblems bounded.
    covered : int
        Federations of the size, those that break rules included.
    """

    applies: bool
    optimal: bool
    bound: float
    nodes: int
    covered: int
