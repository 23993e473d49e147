"""The noise, as a distribution on the integers.

Every test here fails on correct code with probability 1e-6 at most, by its own statistic; seeds are fixed except where
the operating system's generator is what is tested.
"""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from cks_reference import discrete_gaussian, discrete_laplace
from fedsel.privacy import rejection
from fedsel.privacy.entropy import ChunkReader, SeededEntropy, SystemEntropy
from fedsel.privacy.inversion import draw
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.privacy.scale import Scale

FALSE_POSITIVES = 1e-6
SCALES = [
    Scale("discrete-gaussian", Fraction(1, 10)),
    Scale("discrete-gaussian", Fraction(4, 9)),
    Scale("discrete-gaussian", Fraction(1)),
    Scale("discrete-gaussian", Fraction(77, 10)),
    Scale("discrete-gaussian", Fraction(1567675, 2048)),
    Scale("discrete-gaussian", Fraction(3000**2 * 7 + 1, 7)),
    Scale("discrete-laplace", Fraction(1, 4)),
    Scale("discrete-laplace", Fraction(2, 3)),
    Scale("discrete-laplace", Fraction(5)),
    Scale("discrete-laplace", Fraction(56320, 1024)),
]
WIDE = [Scale("discrete-gaussian", Fraction(10**12, 7)), Scale("discrete-laplace", Fraction(10**6, 7))]


def identity(scale):
    return f"{scale.mechanism}-{scale.ratio}"


def probabilities(scale):
    """Integers -K .. K, and their probabilities."""
    ratio = float(scale.ratio)
    gaussian = scale.mechanism == "discrete-gaussian"
    reach = math.ceil(40 * (math.sqrt(ratio) if gaussian else ratio)) + 2
    y = np.arange(-reach, reach + 1)
    mass = np.exp(-(y.astype(float) ** 2) / (2 * ratio)) if gaussian else np.exp(-np.abs(y) / ratio)
    return y, mass / mass.sum()


def p_value(samples, scale):
    """Chi-square on the integers, neighbours joined until at least 20 samples are expected in each class."""
    y, mass = probabilities(scale)
    assert np.abs(samples).max() <= y[-1]
    observed = np.bincount(samples + y[-1], minlength=y.size)
    classes = [[0.0, 0]]
    for expected, count in zip((mass * samples.size).tolist(), observed.tolist(), strict=True):
        if classes[-1][0] >= 20:
            classes.append([0.0, 0])
        classes[-1][0] += expected
        classes[-1][1] += count
    if classes[-1][0] < 20:
        thin = classes.pop()
        classes[-1] = [classes[-1][0] + thin[0], classes[-1][1] + thin[1]]
    expected, counted = np.array(classes).T
    statistic = ((counted - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, expected.size - 1)


def sample_fast(scale, count, entropy):
    return draw(ChunkReader(entropy, words=1 << 12), (scale,), np.zeros(count, dtype=np.int64))


@pytest.mark.parametrize("scale", SCALES, ids=identity)
def test_chi_square(scale):
    assert p_value(sample_fast(scale, 400_000, SeededEntropy(1)), scale) > FALSE_POSITIVES


@pytest.mark.parametrize("scale", SCALES[3:5], ids=identity)
def test_chi_square_with_the_operating_system_as_source(scale):
    assert p_value(sample_fast(scale, 400_000, SystemEntropy()), scale) > FALSE_POSITIVES


@pytest.mark.parametrize("scale", [SCALES[1], SCALES[3], SCALES[7], SCALES[8]], ids=identity)
def test_chi_square_of_the_rejection_sampler(scale):
    reader = ChunkReader(SeededEntropy(2), words=1 << 12)
    samples = np.array([rejection.sample(reader, scale) for _ in range(4_000)])
    assert p_value(samples, scale) > FALSE_POSITIVES


@pytest.mark.parametrize("scale", WIDE, ids=identity)
def test_kolmogorov_smirnov_of_scales_too_wide_for_tables(scale):
    """So wide that the continuous distribution is the same to five digits."""
    reader = ChunkReader(SeededEntropy(3), words=1 << 12)
    samples = np.array([rejection.sample(reader, scale) for _ in range(4_000)])
    ratio = float(scale.ratio)
    law = stats.norm(scale=math.sqrt(ratio)) if scale.mechanism == "discrete-gaussian" else stats.laplace(scale=ratio)
    assert stats.kstest(samples, law.cdf).pvalue > FALSE_POSITIVES


@pytest.mark.parametrize("scale", [SCALES[1], SCALES[3], SCALES[6], SCALES[8]], ids=identity)
def test_agrees_with_the_published_algorithms(scale):
    """Two samples, ours and that of the algorithms as printed, compared by chi-square."""
    rng = random.Random(4)
    plain = discrete_gaussian if scale.mechanism == "discrete-gaussian" else discrete_laplace
    count = 4_000
    theirs = Counter(plain(scale.ratio, rng) for _ in range(count))
    ours = Counter(sample_fast(scale, count, SeededEntropy(5)).tolist())
    common = [y for y in ours if ours[y] + theirs[y] >= 20]
    table = np.array([[ours[y], theirs[y]] for y in common])
    rest = 2 * count - table.sum()
    if rest:
        table = np.vstack([table, [count, count] - table.sum(axis=0)])
    assert stats.chi2_contingency(table).pvalue > FALSE_POSITIVES


@pytest.mark.parametrize("scale", SCALES, ids=identity)
def test_mean_and_variance(scale):
    count = 400_000
    samples = sample_fast(scale, count, SeededEntropy(6)).astype(float)
    y, mass = probabilities(scale)
    variance = float((mass * y.astype(float) ** 2).sum())
    fourth = float((mass * y.astype(float) ** 4).sum())
    limit = -stats.norm.ppf(FALSE_POSITIVES / 2)
    assert abs(samples.mean()) < limit * math.sqrt(variance / count)
    assert abs((samples**2).mean() - variance) < limit * math.sqrt((fourth - variance**2) / count)


def test_noise_of_cells_tables_and_clients_is_uncorrelated():
    plan = NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 200, (1, 2), "exact")
    draws = add_noise(np.zeros((20_000, 8), dtype=np.int64), np.array([4, 4]), plan, entropy=SeededEntropy(7))
    correlation = np.corrcoef(draws.T)[np.triu_indices(8, 1)]
    lagged = np.corrcoef(draws[1:].ravel(), draws[:-1].ravel())[0, 1]
    limit = -stats.norm.ppf(FALSE_POSITIVES / 2 / 29)
    assert np.abs(correlation).max() < limit / math.sqrt(20_000)
    assert abs(lagged) < limit / math.sqrt(draws.size - 8)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_chi_square_would_notice_a_wrong_scale(factor):
    scale = SCALES[4]
    wrong = Scale(scale.mechanism, scale.ratio * Fraction(factor).limit_denominator(100))
    assert p_value(sample_fast(wrong, 400_000, SeededEntropy(8)), scale) < FALSE_POSITIVES
