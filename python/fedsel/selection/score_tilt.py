"""Tables and scores of the same clients, combined: tables that keep their shape and have the scores they should.

What a client's tables say of its scores is corrected by the released scores as far as their noise allows (empirical
Bayes on the difference, which knows by itself how far off tables are). Each component's tables are then tilted
exponentially along the reference's information until they have that score: the smallest change, in relative entropy,
that does it (I-projection, Csiszar 1975).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool_scores import ClientScores
from fedsel.score_rule import ScoreRule
from fedsel.selection.empirical_bayes import posterior
from fedsel.tables import Workload

Array = npt.NDArray[np.float64]

LARGEST_TILT = 3.0
"""Largest exponent for each bit of information: 0.69 would already double what the reference says."""

_STEPS = 50
_CLOSE = 1e-9  # bits


def check_rule(rule: ScoreRule, workload: Workload) -> None:
    """Refuse a rule that is over other tables, or not one that `make_rule` makes.

    Raises
    ------
    SelectionError
        Saying which.
    """
    if rule.workload != workload:
        raise SelectionError("the score rule is over other tables than the pool's")
    shares = rule.coefficients[1:]
    if not np.isin(shares, (0.0, 1.0)).all() or shares.sum(axis=0).max(initial=0.0) > 1.0:
        raise SelectionError("the score rule is not of a federation loss: every table must belong to one component")


def mean_scores(cells: Array, rule: ScoreRule) -> Array:
    """Mean score of every component as tables have it, (clients, components), in bits.

    Parameters
    ----------
    cells : ndarray of float64, shape (clients, cells)
        Counts, not negative. A table without any record stands for the rule's own proportions.
    rule : ScoreRule
        What the scores are.
    """
    scored = _normalised(cells, rule) * rule.information
    return np.asarray(np.add.reduceat(scored, rule.workload.offsets[:-1], axis=1) @ rule.coefficients[1:].T)


def target_scores(from_tables: Array, sizes: Array, scores: ClientScores) -> Array:
    """Estimate each client's mean score of every component from tables and released scores.

    Parameters
    ----------
    from_tables : ndarray of float64, shape (clients, components)
        See `mean_scores`.
    sizes : ndarray of float64, shape (clients,)
        Number of records of each client, positive.
    scores : ClientScores
        Of the same clients.

    Returns
    -------
    ndarray of float64, shape (clients, components)
        In bits.
    """
    rule = scores.rule
    measured = scores.values[:, :-1] / sizes[:, None] + np.array(rule.centres)
    variance = scores.variance[:, :-1] / sizes[:, None] ** 2
    weights = _weights(rule)
    found = [posterior(measured[:, 1 + c] - from_tables[:, c], variance[:, 1 + c]) for c in range(from_tables.shape[1])]
    target = from_tables + np.column_stack([one.mean for one in found])
    uncertain = np.column_stack([one.variance for one in found])
    # The score of the loss is the best known sum: condition the components on it.
    weighted = from_tables @ weights
    loss = weighted + posterior(measured[:, 0] - weighted, variance[:, 0], centred=True).mean
    gain = uncertain * weights
    total = gain @ weights
    missing = np.where(total > 0, (loss - target @ weights) / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(target + gain * missing[:, None])


def tilt_to(target: Array, cells: Array, sizes: Array, rule: ScoreRule) -> Array:
    """Tilt tables until they have the mean scores they should.

    Parameters
    ----------
    target : ndarray of float64, shape (clients, components)
        In bits.
    cells : ndarray of float64, shape (clients, cells)
        Counts, not negative.
    sizes : ndarray of float64, shape (clients,)
        Number of records of each client.
    rule : ScoreRule
        What the scores are.

    Returns
    -------
    ndarray of float64, shape (clients, cells)
        Counts in records; every table adds up to the client's size.
    """
    tables = _normalised(cells, rule)
    workload = rule.workload
    for component, share in enumerate(rule.coefficients[1:]):
        members = np.flatnonzero(share)
        if members.size:
            here = np.concatenate([np.arange(*workload.offsets[t : t + 2]) for t in members])
            tables[:, here] = _tilted(
                tables[:, here], rule.information[here], workload.sizes[members], target[:, component]
            )
    return np.asarray(tables * sizes[:, None])


def _normalised(cells: Array, rule: ScoreRule) -> Array:
    """Return tables as proportions, those of the rule where a table holds no record."""
    totals = np.add.reduceat(cells, rule.workload.offsets[:-1], axis=1)
    full = np.where(totals > 0, totals, 1.0)
    return np.where(
        np.repeat(totals > 0, rule.workload.sizes, axis=1),
        cells / np.repeat(full, rule.workload.sizes, axis=1),
        rule.proportions,
    )


def _weights(rule: ScoreRule) -> Array:
    """Weight of each component in the first score; 0 for a component without tables."""
    loss, shares = rule.coefficients[0], rule.coefficients[1:]
    return np.asarray(shares @ loss / np.maximum(shares.sum(axis=1), 1.0))


def _tilted(tables: Array, information: Array, sizes: npt.NDArray[np.int64], target: Array) -> Array:
    """Multiply cells by exp(tilt * information), tables normalised, until the mean scores add up to the target.

    The sum of mean scores grows with the tilt (its derivative is the sum of variances), so Newton's steps, bounded,
    find the one tilt of each client. A target that no bounded tilt reaches is approached.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    tilt = np.zeros(len(tables))
    result = tables
    for _ in range(_STEPS):
        scored = result * information
        means = np.add.reduceat(scored, starts, axis=1)
        missing = target - means.sum(axis=1)
        slope = (np.add.reduceat(scored * information, starts, axis=1) - means**2).sum(axis=1)
        step = np.clip(missing / np.maximum(slope, 1e-12), -0.5, 0.5)
        moved = np.clip(tilt + step, -LARGEST_TILT, LARGEST_TILT)
        if np.all((np.abs(missing) < _CLOSE) | (moved == tilt)):
            break
        tilt = moved
        grown = tables * np.exp(tilt[:, None] * information)
        result = grown / np.repeat(np.add.reduceat(grown, starts, axis=1), sizes, axis=1)
    return result
