from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import FederationLoss, GeometricSchedule, LogarithmicSchedule, LossWeights, _core, select
from fedsel.datasets.example import load_example
from fedsel.errors import SelectionError
from fedsel.privacy.calibration import plan_noise
from fedsel.selection import Constraints, methods
from fedsel.selection.constraints import Ruleset
from fedsel.selection.denoising import denoise
from fedsel.selection.methods import Effort, Task
from fedsel.selection.schedule import fitted_schedule
from reference import best_by_enumeration, made_exact_pool, made_pool

METHODS = ("expand", "anneal", "exhaustive", "model", "temper")

# Optima of the 46 states under the default weights, by enumeration.
OPTIMUM = {3: ("CT", "MD", "RI"), 5: ("CT", "DE", "MD", "RI", "VA")}
OPTIMAL_LOSS = {3: -0.511096, 5: -0.484733}  # bits


@pytest.fixture(scope="module")
def states():
    example = load_example()
    return example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf))


@pytest.mark.parametrize("k", [3, 5])
def test_all_methods_find_the_optimum_of_the_46_states(states, k):
    found = [select(states, k, search=method, certificate="none") for method in METHODS]
    assert {selection.names for selection in found} == {OPTIMUM[k]}
    assert {selection.loss for selection in found} == {found[0].loss}
    assert found[0].loss == pytest.approx(OPTIMAL_LOSS[k], abs=1e-6)
    assert found[2].certificate.kind == "proof"
    assert found[2].evaluations == math.comb(46, k)


@pytest.mark.parametrize("level", _core.levels())
def test_every_level_finds_the_same_federation(states, level):
    loss = FederationLoss(states, level=level)
    task = Task.of(loss, 7, Ruleset((), (), ()))
    result = methods.expand(task, Effort(seed=0, threads=2, time_limit=math.inf, keep=1, progress=None))
    reference = select(states, 7, certificate="none")
    assert tuple(loss.clients[row] for row in result.best[0][1]) == reference.names
    assert loss(reference.names) == pytest.approx(reference.loss, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_result_for_any_threads(method):
    pool = made_pool(3, clients=24, domain=[4, 6, 3, 2])

    def run(threads):
        fields = select(pool, 4, search=method, seed=9, threads=threads, certificate="none").to_dict()
        return json.dumps({name: value for name, value in fields.items() if not name.endswith("seconds")})

    assert run(1) == run(2) == run(8)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 8))
def test_small_pools_are_solved(seed, k):
    pool = made_pool(seed, clients=8, domain=[3, 4, 2])
    weights = LossWeights(1.0, 0.5, 0.25, 2.0)
    expected, members = best_by_enumeration(pool, k, weights.signed, "v0", "v2")
    for method in METHODS:
        found = select(pool, k, search=method, weights=weights)
        assert found.loss == pytest.approx(expected, abs=1e-9)
        assert found.names == tuple(pool.clients[row] for row in members)
        assert found.certificate.kind == "proof"


def test_the_result_is_complete(states):
    selection = select(states, 4, runner_ups=3)
    assert selection.k == len(selection.members) == 4
    assert selection.pool_size == 46
    assert selection.search == "expand"
    assert selection.stop_reason == "completed"
    assert selection.certificate.kind == "proof"
    assert selection.certificate.evaluations == math.comb(46, 4)
    assert len(selection.runner_ups) == 3
    losses = [selection.loss, *(runner.loss for runner in selection.runner_ups)]
    assert losses == sorted(losses)
    loss = FederationLoss(states)
    for runner in selection.runner_ups:
        assert loss(runner.members) == pytest.approx(runner.loss, abs=1e-12)
    example = load_example()
    assert [member.records for member in selection.members] == [example.records(name) for name in selection.names]
    assert not selection.privacy.private
    assert json.loads(json.dumps(selection.to_dict()))["k"] == 4


def test_runner_ups_of_an_enumeration_are_the_next_best():
    pool = made_pool(5, clients=9, domain=[3, 4, 2])
    loss = FederationLoss(pool)
    ranking = sorted(combinations(range(9), 3), key=lambda rows: loss(rows))
    found = select(pool, 3, search="exhaustive", runner_ups=10)
    assert found.names == tuple(pool.clients[row] for row in ranking[0])
    assert [runner.members for runner in found.runner_ups] == [
        tuple(pool.clients[row] for row in rows) for rows in ranking[1:11]
    ]


