from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discovery_samples import small_clients, small_schema
from fedsel.errors import PrivacyError, SubgroupError
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.subgroups.federated import SubgroupProtocol, discover, next_questions
from fedsel.subgroups.federated.client import asked
from fedsel.subgroups.federated.secure_sum import EVERYONE, noisy_sum, share_out
from fedsel.tables import count


def test_shares_add_up_to_the_noise_of_the_sum() -> None:
    protocol = SubgroupProtocol.make(small_schema(), pairs=2)
    plan = protocol.plan(0.5)
    for honest in (4, 7, 9):
        noise = share_out(plan, 9, honest=honest)
        assert np.all(honest * noise.share.scale**2 >= plan.scale**2 * (1 - 1e-12))
        assert np.all(honest * noise.share.scale**2 <= plan.scale**2 * 1.001)
        assert noise.total.epsilon >= plan.epsilon
        assert noise.total.epsilon == pytest.approx(plan.epsilon, abs=1e-6)


def test_the_noise_of_the_sum_has_its_variance() -> None:
    """False-alarm rate 1e-6, two-sided."""
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    plan, workload = protocol.plan(1.0), protocol.first()
    exact = [count(codes.columns, workload) for codes in small_clients(0, schema)]
    truth = sum(part.counts for part in exact)
    draws = np.concatenate([noisy_sum(exact, schema, plan, seed=s).counts - truth for s in range(60)])
    sigma = plan.part(1).scale[0]
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], draws.size)
    assert low < (draws**2).sum() / sigma**2 < high


def test_a_discovery_from_sums_runs_and_exact_sums_are_exact() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=6)
    clients = small_clients(2, schema)
    plan = protocol.plan(np.inf)
    rounds: list[Pool] = []
    questions = None
    for number in (1, 2):
        workload, _ = asked(protocol, questions)
        exact = [count(codes.columns, workload) for codes in clients]
        rounds.append(Pool.from_releases([noisy_sum(exact, schema, plan, round=number)]))
        questions = next_questions(protocol, rounds) if number == 1 else None
    found = discover(protocol, rounds, k=3)
    assert found.clients == (EVERYONE,)
    assert found.records == pytest.approx(sum(codes.rows for codes in clients))


def test_what_cannot_be_shared_out_is_refused() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    with pytest.raises(PrivacyError, match="too narrow to add up to a discrete Gaussian"):
        share_out(protocol.plan(200.0), 50)
    with pytest.raises(PrivacyError, match="discrete Gaussian only, got discrete-laplace"):
        share_out(protocol.plan(1.0, mechanism="discrete-laplace"), 3)
    with pytest.raises(PrivacyError, match="honest must be between 1 and 3, got 4"):
        share_out(protocol.plan(1.0), 3, honest=4)
    with pytest.raises(SubgroupError, match="at least one client"):
        noisy_sum([], schema, protocol.plan(1.0))
    first = count(small_clients(0, schema)[0].columns, protocol.first())
    other = count(small_clients(0, schema)[0].columns, protocol.workload([(0,)]))
    with pytest.raises(SubgroupError, match="the same tables"):
        noisy_sum([first, other], schema, protocol.plan(1.0))


def test_the_loss_of_narrow_shares_is_stated() -> None:
    """Against a direct computation of both distributions on a grid."""
    plan = NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 6, (1,), "exact")
    noise = share_out(plan, 2)
    loss = noise.total.epsilon - plan.epsilon
    assert loss > 0
    grid = np.arange(-60, 61)
    one = np.exp(-(grid**2) / (2 * 3.0))
    two = np.convolve(one / one.sum(), one / one.sum())[60:181]
    whole = np.exp(-(grid**2) / (2 * 6.0))
    inside = np.abs(grid) < 20
    ratio = np.abs(np.log(two[inside] / (whole / whole.sum())[inside])).max()
    assert ratio <= loss / 2


def test_what_clients_add_who_may_not_be_honest_is_in_the_noise_of_the_sum() -> None:
    """Two honest ones of four: their noise has the variance of the plan, that of all four twice as much."""
    plan = SubgroupProtocol.make(small_schema(), pairs=2).plan(0.5)
    noise = share_out(plan, 4, honest=2)
    np.testing.assert_allclose(noise.total.scale**2, 4 * noise.share.scale**2, rtol=1e-12)
    np.testing.assert_allclose(noise.total.scale**2, 2 * plan.scale**2, rtol=1e-3)
    assert noise.total.epsilon == pytest.approx(plan.epsilon, abs=1e-6)


def test_one_seed_gives_other_noise_at_other_budgets() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    exact = [count(codes.columns, protocol.first()) for codes in small_clients(0, schema)]
    truth = sum(part.counts for part in exact)
    one, two = (noisy_sum(exact, schema, protocol.plan(e), seed=0).counts - truth for e in (0.5, 1.0))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.9
