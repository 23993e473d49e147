"""What a client has spent of its privacy budget. Charges come before releases and are never taken back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import get_args

from fedsel.errors import BudgetError
from fedsel.privacy import ledger_file
from fedsel.privacy.accounting import epsilon_of
from fedsel.privacy.budget import Composition, Price, make_budget
from fedsel.privacy.calibration import DEFAULT_DELTA
from fedsel.privacy.charge import Charge, private_prices, read_charges, write_charge
from fedsel.privacy.composition import Cost
from fedsel.privacy.event_json import event_kind
from fedsel.privacy.events import Event, SubsampledGaussianEvent, basic_events
from fedsel.privacy.ledger_rules import Admission, Terms
from fedsel.privacy.ledger_store import LedgerStore
from fedsel.privacy.plan import Adjacency, NoisePlan
from fedsel.privacy.renyi import pure_epsilon
from fedsel.release import check_client_name, check_round

BUSY_SECONDS = 30.0
"""How long to wait for another process before giving up."""


class Ledger:
    """A client's ledger: one SQLite file, safe against crashes and against other processes.

    Open an existing one with ``Ledger(path)``, make one with `Ledger.create` or, along with its first charge,
    `Ledger.open_or_create`. Use it as a context manager, or `close` it.

    Parameters
    ----------
    path : path
        The file. One of an older version is brought up to date, with all its charges.
    client : str, optional
        Refuse the ledger of any other client.
    timeout : float
        Seconds to wait for another process.

    Raises
    ------
    BudgetError
        If there is no such file, it is not a ledger of a known version, it is damaged, or it is another client's.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, client: str | None = None, timeout: float = BUSY_SECONDS
    ) -> None:
        self.path = Path(path)
        self._store = LedgerStore(self.path, timeout=timeout)
        try:
            self.terms.check_client(client)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        client: str,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        composition: Composition = "basic",
        timeout: float = BUSY_SECONDS,
    ) -> Ledger:
        """Make a new ledger, without any charge.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        client : str
            Whose ledger it is.
        epsilon, delta : float
            The client's whole budget: epsilon between 1e-9 and 1e6, delta of [0, 1). It cannot be changed later.
        adjacency : {"add-remove", "replace-one"}
            What the budget protects; charges of the other adjacency are refused, since their costs do not add up.
        composition : {"basic", "zcdp"}
            How charges use the budget up. ``"basic"``: epsilons add up and deltas add up. ``"zcdp"``: the budget is
            turned into the largest rho that implies it, and the rho of charges add up: several releases with Gaussian
            noise cost less together. Needs a delta above 0.
        timeout : float
            As for the class.

        Returns
        -------
        Ledger

        Raises
        ------
        BudgetError
            If the file exists, cannot be made, or the budget is out of range.
        ReleaseError
            If the name is not one.
        """
        ledger = cls._pending(path, client, epsilon, delta, adjacency, composition, timeout)
        with ledger._store.writing(new=True):
            pass
        return ledger

    @classmethod
    def open_or_create(
        cls,
        path: str | os.PathLike[str],
        *,
        client: str,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        composition: Composition = "basic",
    ) -> Ledger:
        """Open a client's ledger, or prepare one with this budget if there is none. A budget that exists is left alone.

        A new ledger is written together with its first charge, in one transaction; until then there is no file.

        Raises
        ------
        BudgetError
            As for the class and `create`.
        """
        file = Path(path)
        if not ledger_file.is_blank(file):
            return cls(file, client=client)
        return cls._pending(file, client, epsilon, delta, adjacency, composition, BUSY_SECONDS)

    @classmethod
    def _pending(
        cls,
        path: str | os.PathLike[str],
        client: str,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        composition: Composition,
        timeout: float,
    ) -> Ledger:
        """Return a ledger that is not on the disk yet."""
        check_client_name(client)
        if adjacency not in get_args(Adjacency):
            raise BudgetError(f"adjacency must be one of {', '.join(get_args(Adjacency))}, got {adjacency!r}")
        ledger = cls.__new__(cls)
        ledger.path = Path(path)
        terms = Terms(ledger.path, client, adjacency, _now(), make_budget(composition, epsilon, delta))
        ledger._store = LedgerStore(ledger.path, timeout=timeout, terms=terms)
        return ledger

    @property
    def terms(self) -> Terms:
        """Whose ledger it is and what it grants."""
        return self._store.terms

    @property
    def client(self) -> str:
        """Whose ledger it is."""
        return self.terms.client

    @property
    def adjacency(self) -> Adjacency:
        """What the budget protects."""
        return self.terms.adjacency

    @property
    def created(self) -> str:
        """When it was made, UTC, ISO 8601."""
        return self.terms.created

    @property
    def budget(self) -> Cost:
        """Whole budget."""
        return self.terms.account.limit

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All entries, oldest first."""
        return tuple(self._store.charges())

    @property
    def prices(self) -> list[Price]:
        """What counts against the budget: all private charges, whether or not their release was completed."""
        return private_prices(self.charges)

    @property
    def spent(self) -> Cost:
        """Joint cost of all private charges; for ``composition="zcdp"``, epsilon at the budget's delta."""
        return self.terms.account.spent(self.prices)

    @property
    def remaining(self) -> Cost:
        """Difference between budget and `spent`, not below 0; for ``composition="zcdp"``, at the budget's delta."""
        return self.terms.account.remaining(self.prices)

    def check(
        self, plan: NoisePlan, *, round: int | None, part: int = 1, again: bool = False, non_private: bool = False
    ) -> Admission:
        """Refuse a charge as `spend` would now, without making it.

        Returns
        -------
        Admission
            What would be charged, or which charge covers the release.

        Raises
        ------
        BudgetError
            See `spend`.
        """
        return self.terms.admit(self.charges, plan, round=round, part=part, again=again, non_private=non_private)

    @contextmanager
    def spend(
        self,
        plan: NoisePlan,
        purpose: str,
        round: int | None = None,
        *,
        part: int = 1,
        again: bool = False,
        non_private: bool = False,
        seeded: bool = False,
    ) -> Iterator[Charge]:
        """Charge a plan, then run the body, which makes the release.

        On entering the body the charge is committed and forced to the disk. Whatever happens to the body, the charge
        stays: if the process is killed in it, there is a charge and at worst no release, never the other way round.
        When the body ends without an exception the charge is marked as released.

        A plan of several rounds is charged whole at its first. Its later rounds are covered by that charge: nothing is
        charged, and the release is recorded as begun, once, before the body runs.

        Parameters
        ----------
        plan : NoisePlan
            What will be spent, all rounds.
        purpose : str
            What for, in a few words.
        round : int, optional
            Round of the release; required if the plan has several.
        part : int
            Which round of the plan that is, from 1; the first was then round ``round - part + 1``.
        again : bool
            Charge a round that has been charged before. A covered round costs its own part of the plan.
        non_private : bool
            Required for a plan without noise: it is recorded as not private, outside the budget.
        seeded : bool
            Record that the noise comes from a seeded generator.

        Yields
        ------
        Charge
            The new charge, or the one that covers the release.

        Raises
        ------
        BudgetError
            If the budget does not suffice, the adjacency is not the ledger's, the round has been charged, no charge of
            the same plan covers a later round or it has been released, the plan has no noise and `non_private` is not
            set, or the ledger cannot be written. Nothing is charged then.
        """
        if round is not None:
            check_round(round)
        _check_purpose(purpose)
        if self._store.pending:
            # a ledger that is refused its first charge is not made
            self.check(plan, round=round, part=part, again=again, non_private=non_private)
        with self._store.writing() as connection:
            # The lock is held from here to the commit, so no other process can spend what is being checked.
            admission = self.terms.admit(
                read_charges(connection, self.path), plan, round=round, part=part, again=again, non_private=non_private
            )
            if admission.cover is not None:
                charge = admission.cover
                connection.execute(
                    "INSERT INTO covered (charge, part, begun) VALUES (?, ?, ?)", (charge.number, part, _now())
                )
            else:
                charged = admission.plan
                charge = self._record(
                    connection,
                    Price.of(charged),
                    purpose,
                    mechanism=charged.mechanism,
                    accounting=charged.accounting,
                    round=round,
                    seeded=seeded,
                )
        yield charge
        with self._store.writing() as connection:
            if admission.cover is not None:
                connection.execute(
                    "UPDATE covered SET released = ? WHERE charge = ? AND part = ?", (_now(), charge.number, part)
                )
            else:
                connection.execute("UPDATE charge SET released = ? WHERE id = ?", (_now(), charge.number))

    def charge(
        self, event: Event, *, purpose: str, delta: float | None = None, adjacency: Adjacency | None = None
    ) -> Charge:
        """Charge what is not a release of queries, such as a training or a selection, before it runs.

        Parameters
        ----------
        event : Event
            What will run on this client's rows.
        purpose : str
            What for, in a few words.
        delta : float, optional
            Delta at which the event's epsilon is stated and, with basic composition, charged; 0 if not given for a pure
            event, else 1e-5.
        adjacency : {"add-remove", "replace-one"}, optional
            Of the sensitivities in the event; the ledger's unless given.

        Returns
        -------
        Charge
            Committed and forced to the disk.

        Raises
        ------
        BudgetError
            If the budget does not suffice, or the adjacency is not the ledger's.
        PrivacyError
            If delta is out of range.
        """
        _check_purpose(purpose)
        if delta is None:
            delta = 0.0 if pure_epsilon(event) < float("inf") else DEFAULT_DELTA
        self.terms.check_adjacency(adjacency or self.adjacency)
        if self.adjacency != "add-remove" and any(isinstance(p, SubsampledGaussianEvent) for p in basic_events(event)):
            raise BudgetError(f"{self.path}: Poisson sampling is accounted for add-remove, got {self.adjacency}")
        price = Price(Cost(epsilon_of(event, delta), delta), event)
        if self._store.pending:
            self.terms.check_price((), price)
        with self._store.writing() as connection:
            self.terms.check_price(read_charges(connection, self.path), price)
            return self._record(connection, price, purpose, mechanism=event_kind(event), accounting="auto")

    def _record(
        self,
        connection: sqlite3.Connection,
        price: Price,
        purpose: str,
        *,
        mechanism: str,
        accounting: str,
        round: int | None = None,
        seeded: bool = False,
    ) -> Charge:
        """Append a charge inside the caller's transaction, and read it back."""
        number = write_charge(
            connection,
            price,
            purpose=purpose,
            mechanism=mechanism,
            adjacency=self.adjacency,
            accounting=accounting,
            round=round,
            seeded=seeded,
            charged=_now(),
        )
        recorded = [entry for entry in read_charges(connection, self.path) if entry.number == number]
        if not recorded:
            raise BudgetError(f"{self.path}: expected charge {number} to be recorded, got a ledger that drops it")
        return recorded[0]

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_purpose(purpose: str) -> None:
    if not purpose or not purpose.isprintable():
        raise BudgetError(f"purpose must be printable text, got {purpose!r}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
