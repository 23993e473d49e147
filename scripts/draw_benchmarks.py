"""Draw the curves of docs/performance.md from the JSON of the benchmarks.

    pytest benchmarks/test_scale.py -k steps --benchmark-json=scale.json
    python scripts/draw_benchmarks.py scale.json docs/scale.svg

Needs matplotlib (extra ``bench``).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

STEPS = 100_000  # a chain, in benchmarks/test_scale.py


def main(source: Path, target: Path) -> None:
    mpl.rcParams["svg.hashsalt"] = "fedsel"  # the same file from the same numbers
    runs = [run for run in json.loads(source.read_text())["benchmarks"] if run["group"].endswith("annealing steps")]
    curves = defaultdict(list)
    for run in runs:
        info = run["extra_info"]
        rate = STEPS * info["threads"] / run["stats"]["min"]
        curves[info["threads"]].append((info["clients"], info["k"], rate))
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for threads, points in sorted(curves.items()):
        points.sort()
        places = range(len(points))
        axes.plot(places, [rate for *_, rate in points], marker="o", label=f"{threads} thread{'s' * (threads > 1)}")
        axes.set_xticks(places, [f"{clients:,} clients\nk = {k}" for clients, k, _ in points])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("annealing steps a second")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
