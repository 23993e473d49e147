"""The entries of a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from fedsel.errors import BudgetError, PrivacyError
from fedsel.privacy.composition import Cost


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger.

    Parameters
    ----------
    number : int
        Position in the ledger, from 1.
    round : int or None
        Round of the release; None for a charge outside the rounds, such as a training.
    purpose : str
        What it was for.
    mechanism, adjacency, accounting : str
        As in `NoisePlan`.
    cost : Cost
        Price; epsilon is infinite for an exact release.
    private : bool
        False for an exact release.
    seeded : bool
        Whether the noise came from a seeded generator.
    charged : str
        When it was charged, UTC, ISO 8601.
    released : str or None
        When its release was complete; None if that was never reported, for instance after a crash.
    """

    number: int
    round: int | None
    purpose: str
    mechanism: str
    adjacency: str
    accounting: str
    cost: Cost
    private: bool
    seeded: bool
    charged: str
    released: str | None


_COLUMNS: dict[str, tuple[type, ...]] = {
    "id": (int,),
    "round": (int, NoneType),
    "purpose": (str,),
    "mechanism": (str,),
    "adjacency": (str,),
    "accounting": (str,),
    "epsilon": (float,),
    "delta": (float,),
    "private": (int,),
    "seeded": (int,),
    "charged": (str,),
    "released": (str, NoneType),
}


def read_charges(connection: sqlite3.Connection, path: Path) -> list[Charge]:
    """Read all entries, oldest first; `path` names the file in messages.

    Raises
    ------
    BudgetError
        If an entry is damaged.
    """
    rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM charge ORDER BY id").fetchall()
    charges = []
    for row in rows:
        entry: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
        number = entry.pop("id")
        # SQLite keeps any type in any column
        for column, value in entry.items():
            if not isinstance(value, _COLUMNS[column]):
                kind = "nothing" if value is None else type(value).__name__
                raise BudgetError(f"{path}: charge {number}: {column}: got a damaged entry ({kind})")
        try:
            cost = Cost(entry.pop("epsilon"), entry.pop("delta"))
        except PrivacyError as error:
            raise BudgetError(
                f"{path}: charge {number}: expected epsilon and delta, got a damaged entry: {error}"
            ) from None
        private, seeded = bool(entry.pop("private")), bool(entry.pop("seeded"))
        charges.append(Charge(number=number, cost=cost, private=private, seeded=seeded, **entry))
    return charges


def private_costs(charges: Sequence[Charge]) -> list[Cost]:
    """Return what counts against a budget."""
    # Exact releases are outside any budget: they are recorded, and whoever reads the ledger is told.
    return [charge.cost for charge in charges if charge.private]
