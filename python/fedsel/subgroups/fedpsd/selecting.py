"""Choosing one candidate by its score, privately, with randomness from integers."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError
from fedsel.privacy.entropy import Entropy

SelectionMechanism = Literal["exponential", "permute-and-flip"]


def select_privately(
    scores: npt.NDArray[np.float64],
    epsilon: float,
    *,
    sensitivity: float,
    mechanism: SelectionMechanism,
    entropy: Entropy,
) -> int:
    """Return the position of one candidate, epsilon-differentially private.

    Parameters
    ----------
    scores : ndarray of float64, shape (candidates,)
        Utility of each; one record moves each by at most the sensitivity, in either direction.
    epsilon : float
        Positive.
    sensitivity : float
        Positive.
    mechanism : {'exponential', 'permute-and-flip'}
        Probability proportional to exp(epsilon score / (2 sensitivity)) (McSherry and Talwar 2007), or candidates in
        random order, each taken with probability exp(epsilon (score - best) / (2 sensitivity)) (McKenna and Sheldon
        2020), which is never worse in expectation.
    entropy : Entropy
        Source of random words.

    Raises
    ------
    PrivacyError
        If there is no candidate, or a parameter is out of range.

    Notes
    -----
    Every decision compares a uniform number of 53 bits with a probability in double precision: probabilities are off by
    about 2^-52 relative to 1, which no accounting here resolves. That is weaker than the exact noise of releases.
    """
    if len(scores) == 0:
        raise PrivacyError("a selection needs at least one candidate, got none")
    if not (epsilon > 0 and sensitivity > 0):
        raise PrivacyError(f"epsilon and sensitivity must be positive, got {epsilon} and {sensitivity}")
    chance = np.exp(epsilon / (2 * sensitivity) * (scores - scores.max()))
    if mechanism == "exponential":
        ends = np.cumsum(chance)
        return min(int(np.searchsorted(ends, _uniform(entropy) * ends[-1], side="right")), len(scores) - 1)
    left = list(range(len(scores)))
    while True:
        place = left.pop(int(_uniform(entropy) * len(left)))
        if _uniform(entropy) < chance[place]:
            return place


def _uniform(entropy: Entropy) -> float:
    """Return a number of [0, 1)."""
    return (int(entropy.words(1)[0]) >> 11) * 2.0**-53