def test_annealing_reports_its_chains(states):
    schedule = GeometricSchedule(initial=0.1, final=0.01, cooling=0.9, evaluations_per_level=4)
    selection = select(states, 5, search="anneal", schedule=schedule, chains=3, certificate="none")
    levels = len(schedule.temperatures())
    assert len(selection.chains) == 3
    for chain in selection.chains:
        assert chain.evaluations == 1 + 4 * levels
        assert len(chain.trace) == levels
        assert chain.loss >= selection.loss - 1e-12
    assert "trace" not in selection.to_dict()["chains"][0]


def test_schedules():
    paper = GeometricSchedule()
    assert len(paper.temperatures()) == 456
    assert len(GeometricSchedule(final=1e-3).temperatures()) == 342
    assert paper.temperatures()[0] == 1.0
    assert paper.temperatures()[-1] >= 1e-4 > paper.temperatures()[-1] * 0.98
    hajek = LogarithmicSchedule(c=2.0, d=math.e, levels=10)
    assert hajek.temperatures() == pytest.approx(2.0 / np.log(np.arange(10) + math.e))
    with pytest.raises(SelectionError, match="cooling must be between 0 and 1"):
        GeometricSchedule(cooling=1.0)
    with pytest.raises(SelectionError, match="final must not exceed initial"):
        GeometricSchedule(final=2.0)
    with pytest.raises(SelectionError, match="needs more than"):
        GeometricSchedule(cooling=1 - 1e-9)
    with pytest.raises(SelectionError, match="d must be finite and above 1"):
        LogarithmicSchedule(d=1.0)
    with pytest.raises(SelectionError, match="max_evaluations must be at least 1"):
        GeometricSchedule(max_evaluations=0)


def test_a_budget_of_evaluations_is_kept(states):
    schedule = GeometricSchedule(max_evaluations=50)
    selection = select(states, 5, search="anneal", schedule=schedule, chains=2, certificate="none")
    assert selection.evaluations == 100


