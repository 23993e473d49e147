"""Quality functions by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from fedsel import _core
from fedsel.errors import DataError

Direction = Literal["higher", "lower", "both"]


@dataclass(frozen=True)
class QualityFunction:
    """How interesting a subgroup of n of N rows is, p its share of positives (or mean), p0 that of all rows.

    Parameters
    ----------
    measure : str
        Name of the function in the core.
    exponent : float
        The exponent a of ``standard``.
    formula : str
        What is computed.
    neutral : float
        Its value where p = p0.
    yes_no_only : bool
        Whether it needs a yes/no outcome.
    """

    measure: str
    exponent: float
    formula: str
    neutral: float = 0.0
    yes_no_only: bool = False


QUALITIES: dict[str, QualityFunction] = {
    "wracc": QualityFunction("standard", 1.0, "n/N (p - p0)"),
    "binomial": QualityFunction("standard", 0.5, "(n/N)^(1/2) (p - p0)"),
    "gain": QualityFunction("standard", 0.0, "p - p0"),
    "piatetsky-shapiro": QualityFunction("piatetsky-shapiro", 1.0, "n (p - p0)"),
    "lift": QualityFunction("lift", 0.0, "p / p0", neutral=1.0, yes_no_only=True),
    "chi2": QualityFunction("chi2", 1.0, "Pearson's chi^2, negative where p < p0", yes_no_only=True),
}
"""All quality functions by name. A number a between 0 and 1 stands for ``(n/N)^a (p - p0)``.

``binomial`` orders subgroups as the z-score of the one-sample binomial test does, which is this times a constant.
"""


def quality_function(quality: str | float) -> QualityFunction:
    """Return a quality function by name or exponent.

    Raises
    ------
    DataError
        If the name is unknown or the exponent not between 0 and 1.
    """
    if isinstance(quality, str):
        if quality in QUALITIES:
            return QUALITIES[quality]
    elif not isinstance(quality, bool) and isinstance(quality, (int, float)) and 0 <= quality <= 1:
        return QualityFunction("standard", float(quality), f"(n/N)^{quality:g} (p - p0)")
    raise DataError(f"quality must be one of {', '.join(QUALITIES)}, or an exponent between 0 and 1, got {quality!r}")


def core_quality(
    function: QualityFunction, direction: Direction, *, least_rows: int, most_rows: int
) -> _core.SubgroupQuality:
    """Return what the core needs to know; `least_rows` and `most_rows` bound the rows of a subgroup."""
    return _core.SubgroupQuality(
        function.measure,
        exponent=function.exponent,
        direction=direction,
        least_rows=least_rows,
        most_rows=most_rows,
    )


def check_direction(direction: str) -> None:
    """Raise unless the direction is known.

    Raises
    ------
    DataError
        If it is not.
    """
    if direction not in get_args(Direction):
        raise DataError(f"direction must be higher, lower or both, got {direction!r}")


def rows_of(support: float, rows: int, name: str, *, up: bool) -> int:
    """Return a bound on the rows of a subgroup: a whole number as it is, a number between 0 and 1 as a share.

    Parameters
    ----------
    support : int or float
        Rows, or share of the rows if it is a float of at most 1.
    rows : int
        Rows of the data.
    name : str
        What the bound is called, for the message.
    up : bool
        Whether a share is rounded up.

    Raises
    ------
    DataError
        If it is neither.
    """
    if isinstance(support, float) and 0.0 <= support <= 1.0:
        exact = support * rows
        # a share such as 0.07 of 100 rows is 7.000000000000001 of them
        return max(1, math.ceil(exact - 1e-9 * exact) if up else math.floor(exact + 1e-9 * exact))
    if isinstance(support, bool) or not math.isfinite(support) or support != int(support) or support < 1:
        raise DataError(f"{name} must be a number of rows of at least 1 or a share from 0.0 to 1.0, got {support!r}")
    return int(support)
