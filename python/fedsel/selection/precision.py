"""Which tables deserve less noise: a public rule, agreed on before any release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

from fedsel.errors import SelectionError
from fedsel.schema import Schema
from fedsel.selection.loss_tables import Sensitive, active_sensitive, component_of
from fedsel.selection.weights import LossWeights
from fedsel.tables import Workload

Precision = Literal["equal", "loss"]

EXPONENT = 0.5
"""Share of a table's precision: its weight in the loss to this power. Chosen on made pools (0, 0.5 and 0.75 tried)."""

_UNITS = 100  # of the largest precision


def table_precisions(
    schema: Schema,
    workload: Workload,
    *,
    precision: Precision = "equal",
    weights: LossWeights | None = None,
    sensitive: Sensitive = None,
    exponent: float = EXPONENT,
) -> tuple[int, ...] | None:
    """Return relative precisions of a workload's tables, for `fedsel.privacy.calibration.plan_noise`.

    Noise of variance 1 / precision costs the same in total however it is shared out; what the loss weighs most should
    be known best.

    Parameters
    ----------
    schema : Schema
        Roles of the variables.
    workload : Workload
        The tables.
    precision : {"equal", "loss"}
        ``equal``: the same noise everywhere. ``loss``: a pair's precision grows with its weight in the federation
        loss; tables that the loss does not use get the least.
    weights : LossWeights or None
        Weights of the loss, by default those of PCS.
    sensitive : str, sequence of str or None
        The active sensitive attributes, by default the schema's first.
    exponent : float
        Power of a pair's weight that its precision grows with.

    Returns
    -------
    tuple of int or None
        One positive integer per table; None for equal ones.

    Raises
    ------
    SelectionError
        If the precision is unknown, or the schema lacks a target or a sensitive attribute.
    """
    if precision not in get_args(Precision):
        raise SelectionError(f"precision must be one of {', '.join(get_args(Precision))}, got {precision!r}")
    if precision == "equal":
        return None
    signed = (LossWeights() if weights is None else weights).signed
    guarded = active_sensitive(schema, sensitive)
    wanted = [_weight(schema, members, guarded, signed.tolist()) for members in workload.sets]
    largest = max(wanted)
    if largest == 0:
        return (1,) * len(wanted)
    return tuple(max(1, math.ceil(_UNITS * (weight / largest) ** exponent)) for weight in wanted)


def _weight(schema: Schema, members: Sequence[int], guarded: tuple[str, ...], signed: Sequence[float]) -> float:
    if len(members) != 2:
        return 0.0
    assert schema.target is not None  # active_sensitive has checked
    component = component_of((schema.names[members[0]], schema.names[members[1]]), guarded, schema.target)
    return 0.0 if component is None else abs(signed[component])
