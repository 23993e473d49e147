"""The samplers of Canonne, Kamath & Steinke (NeurIPS 2020), algorithms 1 to 3, as printed: fractions, no tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction


def bernoulli(probability: Fraction, rng: random.Random) -> bool:
    return rng.randrange(probability.denominator) < probability.numerator


def bernoulli_exp(gamma: Fraction, rng: random.Random) -> bool:
    """Heads with probability exp(-gamma)."""
    if gamma > 1:
        for _ in range(math.floor(gamma)):
            if not bernoulli_exp(Fraction(1), rng):
                return False
        return bernoulli_exp(gamma - math.floor(gamma), rng)
    k = 1
    while bernoulli(gamma / k, rng):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction, rng: random.Random) -> int:
    """P(y) proportional to exp(-|y| / scale)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = rng.randrange(t)
        if not bernoulli_exp(Fraction(u, t), rng):
            continue
        v = 0
        while bernoulli_exp(Fraction(1), rng):
            v += 1
        y = (u + t * v) // s
        negative = bernoulli(Fraction(1, 2), rng)
        if negative and y == 0:
            continue
        return -y if negative else y


def discrete_gaussian(variance: Fraction, rng: random.Random) -> int:
    """P(y) proportional to exp(-y^2 / (2 variance))."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = discrete_laplace(Fraction(t), rng)
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance), rng):
            return y
