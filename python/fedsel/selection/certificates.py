"""What can be known about the federation a search found: the work of finding out, and how it is put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fedsel.selection import methods
from fedsel.selection.methods import Effort, Found, ModelEvidence, Task
from fedsel.selection.result import Certificate

CertificateMode = Literal["auto", "enumerate", "model", "none"]

AFFORDABLE = 3_000_000
"""Most federations that are enumerated unasked for a certificate: a few seconds on one core."""

_MODEL_CLIENTS, _MODEL_RECHECKS, _MODEL_PREFIXES = 100, 200_000, 1_000_000  # unasked: about a second
_MOST_RECHECKS = 20_000_000  # asked for: a minute or two


def seek(task: Task, found: Found, mode: CertificateMode, effort: Callable[[], Effort]) -> Found | None:
    """Do what a certificate of the mode takes; return None where nothing needs doing.

    ``auto`` enumerates where that is affordable, and else tries a model certificate as long as it takes about a second.
    """
    if mode == "none" or found.complete or found.stop_reason != "completed":
        return None
    if mode == "enumerate" or (mode == "auto" and task.subsets <= AFFORDABLE):
        return methods.enumerate_all(task, effort())
    if mode == "auto" and task.free > _MODEL_CLIENTS:
        return None
    return methods.certify_model(
        task,
        effort(),
        known=found.best[0][1],
        most=_MODEL_RECHECKS if mode == "auto" else _MOST_RECHECKS,
        most_prefixes=_MODEL_PREFIXES if mode == "auto" else 2**62,
    )


def describe(task: Task, found: Found, proof: Found | None, members: tuple[int, ...]) -> Certificate:
    """Return the strongest certificate that a search and the work after it give for the best members."""
    spent = proof.evaluations if proof else 0
    kept = " that keep the constraints" if task.constrained else ""
    complete = found if found.complete else proof
    if complete is not None and complete.complete:
        if task.loss.shift:
            statement = f"all {complete.evaluations:,} federations of this size{kept} were evaluated, on rounded counts"
            return Certificate("none", statement, spent)
        if complete.evaluations == 1:
            only = " that keeps the constraints" if task.constrained else ""
            return Certificate("proof", f"it is the only federation of this size{only}", spent)
        count = f"all {complete.evaluations:,} federations of this size{kept}"
        return Certificate("proof", f"{count} were evaluated; none has a lower loss", spent)
    evidence = proof.model if proof else None
    if evidence is not None and evidence.outcome == "certified" and not task.loss.shift:
        return Certificate("model", _model_statement(evidence, kept), spent)
    tried = "" if evidence is None else _FAILURES[evidence.outcome]
    if members == found.certified and not task.loss.shift:
        within = " and keeps the constraints" if task.constrained else ""
        return Certificate(
            "swap-optimal", f"no exchange of one member for one outsider lowers the loss{within}{tried}", spent
        )
    return Certificate("none", f"nothing is proved about this federation{tried}", spent)


_FAILURES = {
    "certified": "",  # on rounded counts
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
