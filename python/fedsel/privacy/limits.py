"""Which guarantees and noise scales are accepted: what accounting, sampling and a release's counts can carry."""

from __future__ import annotations

import math

from fedsel.errors import PrivacyError
from fedsel.privacy.noise_tail import deviation_bound
from fedsel.privacy.plan import NoisePlan

LEAST_EPSILON = 1e-9
"""Least epsilon of a plan or a budget: there a release can carry discrete Laplace noise on a few tables at most."""

LARGEST_EPSILON = 1e6
"""Largest finite epsilon of a plan or a budget: from 10^5 on hardly a count of a few tables carries any noise."""

COUNT_BOUND = 2**40
"""Largest magnitude of a count: far above any client's records, far enough below 2**63 to sum over every client."""

MAX_CELLS = 2_000_000
"""Most cells of a release, so that a hostile file cannot ask for more memory than a real one."""

MAX_SCALE_INTEGER = 2**62  # numerators and weights beyond this would not fit the double that states the scale

OVERFLOW_RISK = 1e-12
"""Accepted probability that the noise on any cell of a release takes up half of `COUNT_BOUND`."""


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is neither infinite nor in range.

    Raises
    ------
    PrivacyError
        If it is not a number, below `LEAST_EPSILON`, or finite and above `LARGEST_EPSILON`.
    """
    if not epsilon > 0:
        raise PrivacyError(f"epsilon must be positive, got {epsilon}")
    if not (LEAST_EPSILON <= epsilon <= LARGEST_EPSILON or epsilon == math.inf):
        raise PrivacyError(
            f"epsilon must be between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}, or infinite (no noise), got {epsilon}"
        )


def check_noise(plan: NoisePlan) -> None:
    """Refuse a plan whose guarantee is out of range, or whose noise could take a count beyond `COUNT_BOUND`.

    The other half of the bound is left to the counts themselves. Public knowledge decides, never a count: a plan that
    passes may be charged for.

    Raises
    ------
    PrivacyError
        If epsilon is out of range or the noise is too wide.
    """
    check_epsilon(plan.epsilon)
    if max(plan.sensitivities) > COUNT_BOUND:
        raise PrivacyError(f"the D of a score must be at most 2**40, got {max(plan.scores)}")
    if max(plan.numerator, *plan.weights) > MAX_SCALE_INTEGER:
        raise PrivacyError(
            "noise scale: numerator and weights must be at most 2**62; a larger epsilon, fewer tables or smaller "
            "weights need less"
        )
    widest = float(plan.scale.max())
    reach = deviation_bound(plan.mechanism, widest**2, widest, math.log(2 * MAX_CELLS / OVERFLOW_RISK))
    if reach > COUNT_BOUND / 2:
        raise PrivacyError(
            f"noise scale: the widest noise must stay within 2**39 records, got a scale of {widest:.4g}, which reaches "
            f"{reach:.4g}; a larger epsilon or fewer tables need less"
        )
