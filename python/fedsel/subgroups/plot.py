"""A picture of what was found: effect against size, and how covers overlap."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedsel.errors import FedselError
from fedsel.plot_file import check_plotting
from fedsel.subgroups.discovery import SubgroupDiscovery

_MOST = 25  # subgroups drawn
_LONGEST = 140  # characters of a description


def draw(found: SubgroupDiscovery, path: Path) -> None:
    """Draw the first 25 subgroups: each one's effect against its size, and the overlap of any two.

    Parameters
    ----------
    found : SubgroupDiscovery
        Fitted.
    path : Path
        SVG, PNG or PDF file, replaced if there.

    Raises
    ------
    MissingExtraError, FedselError
        As `check_plotting`, or if there is no subgroup to draw.
    """
    check_plotting(path)
    subgroups = found.subgroups_[:_MOST]
    if not subgroups:
        raise FedselError(f"{path}: no subgroup was found that could be drawn")
    from matplotlib.figure import Figure

    count = len(subgroups)
    figure = Figure(figsize=(11, 4.4 + 0.2 * count), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(4.0, 0.2 * count + 0.3))
    scatter, matrix, legend = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))

    sizes = [subgroup.rows for subgroup in subgroups]
    effects = [subgroup.effect for subgroup in subgroups]
    scatter.scatter(sizes, effects, s=25)
    for rank, (size, effect) in enumerate(zip(sizes, effects, strict=True), start=1):
        scatter.annotate(str(rank), (size, effect), xytext=(4, 3), textcoords="offset points", fontsize="small")
    scatter.axhline(0.0, color="0.5", linewidth=0.8)
    scatter.set_xlabel(f"rows covered, of {found.rows_:,}")
    scatter.set_ylabel(f"effect: mean outcome less {found.base_:.4g} of all rows")
    scatter.grid(visible=True, alpha=0.3)

    image = matrix.imshow(found.overlaps()[:count, :count], vmin=0.0, vmax=1.0, cmap="Blues")
    ticks, labels = np.arange(count), [str(rank) for rank in range(1, count + 1)]
    matrix.set_xticks(ticks, labels, fontsize="small")
    matrix.set_yticks(ticks, labels, fontsize="small")
    matrix.set_title("rows in both / rows in either", fontsize="medium")
    figure.colorbar(image, ax=matrix, shrink=0.8)

    legend.axis("off")
    lines = [f"{rank}  {_cut(subgroup.description)}" for rank, subgroup in enumerate(subgroups, start=1)]
    legend.text(0.0, 1.0, "\n".join(lines), va="top", fontsize="small", parse_math=False)
    figure.savefig(path)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
