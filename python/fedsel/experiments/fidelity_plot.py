"""A picture of the fidelity table: rho against epsilon, a panel a size, a line a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedsel.experiments.fidelity_table import FidelityLine
from fedsel.plot_file import check_plotting


def draw_fidelity(lines: Sequence[FidelityLine], path: Path) -> None:
    """Draw the lines of a table.

    Parameters
    ----------
    lines : sequence of FidelityLine
        At least one.
    path : Path
        SVG, PNG or PDF file, replaced if there.

    Raises
    ------
    MissingExtraError, FedselError
        As `check_plotting`.
    """
    check_plotting(path)
    from matplotlib.figure import Figure

    sizes = sorted({line.k for line in lines})
    recipes = list(dict.fromkeys(line.recipe for line in lines))
    figure = Figure(figsize=(4.2 * len(sizes), 3.6), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for panel, k in zip(panels, sizes, strict=True):
        for number, recipe in enumerate(recipes):
            own = sorted(
                (line for line in lines if (line.k, line.recipe) == (k, recipe)), key=lambda line: line.epsilon
            )
            panel.errorbar(
                [line.epsilon for line in own],
                [line.rho for line in own],
                yerr=[line.rho_error for line in own],
                marker="osv^D*Px"[number % 8],
                markersize=4,
                linewidth=1.2,
                label=recipe,
            )
        panel.set_xscale("log")
        panel.set_title(f"k = {k}")
        panel.set_xlabel("epsilon")
        panel.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("rank correlation with the true loss")
    panels[-1].legend(fontsize="small")
    figure.suptitle("non-private evaluation: exact data, seeded noise", fontsize="small")
    figure.savefig(path)
