from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import FederationLoss, GeometricSchedule, select
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.report import wording
from fedsel.selection import Constraints, LossWeights, bounds, certificates, methods
from fedsel.selection.evidence import ModelEvidence
from fedsel.selection.result import CertificateKind
from reference import best_by_enumeration, made_exact_pool, made_pool


def states(epsilon=math.inf):
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=epsilon), seed=0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 9), exact=st.booleans())
def test_the_model_certificate_finds_the_optimum_of_small_pools(seed, k, exact):
    made = made_exact_pool if exact else made_pool
    pool = made(seed, clients=9, domain=[2, 3, 1, 4])
    found = select(pool, k, certificate="model")
    expected, _ = best_by_enumeration(pool, k, LossWeights().signed, "v0", "v3")
    assert found.loss == pytest.approx(expected, abs=1e-9)
    assert found.certificate.kind == "model"
    assert f"all {math.comb(9, k):,} federations" in found.certificate.statement


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_where_bounds_end_without_proof_the_model_is_tried(epsilon, monkeypatch):
    monkeypatch.setattr(certificates, "_BOUND_WORK", 10 * 46**2)
    pool = states(epsilon)
    found = select(pool, 10)
    assert found.certificate.kind == "model"
    assert f"{math.comb(46, 10):,}" in found.certificate.statement
    assert "No proof" in found.certificate.statement
    assert 0 < found.certificate.evaluations < 200_000
    alone = select(pool, 10, certificate="none")
    assert (found.names, found.loss, alone.certificate.kind) == (alone.names, alone.loss, "swap-optimal")


def test_model_and_enumeration_agree_on_the_best_six():
    pool = states()
    model, proof = select(pool, 4, certificate="model"), select(pool, 4, certificate="enumerate")
    assert (model.certificate.kind, proof.certificate.kind) == ("model", "proof")
    assert model.names == proof.names
    assert [other.members for other in model.runner_ups] == [other.members for other in proof.runner_ups]


def test_a_model_certificate_mends_a_poor_search():
    pool = states()
    hardly_any = GeometricSchedule(max_evaluations=2)
    poor = select(pool, 4, search="anneal", schedule=hardly_any, chains=1, certificate="none")
    found = select(pool, 4, search="anneal", schedule=hardly_any, chains=1, certificate="model")
    assert found.loss < poor.loss
    assert found.names == select(pool, 4, certificate="enumerate").names


def test_model_certificates_keep_constraints():
    pool = states()
    rules = Constraints(include=("WY",), exclude=("CT", "MD"), min_records=60_000)
    model = select(pool, 4, constraints=rules, certificate="model")
    proof = select(pool, 4, constraints=rules, certificate="enumerate")
    assert (model.certificate.kind, proof.certificate.kind) == ("model", "proof")
    assert model.names == proof.names
    assert "that keep the constraints" in model.certificate.statement


def test_the_result_does_not_depend_on_the_number_of_threads():
    pool = states()
    one, two = (select(pool, 7, certificate="model", threads=threads) for threads in (1, 2))
    assert one.certificate == two.certificate
    assert one.runner_ups == two.runner_ups


def test_auto_leaves_alone_what_takes_long(monkeypatch):
    pool = states()
    monkeypatch.setattr(certificates, "_BOUND_CLIENTS", 45)
    monkeypatch.setattr(bounds, "branch_and_bound", None)  # not even tried
    monkeypatch.setattr(certificates, "_MODEL_RECHECKS", 10)
    wide = select(pool, 10).certificate
    assert wide.kind == "swap-optimal"
    assert "too rough" in wide.statement
    monkeypatch.setattr(certificates, "_MODEL_RECHECKS", 10**6)
    monkeypatch.setattr(certificates, "_MODEL_PREFIXES", 10)
    long = select(pool, 10).certificate
    assert long.kind == "swap-optimal"
    assert "too many federations" in long.statement
    monkeypatch.setattr(certificates, "_MODEL_CLIENTS", 45)
    monkeypatch.setattr(methods, "certify_model", None)  # not even tried
    assert select(pool, 10).certificate.statement == "no exchange of up to 3 members for outsiders lowers the loss"


