"""What a client has spent of its privacy budget. Charges come before releases and are never taken back."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import get_args

from fedsel.errors import BudgetError
from fedsel.privacy import ledger_file
from fedsel.privacy.charge import Charge, private_costs, read_charges
from fedsel.privacy.composition import Accountant, Cost, SequentialComposition
from fedsel.privacy.limits import LARGEST_EPSILON, LEAST_EPSILON
from fedsel.privacy.plan import Adjacency, NoisePlan
from fedsel.release import check_client_name, check_round

BUSY_SECONDS = 30.0
"""How long to wait for another process before giving up."""


class Ledger:
    """A client's ledger: one SQLite file, safe against crashes and against other processes.

    Open an existing one with ``Ledger(path)``, make one with `Ledger.create`. Use it as a context manager, or `close`
    it.

    Parameters
    ----------
    path : path
        The file.
    client : str, optional
        Refuse the ledger of any other client.
    accountant : Accountant, optional
        How costs add up; basic sequential composition unless given.
    timeout : float
        Seconds to wait for another process.

    Raises
    ------
    BudgetError
        If there is no such file, it is not a ledger of a known version, it is damaged, or it is another client's.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        client: str | None = None,
        accountant: Accountant | None = None,
        timeout: float = BUSY_SECONDS,
    ) -> None:
        self.path = Path(path)
        self._accountant = accountant or SequentialComposition()
        self._connection = ledger_file.connect(self.path, create=False, timeout=timeout)
        try:
            with ledger_file.translated(self.path):
                row = self._connection.execute(
                    "SELECT client, adjacency, epsilon, delta, created FROM ledger"
                ).fetchone()
            if row is None:
                raise BudgetError(f"{self.path}: expected a ledger, got one without a budget")
            if [type(value) for value in row] != [str, str, float, float, str] or row[1] not in get_args(Adjacency):
                raise BudgetError(
                    f"{self.path}: expected a ledger with client, adjacency, epsilon, delta and date, got damaged ones"
                )
            try:
                check_budget(row[2], row[3])
            except BudgetError as error:
                raise BudgetError(f"{self.path}: {error}") from None
            self.client: str = row[0]
            self.adjacency: str = row[1]
            self.budget = Cost(row[2], row[3])
            self.created: str = row[4]
            if client is not None and client != self.client:
                raise BudgetError(f"{self.path}: expected the ledger of client {client!r}, got that of {self.client!r}")
        except BaseException:
            self._connection.close()
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
        accountant: Accountant | None = None,
        timeout: float = BUSY_SECONDS,
    ) -> Ledger:
        """Make a new ledger.

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
        accountant, timeout
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
        check_client_name(client)
        check_budget(epsilon, delta)
        if adjacency not in get_args(Adjacency):
            raise BudgetError(f"adjacency must be one of {', '.join(get_args(Adjacency))}, got {adjacency!r}")
        file = Path(path)
        connection = ledger_file.connect(file, create=True, timeout=timeout)
        try:
            with ledger_file.transaction(connection, file):
                if not ledger_file.initialise(connection, file):
                    raise BudgetError(f"{file}: the ledger exists already")
                connection.execute(
                    "INSERT INTO ledger (only, client, adjacency, epsilon, delta, created) VALUES (1, ?, ?, ?, ?, ?)",
                    (client, adjacency, float(epsilon), float(delta), _now()),
                )
        finally:
            connection.close()
        return cls(file, client=client, accountant=accountant, timeout=timeout)

    @classmethod
    def open_or_create(
        cls,
        path: str | os.PathLike[str],
        *,
        client: str,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
    ) -> Ledger:
        """Open a client's ledger, or make it with this budget if there is none. A budget that exists is left alone.

        Raises
        ------
        BudgetError
            As for the class and `create`.
        """
        file = Path(path)
        if not file.exists() or file.stat().st_size == 0:
            try:
                return cls.create(file, client=client, epsilon=epsilon, delta=delta, adjacency=adjacency)
            except BudgetError:
                # Another process may have made it meanwhile; any other reason shows again below.
                if not file.exists() or file.stat().st_size == 0:
                    raise
        return cls(file, client=client)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All entries, oldest first."""
        with ledger_file.translated(self.path):
            return tuple(read_charges(self._connection, self.path))

    @property
    def spent(self) -> Cost:
        """Joint cost of all private charges, whether or not their release was completed."""
        return self._accountant.total(private_costs(self.charges))

    @property
    def remaining(self) -> Cost:
        """Difference between budget and `spent`, not below 0."""
        return SequentialComposition().remaining([self.spent], self.budget)

    def check(self, plan: NoisePlan, *, round: int | None, again: bool = False, non_private: bool = False) -> None:
        """Refuse a charge as `spend` would now, without making it.

        Raises
        ------
        BudgetError
            See `spend`.
        """
        self._check(self.charges, plan, round=round, again=again, non_private=non_private)

    @contextmanager
    def spend(
        self,
        plan: NoisePlan,
        purpose: str,
        round: int | None = None,
        *,
        again: bool = False,
        non_private: bool = False,
        seeded: bool = False,
    ) -> Iterator[Charge]:
        """Charge a plan, then run the body, which makes the release.

        On entering the body the charge is committed and forced to the disk. Whatever happens to the body, the charge
        stays: if the process is killed in it, there is a charge and at worst no release, never the other way round.
        When the body ends without an exception the charge is marked as released.

        Parameters
        ----------
        plan : NoisePlan
            What will be spent.
        purpose : str
            What for, in a few words.
        round : int, optional
            Round of the release.
        again : bool
            Charge a round that has been charged before.
        non_private : bool
            Required for a plan without noise: it is recorded as not private, outside the budget.
        seeded : bool
            Record that the noise comes from a seeded generator.

        Yields
        ------
        Charge

        Raises
        ------
        BudgetError
            If the budget does not suffice, the adjacency is not the ledger's, the round has been charged, the plan has
            no noise and `non_private` is not set, or the ledger cannot be written. Nothing is charged then.
        """
        if round is not None:
            check_round(round)
        if not purpose or not purpose.isprintable():
            raise BudgetError(f"purpose must be printable text, got {purpose!r}")
        with ledger_file.transaction(self._connection, self.path):
            # The lock is held from here to the commit, so no other process can spend what is being checked.
            self._check(
                read_charges(self._connection, self.path), plan, round=round, again=again, non_private=non_private
            )
            number = self._connection.execute(
                "INSERT INTO charge (round, purpose, mechanism, adjacency, accounting, epsilon, delta, numerator,"
                " weights, private, seeded, charged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    round,
                    purpose,
                    plan.mechanism,
                    plan.adjacency,
                    plan.accounting,
                    float(plan.epsilon),
                    float(plan.delta),
                    str(plan.numerator),
                    json.dumps([int(weight) for weight in plan.weights], separators=(",", ":")),
                    int(plan.mechanism != "none"),
                    int(seeded),
                    _now(),
                ),
            ).lastrowid
            recorded = [entry for entry in read_charges(self._connection, self.path) if entry.number == number]
            if not recorded:
                raise BudgetError(f"{self.path}: expected charge {number} to be recorded, got a ledger that drops it")
            charge = recorded[0]
        yield charge
        with ledger_file.transaction(self._connection, self.path):
            self._connection.execute("UPDATE charge SET released = ? WHERE id = ?", (_now(), charge.number))

    def _check(
        self, charges: Sequence[Charge], plan: NoisePlan, *, round: int | None, again: bool, non_private: bool
    ) -> None:
        if plan.adjacency != self.adjacency:
            raise BudgetError(
                f"{self.path}: the budget is for adjacency {self.adjacency}, got a charge for {plan.adjacency}"
            )
        before = [charge for charge in charges if round is not None and charge.round == round]
        if before and not again:
            done = "released" if before[-1].released else "charged, but its release was not completed,"
            raise BudgetError(
                f"{self.path}: round {round} of client {self.client!r} was {done} on {before[-1].charged}; "
                "charging it again must be asked for"
            )
        if plan.mechanism == "none":
            if not non_private:
                raise BudgetError(
                    f"{self.path}: an exact release (epsilon = inf) must be declared non-private explicitly"
                )
            return
        if not math.isfinite(plan.epsilon):
            raise BudgetError(f"{self.path}: expected a finite epsilon, got {plan.epsilon}")
        cost = Cost(plan.epsilon, plan.delta)
        spent = private_costs(charges)
        if not self._accountant.fits([*spent, cost], self.budget):
            total = self._accountant.total(spent)
            raise BudgetError(
                f"{self.path}: the budget of client {self.client!r} is {_text(self.budget)}, of which "
                f"{_text(total)} is spent; a charge of {_text(cost)} does not fit"
            )

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that bounds nothing, or is too small for any release.

    Raises
    ------
    BudgetError
        If epsilon is not between 1e-9 and 1e6, or delta not of [0, 1).
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise BudgetError(f"the budget's epsilon must be a finite number above 0, got {epsilon}")
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"the budget's epsilon must be between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}, got {epsilon}"
        )
    if not 0 <= delta < 1:
        raise BudgetError(f"the budget's delta must be at least 0 and below 1, got {delta}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _text(cost: Cost) -> str:
    return f"epsilon {cost.epsilon:g}, delta {cost.delta:g}"
