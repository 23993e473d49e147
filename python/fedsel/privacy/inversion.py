"""Discrete Gaussian and discrete Laplace by inverting a uniform number that is revealed only as far as needed.

Let C(k) = P(|Y| <= k). For a uniform U, the number of k with C(k) <= U is distributed as |Y|. Each sample reads
one 16-bit chunk: a sign, and the first 15 digits of U. These decide unless some C(k) begins with the same digits (one
sample in a hundred at sigma = 30). Then three more chunks are read and 63 digits compared; should even these tie,
`resolve` reads on and compares as many digits as it takes. The sign of a zero has no effect, so nothing is rejected,
and running time hardly depends on the samples (a leak of rejection samplers: Jin et al., "Are we there yet? Timing and
floating-point attacks on differential privacy systems", S&P 2022).

All digits come from integer brackets around the sums of exp(-k^2 / (2 sigma^2)) or exp(-k / b): exact, whatever the
scale. Sampling compares, shifts and looks up int64 numbers; no floating point takes part. The distributions are those
of Canonne, Kamath & Steinke (NeurIPS 2020). Their rejection sampler reads eight chunks per sample and branches on each;
`fedsel.privacy.rejection` has it for scales whose tables would be too long.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.privacy.entropy import ChunkReader
from fedsel.privacy.exponential import exp_bracket
from fedsel.privacy.kernels import Lookup
from fedsel.privacy.scale import Scale

FIRST_BITS = 15
"""Digits of U in the first chunk, beside the sign."""

FULL_BITS = FIRST_BITS + 3 * 16
"""Digits of U compared within the tables."""

GUIDE = (1 << FIRST_BITS) + 1
"""Entries of the guide of one scale."""

LONGEST_TABLE = 1 << 18
"""Largest number of magnitudes tabulated: sigma up to about 27,000 or b up to 5,900."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tables:
    """Digits of the distributions of magnitudes, of one or more scales, one after another.

    Parameters
    ----------
    guide : ndarray of int32, shape (scales * GUIDE,)
        Entry u of a scale: how many of its C(k) have first digits below u, plus the scale's offset in `cumulative`.
        Where entries u and u + 1 agree, they are the magnitude of every U that begins with u.
    cumulative : ndarray of int64, shape (magnitudes of all scales,)
        floor(2^FULL_BITS C(k)); the last entry of a scale is its first to consist of ones only.
    offsets : ndarray of int64, shape (scales,)
        First entry of each scale in `cumulative`.
    """

    guide: npt.NDArray[np.int32]
    cumulative: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


def tabulable(scale: Scale) -> bool:
    """Whether the scale is narrow enough for tables."""
    ratio = float(scale.ratio)
    digits = FULL_BITS * math.log(2)
    reach = math.sqrt(2 * digits * ratio) if scale.mechanism == "discrete-gaussian" else digits * ratio
    return reach <= LONGEST_TABLE


@functools.lru_cache(maxsize=4)
def tabulate(scales: tuple[Scale, ...]) -> Tables:
    """Tables of the scales of a plan; kept, because all its clients share them."""
    parts = [_cumulative_digits(scale) for scale in scales]
    offsets = np.cumsum([0] + [part.size for part in parts])[:-1].astype(np.int64)
    guide = np.empty((len(scales), GUIDE), dtype=np.int32)
    for row, offset, part in zip(guide, offsets, parts, strict=True):
        row[0] = offset
        row[1:] = offset + np.cumsum(np.bincount(part >> (FULL_BITS - FIRST_BITS), minlength=GUIDE - 1))
    tables = Tables(guide.reshape(-1), np.concatenate(parts), offsets)
    for array in (tables.guide, tables.cumulative, tables.offsets):
        array.flags.writeable = False
    return tables


@functools.lru_cache(maxsize=256)
def _cumulative_digits(scale: Scale) -> IntArray:
    work = 192
    while (digits := _settled_digits(scale, work)) is None:
        work *= 2
    return np.array(digits, dtype=np.int64)


def look_up(
    chunks: npt.NDArray[np.uint16], which: IntArray, guide: npt.NDArray[np.int32], width: int
) -> tuple[IntArray, IntArray]:
    """Find where each sample's first digits point to in the guide.

    Parameters
    ----------
    chunks : ndarray of uint16, shape (n,)
        A sign and FIRST_BITS digits per sample.
    which : ndarray of int64, shape (n,)
        Number of each sample's scale.
    guide : ndarray of int32
        See `Tables`.
    width : int
        Guide entries per scale.

    Returns
    -------
    entries : ndarray of int64, shape (n,)
        Guide values: entries of `Tables.cumulative`.
    undecided : ndarray of int64
        Positions of the samples whose digits do not decide.
    """
    entry = (chunks >> 1).astype(np.int64)
    if which.any():
        entry += width * which
    low = guide[entry]
    return low.astype(np.int64), np.flatnonzero(low != guide[entry + 1])


