"""How much each client spends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from fedsel.errors import SubgroupError


def uniform_budgets(clients: int, epsilon: float) -> list[float]:
    """Return the same budget for every client."""
    return [epsilon] * clients


def personalised_budgets(
    sizes: Sequence[int], *, mean: float = 4.0, least: float = 1.0, most: float = 16.0
) -> list[float]:
    """Return budgets in proportion to size, between limits, whose mean over records is given.

    eps_i = clip(c n_i, least, most) with c such that sum n_i eps_i / N = mean. Sizes must be public, or protected
    elsewhere.

    Parameters
    ----------
    sizes : sequence of int
        n_i, at least one of them above 0. A client without records gets the least.
    mean, least, most : float
        Mean over records, and limits.

    Raises
    ------
    SubgroupError
        If there is no record, or the mean does not lie between the limits.
    """
    n = np.asarray(sizes, dtype=np.float64)
    if n.sum() <= 0:
        raise SubgroupError("personalised budgets need at least one record, got none")
    if not 0 < least <= mean <= most:
        raise SubgroupError(f"the mean budget must be between {least:g} and {most:g}, got {mean:g}")

    def excess(factor: float) -> float:
        return float((n * np.clip(factor * n, least, most)).sum() / n.sum()) - mean

    # at 0 every budget is the least; at the other end every one with a record the most
    high = most / n[n > 0].min()
    factor = 0.0 if excess(0.0) >= 0 else high if excess(high) <= 0 else float(brentq(excess, 0.0, high))
    return [float(budget) for budget in np.clip(factor * n, least, most)]
