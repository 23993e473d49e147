"""Probabilities of the noise to a hundred decimals, and samples by their definition; slow, plain, independent."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np

from fedsel.privacy.entropy import Entropy


class FixedEntropy(Entropy):
    """Given chunks, then zeros."""

    secure = False

    def __init__(self, chunks):
        self.chunks = list(chunks)

    def words(self, count):
        piece, self.chunks = self.chunks[: 4 * count], self.chunks[4 * count :]
        return np.array(piece + [0] * (4 * count - len(piece)), dtype=np.uint16).view(np.uint64)

    def spawn(self, count):
        raise NotImplementedError


def masses(scale, digits=100):
    """exp(-y^2 / (2 ratio)) or exp(-y / ratio) for y = 0, 1, ..., down to 10^-digits, as fractions."""
    found = []
    with localcontext() as context:
        context.prec = digits + 20
        ratio = Decimal(scale.ratio.numerator) / Decimal(scale.ratio.denominator)
        while not found or found[-1] > Decimal(10) ** -digits:
            y = len(found)
            exponent = y * y / (2 * ratio) if scale.mechanism == "discrete-gaussian" else y / ratio
            found.append((-exponent).exp())
        return [Fraction(mass) for mass in found]


@cache
def cumulative(scale):
    """P(|Y| <= k) for k = 0, 1, ..."""
    values = masses(scale)
    total = values[0] + 2 * sum(values[1:])
    sums, running = [], Fraction(0)
    for y, mass in enumerate(values):
        running += mass if y == 0 else 2 * mass
        sums.append(running / total)
    return sums


def magnitude(scale, chunks):
    """How many P(|Y| <= k) are at most the number with these digits: 15 from the first chunk, 16 from each other."""
    drawn, bits = chunks[0] >> 1, 15
    for chunk in chunks[1:]:
        drawn, bits = drawn << 16 | chunk, bits + 16
    uniform = Fraction(drawn, 1 << bits)
    return sum(threshold <= uniform for threshold in cumulative(scale))
