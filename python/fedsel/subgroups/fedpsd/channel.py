"""The only way from a client to the coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fedsel.errors import BudgetError
from fedsel.subgroups.fedpsd.account import Account, Entry

Kind = Literal["counts", "proposal", "budget left", "exact proposal", "exact support"]

UNCHARGED: tuple[Kind, ...] = ("exact proposal", "exact support")
"""Messages that hold what no account was charged for: sent only by runs that are labelled as not private."""

PUBLIC: tuple[Kind, ...] = ("budget left",)
"""Messages that depend on nothing but public facts and earlier messages."""


@dataclass(frozen=True)
class Message:
    """What crossed.

    Parameters
    ----------
    client : str
        Who sent it.
    kind : str
        What it is.
    content : object
        What the coordinator sees.
    charge : int or None
        Number of the entry that paid for it in the sender's account.
    """

    client: str
    kind: Kind
    content: Any
    charge: int | None


class Channel:
    """Takes messages from clients, keeps them all, and refuses what is not paid for.

    Parameters
    ----------
    private : bool
        Refuse every message that depends on records and was not charged.
    """

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._used: set[tuple[Account, int]] = set()
        self.messages: list[Message] = []

    def send(self, account: Account, kind: Kind, content: Any, entry: Entry | None = None) -> Any:
        """Pass a message on and return its content.

        Raises
        ------
        BudgetError
            If it should have been charged to the sender's account and was not, or the charge paid for another message.
        """
        paid = entry is not None and entry in account.entries and (account, entry.number) not in self._used
        if kind not in PUBLIC and not paid and (self._private or kind not in UNCHARGED):
            raise BudgetError(f"client {account.client!r}: {kind} must be charged before it is sent")
        if entry is not None:
            self._used.add((account, entry.number))
        self.messages.append(Message(account.client, kind, content, None if entry is None else entry.number))
        return content
