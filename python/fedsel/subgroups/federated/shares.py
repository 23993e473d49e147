"""The shares of the records of one outcome that fall into each cell, pooled over clients by what each can tell."""

from __future__ import annotations

import numpy as np

from fedsel.subgroups.federated.evidence import FloatArray

_LEAST_SHARE = 1e-3  # of a cell, in the variance of a share: a cell that looks empty may not be

# Notation, for one outcome and one table: client i has m_i records of the outcome, of which c_i fall into a cell; it
# released o_i = c_i + noise of variance v_i. Clients differ: the share c_i / m_i has mean pi over clients and variance
# pi (1 - pi) (phi + (1 - phi) / m_i), that of a Dirichlet-multinomial with overdispersion phi. So c_i has variance
#
#     V_i = m_i pi (1 - pi) (1 + phi (m_i - 1)),
#
# and the best linear unbiased estimate of pi weighs o_i by w_i = m_i / (V_i + v_i); the best linear prediction of c_i
# is m_i pi + B_i (o_i - m_i pi) with B_i = V_i / (V_i + v_i) (Robinson 1991). What is wanted is the sum over clients of
# c_i, the count of the whole population, not a mixture that favours those with little noise: where clients are alike
# (phi near 0) it is close to sum_i m_i times pi, whose noise is that of the few large clients; where they differ, B_i
# goes to 1 and the sum of what was released remains.


def overdispersion(counts: FloatArray, variance: FloatArray, sizes: FloatArray, size_variance: FloatArray) -> float:
    """Estimate phi of one table and outcome by moments.

    Parameters
    ----------
    counts : ndarray of float64, shape (clients, cells)
        o_i.
    variance : ndarray of float64, shape (clients,)
        v_i.
    sizes, size_variance : ndarray of float64, shape (clients,)
        m_i and the variance of its estimate.

    Returns
    -------
    float
        Between 0 and 1.

    Notes
    -----
    With pi = sum_i m_i o_i / D, D = sum_i m_i^2, and h_i = m_i^2 / D, the residual r_i = o_i - m_i pi of a cell has
    expected square

        v_i (1 - 2 h_i) + m_i^2 sum_j m_j^2 v_j / D^2                           noise
        + V_i (1 - 2 h_i) + m_i^2 sum_j m_j^2 V_j / D^2                         clients
        + u_i pi^2                                                              m_i is off by variance u_i,

    linear in phi. Summed over cells it is regressed on phi by least squares.
    """
    square = float((sizes**2).sum())
    if square == 0:
        return 0.0
    pooled = sizes @ counts / square
    spread = _spread(pooled).sum()
    leverage = sizes**2 / square
    cells = counts.shape[1]

    def of_residuals(each: FloatArray) -> FloatArray:
        result: FloatArray = each * (1 - 2 * leverage) + leverage * (leverage * each).sum()
        return result

    observed = ((counts - np.outer(sizes, pooled)) ** 2).sum(axis=1)
    fixed = cells * of_residuals(variance) + of_residuals(sizes * spread) + size_variance * (pooled**2).sum()
    slope = of_residuals(spread * sizes * np.maximum(sizes - 1, 0.0))
    norm = float((slope**2).sum())
    return float(np.clip((slope * (observed - fixed)).sum() / norm, 0.0, 1.0)) if norm > 0 else 0.0


def pooled_shares(
    counts: FloatArray, variance: FloatArray, sizes: FloatArray, guess: FloatArray, phi: float
) -> tuple[FloatArray, FloatArray]:
    """Estimate what share of the population's records of one outcome falls into each cell.

    Parameters
    ----------
    counts : ndarray of float64, shape (clients, cells)
        Released counts.
    variance : ndarray of float64, shape (clients,)
        Variance of their noise; infinite for a client that released nothing, which is then taken to be like the others.
    sizes : ndarray of float64, shape (clients,)
        Records of the outcome, not negative.
    guess : ndarray of float64, shape (cells,)
        Rough shares, for the variances only.
    phi : float
        Overdispersion between clients.

    Returns
    -------
    shares : ndarray of float64, shape (cells,)
        Unprojected: perhaps negative, perhaps not of sum 1.
    variance : ndarray of float64, shape (cells,)
        Of the released noise in them.
    """
    total = sizes.sum()
    if total <= 0:
        return np.full(len(guess), 1 / len(guess)), np.full(len(guess), 0.25)
    column = sizes[:, None]
    clients = column * _spread(guess) * (1 + phi * np.maximum(column - 1, 0.0))
    present = np.isfinite(variance)
    noise = np.broadcast_to(np.where(present, variance, 0.0)[:, None], clients.shape)
    both = clients + noise
    known = (both > 0) & present[:, None]  # an empty client without noise tells nothing
    weight = np.where(known, column / np.where(known, both, 1.0), 0.0)
    denominator = (weight * column).sum(axis=0)
    if not np.all(denominator > 0):  # all that have records are absent
        return np.full(len(guess), 1 / len(guess)), np.full(len(guess), 0.25)
    mean = (weight * counts).sum(axis=0) / denominator
    trust = np.where(noise > 0, clients / np.where(known, both, 1.0), present[:, None])
    found = (column * mean + trust * (counts - column * mean)).sum(axis=0)
    # what a released count is multiplied by in the sum: through the mean, and by itself
    factor = (column * (1 - trust)).sum(axis=0) * weight / denominator + trust
    return found / total, (factor**2 * noise).sum(axis=0) / total**2


def onto_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest shares: not negative and of sum 1 (Euclidean projection, Held, Wolfe and Crowder 1974).

    The same amount comes off every cell and what goes below 0 is cut, so that cells of nothing but noise go first.
    """
    values = values - values.max()  # adds the same to all, which changes nothing, and keeps huge ones from drowning 1
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    result: FloatArray = np.maximum(values - excess[last], 0.0)
    return result


def _spread(shares: FloatArray) -> FloatArray:
    """Pi (1 - pi), never quite 0."""
    inside = np.clip(shares, _LEAST_SHARE, 1 - _LEAST_SHARE)
    result: FloatArray = inside * (1 - inside)
    return result
