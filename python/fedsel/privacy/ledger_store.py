"""A ledger's file with its terms: on the disk already, or written together with the first charge."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedsel.errors import BudgetError
from fedsel.privacy import ledger_file
from fedsel.privacy.charge import Charge, read_charges
from fedsel.privacy.ledger_rules import Terms, read_terms


class LedgerStore:
    """Reads and writes one ledger file.

    Parameters
    ----------
    path : Path
        The file.
    timeout : float
        Seconds to wait for another process.
    terms : Terms, optional
        Terms of a ledger yet to be made: nothing touches the disk before `writing`.

    Raises
    ------
    BudgetError
        If there is no such file although no terms are given, or it is not a ledger.
    """

    def __init__(self, path: Path, *, timeout: float, terms: Terms | None = None) -> None:
        self.path = path
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        if terms is not None:
            self.terms = terms
            return
        connection = ledger_file.connect(path, create=False, timeout=timeout)
        try:
            with ledger_file.translated(path):
                self.terms = read_terms(connection, path)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    @property
    def pending(self) -> bool:
        """Whether the ledger has yet to be made."""
        return self._connection is None

    def charges(self) -> list[Charge]:
        """Read all entries, oldest first.

        Raises
        ------
        BudgetError
            If an entry is damaged.
        """
        if self._connection is None:
            return []
        with ledger_file.translated(self.path):
            return read_charges(self._connection, self.path)

    @contextmanager
    def writing(self, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold the file's write lock, for one transaction; a ledger yet to be made is laid out in it.

        Should another process have made the file meanwhile, its terms hold.

        Raises
        ------
        BudgetError
            If the file cannot be written, belongs to another client, or exists although it must be `new`.
        """
        if self._connection is not None:
            with ledger_file.transaction(self._connection, self.path):
                yield self._connection
            return
        connection = ledger_file.connect(self.path, create=True, timeout=self._timeout)
        planned = self.terms
        try:
            with ledger_file.transaction(connection, self.path):
                if ledger_file.initialise(connection, self.path):
                    planned.write(connection)
                elif new:
                    raise BudgetError(f"{self.path}: the ledger exists already")
                else:
                    self.terms = read_terms(connection, self.path)
                    self.terms.check_client(planned.client)
                yield connection
        except BaseException:
            self.terms = planned
            connection.close()
            raise
        self._connection = connection

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._connection is not None:
            self._connection.close()
