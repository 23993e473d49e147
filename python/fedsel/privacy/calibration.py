"""From a guarantee (epsilon, delta) to noise scales, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from fedsel.errors import PrivacyError
from fedsel.privacy import rdp
from fedsel.privacy.adjacency import moved
from fedsel.privacy.lattice import discrete_gaussian_delta
from fedsel.privacy.limits import check_epsilon, check_noise
from fedsel.privacy.plan import Accounting, Adjacency, Mechanism, NoisePlan

DEFAULT_DELTA = 1e-5
"""Delta of a discrete-Gaussian plan when none is given."""

AccountingChoice = Literal["auto", "exact", "zcdp", "rdp"]

EXACT_TABLES = 2_000
"""Largest number of queries that ``accounting="auto"`` accounts for exactly."""

_RESOLUTION = 1 << 20  # about the smallest P: sigma^2 is resolved to one part in a million


def plan_noise(
    tables: int,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = "add-remove",
    mechanism: Mechanism = "discrete-gaussian",
    weights: Sequence[int] | None = None,
    accounting: AccountingChoice = "auto",
) -> NoisePlan:
    """Least noise that keeps the joint release of all tables within (epsilon, delta).

    Parameters
    ----------
    tables : int
        Number of tables released together.
    epsilon : float
        Between 1e-9 and 1e6; infinity asks for a plan without noise.
    delta : float, optional
        Between 0 and 1, exclusive; 1e-5 if not given. The discrete Laplace mechanism needs none: 0 there.
    adjacency : {"add-remove", "replace-one"}
        Which neighbouring data sets the guarantee speaks of.
    mechanism : {"discrete-gaussian", "discrete-laplace", "none"}
        ``"none"`` is accepted only with an infinite epsilon.
    weights : sequence of int, optional
        Relative precisions, one positive integer per table: sigma_t^2 (discrete Gaussian) or b_t (discrete Laplace) is
        inversely proportional to them. Equal if not given. The plan's weights are these times a common factor, chosen
        so that rounding P to an integer costs nothing noticeable.
    accounting : {"auto", "exact", "zcdp", "rdp"}
        ``"exact"``: the smallest P whose exact delta, for the discrete mechanism, is at most the one asked for.
        ``"zcdp"``: a bound (Canonne, Kamath & Steinke 2020), valid for any number of tables, about 8 % more noise.
        ``"rdp"``: the closed form of proactive client selection (arXiv 2605.20975), about 30 % more noise.
        ``"auto"``: exact up to 2,000 tables, the zCDP bound beyond or where the weights forbid the exact one; the
        plan's ``accounting`` says which it was.

    Returns
    -------
    NoisePlan

    Raises
    ------
    PrivacyError
        If a parameter is out of range, the exact accounting was asked for and is out of reach, or the noise would be
        so wide that a noisy count might not fit a release.
    """
    return calibrate(
        check_weights(tables, weights),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        mechanism=mechanism,
        accounting=accounting,
    )


def calibrate(
    shape: tuple[int, ...],
    *,
    epsilon: float,
    delta: float | None,
    adjacency: Adjacency,
    mechanism: Mechanism,
    accounting: AccountingChoice,
    scores: tuple[int, ...] = (),
    rounds: tuple[int, ...] = (),
) -> NoisePlan:
    """Least noise for queries whose precisions relate as the integers `shape`; the other parameters are a plan's.

    Raises
    ------
    PrivacyError
        As for `plan_noise`.
    """
    weights, shifts = moved(shape, scores, adjacency)
    _check_choice("mechanism", mechanism, get_args(Mechanism))
    _check_choice("accounting", accounting, get_args(AccountingChoice))
    check_epsilon(epsilon)
    if delta is not None and not (0 < delta < 1 or (delta == 0 and (mechanism != "discrete-gaussian"))):
        raise PrivacyError(f"delta must be between 0 and 1 (exclusive), got {delta}")
    factor: int
    used: Accounting
    if math.isinf(epsilon):
        mechanism, delta, factor, numerator, used = "none", 0.0, 1, 0, "none"
    elif mechanism == "none":
        raise PrivacyError(f"mechanism 'none' needs epsilon = inf, got {epsilon}")
    elif mechanism == "discrete-laplace":
        if delta:
            raise PrivacyError(f"delta must be 0 with the discrete Laplace mechanism, got {delta}")
        least = Fraction(sum(w * d for w, d in zip(weights, shifts, strict=True))) / Fraction(epsilon)
        factor = _common_factor(float(least))
        delta, numerator, used = 0.0, math.ceil(least * factor), "pure"
    else:
        delta = DEFAULT_DELTA if delta is None else float(delta)
        if accounting == "auto" and len(shape) > EXACT_TABLES:
            accounting = "zcdp"
        factor, numerator, used = _gaussian_numerator(weights, shifts, epsilon, delta, accounting)
    plan = NoisePlan(
        mechanism, adjacency, epsilon, delta, numerator, tuple(w * factor for w in shape), used, scores, rounds
    )
    check_noise(plan)
    return plan


def certify(plan: NoisePlan) -> float:
    """Exact delta of a plan at its own epsilon, whatever accounting chose its noise.

    Parameters
    ----------
    plan : NoisePlan

    Returns
    -------
    float
        At most ``plan.delta`` for a plan made by `plan_noise`. Never below the true delta. For the discrete Laplace
        mechanism, 0 where the joint release is purely epsilon-private, else an upper bound.

    Raises
    ------
    PrivacyError
        If epsilon is negative, or finite and above 1e6, or the noise is too wide or the weights too different to be
        examined.
    """
    if not plan.epsilon >= 0:
        raise PrivacyError(f"epsilon must not be negative, got {plan.epsilon}")
    if math.isinf(plan.epsilon):
        return 0.0
    weights, shifts = moved(plan.weights, plan.scores, plan.adjacency)
    if plan.mechanism == "discrete-laplace":
        joint = Fraction(sum(w * d for w, d in zip(weights, shifts, strict=True)), plan.numerator)
        excess = joint - Fraction(plan.epsilon)
        # (e, 0) implies (epsilon, 1 - exp(epsilon - e)) for every epsilon < e
        if excess <= 0:
            return 0.0
        return 1.0 if excess > 40 else math.nextafter(-math.expm1(-float(excess)), 1.0)
    return discrete_gaussian_delta(plan.epsilon, numerator=plan.numerator, weights=weights, shifts=shifts)


def concentrated_delta(plan: NoisePlan) -> float:
    """Bound on the delta of a plan at its own epsilon by zero-concentrated differential privacy.

    Parameters
    ----------
    plan : NoisePlan
        Of finite epsilon.

    Returns
    -------
    float
        At least the true delta, for any number of queries and any weights; for the discrete Laplace mechanism the
        bound of `certify`.
    """
    if plan.mechanism != "discrete-gaussian":
        return certify(plan)
    weights, shifts = moved(plan.weights, plan.scores, plan.adjacency)
    return rdp.zcdp_delta(plan.epsilon, _squared_distance(weights, shifts) / plan.numerator / 2)


def _gaussian_numerator(
    weights: list[int], shifts: list[int], epsilon: float, delta: float, accounting: AccountingChoice
) -> tuple[int, int, Literal["exact", "zcdp", "rdp"]]:
    """Return the common factor of the weights, P, and the accounting that P comes from."""
    if accounting in ("auto", "exact"):
        try:
            return *_exact_numerator(weights, shifts, epsilon, delta), "exact"
        except PrivacyError:
            if accounting == "exact":
                raise
    distance = (rdp.classic_distance if accounting == "rdp" else rdp.zcdp_distance)(epsilon, delta)
    least = _squared_distance(weights, shifts) / distance**2
    factor = _common_factor(least)
    # upwards by more than a float's rounding
    numerator = math.ceil(Fraction(least) * factor * (1 + Fraction(1, 10**12)))
    return factor, numerator, "rdp" if accounting == "rdp" else "zcdp"


def _exact_numerator(weights: list[int], shifts: list[int], epsilon: float, delta: float) -> tuple[int, int]:
    """Return the common factor of the weights, and the smallest P whose exact delta is at most `delta`."""
    bound = _squared_distance(weights, shifts) / rdp.zcdp_distance(epsilon, delta) ** 2
    factor = _common_factor(bound)
    scaled = [w * factor for w in weights]

    def excess(numerator: int) -> float:
        found = discrete_gaussian_delta(epsilon, numerator=numerator, weights=scaled, shifts=shifts)
        return math.log(found) - math.log(delta)

    return factor, _smallest(excess, math.ceil(bound * factor))


def _squared_distance(weights: list[int], shifts: list[int]) -> int:
    """P times the squared L2 distance between neighbours in units of the noise."""
    return sum(w * d * d for w, d in zip(weights, shifts, strict=True))


def _smallest(excess: Callable[[int], float], high: int) -> int:
    """Smallest positive integer at which a decreasing function is at most 0, looked for at or around `high`.

    Regula falsi with the Illinois correction, on a logarithmic axis, where log delta is nearly straight; a bisection
    step whenever it stalls. The result always satisfies the condition, also should the function not decrease
    everywhere.
    """
    at_high = excess(high)
    while at_high > 0:
        high += max(1, high // 1000)
        at_high = excess(high)
    low = max(1, high * 4 // 5)
    at_low = excess(low)
    while at_low <= 0:
        if low == 1:
            return 1
        high, at_high = low, at_low
        low = max(1, low // 2)
        at_low = excess(low)
    side, step = 0, 0
    while high - low > 1:
        step += 1
        fraction = at_low / (at_low - at_high) if step % 8 else 0.5
        guess = round(low * (high / low) ** fraction)
        guess = min(max(guess, low + 1), high - 1)
        value = excess(guess)
        if value <= 0:
            high, at_high = guess, value
            at_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, at_low = guess, value
            at_high *= 0.5 if side == -1 else 1.0
            side = -1
    return high


def _common_factor(least: float) -> int:
    """Power of two that brings P to the resolution wanted."""
    return 1 << max(0, math.ceil(math.log2(_RESOLUTION / least)))


def check_weights(tables: int, weights: Sequence[int] | None) -> tuple[int, ...]:
    """Return the weights, reduced by their greatest common divisor.

    Raises
    ------
    PrivacyError
        If there are none, or they are not positive integers, one per table.
    """
    if tables < 1:
        raise PrivacyError(f"tables must be at least 1, got {tables}")
    if weights is None:
        return (1,) * tables
    if len(weights) != tables:
        raise PrivacyError(f"weights must hold one integer per table ({tables}), got {len(weights)}")
    for index, weight in enumerate(weights):
        if isinstance(weight, bool) or not isinstance(weight, (int, np.integer)) or weight < 1:
            raise PrivacyError(f"weights must be positive integers, got {weight} for table {index}")
    divisor = math.gcd(*(int(w) for w in weights))
    return tuple(int(w) // divisor for w in weights)


def _check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise PrivacyError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
