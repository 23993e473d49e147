"""The fast sampler against its definition, digit by digit and sample by sample."""

from fractions import Fraction

import numpy as np
import pytest

from fedsel.privacy.entropy import ChunkReader, SeededEntropy
from fedsel.privacy.inversion import (
    FIRST_BITS,
    FULL_BITS,
    GUIDE,
    draw,
    resolve,
    tabulable,
    tabulate,
)
from fedsel.privacy.scale import Scale
from noise_distribution import FixedEntropy, cumulative, magnitude


def gaussian(ratio):
    return Scale("discrete-gaussian", Fraction(ratio))


def laplace(ratio):
    return Scale("discrete-laplace", Fraction(ratio))


SCALES = [
    gaussian("1/2500"),
    gaussian("2/9"),
    gaussian(1),
    gaussian("77/10"),
    gaussian(Fraction(1567675, 2048)),
    laplace("1/30"),
    laplace("2/3"),
    laplace(5),
    laplace("40961/1024"),
]


@pytest.fixture(params=SCALES, ids=lambda scale: f"{scale.mechanism}-{scale.ratio}")
def scale(request):
    return request.param


def chunks_of(drawn, bits, *, sign=0):
    """Chunks whose digits are those of an integer of 15 + 16 n bits."""
    count = (bits - FIRST_BITS) // 16
    rest = [drawn >> (16 * k) & 0xFFFF for k in reversed(range(count))]
    return [(drawn >> (bits - FIRST_BITS)) << 1 | sign, *rest]


def one(scale, chunks):
    """One sample from given chunks, and how many of them were read."""
    reader = ChunkReader(FixedEntropy(chunks), words=64)
    sample = int(draw(reader, (scale,), np.zeros(1, dtype=np.int64))[0])
    return sample, reader._position


def test_tables_hold_the_exact_digits(scale):
    tables = tabulate((scale,))
    exact = [int(value * 2**FULL_BITS) for value in cumulative(scale)]
    assert tables.cumulative.tolist() == exact[: tables.cumulative.size]
    assert tables.cumulative[-1] == 2**FULL_BITS - 1
    assert (tables.cumulative[:-1] < 2**FULL_BITS - 1).all()


def test_first_chunks_enumerated(scale):
    """All 32,768 first chunks: decided ones get the magnitude of their whole interval, the others are undecided."""
    tables = tabulate((scale,))
    exact = cumulative(scale)
    ends = [value * 2**FIRST_BITS for value in exact]
    expected = np.searchsorted([int(end) for end in ends], np.arange(GUIDE), side="left")
    np.testing.assert_array_equal(tables.guide[: GUIDE - 1], expected[:-1])
    undecided = np.flatnonzero(tables.guide[:-1] != tables.guide[1:])
    assert set(undecided.tolist()) == {int(end) for end in ends if end < 2**FIRST_BITS} & set(range(1 << FIRST_BITS))


def test_ties_of_the_first_chunk(scale):
    """Around every threshold: one below, equal, one above, in 63 digits; then both sides of the equal case."""
    for k, digits in enumerate(tabulate((scale,)).cumulative.tolist()[:12]):
        for drawn in (digits - 1, digits, digits + 1):
            if not 0 <= drawn < 2**FULL_BITS - 1:
                continue
            for tail in ([0], [0xFFFF], [0x8000]):
                chunks = chunks_of(drawn, FULL_BITS) + tail + [0x1234, 0x5678]
                sample, used = one(scale, chunks)
                assert sample == magnitude(scale, chunks[:used])
                assert used == 4 or drawn == digits
        # beyond the table: 80 more digits of the threshold itself, then below and above it
        value = cumulative(scale)[k]
        deep = int(value * 2 ** (FULL_BITS + 80))
        assert one(scale, chunks_of(deep - 1, FULL_BITS + 80))[0] == k
        if deep + 1 < 2 ** (FULL_BITS + 80):
            assert one(scale, chunks_of(deep + 1, FULL_BITS + 80))[0] == k + 1


def test_deep_ties_read_as_far_as_needed():
    scale = gaussian("77/10")
    value = cumulative(scale)[3]
    bits = FULL_BITS + 10 * 16
    digits = int(value * 2**bits)
    sample, used = one(scale, [*chunks_of(digits, bits, sign=1), 0, 0])
    assert used > 1 + bits // 16
    assert sample == -magnitude(scale, [*chunks_of(digits, bits), 0, 0][:used])


def test_all_ones_lie_in_the_tail(scale):
    """The largest magnitudes, beyond every threshold tabulated."""
    chunks = [0xFFFE, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0, 0]
    sample, used = one(scale, chunks)
    assert sample == magnitude(scale, chunks[:used])
    assert sample >= tabulate((scale,)).cumulative.size - 1


def test_random_streams_agree_with_the_definition(scale):
    samples = 300
    reader = ChunkReader(SeededEntropy(11), words=1)
    found = draw(reader, (scale,), np.zeros(samples, dtype=np.int64))
    stream = SeededEntropy(11).words(2 * samples).view("<u2").tolist()
    ends = [value * 2**FIRST_BITS for value in cumulative(scale)]
    undecided = {int(end) for end in ends}
    rest = iter(stream[samples:])
    for chunk, sample in zip(stream[:samples], found.tolist(), strict=True):
        digits = [chunk, next(rest), next(rest), next(rest)] if chunk >> 1 in undecided else [chunk]
        expected = sum(end <= chunk >> 1 for end in ends) if len(digits) == 1 else magnitude(scale, digits)
        assert sample == (-expected if chunk & 1 else expected)


def test_mixed_scales_match_each_alone():
    scales = (gaussian("2/9"), gaussian("77/10"), laplace(5))
    which = np.tile([2, 0, 1, 1], 50)
    first = SeededEntropy(4).words(50).view("<u2")
    mixed = draw(ChunkReader(SeededEntropy(4), words=8), scales, which)
    for index, chunk in enumerate(first):
        guide = tabulate((scales[which[index]],)).guide
        if guide[chunk >> 1] == guide[(chunk >> 1) + 1]:
            expected = int(guide[chunk >> 1])
            assert mixed[index] == (-expected if chunk & 1 else expected)


def test_wide_tables_and_their_limit():
    wide = gaussian(20_000**2)
    assert tabulable(wide)
    tables = tabulate((wide,))
    assert tables.cumulative.size > 180_000
    assert (np.diff(tables.cumulative) >= 0).all()
    found = draw(ChunkReader(SeededEntropy(2), words=1000), (wide,), np.zeros(50_000, dtype=np.int64))
    assert abs(found.std() / 20_000 - 1) < 5 / np.sqrt(2 * found.size)
    assert not tabulable(gaussian(40_000**2))
    assert tabulable(laplace(5_000))
    assert not tabulable(laplace(8_000))


def test_resolve_from_no_digits_at_all():
    reader = ChunkReader(FixedEntropy([0x7FFF, 0xFFFF, 0xFFFF]), words=1)
    assert resolve(reader, gaussian(1), 0, 0) == 1  # U just below 1/2; P(0) = 0.399, P(|Y| <= 1) = 0.883
