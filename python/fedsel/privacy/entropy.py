"""Sources of random bits for noise."""

from __future__ import annotations

import os
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError


class Entropy(Protocol):
    """A stream of independent, uniform 64-bit words."""

    @property
    def secure(self) -> bool:
        """Whether the words are fit for protecting data."""
        ...

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next words of the stream, (count,)."""
        ...

    def spawn(self, count: int) -> list[Self]:
        """Return independent sources, one for each of `count` clients."""
        ...


class SystemEntropy:
    """Words from the operating system's cryptographic generator.

    Nothing is kept between calls: words held back here would be shared, and noise repeated, by forked processes. Ask
    for many at once.
    """

    secure = True

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return `count` fresh words, (count,)."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def spawn(self, count: int) -> list[SystemEntropy]:
        """Return sources for `count` clients; all draw from the operating system."""
        return [SystemEntropy() for _ in range(count)]


class SeededEntropy:
    """Reproducible words, for experiments only: whoever knows or guesses the seed can remove the noise.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        Same seed, same words (Philox 4x64-10 counter-based generator).

    Raises
    ------
    PrivacyError
        If the seed is a negative integer.
    """

    secure = False

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        if not isinstance(seed, np.random.SeedSequence):
            if seed < 0:
                raise PrivacyError(f"seed must not be negative, got {seed}")
            seed = np.random.SeedSequence(seed)
        self._sequence = seed
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` words, (count,)."""
        # little-endian bytes on every machine, because the words are read in 16-bit pieces
        raw = np.asarray(self._generator.random_raw(count), dtype=np.uint64)
        return raw.astype("<u8").view(np.uint64)

    def spawn(self, count: int) -> list[SeededEntropy]:
        """Return sources with independent streams, one per client; a later call continues with further streams."""
        return [SeededEntropy(child) for child in self._sequence.spawn(count)]


class ChunkReader:
    """Sixteen-bit chunks cut from an entropy source, in order.

    Which chunks a caller gets does not depend on how many words are fetched at a time.

    Parameters
    ----------
    entropy : Entropy
        Where words come from.
    words : int
        Words fetched at a time, at least.
    """

    def __init__(self, entropy: Entropy, *, words: int) -> None:
        self._entropy = entropy
        self._words = words
        self._chunks = np.empty(0, dtype=np.uint16)
        self._position = 0

    def take(self, count: int) -> npt.NDArray[np.uint16]:
        """Return the next chunks, (count,)."""
        missing = count - (self._chunks.size - self._position)
        if missing > 0:
            fresh = self._entropy.words(max(self._words, -(-missing // 4))).view(np.uint16)
            self._chunks = np.concatenate([self._chunks[self._position :], fresh])
            self._position = 0
        taken = self._chunks[self._position : self._position + count]
        self._position += count
        return taken
