"""The noise of a protocol of several rounds, whose queries are tables and scores, under one joint guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fedsel.errors import PrivacyError
from fedsel.privacy.adjacency import changed_cells
from fedsel.privacy.calibration import AccountingChoice, calibrate, check_weights
from fedsel.privacy.plan import Adjacency, Mechanism, NoisePlan

LARGEST_MULTIPLE = 1 << 20
"""Largest least common multiple of the shifts of all scores: beyond, no lattice is coarse enough to be examined."""

_SHARE_TOLERANCE = 0.009  # of each score's cost relative to the tables'; shares of the whole are off by less
_MULTIPLIERS = 4096  # tried, smallest first, before one that is large enough by itself


def plan_rounds(
    weights: Sequence[int],
    *,
    scores: Sequence[tuple[int, float]],
    tables_share: float | None = None,
    rounds: Sequence[int] = (),
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    accounting: AccountingChoice = "auto",
) -> NoisePlan:
    """Least noise that keeps all queries of all rounds jointly within (epsilon, delta).

    What a later round asks may depend on earlier releases; only the scales are fixed now.

    Parameters
    ----------
    weights : sequence of int
        Relative precision of each table, a positive integer; may be empty.
    scores : sequence of (int, float)
        D and share of each score: an integer sum to which one row adds between -D and D. The shares relate the scores
        to one another.
    tables_share : float, optional
        Share of the tables in the joint cost, between 0 and 1 (exclusive); the scores have the rest. The cost is mu^2,
        the squared distance between neighbours in units of the noise, for the discrete Gaussian, and epsilon for the
        discrete Laplace. Shares are kept to within one per cent. Required if there are both tables and scores.
    rounds : sequence of int, optional
        How many of the queries, tables first, each round releases; all in one round if not given.
    epsilon, delta, adjacency, mechanism, accounting
        As for `plan_noise`, of the whole protocol.

    Returns
    -------
    NoisePlan

    Raises
    ------
    PrivacyError
        As for `plan_noise`; also if there is no query, a share is not positive, or the least common multiple of all
        shifts (D, or 2 D under replace-one) is above 2^20.
    """
    cells = changed_cells(adjacency)
    sensitivities = tuple(_check_score(index, d, share) for index, (d, share) in enumerate(scores))
    if not weights and not scores:
        raise PrivacyError("a plan needs at least one table or score, got none")
    shape = check_weights(len(weights), weights) if weights else ()
    if scores:
        # Cost of a query per unit of its weight, up to what all have in common.
        power = 1 if mechanism == "discrete-laplace" else 2
        if shape:
            ratio = _scores_to_tables(tables_share)
            total = sum(share for _, share in scores)
            wanted = [ratio * share / total * sum(shape) * cells / (cells * d) ** power for d, share in scores]
        else:
            wanted = [share / d**power for d, share in scores]
        shape = _in_proportion(shape, [cells * d for d in sensitivities], wanted)
    return calibrate(
        shape,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        mechanism=mechanism,
        accounting=accounting,
        scores=sensitivities,
        rounds=tuple(int(n) for n in rounds),
    )


def _in_proportion(tables: tuple[int, ...], shifts: list[int], wanted: list[float]) -> tuple[int, ...]:
    """Return integer weights of all queries, in proportion to `tables` and, nearly, `wanted` for the scores.

    The lattice of exact accounting has the greatest common divisor of weight times shift as its step. With M the least
    common multiple of the scores' shifts d, weights M k v for tables and M s / d for scores have at least M in common:
    k and the s are kept small.
    """
    multiple = math.lcm(*shifts)
    if multiple > LARGEST_MULTIPLE:
        raise PrivacyError(
            f"the least common multiple of the shifts of all scores must be at most {LARGEST_MULTIPLE}, "
            f"got {multiple}: use scores of equal D"
        )
    # s of a score is a multiplier k times this
    per_step = [w * d for w, d in zip(wanted, shifts, strict=True)]
    if not tables:
        per_step = [x / min(per_step) for x in per_step]
    enough = math.ceil(1 / (2 * _SHARE_TOLERANCE * min(per_step)))
    steps = [0] * len(shifts)
    for k in (*range(1, min(enough, _MULTIPLIERS) + 1), enough):
        steps = [max(1, round(k * x)) for x in per_step]
        if all(abs(s - k * x) <= _SHARE_TOLERANCE * k * x for s, x in zip(steps, per_step, strict=True)):
            break
    common = math.gcd(*(k * v for v in tables), *steps)
    weights = [multiple * k * v // common for v in tables]
    weights += [multiple // d * (s // common) for d, s in zip(shifts, steps, strict=True)]
    divisor = math.gcd(*weights)
    return tuple(w // divisor for w in weights)


def _check_score(index: int, sensitivity: int, share: float) -> int:
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, (int, np.integer)) or sensitivity < 1:
        raise PrivacyError(f"the D of a score must be a positive integer, got {sensitivity} for score {index}")
    if not (share > 0 and math.isfinite(share)):
        raise PrivacyError(f"the share of a score must be a positive number, got {share} for score {index}")
    return int(sensitivity)


def _scores_to_tables(tables_share: float | None) -> float:
    if tables_share is None or not 0 < tables_share < 1:
        raise PrivacyError(f"tables_share must be between 0 and 1 (exclusive), got {tables_share}")
    exact = Fraction(tables_share)
    return float((1 - exact) / exact)
