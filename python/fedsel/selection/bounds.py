"""Branch and bound: proof of an optimum without evaluating everything, or how far from the best a better one may be."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from fedsel import _core
from fedsel.selection.evidence import BoundEvidence
from fedsel.selection.methods import Effort, Found, Task, as_found

GAPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.0)
"""Bits below the best known loss at which bounds are tried to close, one after another; 0 is the proof."""


def branch_and_bound(task: Task, effort: Effort, *, known: Sequence[int], most_nodes: int) -> Found:
    """Rule out better federations by lower bounds on the loss, and evaluate those that bounds do not rule out.

    Parameters
    ----------
    task, effort : Task, Effort
        What to do, and with how much. Only a stop makes the result depend on time.
    known : sequence of int
        Pool rows of the best federation known.
    most_nodes : int
        Subproblems bounded before it counts as too long.

    Returns
    -------
    Found
        With `Found.bounds`; `Found.best` holds the best federation of the size if that is proved.
    """
    started = time.perf_counter()
    result = _core.branch(
        task.problem,
        known=list(known),
        gaps=GAPS,
        most_nodes=most_nodes,
        keep=effort.keep,
        threads=effort.threads,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    evidence = BoundEvidence(
        applies=result["applies"],
        optimal=result["optimal"],
        bound=result["bound"],
        nodes=result["nodes"],
        covered=math.comb(task.free, task.choices),
    )
    return as_found(result, started, bounds=evidence)
