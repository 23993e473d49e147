"""What a run of FedPSD found and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from fedsel.subgroups.fedpsd.channel import Message
from fedsel.subgroups.fedpsd.descriptions import Description


@dataclass(frozen=True)
class ScoredDescription:
    """A candidate as it was ranked.

    Parameters
    ----------
    description : Description
        Its conditions.
    quality : float
        Estimate of the estimand.
    error : float
        Standard deviation of the noise in it.
    answers : int
        Clients that answered.
    confirmed : float or None
        Estimate from confirmations alone.
    """

    description: Description
    quality: float
    error: float
    answers: int
    confirmed: float | None = None


@dataclass(frozen=True, eq=False)
class FedPsdResult:
    """The result of a run.

    Parameters
    ----------
    ranked : tuple of ScoredDescription
        Every candidate that was asked for, the best first.
    estimand : str
        What qualities estimate.
    private : bool
        Whether everything that left a client was charged.
    budgets, spent : tuple of float
        Epsilon granted and charged, by client.
    statistics : int
        Numbers that clients sent: two a count pair.
    messages : tuple of Message
        Everything that crossed.
    exhausted : tuple of str
        Clients that could not pay for a question.
    """

    ranked: tuple[ScoredDescription, ...]
    estimand: str
    private: bool
    budgets: tuple[float, ...]
    spent: tuple[float, ...]
    statistics: int
    messages: tuple[Message, ...]
    exhausted: tuple[str, ...]

    @property
    def label(self) -> str:
        """How its privacy is to be named in tables."""
        return "private" if self.private else "NOT PRIVATE: uncharged proposals or preprocessing"

    def top(self, k: int) -> list[Description]:
        """Return the best descriptions."""
        return [scored.description for scored in self.ranked[:k]]
