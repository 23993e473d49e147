"""Evaluating every federation, in one go or in parts with a checkpoint after each."""

from __future__ import annotations

import time
from typing import Any

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.selection.checkpoint import INTERVAL, Checkpoint
from fedsel.selection.methods import Effort, Found, Task, as_found

_WORK = "enumeration"


def enumerate_all(task: Task, effort: Effort) -> Found:
    """Evaluate every federation that keeps the rules, but with a checkpoint what an earlier run has evaluated."""
    started = time.perf_counter()
    if effort.checkpoint is not None:
        return _in_parts(task, effort, effort.checkpoint, started)
    result = _core.enumerate(
        task.problem,
        keep=effort.keep,
        threads=effort.threads,
        time_limit=effort.time_limit,
        progress=effort.progress,
    )
    return as_found(result, started, complete=result["complete"])


def _in_parts(task: Task, effort: Effort, checkpoint: Checkpoint, started: float) -> Found:
    """Evaluate some blocks at a time. What is kept does not depend on how the blocks are cut into parts."""
    blocks = _core.enumeration_blocks(task.problem)
    state = checkpoint.load(_WORK) or {"blocks": 0, "evaluations": 0, "best": []}
    size = effort.threads
    saved = time.perf_counter()
    while True:
        evaluated: int = state["evaluations"]
        began = time.perf_counter()
        try:
            result = _core.enumerate(
                task.problem,
                keep=effort.keep,
                threads=effort.threads,
                time_limit=max(0.0, effort.time_limit - (began - started)),
                progress=_from(effort, evaluated),
                first=state["blocks"],
                last=min(state["blocks"] + size, blocks),
                known=state["best"],
            )
        except (ValueError, TypeError) as error:  # of the right digest, and yet not what was written here
            raise SelectionError(f"{checkpoint.path}: {error}") from None
        result["evaluations"] += evaluated
        if result["stop_reason"] != "completed":
            return as_found(result, started, complete=False)
        state = {
            "blocks": min(state["blocks"] + size, blocks),
            "evaluations": result["evaluations"],
            "best": result["best"],
        }
        done = state["blocks"] == blocks
        now = time.perf_counter()
        if done or now - saved >= INTERVAL:
            checkpoint.save(state, _WORK)
            saved = now
        if done:
            return as_found(result, started, complete=True)
        size = max(1, size // 2) if now - began > INTERVAL else size * 2 if now - began < INTERVAL / 4 else size


def _from(effort: Effort, evaluated: int) -> Any:
    """Progress that counts what earlier parts have evaluated."""
    report = effort.progress
    return None if report is None else lambda done, planned: report(done + evaluated, planned)
