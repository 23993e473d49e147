"""How a selection is printed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedsel.selection.result import Selection

COMPONENT_LABELS = {
    "sensitive_target": "direct bias, I(S;T)",
    "sensitive_feature": "proxy bias, sum of I(S;N)",
    "feature_feature": "redundancy, sum of I(N;N')",
    "feature_target": "signal, sum of I(N;T)",
}


def to_json(selection: Selection, *, command: str, version: str, wall_seconds: float) -> str:
    """One JSON object: the selection, with member names as a list, and what is needed to repeat it.

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
    return json.dumps({"command": command, "version": version, **fields}, ensure_ascii=False, indent=2)


def print_selection(selection: Selection, console: Console) -> None:
    """Members with their noisy sizes, the loss and its components, the certificate and the privacy statement."""
    table = Table(title=f"Federation of {selection.k} of {selection.pool_size} clients", title_justify="left")
    table.add_column("member")
    table.add_column("records", justify="right")
    for member in selection.members:
        spread = f" ± {member.standard_error:,.0f}" if member.standard_error else ""
        table.add_row(Text(member.name), f"{member.records:,.0f}{spread}")
    console.print(table)

    title = f"Loss {selection.loss:.6f} bits (sensitive attribute {selection.sensitive})"
    losses = Table(title=title, title_justify="left")
    losses.add_column("component")
    losses.add_column("bits", justify="right")
    losses.add_column("weight", justify="right")
    for (name, value), weight in zip(asdict(selection.components).items(), selection.weights.signed, strict=True):
        losses.add_row(COMPONENT_LABELS[name], f"{value:.6f}", f"{weight:+g}")
    console.print(losses)

    lines = {
        "Search": f"{selection.search}, {selection.evaluations:,} evaluations in {selection.search_seconds:.3f} s, "
        f"seed {selection.seed}, {selection.stop_reason}",
        "Certificate": f"{selection.certificate.kind}: {selection.certificate.statement} "
        f"({selection.certificate_seconds:.3f} s)",
    }
    if selection.runner_ups:
        best = selection.runner_ups[0]
        lines["Next best"] = f"{', '.join(best.members)} at {best.loss:.6f} bits"
    if selection.denoise != "none":
        lines["Denoising"] = selection.denoise
    if not selection.privacy.private or selection.certificate.kind != "none":
        lines["Read with care"] = "loss and certificate are those of the released tables" + (
            "" if selection.privacy.exact == selection.privacy.clients else ", whose noise they include"
        )
    for note in selection.notes:
        lines[f"Mixed pool, {len(lines)}"] = note
    lines["Privacy"] = selection.privacy.sentence
    for label, line in lines.items():
        console.print(Text.assemble((f"{label}: ", "bold"), line))
