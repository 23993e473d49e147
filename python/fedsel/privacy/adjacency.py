"""How far one record can move the queries of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from fedsel.errors import PrivacyError
from fedsel.privacy.plan import Adjacency


def changed_cells(adjacency: Adjacency) -> int:
    """Cells of one table that change, each by one, between neighbouring data sets.

    Adding or removing a record touches one cell of every table. Replacing a record empties one cell by one and fills
    another. Old and new record may share the cell of some table, which then does not change at all: that case is
    post-processing of the worst one, so it never costs more.

    Returns
    -------
    int
        1 for ``"add-remove"``, 2 for ``"replace-one"``.

    Raises
    ------
    PrivacyError
        If the adjacency is unknown.
    """
    if adjacency not in get_args(Adjacency):
        raise PrivacyError(f"adjacency must be one of {', '.join(get_args(Adjacency))}, got {adjacency!r}")
    return 1 if adjacency == "add-remove" else 2


def moved(weights: Sequence[int], scores: Sequence[int], adjacency: Adjacency) -> tuple[list[int], list[int]]:
    """List the coordinates of the joint release that one record can move, and how far.

    A table contributes the `changed_cells` cells that change by one. A score is one coordinate: a record adds at most D
    to it, so presence moves it by at most D, and a replacement, which takes one value away and adds another, by at most
    2 D.

    Parameters
    ----------
    weights, scores
        As in `NoisePlan`.
    adjacency : {"add-remove", "replace-one"}

    Returns
    -------
    weights : list of int
        Weight of the query that each coordinate belongs to, (coordinates,).
    shifts : list of int
        Largest change of each coordinate, (coordinates,).

    Raises
    ------
    PrivacyError
        If the adjacency is unknown.
    """
    cells = changed_cells(adjacency)
    tables = len(weights) - len(scores)
    return (
        [w for w in weights[:tables] for _ in range(cells)] + list(weights[tables:]),
        [1] * (cells * tables) + [cells * d for d in scores],
    )
