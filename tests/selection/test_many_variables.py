"""Sixty variables: 1,770 tables."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from fedsel import FederationLoss, select
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import denoise, pareto_front
from reference import components, made_exact_pool

VARIABLES, CLIENTS = 60, 10


@pytest.fixture(scope="module")
def exact():
    return made_exact_pool(0, clients=CLIENTS, domain=[4] * VARIABLES, rows=(100, 400))


@pytest.fixture(scope="module")
def noisy(exact):
    rng = np.random.default_rng(1)
    plan = plan_noise(len(exact.workload.sets), epsilon=20.0)
    noise = np.rint(rng.normal(0.0, 1.0, exact.counts.shape) * plan.scale[0]).astype(np.int64)
    return replace(exact, counts=exact.counts + noise, plans=(plan,))


def test_losses_equal_the_reference(exact, noisy):
    assert len(exact.workload.sets) == 1770
    for pool in (exact, noisy):
        loss = FederationLoss(pool)
        for members in ([3], [0, 4, 9]):
            expected = components(pool, members, "v0", f"v{VARIABLES - 1}")
            found = list(asdict(loss.components(members)).values())
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("search", ["expand", "anneal", "temper", "model", "exhaustive"])
def test_every_search_works(exact, search):
    found = select(exact, 3, search=search, certificate="none")
    best = select(exact, 3, search="exhaustive")
    assert best.certificate.kind == "proof"
    assert found.loss >= best.loss
    if search == "exhaustive":
        assert found.names == best.names


def test_a_front_is_found(exact):
    front = pareto_front(exact, 3, steps=3)
    assert len(front.points) >= 2


@pytest.mark.parametrize("method", ["consistent", "shrink", "reference"])
def test_denoising_comes_closer_to_the_exact_tables(exact, noisy, method):
    ready = denoise(noisy, method=method)
    ours = np.abs(ready.counts * ready.unit - exact.counts).mean()
    assert ours < 0.8 * np.abs(noisy.counts - exact.counts).mean()
    assert select(noisy, 3, denoise_method=method, certificate="none").k == 3
