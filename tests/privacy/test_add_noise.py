import math
import subprocess
import sys

import numpy as np
import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy import noise
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import ChunkReader, SeededEntropy, SystemEntropy
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan

SIZES = np.array([6, 1, 40, 9], dtype=np.int64)
COUNTS = np.arange(56, dtype=np.int64)


PLANS = [
    plan_noise(4, epsilon=1.0),
    plan_noise(4, epsilon=1.0, weights=[1, 3, 3, 9]),
    plan_noise(4, epsilon=0.5, mechanism="discrete-laplace", weights=[2, 1, 2, 2]),
    # the first and last too wide for tables
    NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 10**12, (1, 10**11, 10**12, 1), "exact"),
]


@pytest.mark.parametrize("plan", PLANS)
def test_seeded_noise_repeats_and_leaves_the_counts_alone(plan):
    before = COUNTS.copy()
    one = add_noise(COUNTS, SIZES, plan, entropy=SeededEntropy(1))
    np.testing.assert_array_equal(COUNTS, before)
    assert one.dtype == np.int64
    assert one.shape == COUNTS.shape
    np.testing.assert_array_equal(add_noise(COUNTS, SIZES, plan, entropy=SeededEntropy(1)), one)
    shifted = add_noise(COUNTS + 1000, SIZES, plan, entropy=SeededEntropy(1))
    np.testing.assert_array_equal(shifted, one + 1000)
    assert not np.array_equal(add_noise(COUNTS, SIZES, plan, entropy=SeededEntropy(2)), one)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("words", [1, 3, 5000])
def test_noise_does_not_depend_on_how_words_are_fetched(plan, words, monkeypatch):
    expected = add_noise(COUNTS, SIZES, plan, entropy=SeededEntropy(1))
    monkeypatch.setattr(noise, "ChunkReader", lambda entropy, **_: ChunkReader(entropy, words=words))
    np.testing.assert_array_equal(add_noise(COUNTS, SIZES, plan, entropy=SeededEntropy(1)), expected)


@pytest.mark.parametrize("plan", PLANS)
def test_every_client_draws_its_own_noise(plan):
    many = add_noise(np.tile(COUNTS, (3, 1)), SIZES, plan, entropy=SeededEntropy(9)) - COUNTS
    assert not np.array_equal(many[0], many[1])
    children = SeededEntropy(9).spawn(3)
    for row, child in zip(many, children, strict=True):
        np.testing.assert_array_equal(add_noise(COUNTS, SIZES, plan, entropy=child) - COUNTS, row)


def test_every_cell_of_every_table_is_noisy_on_its_own_scale():
    plan = NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 10**6, (1, 10**6, 100, 10**4), "exact")
    draws = add_noise(np.zeros((4000, 56), dtype=np.int64), SIZES, plan, entropy=SystemEntropy())
    spread = draws.std(axis=0)
    expected = np.repeat(plan.scale, SIZES)
    # 5.7 standard errors for each of 56 cells: false-positive rate below 1e-6
    np.testing.assert_array_less(np.abs(spread / expected - 1), 5.7 / math.sqrt(2 * 4000))


def test_plan_without_noise_copies():
    plan = plan_noise(4, epsilon=math.inf)
    found = add_noise(COUNTS, SIZES, plan, entropy=SystemEntropy())
    np.testing.assert_array_equal(found, COUNTS)
    assert found is not COUNTS


def test_more_cells_than_one_block():
    sizes = np.array([30_000, 20_001], dtype=np.int64)
    plan = plan_noise(2, epsilon=1.0, weights=[1, 4])
    found = add_noise(np.zeros(50_001, dtype=np.int64), sizes, plan, entropy=SeededEntropy(3))
    for cells, scale in ((found[:30_000], plan.scale[0]), (found[30_000:], plan.scale[1])):
        assert abs(cells.std() / scale - 1) < 5 / math.sqrt(2 * cells.size)
        assert abs(cells.mean()) < 5 * scale / math.sqrt(cells.size)


def test_empty_tables():
    plan = plan_noise(2, epsilon=1.0)
    assert add_noise(np.zeros(0, dtype=np.int64), np.zeros(2, dtype=np.int64), plan, entropy=SystemEntropy()).size == 0


@pytest.mark.parametrize(
    ("counts", "sizes", "message"),
    [
        (COUNTS, SIZES[:3], r"sizes must hold one entry per table of the plan \(4\), got \(3,\)"),
        (COUNTS[:-1], SIZES, r"counts must have 56 cells, one per cell of the tables, got \(55,\)"),
        (COUNTS.astype(float), SIZES, "counts must be int64, got float64"),
        (COUNTS.reshape(1, 1, -1), SIZES, "counts must have 56 cells"),
    ],
)
def test_refusals(counts, sizes, message):
    with pytest.raises(PrivacyError, match=message):
        add_noise(counts, sizes, plan_noise(4, epsilon=1.0), entropy=SystemEntropy())


def test_noise_loads_no_compiler():
    code = (
        "import sys, numpy as np\n"
        "from fedsel.privacy.calibration import plan_noise\n"
        "from fedsel.privacy.entropy import SystemEntropy\n"
        "from fedsel.privacy.noise import add_noise\n"
        "add_noise(np.zeros(4, np.int64), np.array([4]), plan_noise(1, epsilon=1.0), entropy=SystemEntropy())\n"
        "print([m for m in ('scipy', 'numba', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_score_is_a_query_of_one_cell():
    """Rounds of a plan draw the scales of their own queries: here tables of 2 and 3 cells, then two scores."""
    plan = NoisePlan(
        "discrete-gaussian", "add-remove", 1.0, 1e-5, 400, (4, 4, 100, 1), "exact", scores=(2, 8), rounds=(2, 2)
    )
    clients = 4000
    tables = add_noise(np.zeros((clients, 5), dtype=np.int64), np.array([2, 3]), plan.part(1), entropy=SeededEntropy(3))
    scores = add_noise(np.zeros((clients, 2), dtype=np.int64), np.array([1, 1]), plan.part(2), entropy=SeededEntropy(4))
    # the standard deviation of a sample of 4,000 is off by 1.1 per cent; the seeds are fixed
    np.testing.assert_allclose(tables.std(axis=0), 10.0, rtol=0.04)
    np.testing.assert_allclose(scores.std(axis=0), [2.0, 20.0], rtol=0.04)
