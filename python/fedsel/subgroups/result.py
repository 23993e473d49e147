"""A subgroup that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fedsel.subgroups.conditions import Condition, describe


@dataclass(frozen=True)
class Subgroup:
    """A description and the rows it covers.

    Parameters
    ----------
    conditions : tuple of Condition
        All must hold.
    quality : float
        Value of the quality function.
    rows : int
        Rows covered.
    share : float
        The same as a share of all rows.
    positives : int or None
        Covered rows with a positive outcome; None if the outcome is a number.
    mean : float
        Share of positives among the covered rows, or mean of their outcomes; NaN if there are none.
    base : float
        The same of all rows.
    p_value : float or None
        Of a test of this subgroup alone, as if it had been chosen beforehand.
    adjusted_p_value : float or None
        The same, with the whole search taken into account.
    """

    conditions: tuple[Condition, ...]
    quality: float
    rows: int
    share: float
    positives: int | None
    mean: float
    base: float
    p_value: float | None = None
    adjusted_p_value: float | None = None

    @property
    def description(self) -> str:
        """The conditions in words."""
        return describe(self.conditions)

    @property
    def effect(self) -> float:
        """How far the mean lies above that of all rows."""
        return self.mean - self.base

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the description, ready for JSON."""
        fields = asdict(self)
        fields["conditions"] = [
            {"attribute": condition.attribute, "text": condition.text} for condition in self.conditions
        ]
        return {"description": self.description, **fields, "effect": self.effect}


def p_text(value: float) -> str:
    """Return a p-value with two digits; those too small for a number are below 1e-300."""
    return f"{value:.2g}" if value >= 1e-300 else "<1e-300"


def to_frame(subgroups: Sequence[Subgroup]) -> Any:
    """Return subgroups as a pandas DataFrame, a row each, in their order."""
    import pandas as pd

    columns = ("description", "quality", "rows", "share", "positives", "mean", "base", "effect")
    tested = ("p_value", "adjusted_p_value") if any(s.p_value is not None for s in subgroups) else ()
    return pd.DataFrame(
        {name: [getattr(subgroup, name) for subgroup in subgroups] for name in (*columns, *tested)},
        index=pd.RangeIndex(1, len(subgroups) + 1, name="rank"),
    )
