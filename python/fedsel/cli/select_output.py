"""How a selection is printed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from fedsel.cli.text_table import text_table
from fedsel.selection.result import Selection

COMPONENT_LABELS = {
    "sensitive_target": "direct bias, I(S;T)",
    "sensitive_feature": "proxy bias, sum of I(S;N)",
    "feature_feature": "redundancy, sum of I(N;N')",
    "feature_target": "signal, sum of I(N;T)",
}


def to_json(selection: Selection, *, command: str, version: str, wall_seconds: float) -> str:
    """Return one JSON object: the selection, with member names as a list, and what is needed to repeat it.

    Parameters
    ----------
    selection : Selection
        What was chosen.
    command, version : str
        How and with what.
    wall_seconds : float
        Time of the whole command; replaces the time of the call.
    """
    fields: dict[str, Any] = selection.to_dict()
    fields["members"] = list(selection.names)
    fields["records"] = [asdict(member) for member in selection.members]
    fields["wall_seconds"] = wall_seconds
    return json.dumps({"command": command, "version": version, **fields}, ensure_ascii=False, indent=2, allow_nan=False)


def to_text(selection: Selection) -> str:
    """Return members with their noisy sizes, the loss and its parts, certificate and privacy statement as text."""
    members = [
        (member.name, f"{member.records:,.0f}", f"{member.standard_error:,.0f}" if member.standard_error else "")
        for member in selection.members
    ]
    parts = [
        (COMPONENT_LABELS[name], f"{value:.6f}", f"{weight:+g}", f"{weight * value:+.6f}")
        for (name, value), weight in zip(asdict(selection.components).items(), selection.weights.signed, strict=True)
    ]
    exact = selection.privacy.exact == selection.privacy.clients
    facts = [
        (
            "search",
            f"{selection.search}, seed {selection.seed}: {selection.evaluations:,} evaluations in "
            f"{selection.search_seconds:.3f} s, {selection.stop_reason}",
        ),
        (
            "certificate",
            f"{selection.certificate.kind}: {selection.certificate.statement} ({selection.certificate_seconds:.3f} s)",
        ),
        *[("next best", f"{best.loss:.6f} bits: {', '.join(best.members)}") for best in selection.runner_ups[:1]],
        *[("smallest", _smallest(selection)) for _ in selection.sizes[:1]],
        *[("constraint", rule) for rule in selection.constraints],
        *[("denoising", selection.denoise) for _ in range(selection.denoise != "none")],
        *[("note", note) for note in selection.notes],
        ("speaks of", "the exact tables" if exact else "the released tables, noise included: loss, order, certificate"),
        ("privacy", selection.privacy.sentence),
    ]
    width = max(len(label) for label, _ in facts)
    return "\n".join(
        [
            f"federation of {selection.k} of {selection.pool_size} clients",
            "",
            text_table(("member", "records", "+- (sd)"), members, right=(1, 2)),
            "",
            f"loss {selection.loss:.6f} bits, sensitive: {', '.join(selection.sensitive)}",
            "",
            text_table(("part of the loss", "bits", "weight", "product"), parts, right=(1, 2, 3)),
            "",
            *_sizes(selection),
            *[f"{label.ljust(width)}  {fact}" for label, fact in facts],
        ]
    )


def _smallest(selection: Selection) -> str:
    found = selection.smallest
    if found is None:
        return "no size comes within the tolerance of the best"
    return f"k = {found.k} is within the tolerance of the best: {', '.join(found.members)}"


def _sizes(selection: Selection) -> list[str]:
    if not selection.sizes:
        return []
    rows = [(str(size.k), f"{size.loss:.6f}", size.certificate, ", ".join(size.members)) for size in selection.sizes]
    return [text_table(("k", "loss", "certificate", "members"), rows, right=(0, 1)), ""]
