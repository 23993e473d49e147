"""How far the noise of a plan can take a sum of cells: variance, and a tail bound that holds, not an approximation."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fedsel.privacy.plan import Mechanism, NoisePlan


def cell_variance(plan: NoisePlan) -> npt.NDArray[np.float64]:
    """Noise variance of one cell of each table, in records squared, (tables,).

    For the discrete Gaussian this is sigma^2, an upper bound that is tight to 1e-6 from sigma = 1 on (Canonne, Kamath
    and Steinke 2020, section 3); for the discrete Laplace, 1 / (cosh(1/b) - 1) exactly; 0 without noise.
    """
    scale = plan.scale
    if plan.mechanism == "discrete-laplace":
        # 2 sinh^2(x/2) = cosh(x) - 1 without cancellation; beyond 700 the variance is 0 to every digit.
        return np.asarray(1.0 / (2.0 * np.sinh(0.5 * np.minimum(1.0 / scale, 700.0)) ** 2))
    return np.asarray(scale**2)


LEAST_VARIANCE = 1e-9
"""Smallest variance that noise is taken to have where it is divided by, in counts squared."""


def usable_variance(plan: NoisePlan) -> npt.NDArray[np.float64]:
    """Return `cell_variance`, but nothing below `LEAST_VARIANCE` unless there is no noise at all, (queries,)."""
    if plan.mechanism == "none":
        return cell_variance(plan)
    return np.maximum(cell_variance(plan), LEAST_VARIANCE)


def deviation_bound(mechanism: Mechanism, energy: float, largest: float, log_inverse: float) -> float:
    """Bound |sum of independent noises| except with probability 2 exp(-`log_inverse`).

    Parameters
    ----------
    mechanism : {"discrete-gaussian", "discrete-laplace", "none"}
        Kind of the noises.
    energy : float
        Sum of scale^2 over the noises, in records squared.
    largest : float
        Largest scale among them, in records.
    log_inverse : float
        -log of the one-sided failure probability.

    Returns
    -------
    float
        In records; 0 without noise.

    Notes
    -----
    Chernoff's bound on the moment generating function. The discrete Gaussian is sigma-subgaussian (Canonne, Kamath and
    Steinke 2020), so log E exp(s Z) <= s^2 sigma^2 / 2. The discrete Laplace has E exp(s Z) = 1 / (1 - (cosh s - 1) /
    (cosh(1/b) - 1)) <= 1 / (1 - s^2 b^2), since (cosh x - 1) / x^2 increases; for s b <= 1/sqrt 2 that is at most
    exp(2 ln 2 s^2 b^2).
    """
    if mechanism == "none" or energy == 0:
        return 0.0
    if mechanism == "discrete-gaussian":
        return math.sqrt(2.0 * energy * log_inverse)
    factor = 2.0 * math.log(2.0) * energy
    s = min(math.sqrt(log_inverse / factor), math.sqrt(0.5) / largest)
    return (log_inverse + factor * s * s) / s
