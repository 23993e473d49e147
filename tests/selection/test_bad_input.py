"""Inputs at the edge, for every search and certificate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from fedsel import FederationLoss, Workload, _core, select
from fedsel.datasets.example import load_example
from fedsel.errors import InfeasibleError, PoolError
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import Constraints, denoise
from fedsel.selection.certificates import CertificateMode
from fedsel.selection.select import SearchMethod
from reference import made_exact_pool, made_pool, made_schema

SEARCHES = [search for search in get_args(SearchMethod) if search != "auto"]
CERTIFICATES = get_args(CertificateMode)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("made", [made_pool, made_exact_pool])
def test_tables_of_one_cell(search, certificate, made):
    """They say nothing: every federation has loss 0."""
    found = select(made(1, clients=6, domain=[1, 1, 1]), 3, search=search, certificate=certificate)
    assert len(found.names) == 3
    assert found.loss == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", ["consistent", "shrink", "reference"])
def test_noisy_tables_of_one_cell_are_denoised(method):
    schema = made_schema([1, 1, 1])
    workload = Workload.pairs(schema)
    plan = plan_noise(3, epsilon=1.0)
    noisy = replace(made_pool(1, clients=5, domain=[1, 1, 1]), plans=(plan,), schema=schema, workload=workload)
    pool = denoise(noisy, method=method)
    assert pool.counts.shape == (5, 3)
    assert FederationLoss(pool)([0, 1]) == pytest.approx(0.0, abs=1e-12)


def test_counts_near_the_end_of_int64_are_refused():
    pool = made_pool(1, clients=4, domain=[2, 2, 2])
    for extreme in (2**63 - 1, -(2**63), 2**40 + 1):
        counts = pool.counts.copy()
        counts[2, 3] = extreme
        with pytest.raises(PoolError, match="client 'c002' has a count beyond"):
            replace(pool, counts=counts)


def test_amounts_whose_sum_would_overflow_are_refused_and_the_largest_are_exact():
    loss = FederationLoss(made_pool(1, clients=4, domain=[2, 2, 2]))

    def problem(amount, upper=2**63 - 1):
        return _core.Problem(
            loss.model, 2, fixed=[], free=[0, 1, 2, 3], constraints=[([amount] * 4, 0, upper)], fallback=[0, 1]
        )

    with pytest.raises(ValueError, match="nor large enough for their sum to overflow"):
        problem(2**60 + 1)
    with pytest.raises(ValueError, match="does not meet the constraints"):
        problem(2**60, 2**61 - 1)
    assert problem(2**60, 2**61)


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_constraints_that_leave_no_client(certificate):
    pool = made_exact_pool(1, clients=5, domain=[2, 3, 2])
    with pytest.raises(InfeasibleError, match="exclude c000"):
        select(pool, 1, constraints=Constraints(exclude=pool.clients), certificate=certificate)


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("search", ["expand", "anneal", "temper", "exhaustive", "greedy", "descent"])
def test_a_stop_at_any_moment_leaves_a_federation_and_no_false_claim(search, certificate):
    example = load_example()
    pool = example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf), seed=0)
    loss = FederationLoss(pool)
    best = -0.4619112471946742  # of 8 of 46, by branch and bound
    for limit in np.geomspace(1e-6, 0.1, 6):
        found = select(pool, 8, search=search, certificate=certificate, time_limit=float(limit))
        assert len(set(found.names)) == 8
        assert found.loss == pytest.approx(loss(found.names), abs=1e-12)
        assert found.loss >= best - 1e-12
        if found.certificate.gap is not None:
            assert found.loss - found.certificate.gap <= best + 1e-12
        if found.certificate.kind == "proof":
            assert found.stop_reason == "completed"
