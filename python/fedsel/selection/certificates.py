"""What can be known about the federation a search found: the work of finding out, and how it is put."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from fedsel.selection import methods
from fedsel.selection.methods import Effort, Found, ModelEvidence, Task
from fedsel.selection.result import Certificate

CertificateMode = Literal["auto", "enumerate", "model", "none"]

ROUNDING = 1e-12
"""Bits by which the losses of two federations may differ and yet tie."""

AFFORDABLE = 3_000_000
"""Most federations that are enumerated unasked for a certificate: a few seconds on one core."""

_MODEL_CLIENTS, _MODEL_RECHECKS, _MODEL_PREFIXES = 100, 200_000, 1_000_000  # unasked: about a second
_EXCHANGED = (3, 2)  # members exchanged at once, the first that is affordable
_MOST_RECHECKS = 20_000_000  # asked for: a minute or two


def seek(task: Task, found: Found, mode: CertificateMode, effort: Callable[[], Effort]) -> tuple[Found, ...]:
    """Do what a certificate of the mode takes, and return what came of each step.

    ``auto`` enumerates where that is affordable. Else it tries a model certificate as long as it takes about a second,
    and exchanges of as many members as is affordable.
    """
    if mode == "none" or found.complete or found.stop_reason != "completed":
        return ()
    if mode == "enumerate" or (mode == "auto" and task.subsets <= AFFORDABLE):
        return (methods.enumerate_all(task, effort()),)
    known, steps, budget = found.best[0], [], AFFORDABLE
    if mode == "model" or task.free <= _MODEL_CLIENTS:
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
            return Certificate("proof", f"it is the only federation of this size{only}", spent)
        count = f"all {complete.evaluations:,} federations of this size{kept}"
        return Certificate("proof", f"{count} were evaluated; none has a lower loss", spent)
    if task.loss.shift:
        return Certificate("none", "nothing is proved about this federation", spent)
    exchanged = max((result.exchanged for result in (found, *steps) if result.certified == members), default=0)
    optimal = _exchange_statement(exchanged, task.constrained)
    model = next((step for step in steps if step.model is not None), None)
    tried = ""
    if model is not None and model.model is not None:
        beaten = loss < float(task.loss.losses_of([model.best[0][1]])[0]) - ROUNDING
        if model.model.outcome == "certified" and not beaten:
            proved = f". Proved: {optimal}" if exchanged else ""
            return Certificate("model", _model_statement(model.model, kept) + proved, spent)
        tried = _FAILURES[model.model.outcome]
    if exchanged:
        return Certificate("swap-optimal", optimal + tried, spent)
    return Certificate("none", f"nothing is proved about this federation{tried}", spent)


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
