"""What can be known about the federation a search found: the work of finding out, and how it is put."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from fedsel.selection import bounds, enumeration, methods
from fedsel.selection.evidence import BoundEvidence, ModelEvidence
from fedsel.selection.methods import Effort, Found, Task
from fedsel.selection.result import Certificate

CertificateMode = Literal["auto", "enumerate", "bound", "model", "none"]

ROUNDING = 1e-12
"""Bits by which the losses of two federations may differ and yet tie."""

AFFORDABLE = 3_000_000
"""Most federations that are enumerated unasked for a certificate: a few seconds on one core."""

_MODEL_CLIENTS, _MODEL_RECHECKS, _MODEL_PREFIXES = 100, 200_000, 1_000_000  # unasked: about a second
_BOUND_CLIENTS, _BOUND_WORK = 128, 1_500_000  # unasked: nodes times clients squared, up to a few seconds
_MOST_NODES = 1_000_000  # asked for: an hour, and half a gigabyte
_EXCHANGED = (3, 2)  # members exchanged at once, the first that is affordable
_MOST_RECHECKS = 20_000_000  # asked for: a minute or two


def seek(task: Task, found: Found, mode: CertificateMode, effort: Callable[[], Effort]) -> tuple[Found, ...]:
    """Do what a certificate of the mode takes, and return what came of each step.

    ``auto`` enumerates where that is affordable. Else it tries branch and bound and, where that ends without proof, a
    model certificate, a second or so each, and exchanges of as many members as is affordable.
    """
    if mode == "none" or found.complete or found.stop_reason != "completed":
        return ()
    if mode == "enumerate" or (mode == "auto" and task.subsets <= AFFORDABLE):
        return (enumeration.enumerate_all(task, effort()),)
    known, steps, budget = found.best[0], [], AFFORDABLE
    if mode == "bound" or (mode == "auto" and task.free <= _BOUND_CLIENTS and task.loss.model.consistent):
        nodes = _MOST_NODES if mode == "bound" else _BOUND_WORK // max(task.free, 1) ** 2
        bounded = bounds.branch_and_bound(task, effort(), known=known[1], most_nodes=nodes)
        steps.append(bounded)
        known = min(known, bounded.best[0])
        if bounded.stop_reason != "completed" or (bounded.bounds is not None and bounded.bounds.optimal):
            return tuple(steps)
    if mode == "model" or (mode == "auto" and task.free <= _MODEL_CLIENTS):
        model = methods.certify_model(
            task,
            effort(),
            known=known[1],
            most=_MODEL_RECHECKS if mode == "auto" else _MOST_RECHECKS,
            most_prefixes=_MODEL_PREFIXES if mode == "auto" else 2**62,
        )
        steps.append(model)
        known = min(known, model.best[0])
        if model.stop_reason != "completed":
            return tuple(steps)
        if model.model is not None and model.model.outcome == "certified":
            budget = AFFORDABLE // 10  # little is left to find
    size = next((size for size in _EXCHANGED if methods.exchanges(task, size) <= budget), None)
    if size is not None:
        steps.append(methods.exchange(task, effort(), start=known[1], size=size))
    return tuple(steps)


def describe(task: Task, found: Found, steps: Sequence[Found], members: tuple[int, ...], loss: float) -> Certificate:
    """Return the strongest certificate that a search and the steps after it give for the best members."""
    spent = sum(step.evaluations for step in steps)
    kept = " that keep the constraints" if task.constrained else ""
    complete = next((result for result in (found, *steps) if result.complete), None)
    if complete is not None:
        if task.loss.shift:
            statement = f"all {complete.evaluations:,} federations of this size{kept} were evaluated, on rounded counts"
            return Certificate("none", statement, spent)
        if complete.evaluations == 1:
            only = " that keeps the constraints" if task.constrained else ""
            return Certificate("proof", f"it is the only federation of this size{only}", spent, gap=0.0)
        count = f"all {complete.evaluations:,} federations of this size{kept}"
        return Certificate("proof", f"{count} were evaluated; none has a lower loss", spent, gap=0.0)
    if task.loss.shift:
        return Certificate("none", "nothing is proved about this federation", spent)
    bounded = next((step.bounds for step in steps if step.bounds is not None), None)
    gap = None if bounded is None or bounded.bound == -math.inf else max(0.0, loss - bounded.bound)
    if bounded is not None and bounded.optimal:
        return Certificate("proof", _bound_statement(bounded, spent, kept), spent, gap=0.0)
    exchanged = max((result.exchanged for result in (found, *steps) if result.certified == members), default=0)
    optimal = _exchange_statement(exchanged, task.constrained)
    below = _gap_statement(bounded, gap)
    model = next((step for step in steps if step.model is not None), None)
    tried = ""
    if model is not None and model.model is not None:
        beaten = loss < float(task.loss.losses_of([model.best[0][1]])[0]) - ROUNDING
        if model.model.outcome == "certified" and not beaten:
            proved = f". Proved: {optimal}" if exchanged else ""
            return Certificate("model", _model_statement(model.model, kept) + proved + below, spent, gap=gap)
        tried = _FAILURES[model.model.outcome]
    if exchanged:
        return Certificate("swap-optimal", optimal + tried + below, spent, gap=gap)
    return Certificate("none", f"nothing is proved about this federation{tried}{below}", spent, gap=gap)


def _bound_statement(evidence: BoundEvidence, evaluated: int, kept: str) -> str:
    return (
        f"{evaluated:,} evaluations, and bounds in {evidence.nodes:,} subproblems, prove that none of the "
        f"{evidence.covered:,} federations of this size{kept} has a lower loss"
    )


def _gap_statement(evidence: BoundEvidence | None, gap: float | None) -> str:
    if evidence is None:
        return ""
    if not evidence.applies:
        return "; there are no bounds for tables that disagree, or for clients without records"
    if gap is None:
        return "; bounds on the loss closed nothing"
    return f"; a better one is better by {gap:.2g} bits at most, by bounds"


def _exchange_statement(size: int, constrained: bool) -> str:
    what = "one member for one outsider" if size == 1 else f"up to {size} members for outsiders"
    within = " and keeps the constraints" if constrained else ""
    return f"no exchange of {what} lowers the loss{within}"


_FAILURES = {
    "certified": "; the second-order model was wrong here",  # what came after found a better one
    "too wide": "; the second-order model is too rough here to rule the others out",
    "too long": "; too many federations to go through under the second-order model",
    "stopped": "",
}


def _model_statement(evidence: ModelEvidence, kept: str) -> str:
    return (
        f"all {evidence.covered:,} federations of this size were enumerated or bounded under the second-order model, "
        f"and the {evidence.rechecked:,}{kept} that it puts within its error band of the best were evaluated exactly; "
        f"none has a lower loss. No proof: the band, {evidence.band:.2g} bits, is twice the model's largest error on "
        f"{methods.MODEL_SAMPLE:,} random and its {evidence.compared:,} best federations"
    )
