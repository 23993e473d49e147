"""Discrete Gaussian and discrete Laplace by rejection, one sample at a time, in unbounded integer arithmetic.

Canonne, Kamath & Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020), algorithms 1 to 3, with
one change: a coin exp(-x) compares a uniform number, revealed 16 bits at a time, with the digits of exp(-x). Needs no
tables, so it serves scales too wide for `fedsel.privacy.inversion`.
"""

from __future__ import annotations

import math

from fedsel.privacy.entropy import ChunkReader
from fedsel.privacy.exponential import exp_digits
from fedsel.privacy.scale import Scale


def sample(reader: ChunkReader, scale: Scale) -> int:
    """Draw one exact sample.

    Parameters
    ----------
    reader : ChunkReader
        Source of chunks; its position moves past those used.
    scale : Scale

    Returns
    -------
    int
    """
    p, q = scale.ratio.numerator, scale.ratio.denominator
    if scale.mechanism == "discrete-laplace":
        return _laplace(reader, p, q)
    width = math.isqrt(p // q) + 1
    while True:
        y = _laplace(reader, width, 1)
        if coin(reader, (abs(y) * q * width - p) ** 2, 2 * p * q * width**2):
            return y


def _laplace(reader: ChunkReader, p: int, q: int) -> int:
    """Sample y with probability proportional to exp(-|y| q / p)."""
    period = -(-p // q)
    while True:
        low = uniform(reader, period)
        if not coin(reader, low * q, p):
            continue
        magnitude = low
        while coin(reader, period * q, p):
            magnitude += period
        negative = int(reader.take(1)[0]) & 1
        if negative and magnitude == 0:
            continue
        return -magnitude if negative else magnitude


def uniform(reader: ChunkReader, bound: int) -> int:
    """Draw uniformly from 0 .. bound - 1."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = 0
        for chunk in reader.take(-(-bits // 16)).tolist():
            drawn = drawn << 16 | chunk
        drawn &= (1 << bits) - 1
        if drawn < bound:
            return drawn


def coin(reader: ChunkReader, numerator: int, denominator: int) -> bool:
    """Heads with probability exp(-numerator / denominator), exactly.

    The digits drawn so far decide unless they tie with those of exp(-x); then 16 more of each are compared.
    """
    drawn, bits = 0, 0
    while True:
        drawn, bits = drawn << 16 | int(reader.take(1)[0]), bits + 16
        digits = exp_digits(numerator, denominator, bits)
        if drawn != digits:
            return drawn < digits