def test_clipping_changes_noisy_pools_only():
    pool = made_pool(6, clients=5, domain=[3, 4, 2], low=-50, high=50)
    assert denoise(pool) is pool
    clipped = denoise(pool, method="clip")
    assert np.array_equal(clipped.counts, np.maximum(pool.counts, 0))
    assert select(pool, 2, denoise_method="clip").loss == pytest.approx(select(clipped, 2).loss, abs=1e-12)
    with pytest.raises(SelectionError, match=r"denoise must be one of auto, none, clip, .* got 'magic'"):
        denoise(pool, method="magic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be between 1 and 6, got 0"),
        ({"k": 7}, "k must be between 1 and 6, got 7"),
        ({"k": True}, "k must be a number, or a smallest and a largest one, got True"),
        ({"search": "magic"}, "search must be one of auto, expand, anneal, temper, model, .*, got 'magic'"),
        ({"search": "temper", "chains": 1}, "replica exchange needs at least 2 chains, got 1"),
        ({"certificate": "maybe"}, "certificate must be one of auto, enumerate, bound, model, none, got 'maybe'"),
        ({"seed": -1}, "seed must be between 0 and"),
        ({"threads": 0}, "threads must be between 1 and 1024, got 0"),
        ({"chains": 0}, "chains must be between 1 and"),
        ({"time_limit": 0.0}, "time_limit must be positive, got 0.0"),
        ({"time_limit": math.nan}, "time_limit must be positive, got nan"),
        ({"time_limit": "soon"}, "time_limit must be positive, got 'soon'"),
        ({"runner_ups": -1}, "runner_ups must be between 0 and"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(SelectionError, match=message):
        select(made_pool(1, clients=6, domain=[3, 4, 2]), **{"k": 2, **options})


def test_a_time_limit_returns_the_best_so_far():
    pool = made_pool(2, clients=60, domain=[9, 10, 8, 2])
    selection = select(pool, 12, search="exhaustive", time_limit=0.2)
    assert selection.stop_reason == "time limit"
    assert selection.certificate.kind == "none"
    assert len(selection.members) == 12
    slow = GeometricSchedule(cooling=0.999999)
    annealed = select(pool, 12, search="anneal", schedule=slow, time_limit=0.2)
    assert annealed.stop_reason == "time limit"


def test_progress_is_called_on_this_thread_and_its_errors_are_raised():
    import threading

    pool = made_pool(2, clients=60, domain=[9, 10, 8, 2])
    calls = []

    def watch(evaluations, planned):
        calls.append((evaluations, planned, threading.current_thread()))
        if len(calls) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        select(pool, 12, search="exhaustive", progress=watch)
    assert len(calls) == 3
    assert all(thread is threading.current_thread() for _, _, thread in calls)
    assert calls[2][0] > calls[0][0]
    assert calls[0][1] == math.comb(60, 12)


def test_ctrl_c_returns_the_best_so_far():
    script = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        from reference import made_pool
        from fedsel import select
        pool = made_pool(2, clients=60, domain=[9, 10, 8, 2])
        announced = []
        def announce(evaluations, planned):
            if not announced:
                announced.append(print("searching", flush=True))
        selection = select(pool, 12, search="exhaustive", progress=announce)
        print(selection.stop_reason, len(selection.members))
    """)
    here = os.path.dirname(os.path.dirname(__file__))
    process = subprocess.Popen([sys.executable, "-c", script, here], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "searching\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted 12\n"
    assert process.wait() == 0


def test_greedy_adds_the_best_client_each_time():
    pool = made_pool(7, clients=9, domain=[3, 4, 2])
    loss, members = FederationLoss(pool), []
    for _ in range(4):
        members.append(min((c for c in range(9) if c not in members), key=lambda c: loss([*members, c])))
    found = select(pool, 4, search="greedy", certificate="none")
    assert found.names == tuple(pool.clients[row] for row in sorted(members))


def test_descent_from_a_given_start_ends_swap_optimal():
    pool = made_pool(8, clients=12, domain=[3, 4, 2])
    found = select(pool, 4, search="descent", initial=[["c000", "c001", "c002", "c003"]], certificate="none")
    assert found.certificate.kind == "swap-optimal"
    loss = FederationLoss(pool)
    for out in found.names:
        for name in set(pool.clients) - set(found.names):
            assert loss([name if member == out else member for member in found.names]) >= found.loss - 1e-12


def test_chains_start_where_they_are_told():
    pool = made_pool(9, clients=12, domain=[3, 4, 2])
    frozen = GeometricSchedule(initial=1e-9, final=1e-9, evaluations_per_level=1, max_evaluations=1)
    starts = [["c000", "c001"], ["c004", "c009"]]
    found = select(pool, 2, search="anneal", schedule=frozen, chains=2, initial=starts, certificate="none")
    assert [chain.members for chain in found.chains] == [tuple(start) for start in starts]
    with pytest.raises(SelectionError, match="initial states must be one a chain, got 1 for 2 chains"):
        select(pool, 2, search="anneal", chains=2, initial=starts[:1])
    with pytest.raises(SelectionError, match="an initial federation must have k = 3 members, got 2"):
        select(pool, 3, search="descent", initial=starts)


def test_the_fitted_schedule_follows_the_spread_of_the_loss():
    gaps = np.array([0.1, 0.2, 0.3])
    schedule = fitted_schedule(gaps, neighbours=205)
    assert schedule.initial == pytest.approx(0.2)
    assert schedule.final == pytest.approx(0.0004)
    assert schedule.evaluations_per_level == 41
    assert len(schedule.temperatures()) in (100, 101)
    assert len(fitted_schedule(np.zeros(3), neighbours=5).temperatures()) == 1
    assert len(fitted_schedule(np.zeros(0), neighbours=0).temperatures()) == 1


def test_members_that_drown_in_noise_are_named():
    example = load_example()
    private = example.pool(plan_noise(len(example.workload.sets), epsilon=0.3), seed=1)
    small = select(private.subset(["WY", "AK", "PA"]), 3)
    assert any("drowns" in note or "blurs" in note for note in small.notes)
    assert all("PA" not in note for note in small.notes)
    exact = example.pool(plan_noise(len(example.workload.sets), epsilon=math.inf))
    assert select(exact.subset(["WY", "AK"]), 2).notes == ()


def test_nothing_is_proved_on_rounded_counts():
    pool = made_pool(3, clients=6, domain=[3, 4, 2], low=10**8, high=10**9)
    found = select(pool, 2)
    assert found.certificate.kind == "none"
    assert "rounded counts" in found.certificate.statement
    assert any("divided by" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(60))
def test_certificates_hold_where_losses_tie(seed):
    """Tables of zeros and ones, so that many federations have the same loss."""
    rng = np.random.default_rng(seed)
    clients, k = int(rng.integers(3, 8)), 2
    pool = made_pool(seed, clients=clients, domain=[2, 2, 1], low=0, high=2)
    loss = FederationLoss(pool)
    found = select(pool, k, certificate="none", runner_ups=int(rng.integers(0, 6)))
    if found.certificate.kind == "swap-optimal":
        members = [pool.index(name) for name in found.names]
        for out, new in product(members, set(range(clients)) - set(members)):
            assert loss([new if row == out else row for row in members]) >= found.loss - 1e-10
    proved = select(pool, k)
    assert proved.loss == pytest.approx(min(loss(rows) for rows in combinations(range(clients), k)), abs=1e-10)


def test_extreme_weights_prove_nothing_false():
    pool = made_pool(3, clients=9, domain=[3, 4, 3, 2])
    for scale in (1e-11, 1e8):
        weights = LossWeights(2.0 * scale, 0.89 * scale, 0.11 * scale, 1.33 * scale)
        found = select(pool, 3, weights=weights)
        assert found.names == select(pool, 3).names
        assert found.certificate.kind == "proof"


@pytest.mark.parametrize("k", [1, 2, 3, 700])
def test_a_tiny_time_limit_still_gives_a_federation(k):
    pool = made_pool(2, clients=1400, domain=[3, 4, 2])
    found = select(pool, k, search="exhaustive", time_limit=1e-9)
    assert len(found.members) == k
    assert found.certificate.kind == "none"
    assert found.stop_reason == "time limit"
    assert found.evaluations == 0


def test_sizes_may_be_numpy_integers():
    pool = made_pool(2, clients=6, domain=[3, 4, 2])
    assert select(pool, np.int64(3)).names == select(pool, 3).names
    assert [size.k for size in select(pool, (np.int64(2), 3)).sizes] == [2, 3]


def test_a_pool_of_one_and_of_thousands():
    alone = made_pool(1, clients=1, domain=[3, 4, 2])
    found = select(alone, 1)
    assert found.names == alone.clients
    assert found.certificate.statement == "it is the only federation of this size"
    many = made_pool(2, clients=5000, domain=[3, 4, 2])
    found = select(many, 20)
    assert found.certificate.kind == "swap-optimal"
    assert found.loss < select(many, 20, search="greedy").loss + 1e-9


def test_names_of_any_script():
    pool = made_pool(3, clients=3, domain=[3, 4, 2])
    named = replace(pool, clients=("Zürich", "東京", "مستشفى"))
    assert set(select(named, 3).names) == set(named.clients)
    assert "東京" in select(named, 1, constraints=Constraints(include=("東京",))).names


def test_a_size_that_ran_out_of_time_is_not_called_complete():
    pool = made_pool(2, clients=40, domain=[9, 10, 8, 2])
    found = select(pool, (20, 21), search="exhaustive", time_limit=0.1)
    assert found.stop_reason == "time limit"
    assert [size.certificate for size in found.sizes] == ["none", "none"]


def test_beyond_the_clients_of_the_model_the_exact_loss_decides():
    pool = made_exact_pool(5, clients=4_097, domain=[2, 2, 2], rows=(1, 20))
    schedule = GeometricSchedule(initial=1e-3, final=1e-4, evaluations_per_level=100)
    found = select(pool, 6, search="model", schedule=schedule, chains=2, certificate="none")
    assert found.certificate.kind == "swap-optimal"
    loss = FederationLoss(pool)
    assert found.loss == loss(found.names)
    with pytest.raises(SelectionError, match="too large for a model certificate"):
        select(pool, 6, search="model", schedule=schedule, chains=2, certificate="model")
