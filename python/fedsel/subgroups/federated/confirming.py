"""What a round of its own says of subgroups that earlier rounds chose: intervals and tests that need no correction."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from fedsel.subgroups.federated.belief import Belief
from fedsel.subgroups.federated.evidence import Evidence
from fedsel.subgroups.federated.ranking import Scored
from fedsel.subgroups.federated.result import Confirmation


def confirm(
    belief: Belief, tables: dict[tuple[int, ...], Evidence], found: Sequence[Scored], base: float | None, level: float
) -> list[Confirmation | None]:
    """Confirm subgroups from the tables of the last round; None for those whose table was not in it.

    Parameters
    ----------
    belief : Belief
        Sizes and p0, of all rounds.
    tables : dict
        Evidence of the last round alone, by attributes.
    found : sequence of Scored
        What was chosen.
    base : float or None
        Public p0, if there is one.
    level : float
        Of the intervals.
    """
    fresh = [tables.get(scored.attributes) for scored in found]
    p_values = {
        place: no_association(belief, table, scored.codes)
        for place, (table, scored) in enumerate(zip(fresh, found, strict=True))
        if table is not None
    }
    if not p_values:
        return [None] * len(found)
    from scipy.stats import false_discovery_control  # slow to load, and without a last round not needed

    # Benjamini and Yekutieli 2001: subgroups overlap, and this holds whatever the dependence
    adjusted = dict(zip(p_values, false_discovery_control(list(p_values.values()), method="by").tolist(), strict=True))
    return [
        None
        if table is None
        else Confirmation(*_interval(belief, table, scored, base, level), level, p_values[place], adjusted[place])
        for place, (table, scored) in enumerate(zip(fresh, found, strict=True))
    ]


def _interval(
    belief: Belief, table: Evidence, scored: Scored, base: float | None, level: float
) -> tuple[float, float, float]:
    """Estimate the quality, and its interval.

    The population is the clients' records as they are, so noise is the only error. The sum over clients is unbiased,
    and independent of the choice; N and p0 are those of all rounds, whose error enters by the delta method.
    """
    total, variance = table.total
    negative, positive = total[scored.codes]
    records, p0 = belief.records, belief.base if base is None else base
    quality = ((1 - p0) * positive - p0 * negative) / records
    error = (1 - p0) ** 2 * variance[1] + p0**2 * variance[0]
    if base is None:
        error += ((positive + negative) * belief.base_error) ** 2
    error += quality**2 * belief.sizes.records_variance
    half = NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(error)) / records
    return float(quality), float(quality - half), float(quality + half)


def no_association(belief: Belief, table: Evidence, codes: tuple[int, ...]) -> float:
    """Test that, within every client, the outcome has nothing to do with the description.

    Parameters
    ----------
    belief : Belief
        Sizes of the clients by outcome.
    table : Evidence
        Fresh counts.
    codes : tuple of int
        The description's cell.

    Returns
    -------
    float
        Two-sided p-value.

    Notes
    -----
    The statistic is sum_i (u_i - p_i n_i), with p_i the client's own share of positives: clients that differ in it,
    and in how many records the description covers, do not make an association. If each client's outcomes are shuffled
    among its records, u_i is hypergeometric with mean p_i n_i and variance n_i (N_i - n_i) p_i (1 - p_i) / (N_i - 1);
    the noise of the counts adds to it, and that of p_i, which earlier rounds give. Normal approximation.
    """
    negative, positive = table.cell(codes).T
    sizes = np.maximum(belief.sizes.estimate, 0.0)
    records = sizes.sum(axis=1)
    there = records > 1
    rate = np.where(there, sizes[:, 1] / np.where(there, records, 1.0), 0.0)
    covered = np.clip(negative + positive, 0.0, records)
    statistic = ((1 - rate) * positive - rate * negative)[there].sum()
    sampled = covered * (records - covered) * rate * (1 - rate) / np.where(there, records - 1, 1.0)
    noise = (1 - rate) ** 2 * table.variance[:, 1] + rate**2 * table.variance[:, 0]
    # that of p_i, by the delta method
    of_rate = belief.sizes.of_difference(rate) * (covered / np.where(there, records, 1.0)) ** 2
    deviation = float(np.sqrt((sampled + noise + of_rate)[there].sum()))
    if deviation == 0:
        return 1.0 if statistic == 0 else 0.0
    return 2 * NormalDist().cdf(-abs(float(statistic)) / deviation)
