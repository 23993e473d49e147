r"""Exact delta of the joint discrete-Gaussian release of many tables.

Table t carries discrete Gaussian noise with :math:`\sigma_t^2 = P / w_t`, all :math:`w_t` positive integers. A changed
cell with noise :math:`Y` contributes :math:`w_t (1 - 2 Y) / (2 P)` to the privacy loss, so the joint loss is a function
of one integer, :math:`S = \sum_t u_t Y_t`, where :math:`u_t = w_t / g` and g is the greatest common divisor:

.. math:: L = \kappa (U + 2 S) / 2, \qquad \kappa = g / P, \qquad U = \sum_t u_t

(each table counted once for every cell that changes in it). Three facts make
:math:`\delta(\epsilon) = E[(1 - e^{\epsilon - L})_+]` cheap and accurate for any number of tables:

* The noise is symmetric, so the reflection y -> 1 - y of every changed cell swaps the two neighbouring output
  distributions: both directions have the same delta and one is enough.
* Shifting every :math:`Y_t` by the same integer m is an exponential tilt:
  :math:`P(S = s + m U) = P(S = s) \exp(-\kappa (m s + m^2 U / 2))` holds exactly. The far tail that decides a small
  delta is therefore a reweighted centre, and relative precision does not depend on how small delta is.
* The characteristic function of S is a product of theta functions in closed form, and the reweighting is a difference
  of two geometric sequences. By Parseval on the integers modulo N, delta is a short sum over the few frequencies
  where the characteristic function is not negligible; no convolution has to be formed.

Everything neglected (the tail beyond the window, skipped frequencies, floating-point rounding) is bounded and added,
and mass that wraps around modulo N is counted as if it lay inside the window, so the result is an upper bound.

References
----------
C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020: the mechanism,
and that it is sub-Gaussian with parameter sigma.
B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018: delta as an expectation
over the privacy loss.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError
from fedsel.privacy.limits import LARGEST_EPSILON

WINDOW = 9.0
"""Half width of the window on S, in its standard deviations."""

NEGLIGIBLE = 100.0
"""A frequency is skipped once the characteristic function is below exp(-NEGLIGIBLE) there."""

MAX_FREQUENCIES = 1 << 21
"""Frequencies examined at once; a lattice that needs more is refused."""

MAX_PERIOD = 1 << 31
"""Longest lattice: products of two positions must fit into 64 bits."""

MAX_WORK = 1 << 26
"""Frequencies times different weights examined: a few seconds."""

_SWITCH = 0.8  # sigma above which the Fourier side of the theta function converges faster

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def discrete_gaussian_delta(epsilon: float, *, numerator: int, weights: Sequence[int], changed_cells: int = 1) -> float:
    """Upper bound on delta at a given epsilon, exact up to rounding.

    Parameters
    ----------
    epsilon : float
        At least 0, at most 1e6 or infinite.
    numerator : int
        P; table t has sigma_t^2 = P / w_t.
    weights : sequence of int
        w_t, one positive integer per table.
    changed_cells : int
        Cells of every table that differ by one between neighbours: 1 (add-remove) or 2 (replace-one).

    Returns
    -------
    float
        delta, never below the true value. The excess is a fraction of about 10^-11 for up to a thousand tables while
        the L2 distance between neighbours in units of the noise (the root of the sum of 1 / sigma_t^2 over changed
        cells) stays below 8, which covers every epsilon up to 30 or so; beyond, the bound stays valid and loosens.

    Raises
    ------
    PrivacyError
        If epsilon is out of range, or the lattice is too long to be examined: the noise is wider than about 10^7
        counts, or the weights have many different large values.
    """
    if not epsilon >= 0:
        raise PrivacyError(f"epsilon must not be negative, got {epsilon}")
    if math.isinf(epsilon):
        return 0.0
    if epsilon > LARGEST_EPSILON:
        raise PrivacyError(f"epsilon must be at most {LARGEST_EPSILON:g} or infinite, got {epsilon}")
    divisor = math.gcd(*weights)
    groups = sorted((w // divisor, n * changed_cells) for w, n in Counter(weights).items())
    if divisor > numerator << 40:
        return 1.0  # no noise to speak of
    if groups[-1][0] > MAX_PERIOD or numerator > divisor << 64:
        raise PrivacyError(_too_long())
    kappa = divisor / numerator
    total = sum(u * n for u, n in groups)
    spread = math.sqrt(total / kappa)  # standard deviation of S, up to discreteness; its sub-Gaussian parameter exactly

    # Losses above epsilon start at `first`; m tilts the window so that it starts near the centre of S.
    threshold = Fraction(epsilon) * numerator / divisor - Fraction(total, 2)  # may need more digits than a float has
    m = max(0, round(threshold / total))
    first = math.floor(threshold) + 1 - m * total
    last = max(math.ceil(WINDOW * spread), abs(first))
    period = 1 << max(4, (2 * last + 2).bit_length())
    if period > MAX_PERIOD:
        raise PrivacyError(_too_long())

    # reweighting of S = first + x:  exp(scale) (exp(-slow x) - ratio exp(-fast x))
    slow, fast = kappa * m, kappa * (m + 1)
    scale = -kappa * m * (m * total / 2 + first)
    ratio = math.exp(min(0.0, epsilon - kappa * (total * (m + 0.5) + first)))
    length = last - first + 1

    frequencies, log_phi = _characteristic_function(groups, kappa, period)
    angle = (2 * math.pi / period) * frequencies.astype(np.float64)
    phi = np.exp(log_phi)
    sum_slow = _geometric_sum(slow, angle, length)
    sum_fast = _geometric_sum(fast, angle, length)
    turn = np.exp(1j * (2 * math.pi / period) * ((first * frequencies) & (period - 1)))
    multiplicity = np.where((frequencies == 0) | (2 * frequencies == period), 1.0, 2.0)
    value = float(np.sum(multiplicity * phi * (turn * (sum_slow - ratio * sum_fast)).real)) / period

    # Rounding: every factor is good to a few units in the last place for each of the cells multiplied.
    cells = sum(n for _, n in groups)
    unit = float(np.finfo(np.float64).eps)
    size = float(np.sum(multiplicity * phi * (np.abs(sum_slow) + ratio * np.abs(sum_fast)))) / period
    rounding = unit * (64 + 16 * cells + 8 * NEGLIGIBLE + 8 * epsilon) * size
    skipped = math.exp(-NEGLIGIBLE) * float(_geometric_sum(slow, np.zeros(1), length)[0].real)
    tail = math.exp(-slow * (length - 1) - last * last / (2 * spread * spread))
    bound = max(value, 0.0) + rounding + skipped + tail
    log_delta = scale * (1 - 8 * unit) + math.log(bound)
    return min(1.0, max(math.exp(log_delta), math.ulp(0.0)))


def _geometric_sum(rate: float, angle: FloatArray, length: int) -> npt.NDArray[np.complex128]:
    """Sum over x = 0 .. length - 1 of exp((i angle - rate) x), for every angle."""
    step = -rate + 1j * angle
    with np.errstate(invalid="ignore", divide="ignore"):
        result: npt.NDArray[np.complex128] = np.expm1(step * length) / np.expm1(step)
    return np.where(step == 0, complex(length), result)


def _characteristic_function(
    groups: Sequence[tuple[int, int]], kappa: float, period: int
) -> tuple[IntArray, FloatArray]:
    """Frequencies 0 .. period / 2 at which S has a characteristic function worth counting, and its logarithm there.

    With x_n = exp(-(2 n - 1) / (2 sigma^2)), Jacobi's triple product gives for one cell, |a| <= pi,
    log phi(a) = sum_n log(1 - 4 x_n sin(a/2)^2 / (1 + x_n)^2) <= -b a^2 with pi^2 b = sum_n 4 x_n / (1 + x_n)^2, which
    is at least 1.99 sigma^2 for sigma >= 0.8 (Poisson summation of sech^2); for smaller sigma the first term is used.
    """
    decay = []
    for u, n in groups:
        variance = 1 / (kappa * u)
        x = math.exp(-0.5 / variance)
        b = 0.2 * variance if variance >= _SWITCH**2 else 4 * x / ((1 + x) ** 2 * math.pi**2)
        decay.append(n * b * (2 * math.pi / period) ** 2)

    # The group that leaves the fewest frequencies names them; the others only strike some out.
    order = sorted(range(len(groups)), key=lambda index: -decay[index])
    steepest = max(decay[order[0]], NEGLIGIBLE / period**2)
    reach = min(period // 2, math.floor(math.sqrt(NEGLIGIBLE / steepest)) + 1)
    frequencies = _near_multiples(groups[order[0]][0], reach, period)
    exponent = np.zeros(frequencies.size)
    work = 0
    for index in order:
        work += frequencies.size
        if work > MAX_WORK:
            raise PrivacyError(_too_long())
        folded = _fold(frequencies * groups[index][0], period)
        exponent += decay[index] * folded.astype(np.float64) ** 2
        keep = exponent <= NEGLIGIBLE
        frequencies, exponent = frequencies[keep], exponent[keep]

    if frequencies.size * len(groups) > MAX_WORK:
        raise PrivacyError(_too_long())
    log_phi = np.zeros(frequencies.size)
    for u, n in groups:
        angle = (2 * math.pi / period) * _fold(frequencies * u, period).astype(np.float64)
        log_phi += n * _log_theta(angle, 1 / (kappa * u))
    return frequencies, log_phi


def _near_multiples(u: int, reach: int, period: int) -> IntArray:
    """All j in 0 .. period / 2 for which u j lies within `reach` of a multiple of the period."""
    if 2 * reach + 1 >= period:
        starts, stops = [0], [period // 2 + 1]
    else:
        multiples = range(0, u * (period // 2) + reach + 1, period)
        if len(multiples) > MAX_FREQUENCIES:
            raise PrivacyError(_too_long())
        starts = [max(0, -((reach - k) // u)) for k in multiples]
        stops = [min(period // 2, (k + reach) // u) + 1 for k in multiples]
    if sum(max(0, b - a) for a, b in zip(starts, stops, strict=True)) > MAX_FREQUENCIES:
        raise PrivacyError(_too_long())
    return np.concatenate([np.arange(a, b, dtype=np.int64) for a, b in zip(starts, stops, strict=True)])


def _too_long() -> str:
    return (
        "exact accounting is out of reach: the noise is too wide, or the weights have too many different large values; "
        "use smaller weights or accounting='zcdp'"
    )


def _fold(product: IntArray, period: int) -> IntArray:
    """Distance of each product to the nearest multiple of the period, a power of two."""
    low: IntArray = product & (period - 1)
    return np.minimum(low, period - low)


def _log_theta(angle: FloatArray, variance: float) -> FloatArray:
    """Logarithm of the characteristic function of one discrete Gaussian at angles in 0 .. pi, to full precision."""
    if variance >= _SWITCH**2:
        # Poisson summation: Gaussian bumps around every multiple of 2 pi; the one at 0 is taken out of the logarithm.
        bumps = np.ones_like(angle)
        norm = 1.0
        for k in range(1, 4):
            shift = 2 * math.pi * k
            bumps += np.exp(-variance * shift * (shift - 2 * angle) / 2)
            bumps += np.exp(-variance * shift * (shift + 2 * angle) / 2)
            norm += 2 * math.exp(-variance * shift * shift / 2)
        return -variance * angle * angle / 2 + np.log(bumps) - math.log(norm)
    waves = np.ones_like(angle)
    norm = 1.0
    for y in range(1, 9):
        mass = 2 * math.exp(-y * y / (2 * variance))
        waves += mass * np.cos(y * angle)
        norm += mass
    return np.log(waves) - math.log(norm)
