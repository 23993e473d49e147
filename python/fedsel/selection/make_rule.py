"""The score rule of a federation loss: its linear part, clipped as the released tables suggest.

Around reference tables q the loss is linear-fractional up to a remainder of second order: the members' rows, each
scored by the weighted sum over tables of log2(q_xy / (q_x q_y)), summed and divided by their number. One integer a
client therefore carries most of what the loss needs to know of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedsel.datasets.tree import fit_tree
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.schema import Schema
from fedsel.score_rule import ScoreRule, sum_over_tables
from fedsel.selection.loss_tables import Sensitive, active_sensitive, component_of
from fedsel.selection.reference import Reference, make_reference, positive_sizes
from fedsel.selection.weights import COMPONENT_NAMES, LossWeights
from fedsel.tables import Marginals, Workload

Array = npt.NDArray[np.float64]

LOSS = "loss"
"""Name of the score of the weighted loss; the components follow."""

BETWEEN_CLIENTS = 0.005
"""Variance between clients of the mean of any function of a row, in variances of the function between rows: what
clipping costs is this times the variance of what is clipped. Chosen on made pools and on pools of Adult rows."""

QUANTILES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
"""Shares of rows between which a clip may be laid."""

LEAST_BOUND = 1e-3
"""Smallest bound, in bits: of a reference without any association every row has the score 0."""

_SAMPLED_ROWS = 50_000
_TABLE_ROWS = 10**9  # of the whole-number tables that the tree is fitted to


def make_rule(
    pool: Pool, plan: NoisePlan, *, weights: LossWeights | None = None, sensitive: Sensitive = None
) -> ScoreRule:
    """Make the rule by which the clients of a pool will score their rows.

    Only what the clients have released, and public facts, go in: nothing is charged for it.

    Parameters
    ----------
    pool : Pool
        The clients' tables, or those of public data that resemble theirs.
    plan : NoisePlan
        The noise of the scores to come: the last six queries, see `fedsel.selection.score_plan`.
    weights : LossWeights, optional
        Weights of the first score; the components have scores of their own, so other weights stay possible.
    sensitive : str, sequence of str or None
        The active sensitive attributes.

    Returns
    -------
    ScoreRule
        Scores: the loss, then its four components.

    Raises
    ------
    SelectionError
        If the pool has other than two-way tables, or the plan other than six scores.
    """
    if any(len(members) != 2 for members in pool.workload.sets):
        raise SelectionError("a score rule needs a pool of two-way tables only")
    expected = 2 + len(COMPONENT_NAMES)
    if len(plan.scores) != expected or len(set(plan.scores)) != 1:
        raise SelectionError(f"a score rule needs a plan of {expected} scores of one D, got {list(plan.scores)}")
    resolution = plan.scores[0]
    sizes = positive_sizes(pool)
    reference = make_reference(pool, sizes)
    coefficients = _coefficients(pool.schema, pool.workload, weights or LossWeights(), sensitive)
    sampled = _sampled_scores(reference, coefficients)
    # Noise of a client's mean score, for each bit of bound.
    noise = plan.scale[plan.tables :] / resolution / float(np.median(sizes))
    limits = [_clip(scores, float(error)) for scores, error in zip(sampled, noise[:-1], strict=True)]
    return ScoreRule(
        schema=pool.schema,
        workload=pool.workload,
        names=(LOSS, *COMPONENT_NAMES),
        coefficients=coefficients,
        information=reference.information,
        proportions=reference.proportions,
        centres=tuple(centre for centre, _ in limits),
        bounds=tuple(bound for _, bound in limits),
        resolution=resolution,
    )


def _coefficients(schema: Schema, workload: Workload, weights: LossWeights, sensitive: Sensitive) -> Array:
    """Return the factor of each table in the loss and in each component, (scores, tables)."""
    guarded = active_sensitive(schema, sensitive)
    assert schema.target is not None  # active_sensitive has checked
    shares = np.zeros((len(COMPONENT_NAMES), len(workload.sets)))
    for t, (first, second) in enumerate(workload.sets):
        component = component_of((schema.names[first], schema.names[second]), guarded, schema.target)
        if component is not None:
            shares[component, t] = 1.0
    return np.vstack([weights.signed @ shares, shares])


def _sampled_scores(reference: Reference, coefficients: Array) -> Array:
    """Scores of rows drawn from a tree-structured model of the reference, (scores, rows)."""
    workload = reference.workload
    whole = np.rint(reference.proportions * _TABLE_ROWS).astype(np.int64)
    columns = fit_tree(Marginals(workload, whole)).sample(_SAMPLED_ROWS, seed=0)
    numbers = np.repeat(coefficients, workload.sizes, axis=1) * reference.information
    return sum_over_tables(columns, workload, numbers)


def _clip(scores: Array, noise: float) -> tuple[float, float]:
    """Return centre and bound of the clip with the least error of a client's mean score.

    A wider bound needs more noise; a narrower one leaves out what differs between clients in the tails.
    """
    best = (np.inf, 0.0, LEAST_BOUND)
    for quantile in QUANTILES:
        low, high = np.quantile(scores, [1.0 - quantile, quantile])
        centre, bound = (low + high) / 2.0, max((high - low) / 2.0, LEAST_BOUND)
        beyond = scores - np.clip(scores, centre - bound, centre + bound)
        error = (bound * noise) ** 2 + BETWEEN_CLIENTS * beyond.var()
        best = min(best, (float(error), float(centre), float(bound)))
    return best[1], best[2]
