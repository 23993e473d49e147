"""The entries of a ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, cast, get_args

from fedsel.errors import BudgetError, PrivacyError
from fedsel.privacy.budget import Price
from fedsel.privacy.composition import Cost
from fedsel.privacy.event_json import event_from_json, event_to_json
from fedsel.privacy.events import Event
from fedsel.privacy.plan import Mechanism, NoisePlan


@dataclass(frozen=True)
class CoveredRound:
    """A later round of a plan of several rounds, released under the charge of the first.

    Parameters
    ----------
    part : int
        Round within the plan, from 2.
    begun : str
        When its release was begun, UTC, ISO 8601.
    released : str or None
        When its release was complete; None if that was never reported.
    """

    part: int
    begun: str
    released: str | None


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger.

    Parameters
    ----------
    number : int
        Position in the ledger, from 1.
    round : int or None
        Round of the release, the first if its plan spans several; None for a charge outside the rounds, such as a
        training.
    purpose : str
        What it was for.
    mechanism, adjacency, accounting : str
        As in `NoisePlan`; the kind of the event, and ``"auto"``, for a charge of an event.
    cost : Cost
        Price; epsilon is infinite for an exact release.
    private : bool
        False for an exact release.
    seeded : bool
        Whether the noise came from a seeded generator.
    charged : str
        When it was charged, UTC, ISO 8601.
    released : str or None
        When its release (of the first round) was complete; None if that was never reported, for instance after a
        crash, and for an event.
    plan : NoisePlan or None
        What was charged, unless it was an event.
    event : Event or None
        What was charged, unless it was a plan.
    covered : tuple of CoveredRound
        Later rounds begun under this charge.
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
    plan: NoisePlan | None = None
    event: Event | None = None
    covered: tuple[CoveredRound, ...] = ()

    @property
    def price(self) -> Price:
        """Cost in both terms."""
        what = self.plan or self.event
        assert what is not None
        return Price(self.cost, what)

    @property
    def rounds(self) -> range:
        """Rounds that the charge pays for, released or not; empty outside the rounds."""
        if self.round is None:
            return range(0)
        return range(self.round, self.round + (1 if self.plan is None else len(self.plan.rounds)))


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
    "numerator": (str,),
    "weights": (str,),
    "scores": (str,),
    "rounds": (str,),
    "event": (str, NoneType),
}


def read_charges(connection: sqlite3.Connection, path: Path) -> list[Charge]:
    """Read all entries, oldest first; `path` names the file in messages.

    Raises
    ------
    BudgetError
        If an entry is damaged.
    """
    rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM charge ORDER BY id").fetchall()
    covered = _read_covered(connection, path)
    charges = []
    for row in rows:
        entry: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
        number = entry.pop("id")
        # SQLite keeps any type in any column
        for column, value in entry.items():
            if not isinstance(value, _COLUMNS[column]):
                raise BudgetError(f"{path}: charge {number}: {column}: got a damaged entry ({_kind(value)})")
        try:
            cost = Cost(entry.pop("epsilon"), entry.pop("delta"))
        except PrivacyError as error:
            raise BudgetError(
                f"{path}: charge {number}: expected epsilon and delta, got a damaged entry: {error}"
            ) from None
        lists = {column: entry.pop(column) for column in ("numerator", "weights", "scores", "rounds")}
        text = entry.pop("event")
        try:
            event = None if text is None else event_from_json(json.loads(text))
            plan = None if text is not None else _plan(entry, cost, lists)
        except (PrivacyError, ValueError, RecursionError) as error:
            raise BudgetError(
                f"{path}: charge {number}: expected a plan or an event, got a damaged entry: {error}"
            ) from None
        private, seeded = bool(entry.pop("private")), bool(entry.pop("seeded"))
        if private == (plan is not None and plan.mechanism == "none"):
            raise BudgetError(f"{path}: charge {number}: private: got a damaged entry, it contradicts the mechanism")
        charges.append(
            Charge(
                number=number,
                cost=cost,
                private=private,
                seeded=seeded,
                plan=plan,
                event=event,
                covered=tuple(covered.get(number, ())),
                **entry,
            )
        )
    return charges


def write_charge(
    connection: sqlite3.Connection,
    price: Price,
    *,
    purpose: str,
    mechanism: str,
    adjacency: str,
    accounting: str,
    charged: str,
    round: int | None,
    seeded: bool,
) -> int:
    """Append an entry inside the caller's transaction; fields as in `Charge`. Return its number."""
    plan, event = (price.what, None) if isinstance(price.what, NoisePlan) else (None, price.what)
    row = {
        "round": round,
        "purpose": purpose,
        "mechanism": mechanism,
        "adjacency": adjacency,
        "accounting": accounting,
        "epsilon": float(price.cost.epsilon),
        "delta": float(price.cost.delta),
        "private": int(mechanism != "none"),
        "seeded": int(seeded),
        "charged": charged,
        "numerator": str(0 if plan is None else int(plan.numerator)),
        "weights": _json(() if plan is None else plan.weights),
        "scores": _json(() if plan is None else plan.scores),
        "rounds": _json(() if plan is None else plan.rounds),
        "event": None if event is None else json.dumps(event_to_json(event), separators=(",", ":"), allow_nan=False),
    }
    marks = ", ".join("?" for _ in row)
    number = connection.execute(
        f"INSERT INTO charge ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    ).lastrowid
    assert number is not None
    return number


def private_prices(charges: Sequence[Charge]) -> list[Price]:
    """Return what counts against a budget."""
    # Exact releases are outside any budget: they are recorded, and whoever reads the ledger is told.
    return [charge.price for charge in charges if charge.private]


def _read_covered(connection: sqlite3.Connection, path: Path) -> dict[int, list[CoveredRound]]:
    found: dict[int, list[CoveredRound]] = {}
    for row in connection.execute("SELECT charge, part, begun, released FROM covered ORDER BY charge, part"):
        number, part, begun, released = row
        for value, kinds in ((number, (int,)), (part, (int,)), (begun, (str,)), (released, (str, NoneType))):
            if not isinstance(value, kinds):
                raise BudgetError(f"{path}: covered round of charge {number}: got a damaged entry ({_kind(value)})")
        found.setdefault(number, []).append(CoveredRound(part, begun, released))
    return found


def _plan(entry: dict[str, Any], cost: Cost, lists: dict[str, str]) -> NoisePlan:
    if entry["mechanism"] not in get_args(Mechanism):
        raise PrivacyError(f"mechanism must be one of {', '.join(get_args(Mechanism))}, got {entry['mechanism']!r}")
    integers = {}
    for column in ("weights", "scores", "rounds"):
        values = json.loads(lists[column])
        if not isinstance(values, list) or any(type(value) is not int for value in values):
            raise PrivacyError(f"{column} must be integers, got {lists[column][:40]!r}")
        integers[column] = tuple(values)
    return NoisePlan(
        mechanism=cast(Mechanism, entry["mechanism"]),
        adjacency=entry["adjacency"],
        epsilon=cost.epsilon,
        delta=cost.delta,
        numerator=int(lists["numerator"]),
        accounting=entry["accounting"],
        **integers,
    )


def _json(values: Sequence[int]) -> str:
    return json.dumps([int(value) for value in values], separators=(",", ":"))


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
