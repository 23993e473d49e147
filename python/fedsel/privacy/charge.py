"""The entries of a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedsel.errors import BudgetError
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


def read_charges(connection: sqlite3.Connection, path: Path) -> list[Charge]:
    """Read all entries, oldest first; `path` names the file in messages.

    Raises
    ------
    BudgetError
        If an entry is damaged.
    """
    rows = connection.execute(
        "SELECT id, round, purpose, mechanism, adjacency, accounting, epsilon, delta, private, seeded, charged,"
        " released FROM charge ORDER BY id"
    ).fetchall()
    charges = []
    for (
        number,
        round_,
        purpose,
        mechanism,
        adjacency,
        accounting,
        epsilon,
        delta,
        private,
        seeded,
        at,
        released,
    ) in rows:
        try:
            cost = Cost(epsilon, delta)
        except (TypeError, ValueError):
            raise BudgetError(f"{path}: charge {number}: expected epsilon and delta, got a damaged entry") from None
        charges.append(
            Charge(
                number=number,
                round=round_,
                purpose=purpose,
                mechanism=mechanism,
                adjacency=adjacency,
                accounting=accounting,
                cost=cost,
                private=bool(private),
                seeded=bool(seeded),
                charged=at,
                released=released,
            )
        )
    return charges


def private_costs(charges: Sequence[Charge]) -> list[Cost]:
    """Return what counts against a budget."""
    # Exact releases are outside any budget: they are recorded, and whoever reads the ledger is told.
    return [charge.cost for charge in charges if charge.private]
