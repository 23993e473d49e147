from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import GeometricSchedule, select
from fedsel.cli.select_output import to_json, to_text
from fedsel.datasets.example import load_example
from fedsel.privacy.calibration import plan_noise
from fedsel.report import wording
from fedsel.selection import Constraints, LossWeights, certificates
from reference import best_by_enumeration, made_exact_pool, made_pool


def states(epsilon=math.inf):
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=epsilon), seed=0)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 7), rows=st.sampled_from([(1, 5), (1, 400), (5000, 6000)]))
def test_bounds_prove_the_optimum_of_small_pools(seed, k, rows):
    pool = made_exact_pool(seed, clients=7, domain=[2, 3, 1, 4], rows=rows)
    found = select(pool, k, search="greedy", certificate="bound")
    expected, _ = best_by_enumeration(pool, k, LossWeights().signed, "v0", "v3")
    assert found.loss == pytest.approx(expected, abs=1e-9)
    assert (found.certificate.kind, found.certificate.gap) == ("proof", 0.0)
    assert f"none of the {math.comb(7, k):,} federations of this size has a lower loss" in found.certificate.statement


@pytest.mark.parametrize("epsilon", [math.inf, 0.3])
def test_bounds_and_enumeration_agree_on_the_states(epsilon):
    pool = states(epsilon)
    bound, every = (select(pool, 4, certificate=mode) for mode in ("bound", "enumerate"))
    assert (bound.names, bound.certificate.kind) == (every.names, "proof")


def test_billions_of_federations_are_proved_unasked():
    found = select(states(1.0), 15)
    assert (found.certificate.kind, found.certificate.gap) == ("proof", 0.0)
    assert f"none of the {math.comb(46, 15):,} federations" in found.certificate.statement
    assert found.certificate.evaluations < 1_000_000


def test_bounds_mend_a_poor_search():
    pool = states()
    hardly_any = GeometricSchedule(max_evaluations=2)
    found = select(pool, 4, search="anneal", schedule=hardly_any, chains=1, certificate="bound")
    assert found.names == select(pool, 4, certificate="enumerate").names
    assert found.certificate.kind == "proof"


def test_bounds_keep_constraints():
    pool = states()
    rules = Constraints(include=("WY",), exclude=("CT", "MD"), min_records=60_000)
    bound, every = (select(pool, 4, constraints=rules, certificate=mode) for mode in ("bound", "enumerate"))
    assert (bound.names, bound.certificate.kind) == (every.names, "proof")
    assert "that keep the constraints has a lower loss" in bound.certificate.statement


def test_what_does_not_close_is_said_with_a_gap_that_holds(monkeypatch):
    pool = states()
    best = select(pool, 5, certificate="enumerate").loss
    monkeypatch.setattr(certificates, "_MOST_NODES", 100)
    found = select(pool, 5, certificate="bound")
    gap = found.certificate.gap
    assert found.certificate.kind == "swap-optimal"
    assert 0 < gap <= 0.5
    assert found.loss - gap <= best + 1e-12
    assert f"a better one is better by {gap:.2g} bits at most, by bounds" in found.certificate.statement
    assert f"{gap:.2g} bits at most" in to_text(found)
    shown = json.loads(to_json(found, command="", version="", wall_seconds=0.0))
    assert shown["certificate"]["gap"] == gap
    assert wording.certificate(found)[1].endswith(f"None is better by more than {gap:.2g} bits: that is proved.")


def test_nothing_closed_is_said_as_well(monkeypatch):
    monkeypatch.setattr(certificates, "_MOST_NODES", 0)
    certificate = select(states(), 10, certificate="bound").certificate
    assert (certificate.kind, certificate.gap) == ("swap-optimal", None)
    assert "bounds on the loss closed nothing" in certificate.statement


@pytest.mark.parametrize("pool", [made_pool(1, clients=8, domain=[2, 3, 2]), states(1.0)])
def test_tables_that_disagree_have_no_bounds(pool):
    certificate = select(pool, 3, certificate="bound", denoise_method="none").certificate
    assert (certificate.kind, certificate.gap) == ("swap-optimal", None)
    assert "no bounds for tables that disagree" in certificate.statement


def test_a_client_without_records_has_no_bounds():
    pool = made_exact_pool(2, clients=8, domain=[2, 3, 2], rows=(10, 50))
    counts = pool.counts.copy()
    counts[3] = 0
    certificate = select(replace(pool, counts=counts), 3, certificate="bound").certificate
    assert "or for clients without records" in certificate.statement


def test_no_time_no_proof():
    found = select(states(), 10, certificate="bound", time_limit=1e-9)
    assert found.stop_reason == "time limit"
    assert (found.certificate.kind, found.certificate.gap) == ("none", None)


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(certificates, "_MOST_NODES", 60)
    one, two = (select(states(), 7, certificate="bound", threads=threads) for threads in (1, 2))
    assert one.certificate == two.certificate
    assert one.runner_ups == two.runner_ups
