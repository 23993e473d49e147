"""Branch and bound: proof of an optimum without evaluating everything, or how far from the best a better one may be."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.selection.checkpoint import INTERVAL, Checkpoint
from fedsel.selection.evidence import BoundEvidence
from fedsel.selection.methods import Effort, Found, Task, as_found

GAPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.0)
"""Bits below the best known loss at which bounds are tried to close, one after another; 0 is the proof."""

_WORK = "branch and bound"
_STEP = 16  # subproblems a thread bounds between two looks at the clock, where there is a checkpoint


def branch_and_bound(task: Task, effort: Effort, *, known: Sequence[int], most_nodes: int) -> Found:
    """Rule out better federations by lower bounds on the loss, and evaluate those that bounds do not rule out.

    Parameters
    ----------
    task, effort : Task, Effort
        What to do, and with how much. Only a stop makes the result depend on time; with a checkpoint, what an earlier
        run has done is left out.
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
    branching = _core.Branching(
        task.problem, known=list(known), gaps=GAPS, most_nodes=most_nodes, keep=effort.keep, threads=effort.threads
    )
    settings = {"known": sorted(known), "most_nodes": most_nodes}
    checkpoint, step, saved = effort.checkpoint, 2**62, started
    if checkpoint is not None:
        step = _STEP * effort.threads
        state = checkpoint.load(_WORK, **settings)
        if state is not None:
            _restore(branching, state, checkpoint)
    while True:
        left = max(0.0, effort.time_limit - (time.perf_counter() - started))
        result = branching.advance(most=step, time_limit=left, progress=effort.progress)
        over = result["finished"] or result["stop_reason"] != "completed"
        now = time.perf_counter()
        if checkpoint is not None and result["stop_reason"] == "completed" and (over or now - saved >= INTERVAL):
            checkpoint.save(_plain(branching), _WORK, **settings)
            saved = now
        if over:
            break
    evidence = BoundEvidence(
        applies=result["applies"],
        optimal=result["optimal"],
        bound=result["bound"],
        nodes=result["nodes"],
        covered=math.comb(task.free, task.choices),
    )
    return as_found(result, started, bounds=evidence)


def _plain(branching: _core.Branching) -> dict[str, Any]:
    """State without infinities, which JSON has no word for."""
    state = branching.state()
    return {**state, "bound": None if state["bound"] == -math.inf else state["bound"]}


def _restore(branching: _core.Branching, state: dict[str, Any], checkpoint: Checkpoint) -> None:
    try:
        branching.restore({**state, "bound": -math.inf if state["bound"] is None else state["bound"]})
    except (ValueError, KeyError, TypeError, RuntimeError) as error:  # of the right digest, and yet not written here
        raise SelectionError(f"{checkpoint.path}: {error}") from None
