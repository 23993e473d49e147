"""Means over noise draws and thinnings, one line a budget, size and recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedsel.experiments.fidelity import FidelityRow
from fedsel.experiments.recipes import RECIPES

CONSTANTS = "chosen on made pools and Adult rows, fixed in 06e17e7; the states had been run once, with a954b09"
"""Where the constants of denoising and scores come from: stated with every result."""


@dataclass(frozen=True)
class FidelityLine:
    """Means over draws, with their standard errors; fields as in `FidelityRow`.

    Parameters
    ----------
    draws : int
        Noise draws, over all thinnings.
    seconds : float
        Wall time of all draws.
    """

    epsilon: float
    k: int
    recipe: str
    rho: float
    rho_error: float
    rho_whole: float
    regret: float
    regret_error: float
    overlap: float
    draws: int
    seconds: float

    def texts(self) -> tuple[str, ...]:
        """Return the fields as text, in order."""
        return (
            f"{self.epsilon:g}",
            str(self.k),
            self.recipe,
            f"{self.rho:.3f}",
            f"{self.rho_error:.3f}",
            f"{self.rho_whole:.3f}",
            f"{self.regret:.2f}",
            f"{self.regret_error:.2f}",
            f"{self.overlap:.2f}",
            str(self.draws),
            f"{self.seconds:.1f}",
        )


def summary(rows: Sequence[FidelityRow]) -> list[FidelityLine]:
    """Average rows, largest budget first, recipes in the order of `RECIPES`."""
    order = list(RECIPES)
    groups: dict[tuple[float, int, int], list[FidelityRow]] = {}
    for row in rows:
        groups.setdefault((-row.epsilon, row.k, order.index(row.recipe)), []).append(row)
    lines = []
    for key in sorted(groups):
        group = groups[key]
        values = np.array([(row.rho, row.rho_whole, row.regret, row.overlap, row.seconds) for row in group])
        mean = values.mean(axis=0)
        error = values.std(axis=0, ddof=1 if len(group) > 1 else 0) / np.sqrt(len(group))
        lines.append(
            FidelityLine(
                epsilon=group[0].epsilon,
                k=group[0].k,
                recipe=group[0].recipe,
                rho=float(mean[0]),
                rho_error=float(error[0]),
                rho_whole=float(mean[1]),
                regret=float(mean[2]),
                regret_error=float(error[2]),
                overlap=float(mean[3]),
                draws=len(group),
                seconds=float(values[:, 4].sum()),
            )
        )
    return lines