def draw(reader: ChunkReader, scales: tuple[Scale, ...], which: IntArray, *, lookup: Lookup = look_up) -> IntArray:
    """Draw one exact sample for every entry of `which`.

    Reads one chunk per sample, then three more for each that these left undecided, in order, then whatever the samples
    still tied need.

    Parameters
    ----------
    reader : ChunkReader
        Source of chunks; its position moves past those used.
    scales : tuple of Scale
        Distinct scales, all of them `tabulable`.
    which : ndarray of int64, shape (n,)
        Position in `scales` of each sample's scale.
    lookup : callable
        `look_up` or its compiled twin.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    tables = tabulate(scales)
    chunks = reader.take(which.size)
    magnitude, undecided = lookup(chunks, which, tables.guide, GUIDE)
    if undecided.size:
        drawn = (chunks[undecided] >> 1).astype(np.int64)
        low = magnitude[undecided]
        high = tables.guide[drawn + GUIDE * which[undecided] + 1].astype(np.int64)
        for chunk in reader.take(3 * undecided.size).reshape(-1, 3).T:
            drawn = drawn << 16 | chunk
        found = _search(tables.cumulative, drawn, low, high)
        magnitude[undecided] = found
        # the last entry of a scale is all ones, so no search ends behind it
        for tie in np.flatnonzero(tables.cumulative[found] == drawn):
            index = int(which[undecided[tie]])
            exact = resolve(reader, scales[index], int(drawn[tie]), FULL_BITS)
            magnitude[undecided[tie]] = tables.offsets[index] + exact
    if len(scales) > 1:
        magnitude -= tables.offsets[which]
    return np.where(chunks & 1, -magnitude, magnitude)


def _search(cumulative: IntArray, drawn: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """First entry in low .. high at least `drawn`, else high; by bisection of all ranges at once."""
    first, last = low, high
    while (first < last).any():
        middle = (first + last) >> 1  # where first = last, possibly one past the end; then it must not count
        below = (cumulative[np.minimum(middle, cumulative.size - 1)] < drawn) & (first < last)
        first = np.where(below, middle + 1, first)
        last = np.where(below, last, middle)
    return first


def resolve(reader: ChunkReader, scale: Scale, drawn: int, bits: int) -> int:
    """Magnitude of a U of which `bits` digits are drawn, reading as many more as it takes.

    Parameters
    ----------
    reader : ChunkReader
        Source of further chunks; its position moves past those used.
    scale : Scale
    drawn, bits : int
        2^-bits drawn <= U < 2^-bits (drawn + 1).

    Returns
    -------
    int
    """
    while True:
        lowest = highest = 0
        for low, high in _cumulative(scale, bits + 128):
            lowest += high <= drawn << 128
            highest += low < (drawn + 1) << 128
        # a U of ones only may lie beyond every C(k) listed
        if lowest == highest and drawn + 1 < 1 << bits:
            return lowest
        drawn, bits = drawn << 16 | int(reader.take(1)[0]), bits + 16


def _settled_digits(scale: Scale, work: int) -> list[int] | None:
    """Leading digits of C(k) up to the first that are all ones; None if `work` digits do not settle them."""
    shift = work - FULL_BITS
    digits: list[int] = []
    for low, high in _cumulative(scale, work):
        if low >> shift != high >> shift:
            return None
        digits.append(low >> shift)
        if digits[-1] == (1 << FULL_BITS) - 1:
            return digits
    return None


def _cumulative(scale: Scale, work: int) -> Iterator[tuple[int, int]]:
    """Brackets around 2^work C(k), k = 0, 1, ..., until 1 - C(k) falls below about 2^(64 - work)."""
    sums: list[tuple[int, int]] = []
    total = error = 0
    for k, (mass, mass_error, tail) in enumerate(_masses(scale, work)):
        total += mass if k == 0 else 2 * mass
        error += mass_error if k == 0 else 2 * mass_error
        sums.append((total - error, total + error))
        if tail < 1 << 64:
            break
    norm_low, norm_high = total - error, total + error + 2 * tail
    one = 1 << work
    for low, high in sums:
        yield (low << work) // norm_high, min(one - 1, (high << work) // norm_low + 1)


def _masses(scale: Scale, work: int) -> Iterator[tuple[int, int, int]]:
    """Approximate 2^work exp(-k^2 / (2 sigma^2)) or 2^work exp(-k / b), its error bound, a bound on the sum beyond k.

    By recurrence: the ratio of successive masses changes by a constant factor (by none for the Laplace).
    """
    p, q = scale.ratio.numerator, scale.ratio.denominator
    one = 1 << work
    if scale.mechanism == "discrete-gaussian":
        ratio, ratio_error = _middle(exp_bracket(q, 2 * p, work))
        factor, factor_error = _middle(exp_bracket(q, p, work))
    else:
        ratio, ratio_error = _middle(exp_bracket(q, p, work))
        factor, factor_error = one, 0
    mass, error = one, 0
    while True:
        bound = min(one, ratio + ratio_error)
        # the ratios do not increase, so a geometric series bounds the rest
        tail = ((mass + error) * bound // (one - bound) + 1) if bound < one else one << work
        yield mass, error, tail
        # all factors are at most 1, so errors add, plus one unit for each truncation
        mass, error = mass * ratio >> work, error + ratio_error + 1
        if factor != one:
            ratio, ratio_error = ratio * factor >> work, ratio_error + factor_error + 1


def _middle(bracket: tuple[int, int]) -> tuple[int, int]:
    low, high = bracket
    return low, high - low
