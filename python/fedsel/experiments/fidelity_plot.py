"""A picture of the fidelity table: rho against epsilon, a panel a size, a line a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedsel.errors import FedselError, MissingExtraError
from fedsel.experiments.fidelity_table import FidelityLine

_ENDINGS = (".svg", ".png", ".pdf")


def check_plotting(path: Path) -> None:
    """Refuse a plot that could not be drawn, before anything is measured.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    FedselError
        If the file's ending is unknown or its folder does not exist.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("a plot needs matplotlib: pip install 'fedsel[experiments]'") from None
    if path.suffix.lower() not in _ENDINGS:
        raise FedselError(f"{path}: a plot must end with {', '.join(_ENDINGS)}")
    if not path.parent.is_dir():
        raise FedselError(f"{path}: no such folder: {path.parent}")


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
