"""The SQLite file behind a ledger: its tables, how it is opened, and which files are refused."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fedsel.errors import BudgetError

APPLICATION_ID = 0x66656C67  # "felg"; tells a ledger from any other database
VERSION = 2

# What each version added to the one before; a new file runs through all of them, an old one through the rest.
_STEPS = (
    (
        """
        CREATE TABLE ledger (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            client TEXT NOT NULL,
            adjacency TEXT NOT NULL,
            epsilon REAL NOT NULL CHECK (typeof(epsilon) = 'real' AND epsilon > 0),
            delta REAL NOT NULL CHECK (typeof(delta) = 'real' AND delta >= 0 AND delta < 1),
            created TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE charge (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            round INTEGER,
            purpose TEXT NOT NULL,
            mechanism TEXT NOT NULL,
            adjacency TEXT NOT NULL,
            accounting TEXT NOT NULL,
            epsilon REAL NOT NULL CHECK (typeof(epsilon) = 'real'),
            delta REAL NOT NULL CHECK (typeof(delta) = 'real'),
            numerator TEXT NOT NULL,
            weights TEXT NOT NULL,
            private INTEGER NOT NULL CHECK (private IN (0, 1)),
            seeded INTEGER NOT NULL CHECK (seeded IN (0, 1)),
            charged TEXT NOT NULL,
            released TEXT
        )
        """,
    ),
    (
        "ALTER TABLE ledger ADD COLUMN composition TEXT NOT NULL DEFAULT 'basic'",
        "ALTER TABLE charge ADD COLUMN scores TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE charge ADD COLUMN rounds TEXT NOT NULL DEFAULT '[]'",  # none: all queries in one round
        "ALTER TABLE charge ADD COLUMN event TEXT",
        """
        CREATE TABLE covered (
            charge INTEGER NOT NULL REFERENCES charge (id),
            part INTEGER NOT NULL,
            begun TEXT NOT NULL,
            released TEXT,
            PRIMARY KEY (charge, part)
        )
        """,
    ),
)


def connect(path: Path, *, create: bool, timeout: float) -> sqlite3.Connection:
    """Open the file, in autocommit mode so that every transaction is explicit.

    Raises
    ------
    BudgetError
        If there is no such file (and it is not to be created), or it is not a ledger that this version reads.
    """
    if path.is_dir():
        raise BudgetError(f"{path}: expected a ledger, got a folder")
    if not create and not path.is_file():
        raise BudgetError(f"{path}: expected a ledger, got no such file")
    with translated(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=timeout,
            isolation_level=None,
        )
    try:
        with translated(path):
            # EXTRA: a committed charge must survive a power cut too, including the removal of the rollback journal.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA trusted_schema = OFF")
            old = (not create or _has_tables(connection)) and _check_identity(connection, path) < VERSION
        if old:
            with transaction(connection, path):
                _upgrade(connection, _check_identity(connection, path))  # again: another process may have been faster
    except BaseException:
        connection.close()
        raise
    return connection


def initialise(connection: sqlite3.Connection, path: Path) -> bool:
    """Lay out an empty file inside the caller's transaction; False if it is a ledger already."""
    if _has_tables(connection):
        _check_identity(connection, path)
        return False
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    _upgrade(connection, 0)
    return True


def is_blank(path: Path) -> bool:
    """Whether there is no ledger yet: no file, an empty one, or a database without a table, as a crash can leave.

    Raises
    ------
    BudgetError
        If the file is no database.
    """
    if not path.exists():
        return True
    if not path.is_file():
        return False
    if path.stat().st_size == 0:
        return True
    with (
        translated(path),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30.0)) as connection,
    ):
        return not _has_tables(connection)


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Hold the file's write lock; committed durably on leaving, undone on any exception.

    Raises
    ------
    BudgetError
        If the lock stays with another process, or the database fails.
    """
    with translated(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn database errors into one-line refusals that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text:
            raise BudgetError(f"{path}: another process has held the ledger for too long") from None
        if "not a database" in text or "malformed" in text:
            raise BudgetError(f"{path}: expected a ledger, got a file that is not one or is damaged ({text})") from None
        if "readonly" in text and not os.access(path, os.W_OK):
            raise BudgetError(f"{path}: the ledger cannot be written") from None
        raise BudgetError(f"{path}: the ledger cannot be used: {text}") from None


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0])


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version (0: an empty one) to this one, inside the caller's transaction."""
    for step in _STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _check_identity(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a ledger."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise BudgetError(f"{path}: expected a ledger, got another kind of database")
    if not 1 <= version <= VERSION:
        newer = ", made by a newer fedsel" if version > VERSION else ""
        raise BudgetError(f"{path}: expected a ledger of version 1 to {VERSION}, got version {version}{newer}")
    return version
