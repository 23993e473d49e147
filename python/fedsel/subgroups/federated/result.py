"""What a private discovery found, with everything a reader needs to judge it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fedsel.privacy.statement import PrivacyStatement, json_number
from fedsel.subgroups.conditions import Condition, describe
from fedsel.subgroups.federated.coverage import Coverage


@dataclass(frozen=True)
class Confirmation:
    """What a round of its own says: nothing in it suffers from the subgroup's having been chosen.

    Parameters
    ----------
    estimate : float
        Of the quality.
    low, high : float
        Ends of the interval.
    level : float
        How often such intervals cover the quality among the clients' records.
    p_value : float
        Of the test that within every client the outcome has nothing to do with the description.
    adjusted_p_value : float
        The same among all that were confirmed, for a false discovery rate (Benjamini and Yekutieli 2001).
    """

    estimate: float
    low: float
    high: float
    level: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class ClientRate:
    """The share of positives at one client.

    Parameters
    ----------
    client : str
        Its name.
    rate, error : float or None
        Estimate and standard error, from this client's noisy counts alone; None where noise drowns the subgroup there.
    records, records_error : float or None
        Records covered there, and their standard error; None where the client did not release the table.
    """

    client: str
    rate: float | None
    error: float | None
    records: float | None
    records_error: float | None


@dataclass(frozen=True)
class FederatedSubgroup:
    """A description and what the releases say of it.

    Parameters
    ----------
    conditions : tuple of Condition
        All must hold.
    quality, error : float
        Weighted relative accuracy n/N (p - p0) among the records of all clients, shrunk as far as noise asks for, and
        its standard deviation under the model of `fedsel.subgroups.federated.shares`.
    coverage, rate, base : float
        Estimates of n/N, p and p0.
    measured : bool
        Whether the table was released; otherwise it is predicted from the attributes' own tables.
    confirmed : Confirmation or None
        From a round of its own.
    clients : tuple of ClientRate
        By client, in the pool's order; empty for a prediction.
    """

    conditions: tuple[Condition, ...]
    quality: float
    error: float
    coverage: float
    rate: float
    base: float
    measured: bool
    confirmed: Confirmation | None = None
    clients: tuple[ClientRate, ...] = ()

    @property
    def description(self) -> str:
        """The conditions in words."""
        return describe(self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the description, ready for JSON."""
        fields = asdict(self)
        fields["conditions"] = [{"attribute": c.attribute, "text": c.text} for c in self.conditions]
        return {"description": self.description, **fields}


@dataclass(frozen=True)
class FederatedSubgroups:
    """The result of a discovery.

    Parameters
    ----------
    subgroups : tuple of FederatedSubgroup
        The best first.
    estimand : str
        What the qualities are of.
    target, positive : str
        The outcome and what counts as positive.
    clients : tuple of str
        Names.
    epsilons : tuple of float
        Each client's epsilon for the whole protocol, as its releases state it.
    records, records_error : float
        Records of all clients, as estimated.
    base, base_error : float
        p0 that qualities compare with, and its standard error (0 if given).
    rounds, planned : int
        Rounds released, and rounds of the protocol.
    private : PrivacyStatement
        What the releases promise.
    coverage : Coverage or None
        Whom the subgroups speak of.
    notes : tuple of str
        What a reader should know.
    """

    subgroups: tuple[FederatedSubgroup, ...]
    estimand: str
    target: str
    positive: str
    clients: tuple[str, ...]
    epsilons: tuple[float, ...]
    records: float
    records_error: float
    base: float
    base_error: float
    rounds: int
    planned: int
    private: PrivacyStatement
    coverage: Coverage | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "estimand": self.estimand,
            "target": self.target,
            "positive": self.positive,
            "records": self.records,
            "records_error": self.records_error,
            "base": self.base,
            "base_error": self.base_error,
            "rounds": self.rounds,
            "planned_rounds": self.planned,
            "clients": [
                {"client": client, "epsilon": json_number(epsilon)}
                for client, epsilon in zip(self.clients, self.epsilons, strict=True)
            ],
            "privacy": self.private.to_dict(),
            "coverage": None if self.coverage is None else asdict(self.coverage),
            "notes": list(self.notes),
            "subgroups": [subgroup.to_dict() for subgroup in self.subgroups],
        }


def to_frame(subgroups: Sequence[FederatedSubgroup]) -> Any:
    """Return subgroups as a pandas DataFrame, a row each, in their order."""
    import pandas as pd

    names = ("description", "quality", "error", "coverage", "rate", "base", "measured")
    columns: dict[str, list[Any]] = {name: [getattr(subgroup, name) for subgroup in subgroups] for name in names}
    if any(subgroup.confirmed is not None for subgroup in subgroups):
        for end in ("low", "high"):
            columns[end] = [getattr(subgroup.confirmed, end, math.nan) for subgroup in subgroups]
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(subgroups) + 1, name="rank"))
