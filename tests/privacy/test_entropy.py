import numpy as np
import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.entropy import ChunkReader, SeededEntropy, SystemEntropy


def test_system_words_are_fresh_and_balanced():
    source = SystemEntropy()
    words = source.words(4096)
    assert source.secure
    assert words.dtype == np.uint64
    assert words.shape == (4096,)
    assert np.unique(np.concatenate([words, source.words(4096)])).size == 8192
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * 4096)  # false-positive rate 6e-7


def test_seeded_words_repeat_and_continue():
    first, second = SeededEntropy(7), SeededEntropy(7)
    assert not first.secure
    together = first.words(10)
    np.testing.assert_array_equal(np.concatenate([second.words(3), second.words(7)]), together)
    assert not np.array_equal(SeededEntropy(8).words(10), together)


def test_spawned_clients_have_streams_of_their_own():
    parent = SeededEntropy(7)
    children = parent.spawn(3) + parent.spawn(2)
    streams = np.concatenate([child.words(100) for child in [SeededEntropy(7), *children]])
    assert np.unique(streams).size == streams.size
    again = SeededEntropy(7).spawn(5)
    np.testing.assert_array_equal(np.concatenate([child.words(100) for child in again]), streams[100:])


def test_system_spawn():
    children = SystemEntropy().spawn(2)
    assert not np.array_equal(children[0].words(4), children[1].words(4))


def test_negative_seed():
    with pytest.raises(PrivacyError, match="seed must not be negative, got -1"):
        SeededEntropy(-1)


@pytest.mark.parametrize("words", [1, 2, 3, 64])
def test_chunks_do_not_depend_on_how_many_words_are_fetched(words):
    reader = ChunkReader(SeededEntropy(3), words=words)
    taken = np.concatenate([reader.take(n) for n in (1, 5, 0, 2, 17, 4)])
    np.testing.assert_array_equal(taken, SeededEntropy(3).words(8).view("<u2")[: taken.size])
