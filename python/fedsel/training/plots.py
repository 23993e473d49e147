"""Curves of metrics against rounds."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedsel.errors import MissingExtraError
from fedsel.training.simulation import ALL_CLIENTS, MEMBERS, TEST
from fedsel.training.stamp import STAMP
from fedsel.training.summary import SHOWN

_METRICS = ("balanced_accuracy", "eod")


def require_matplotlib() -> None:
    """Refuse to go on without matplotlib.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"curves need matplotlib: pip install 'fedsel[train]' ({error})") from None


def curves(history: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw balanced accuracy and |EOD| on test rows against the round: a line per choice and aggregator.

    Parameters
    ----------
    history : sequence of mapping
        As in `Comparison.history`; values are averaged over repetitions and draws, undefined ones left out.

    Returns
    -------
    bytes
        An SVG image, titled as a non-private evaluation.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots(len(_METRICS), 2, sharex=True, sharey="row")
    pairs = list(dict.fromkeys((row["choice"], row["aggregator"]) for row in history))
    for line, metric in zip(axes, _METRICS, strict=True):
        for axis, population in zip(line, (MEMBERS, ALL_CLIENTS), strict=True):
            for number, pair in enumerate(pairs):
                rounds, means = _mean_curve(history, pair, population, metric)
                style = ("-", "--", ":")[number // 10 % 3]  # there are ten colours
                axis.plot(rounds, means, style, color=f"C{number % 10}", label=", ".join(pair))
            axis.set_title(f"{SHOWN[metric]}, {population}")
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("round")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(f"Test rows, mean over repetitions: {STAMP}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    image = io.BytesIO()
    figure.savefig(image, format="svg", metadata={"Date": None})
    return image.getvalue()


def _mean_curve(
    history: Sequence[Mapping[str, Any]], pair: tuple[str, str], population: str, metric: str
) -> tuple[list[int], list[float]]:
    values: dict[int, list[float]] = {}
    for row in history:
        wanted = (row["choice"], row["aggregator"], row["part"], row["population"]) == (*pair, TEST, population)
        if wanted and row[metric] is not None:
            values.setdefault(row["round"], []).append(abs(row[metric]))
    return sorted(values), [float(np.mean(values[round_])) for round_ in sorted(values)]
