from __future__ import annotations

import sys

import numpy as np
import pytest

from conftest import require_extra
from fedsel.errors import MissingExtraError
from fedsel.privacy import kernels, noise
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import SeededEntropy
from fedsel.privacy.noise import add_noise

SIZES = np.array([600, 1, 4000, 900], dtype=np.int64)
COUNTS = np.arange(SIZES.sum(), dtype=np.int64)
PLANS = [
    plan_noise(4, epsilon=1.0),
    plan_noise(4, epsilon=8.0, weights=[1, 3, 3, 9]),
    plan_noise(4, epsilon=0.5, mechanism="discrete-laplace", weights=[2, 1, 2, 2]),
]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("counts", [COUNTS, np.tile(COUNTS, (5, 1))])
def test_compiled_noise_has_the_same_bits(plan, counts):
    require_extra("numba", "compiled")
    plain = add_noise(counts, SIZES, plan, entropy=SeededEntropy(3), compiled=False)
    compiled = add_noise(counts, SIZES, plan, entropy=SeededEntropy(3), compiled=True)
    assert np.array_equal(plain, compiled)


def test_large_jobs_are_compiled_by_themselves(monkeypatch):
    require_extra("numba", "compiled")
    used = []
    original = kernels.compiled_lookup
    monkeypatch.setattr(kernels, "compiled_lookup", lambda: used.append(True) or original())
    add_noise(COUNTS, SIZES, PLANS[0], entropy=SeededEntropy(3))
    assert not used
    monkeypatch.setattr(noise, "_COMPILED_FROM", COUNTS.size)
    add_noise(COUNTS, SIZES, PLANS[0], entropy=SeededEntropy(3))
    assert used


def test_without_numba_large_jobs_use_numpy_and_asking_names_the_extra(monkeypatch):
    kernels.compiled_lookup.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(noise, "_COMPILED_FROM", 1)
    monkeypatch.setattr(kernels, "available", lambda: False)
    plain = add_noise(COUNTS, SIZES, PLANS[0], entropy=SeededEntropy(3))
    assert np.array_equal(plain, add_noise(COUNTS, SIZES, PLANS[0], entropy=SeededEntropy(3), compiled=False))
    with pytest.raises(MissingExtraError, match=r"pip install 'fedsel\[compiled\]'"):
        add_noise(COUNTS, SIZES, PLANS[0], entropy=SeededEntropy(3), compiled=True)
