"""The budget of a protocol of two rounds: tables first, then scores under a rule made from them."""

from __future__ import annotations

import math

from fedsel.errors import PrivacyError
from fedsel.privacy.calibration import AccountingChoice, plan_noise
from fedsel.privacy.plan import Adjacency, Mechanism, NoisePlan
from fedsel.privacy.rounds import plan_rounds
from fedsel.schema import Schema
from fedsel.selection.loss_tables import Sensitive
from fedsel.selection.precision import Precision, table_precisions
from fedsel.selection.weights import COMPONENT_NAMES, LossWeights
from fedsel.tables import Workload

RESOLUTION = 256
"""D of every score: rounding a row's score to a 256th of its bound is far below the noise of any private release."""

TABLES_SHARE = 0.5
"""Share of the tables in the cost. They fix what the scores are about; the sum of all clients' counts."""

LOSS_SHARE, COMPONENT_SHARE, RECORDS_SHARE = 0.86, 0.02, 0.06
"""Shares of the scores among themselves: the loss as weighted now, each component for other weights, the records."""

TABLE_EXPONENT = 1.0
"""Power of a table's weight in the loss that its precision grows with."""

# Chosen on made pools (latent classes; 46 clients of 2,500 to 200,000 rows, and a tenth of them) and on pools of the
# same sizes drawn from the rows of Adult.


def plan_scores(
    schema: Schema,
    workload: Workload,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    accounting: AccountingChoice = "auto",
    tables_share: float = TABLES_SHARE,
    rounds: int = 2,
    weights: LossWeights | None = None,
    sensitive: Sensitive = None,
) -> NoisePlan:
    """Plan tables and scores under one joint guarantee.

    Parameters
    ----------
    schema, workload
        The tables.
    epsilon, delta, adjacency, mechanism, accounting
        As for `fedsel.privacy.calibration.plan_noise`, of both rounds together.
    tables_share : float
        Share of the tables in the cost, between 0 and 1.
    rounds : {1, 2}
        2: scores in a second round, under a rule made from the tables of the first. 1: tables and scores at once, under
        a rule made from public data.
    weights : LossWeights, optional
        Weights of the loss, by default those of PCS: what they weigh most gets the least noise.
    sensitive : str, sequence of str or None
        The active sensitive attributes, by default the schema's first.

    Returns
    -------
    NoisePlan
        The tables, then six scores: the loss, its four components, the records.

    Raises
    ------
    PrivacyError
        If a parameter is out of range.
    SelectionError
        If the schema lacks a target or a sensitive attribute.
    """
    if math.isinf(epsilon):
        raise PrivacyError("scores are released with noise only: epsilon must be finite, got inf")
    precisions = table_precisions(
        schema, workload, precision="loss", weights=weights, sensitive=sensitive, exponent=TABLE_EXPONENT
    )
    assert precisions is not None
    shares = (LOSS_SHARE, *[COMPONENT_SHARE] * len(COMPONENT_NAMES), RECORDS_SHARE)
    return plan_rounds(
        precisions,
        scores=[(RESOLUTION, share) for share in shares],
        tables_share=tables_share,
        rounds=(len(precisions), len(shares)) if rounds == 2 else (),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        mechanism=mechanism,
        accounting=accounting,
    )


def plan_release(
    schema: Schema,
    workload: Workload,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    accounting: AccountingChoice = "auto",
    precision: Precision = "equal",
    score_rounds: int = 0,
) -> NoisePlan:
    """Plan tables alone, or tables and scores.

    Parameters
    ----------
    schema, workload, epsilon, delta, adjacency, mechanism, accounting
        As for `plan_scores`.
    precision : {"equal", "loss"}
        Of tables alone; see `fedsel.selection.precision`.
    score_rounds : {0, 1, 2}
        0: tables alone; otherwise the rounds of `plan_scores`.

    Returns
    -------
    NoisePlan

    Raises
    ------
    PrivacyError, SelectionError
        As `plan_scores`.
    """
    if score_rounds:
        return plan_scores(
            schema,
            workload,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
            mechanism=mechanism,
            accounting=accounting,
            rounds=score_rounds,
        )
    return plan_noise(
        len(workload.sets),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        mechanism=mechanism,
        accounting=accounting,
        weights=table_precisions(schema, workload, precision=precision),
    )
