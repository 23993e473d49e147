r"""Exact delta of the joint discrete-Gaussian release of many integer queries.

Between neighbouring data sets, coordinate j of the release moves by an integer :math:`d_j`: one for a changed cell of a
table, up to D for a score. Its noise :math:`Y_j` is discrete Gaussian with :math:`\sigma_j^2 = P / w_j`, all
:math:`w_j` positive integers, so it contributes :math:`w_j (d_j^2 - 2 d_j Y_j) / (2 P)` to the privacy loss. By
symmetry of the noise the joint loss is a function of one integer, :math:`S = \sum_j a_j Y_j`, where
:math:`a_j = w_j d_j / g` and g is the greatest common divisor of the :math:`w_j d_j`:

.. math:: L = \kappa (U + 2 S) / 2, \qquad \kappa = g / P, \qquad U = \sum_j a_j d_j

Three facts make
:math:`\delta(\epsilon) = E[(1 - e^{\epsilon - L})_+]` cheap and accurate for any number of tables:

* The noise is symmetric, so the reflection y -> d_j - y of every coordinate swaps the two neighbouring output
  distributions: both directions have the same delta and one is enough.
* Shifting every :math:`Y_j` by :math:`m d_j`, m an integer, is an exponential tilt: it multiplies the probability of y
  by :math:`\exp(-\sum_j w_j (m d_j y_j + m^2 d_j^2 / 2) / P)`, which depends on y through S alone, and moves S by m U.
  So :math:`P(S = s + m U) = P(S = s) \exp(-\kappa (m s + m^2 U / 2))` holds exactly. The far tail that decides a small
  delta is therefore a reweighted centre, and relative precision does not depend on how small delta is.
* The characteristic function of S is a product of theta functions in closed form, and the reweighting is a difference
  of two geometric sequences. By Parseval on the integers modulo N, delta is a short sum over the few frequencies
  where the characteristic function is not negligible; no convolution has to be formed.

Everything neglected (the tail beyond the window, skipped frequencies, floating-point rounding) is bounded and added,
and mass that wraps around modulo N is counted as if it lay inside the window, so the result is an upper bound.

Why the largest shift of every coordinate is the worst case. The discrete Gaussian is log-concave, so the likelihood
ratio of two of its translates is monotone and the best test between them is a half-line: with F(t) = P(Y >= t), the
hockey-stick divergence at distance d is the largest over t of :math:`F(t) - e^\epsilon F(t + d)`, which grows with d
since F falls. At every epsilon the pair at the largest shift therefore dominates all pairs at smaller ones, whatever
their sign. Dominating pairs compose to a dominating pair, also where a query is chosen in view of earlier releases, as
long as the scales and largest shifts were fixed in advance.

References
----------
C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020: the mechanism,
and that it is sub-Gaussian with parameter sigma.
B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018: delta as an expectation
over the privacy loss.
Y. Zhu, J. Dong and Y.-X. Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS 2022:
dominating pairs and their adaptive composition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

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


class Group(NamedTuple):
    """Coordinates alike: S holds `size` of them, each times `step` (a in the text above), all of one variance."""

    step: int
    variance: float
    size: int


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def discrete_gaussian_delta(
    epsilon: float, *, numerator: int, weights: Sequence[int], shifts: Sequence[int] | None = None
) -> float:
    """Upper bound on delta at a given epsilon, exact up to rounding.

    Parameters
    ----------
    epsilon : float
        At least 0, at most 1e6 or infinite.
    numerator : int
        P; coordinate j has sigma_j^2 = P / w_j.
    weights : sequence of int
        w_j, one positive integer per coordinate of the release that moves between neighbours.
    shifts : sequence of int, optional
        d_j, the largest change of each coordinate, a positive integer; all 1 if not given. `fedsel.privacy.adjacency.
        moved` lists both for a plan.

    Returns
    -------
    float
        delta, never below the true value. The excess is a fraction of about 10^-11 for up to a thousand coordinates
        while the L2 distance between neighbours in units of the noise (the root of the sum of d_j^2 / sigma_j^2) stays
        below 8, which covers every epsilon up to 30 or so; beyond, the bound stays valid and loosens.

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
    counted = Counter(zip(weights, [1] * len(weights) if shifts is None else shifts, strict=True))
    divisor = math.gcd(*(w * d for w, d in counted))
    if divisor > numerator << 40:
        return 1.0  # no noise to speak of
    if max(max(w * d // divisor, d) for w, d in counted) > MAX_PERIOD or numerator > divisor << 64:
        raise PrivacyError(_too_long())
    groups = sorted(Group(w * d // divisor, numerator / w, n) for (w, d), n in counted.items())
    kappa = divisor / numerator
    total = sum(w * d // divisor * d * n for (w, d), n in counted.items())
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

    frequencies, log_phi = _characteristic_function(groups, period)
    angle = (2 * math.pi / period) * frequencies.astype(np.float64)
    phi = np.exp(log_phi)
    sum_slow = _geometric_sum(slow, angle, length)
    sum_fast = _geometric_sum(fast, angle, length)
    turn = np.exp(1j * (2 * math.pi / period) * ((first * frequencies) & (period - 1)))
    multiplicity = np.where((frequencies == 0) | (2 * frequencies == period), 1.0, 2.0)
    value = float(np.sum(multiplicity * phi * (turn * (sum_slow - ratio * sum_fast)).real)) / period

    # Rounding: every factor is good to a few units in the last place for each of the coordinates multiplied.
    unit = float(np.finfo(np.float64).eps)
    size = float(np.sum(multiplicity * phi * (np.abs(sum_slow) + ratio * np.abs(sum_fast)))) / period
    rounding = unit * (64 + 16 * len(weights) + 8 * NEGLIGIBLE + 8 * epsilon) * size
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


def _characteristic_function(groups: Sequence[Group], period: int) -> tuple[IntArray, FloatArray]:
    """Frequencies 0 .. period / 2 at which S has a characteristic function worth counting, and its logarithm there.

    S is the sum of a Y over all coordinates, so its characteristic function at an angle is the product of those of Y at
    a times the angle. With x_n = exp(-(2 n - 1) / (2 sigma^2)), Jacobi's triple product gives for one Y and |v| <= pi,
    log phi(v) = sum_n log(1 - 4 x_n sin(v/2)^2 / (1 + x_n)^2) <= -b v^2 with pi^2 b = sum_n 4 x_n / (1 + x_n)^2, which
    is at least 1.99 sigma^2 for sigma >= 0.8 (Poisson summation of sech^2); for smaller sigma the first term is used.
    """
    decay = []
    for _, variance, n in groups:
        x = math.exp(-0.5 / variance)
        b = 0.2 * variance if variance >= _SWITCH**2 else 4 * x / ((1 + x) ** 2 * math.pi**2)
        decay.append(n * b * (2 * math.pi / period) ** 2)

    # The group that leaves the fewest frequencies names them; the others only strike some out.
    order = sorted(range(len(groups)), key=lambda index: -decay[index])
    steepest = max(decay[order[0]], NEGLIGIBLE / period**2)
    reach = min(period // 2, math.floor(math.sqrt(NEGLIGIBLE / steepest)) + 1)
    frequencies = _near_multiples(groups[order[0]].step, reach, period)
    exponent = np.zeros(frequencies.size)
    work = 0
    for index in order:
        work += frequencies.size
        if work > MAX_WORK:
            raise PrivacyError(_too_long())
        folded = _fold(frequencies * groups[index].step, period)
        exponent += decay[index] * folded.astype(np.float64) ** 2
        keep = exponent <= NEGLIGIBLE
        frequencies, exponent = frequencies[keep], exponent[keep]

    if frequencies.size * len(groups) > MAX_WORK:
        raise PrivacyError(_too_long())
    log_phi = np.zeros(frequencies.size)
    for step, variance, n in groups:
        angle = (2 * math.pi / period) * _fold(frequencies * step, period).astype(np.float64)
        log_phi += n * _log_theta(angle, variance)
    return frequencies, log_phi


def _near_multiples(step: int, reach: int, period: int) -> IntArray:
    """All j in 0 .. period / 2 for which step j lies within `reach` of a multiple of the period."""
    if 2 * reach + 1 >= period:
        starts, stops = [0], [period // 2 + 1]
    else:
        multiples = range(0, step * (period // 2) + reach + 1, period)
        if len(multiples) > MAX_FREQUENCIES:
            raise PrivacyError(_too_long())
        starts = [max(0, -((reach - k) // step)) for k in multiples]
        stops = [min(period // 2, (k + reach) // step) + 1 for k in multiples]
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
