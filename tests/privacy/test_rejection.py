from fractions import Fraction

import pytest

from fedsel.privacy.entropy import ChunkReader, SeededEntropy
from fedsel.privacy.exponential import exp_digits
from fedsel.privacy.rejection import coin, sample, uniform
from fedsel.privacy.scale import Scale
from noise_distribution import FixedEntropy


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (3, 7), (11, 1), (30, 1), (1, 10**9)])
@pytest.mark.parametrize("ties", [0, 1, 2, 6])
def test_coin_reads_on_while_its_digits_tie(numerator, denominator, ties):
    """`ties` chunks equal to the digits of exp(-x), then one that is one lower or one higher."""
    bits = 16 * (ties + 1)
    digits = exp_digits(numerator, denominator, bits)
    for drawn, heads in ((digits - 1, True), (digits + 1, False)):
        if 0 <= drawn < 1 << bits:
            chunks = [drawn >> (16 * k) & 0xFFFF for k in reversed(range(ties + 1))]
            assert coin(ChunkReader(FixedEntropy(chunks), words=4), numerator, denominator) == heads


def test_certain_coin():
    assert coin(ChunkReader(FixedEntropy([0xFFFF]), words=1), 0, 5)


def test_uniform_takes_only_values_below_the_bound():
    reader = ChunkReader(SeededEntropy(1), words=64)
    assert {uniform(reader, 5) for _ in range(300)} == set(range(5))
    assert uniform(reader, 1) == 0
    assert max(uniform(reader, 1 << 40) for _ in range(100)) > 1 << 38


@pytest.mark.parametrize("words", [1, 7])
def test_samples_do_not_depend_on_how_words_are_fetched(words):
    scale = Scale("discrete-gaussian", Fraction(10**12, 7))
    small, large = ChunkReader(SeededEntropy(5), words=words), ChunkReader(SeededEntropy(5), words=4096)
    assert [sample(small, scale) for _ in range(50)] == [sample(large, scale) for _ in range(50)]
