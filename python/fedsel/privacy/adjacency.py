"""How far one record can move the tables of a workload."""

from __future__ import annotations

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
