"""Public facts about clients, such as their region or cost, that constraints speak of."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from fedsel.errors import SelectionError

CLIENT_COLUMN = "client"
_MAX_EXPONENT = 30


@dataclass(frozen=True)
class ClientAttributes:
    """A table of public attributes, a row per client.

    Parameters
    ----------
    values : mapping of str to mapping of str to str
        Text of each attribute of each client.
    source : str
        Where they came from, for messages.
    """

    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    source: str = "client attributes"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ClientAttributes:
        """Read a CSV file with a column ``client`` and any other columns.

        Raises
        ------
        SelectionError
            If the file cannot be read, lacks the column, or names a client twice.
        """
        source = str(path)
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                rows = list(reader)
                columns = list(reader.fieldnames or ())
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise SelectionError(f"{source}: cannot be read: {error}") from None
        if CLIENT_COLUMN not in columns:
            raise SelectionError(f"{source}: a column {CLIENT_COLUMN!r} is needed, got {columns}")
        if len(set(columns)) != len(columns):
            raise SelectionError(f"{source}: every column needs its own name, got {columns}")
        values: dict[str, dict[str, str]] = {}
        for number, row in enumerate(rows, start=2):
            if None in row or None in row.values():
                raise SelectionError(f"{source}: line {number}: expected {len(columns)} fields")
            client = row.pop(CLIENT_COLUMN).strip()
            if client in values:
                raise SelectionError(f"{source}: line {number}: client {client!r} occurs twice")
            values[client] = {name: text.strip() for name, text in row.items()}
        return cls(values, source)

    def text(self, client: str, attribute: str) -> str:
        """Return one attribute of one client.

        Raises
        ------
        SelectionError
            If the client or attribute is unknown.
        """
        if client not in self.values:
            raise SelectionError(f"{self.source}: client {client!r} is missing")
        row = self.values[client]
        if attribute not in row:
            raise SelectionError(f"{self.source}: there is no attribute {attribute!r}, only {sorted(row)}")
        return row[attribute]

    def number(self, client: str, attribute: str) -> Fraction:
        """Return one attribute of one client as a number, exact as written.

        Raises
        ------
        SelectionError
            If it is not a number of at least 0.
        """
        text = self.text(client, attribute)
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal(-1)
        # the exponent is bounded because an exact 10^99999999 would take all memory
        if "_" in text or not value.is_finite() or value < 0 or abs(value.adjusted()) > _MAX_EXPONENT:
            raise SelectionError(
                f"{self.source}: client {client!r}: {attribute} must be a number of at least 0 (and below 1e30), "
                f"got {text!r}"
            )
        return Fraction(value)