@pytest.mark.parametrize("size", [2, 3])
def test_exchanges_of_several_members(monkeypatch, size):
    pool = made_pool(5, clients=12, domain=[3, 4, 2, 3])
    monkeypatch.setattr(certificates, "AFFORDABLE", 100)
    monkeypatch.setattr(certificates, "_MODEL_CLIENTS", 1)
    assert "one member for one outsider" in select(pool, 5).certificate.statement
    monkeypatch.setattr(certificates, "_EXCHANGED", (size,))
    # Of 792 federations, 245 differ in one or two members and 595 in up to three.
    monkeypatch.setattr(certificates, "AFFORDABLE", 500)
    found = select(pool, 5)
    assert (f"up to {size} members" in found.certificate.statement) == (size == 2)
    loss = FederationLoss(pool)
    members = {pool.index(name) for name in found.names}
    for other in combinations(range(12), 5):
        if len(members - set(other)) <= (2 if size == 2 else 1):
            assert loss(list(other)) >= found.loss - 1e-10


def test_a_model_that_was_wrong_gives_no_model_certificate():
    loss = SimpleNamespace(shift=0, losses_of=lambda federations: [-1.0])
    task = SimpleNamespace(constrained=False, loss=loss)
    evidence = ModelEvidence("certified", covered=10, rechecked=3, compared=3, band=0.1)
    search = methods.Found(((-1.0, (0, 1)),), 5, 0.1, "completed")
    model = methods.Found(((-1.0, (0, 1)),), 3, 0.1, "completed", model=evidence)
    better = methods.Found(((-1.5, (2, 3)),), 4, 0.1, "completed", certified=(2, 3), exchanged=2)
    wrong = certificates.describe(task, search, (model, better), (2, 3), -1.5)
    assert wrong.kind == "swap-optimal"
    assert wrong.statement.endswith("the second-order model was wrong here")
    right = certificates.describe(task, search, (model, better), (0, 1), -1.0)
    assert right.kind == "model"


def test_no_time_no_model_certificate():
    found = select(states(), 10, certificate="model", time_limit=1e-9)
    assert found.stop_reason == "time limit"
    assert found.certificate.kind == "none"


def test_pools_too_large_for_the_model_are_refused():
    pool = made_pool(1, clients=1500, domain=[2, 2, 2])
    with pytest.raises(ValueError, match="the pool is too large for a model certificate"):
        select(pool, 40, certificate="model")
    assert select(pool, 40).certificate.kind == "swap-optimal"


def test_no_model_certificate_on_rounded_counts():
    pool = made_pool(3, clients=8, domain=[3, 4, 2], low=10**8, high=10**9)
    assert select(pool, 3, certificate="model").certificate.kind != "model"


@pytest.mark.parametrize(("certificate", "kind"), [("model", "model"), ("bound", "proof")])
def test_extreme_weights(certificate, kind):
    pool = made_exact_pool(3, clients=12, domain=[3, 4, 3, 2], rows=(10, 400))
    expected = select(pool, 4, certificate="enumerate").names
    for scale in (1e-11, 1e8):
        weights = LossWeights(2.0 * scale, 0.89 * scale, 0.11 * scale, 1.33 * scale)
        found = select(pool, 4, weights=weights, certificate=certificate)
        assert (found.names, found.certificate.kind) == (expected, kind)


@pytest.mark.parametrize(("certificate", "kind"), [("model", "model"), ("bound", "proof")])
def test_clients_that_are_all_alike(certificate, kind):
    pool = made_exact_pool(3, clients=1, domain=[3, 4, 2], rows=(50, 51))
    alike = replace(
        pool,
        clients=tuple(f"c{i}" for i in range(12)),
        counts=np.repeat(pool.counts, 12, axis=0),
        plan_index=(0,) * 12,
        seeded=(False,) * 12,
        rounds=(1,) * 12,
        rows=(None,) * 12,
    )
    found = select(alike, 5, certificate=certificate)
    assert found.certificate.kind == kind
    assert found.loss == pytest.approx(FederationLoss(alike)([0]))


def test_every_kind_has_words_in_the_report():
    assert set(wording._CERTIFICATES) == set(get_args(CertificateKind))
