"""Draw docs/scale.svg from the JSON of the benchmarks, and print the table of docs/performance.md.

    pytest benchmarks/test_curves.py --benchmark-json=curves.json
    python scripts/draw_benchmarks.py curves.json docs/scale.svg

Needs matplotlib (extra ``bench``).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

SERIES = {  # (kind, threads): label, colour, marker
    ("screened", 2): ("screened, two threads", "#1b4965", "s"),
    ("screened", 1): ("screened", "#2a85b8", "o"),
    ("exact", 1): ("every proposal exactly", "#ca6702", "^"),
    ("numpy", 1): ("numpy", "#7a7a7a", "D"),
}
PANELS = {  # group: what varies, title
    "clients": ("clients", "clients\n(k = 20, 2,958 cells)"),
    "members": ("k", "members k\n(10,000 clients, 2,958 cells)"),
    "cells": ("cells", "cells\n(1,000 clients, k = 20)"),
}

Rates = dict[tuple[str, int], list[tuple[int, float]]]


def read(source: Path) -> dict[str, Rates]:
    """Return, by panel and series, pairs of what varies and proposals a second."""
    rates: dict[str, Rates] = {group: defaultdict(list) for group in PANELS}
    for run in json.loads(source.read_text())["benchmarks"]:
        if run["group"] in PANELS:
            info = run["extra_info"]
            point = (info[PANELS[run["group"]][0]], info["steps"] / run["stats"]["min"])
            rates[run["group"]][info["kind"], info["threads"]].append(point)
    for series in rates.values():
        for points in series.values():
            points.sort()
    return rates


def draw(rates: dict[str, Rates], target: Path) -> None:
    """Draw one panel for each thing that varies."""
    mpl.rcParams.update({"svg.hashsalt": "fedsel", "font.size": 9})  # the same file from the same numbers
    figure = Figure(figsize=(8.3, 3.7), layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0, 1, 0.9))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (group, (_, title)) in zip(panels, PANELS.items(), strict=True):
        for key, (label, colour, marker) in SERIES.items():
            points = rates[group].get(key, [])
            axes.plot(*zip(*points, strict=True), label=label, color=colour, marker=marker, markersize=4, linewidth=1.4)
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("proposals a second")
    panels[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(SERIES), frameon=False)
    figure.savefig(target, metadata={"Date": None})


def table(rates: dict[str, Rates]) -> str:
    """Return the same numbers as a Markdown table."""
    labels = [label for label, *_ in SERIES.values()]
    lines = ["| thousands of proposals a second | " + " | ".join(labels) + " |", "|---" * (len(labels) + 1) + "|"]
    for group, (varies, _) in PANELS.items():
        columns = [dict(rates[group].get(key, [])) for key in SERIES]
        for value in sorted(set().union(*columns)):
            name = f"k = {value:,}" if varies == "k" else f"{value:,} {varies}"
            cells = [_thousands(column[value]) if value in column else "" for column in columns]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _thousands(rate: float) -> str:
    return f"{rate / 1e3:,.0f}" if rate >= 1e4 else f"{rate / 1e3:.2g}"


def main(source: Path, target: Path) -> None:
    """Draw, and print the table."""
    rates = read(source)
    draw(rates, target)
    print(table(rates))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
