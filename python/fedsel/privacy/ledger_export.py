"""Charges of a ledger as text for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from fedsel.privacy.charge import Charge
from fedsel.privacy.event_json import event_to_json
from fedsel.privacy.statement import json_number

FIELDS = (
    "number",
    "round",
    "purpose",
    "mechanism",
    "adjacency",
    "accounting",
    "epsilon",
    "delta",
    "rho",
    "private",
    "seeded",
    "charged",
    "released",
    "numerator",
    "weights",
    "scores",
    "rounds",
    "covered",
    "event",
)
"""Fields of an exported charge: those of `Charge` and its `NoisePlan`; an infinite number is the text "inf"."""


def charges_to_json_lines(charges: Sequence[Charge]) -> str:
    """Return one JSON object a line, with the keys `FIELDS`."""
    return "".join(
        json.dumps(_values(charge), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        for charge in charges
    )


def charges_to_csv(charges: Sequence[Charge]) -> str:
    """Return a table with the header `FIELDS`; what has parts is JSON text, what is not there is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(FIELDS)
    for charge in charges:
        writer.writerow([_cell(value) for value in _values(charge).values()])
    return stream.getvalue()


def _values(charge: Charge) -> dict[str, Any]:
    plan = charge.plan
    values = (
        charge.number,
        charge.round,
        charge.purpose,
        charge.mechanism,
        charge.adjacency,
        charge.accounting,
        json_number(charge.cost.epsilon),
        charge.cost.delta,
        json_number(charge.price.rho),
        charge.private,
        charge.seeded,
        charge.charged,
        charge.released,
        None if plan is None else plan.numerator,
        None if plan is None else list(plan.weights),
        None if plan is None else list(plan.scores),
        None if plan is None else list(plan.rounds),
        [{"part": c.part, "begun": c.begun, "released": c.released} for c in charge.covered],
        None if charge.event is None else event_to_json(charge.event),
    )
    return dict(zip(FIELDS, values, strict=True))


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, (bool, list, dict)) else value
