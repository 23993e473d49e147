from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedsel import FederationLoss, LossWeights, Pool, Workload, select
from fedsel.errors import PrivacyError, SelectionError
from fedsel.pool_scores import ClientScores
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.selection import denoise
from fedsel.selection.make_rule import LEAST_BOUND, _clip, make_rule
from fedsel.selection.score_plan import (
    COMPONENT_SHARE,
    LOSS_SHARE,
    RECORDS_SHARE,
    TABLES_SHARE,
    plan_release,
    plan_scores,
)
from fedsel.selection.score_tilt import _tilted, check_rule, mean_scores, target_scores, tilt_to
from fedsel.selection.weights import COMPONENT_NAMES
from score_samples import SCHEMA, WORKLOAD, both_rounds, exact_pool, first_round, made_plan, second_round


def scored_pool(epsilon=4.0, seed=0):
    rule, releases = both_rounds(epsilon, seed)
    return Pool.from_releases(releases, rule=rule)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.02, 1.0])
def test_the_plan_keeps_its_promise_and_its_shares(epsilon, adjacency):
    plan = plan_scores(SCHEMA, WORKLOAD, epsilon=epsilon, adjacency=adjacency)
    assert plan.rounds == (6, 6)
    assert plan.accounting == "exact"
    assert certify(plan) <= plan.delta
    moved = 1 if adjacency == "add-remove" else 2
    cost = np.array([*(moved * w for w in plan.weights[:6]), *((moved * 256) ** 2 * w for w in plan.weights[6:])])
    cost = cost / cost.sum()
    assert cost[:6].sum() == pytest.approx(TABLES_SHARE, rel=0.02)
    np.testing.assert_allclose(
        cost[6:] / cost[6:].sum(), [LOSS_SHARE, *[COMPONENT_SHARE] * 4, RECORDS_SHARE], rtol=0.02
    )


def test_plans_of_tables_alone_are_as_before():
    assert plan_release(SCHEMA, WORKLOAD, epsilon=1.0) == plan_noise(6, epsilon=1.0)
    assert plan_release(SCHEMA, WORKLOAD, epsilon=1.0, score_rounds=1) == made_plan(1.0, rounds=1)


def test_the_rule_scores_what_the_loss_weighs():
    rule, _ = both_rounds()
    assert rule.names == ("loss", *COMPONENT_NAMES)
    np.testing.assert_allclose(rule.coefficients[0], LossWeights().signed @ rule.coefficients[1:])
    assert set(rule.coefficients[1:].sum(axis=0)) == {1.0}
    assert len(rule.bounds) == 5
    assert all(bound >= LEAST_BOUND for bound in rule.bounds)


def test_the_linear_part_ranks_federations():
    """Scores of exact data under a rule from exact tables order federations as the loss does."""
    pool = exact_pool()
    rule = make_rule(pool, made_plan().part(2))
    cells = pool.counts.astype(float)
    linear = mean_scores(cells, rule) @ LossWeights().signed
    loss = FederationLoss(pool)
    single = [loss([name]) for name in pool.clients]
    assert np.corrcoef(linear, single)[0, 1] > 0.9


def test_clipping_weighs_noise_against_what_it_cuts():
    rng = np.random.default_rng(0)
    scores = rng.normal(1.0, 2.0, 20_000)
    bounds = [_clip(scores, noise)[1] for noise in (1e-6, 0.008, 10.0)]
    assert bounds[0] > bounds[1] > bounds[2]
    assert _clip(scores, 0.008)[0] == pytest.approx(1.0, abs=0.1)
    assert _clip(np.zeros(100), 0.02) == (0.0, LEAST_BOUND)


def test_tilting_reaches_the_target_with_the_least_change():
    rng = np.random.default_rng(0)
    sizes = np.array([4, 6])
    tables = np.concatenate([rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(6), 50)], axis=1)
    information = rng.normal(0, 1, 10)
    target = np.concatenate([tables @ information + rng.normal(0, 0.3, 50)])
    found = _tilted(tables, information, sizes, target)
    np.testing.assert_allclose(found @ information, target, atol=1e-6)
    np.testing.assert_allclose(np.add.reduceat(found, [0, 4], axis=1), 1.0)
    # an I-projection: log ratios are linear in the information, with one slope for all tables of a client
    ratio = np.log(found / tables)
    for row in range(50):
        slopes = [np.polyfit(information[part], ratio[row, part], 1)[0] for part in (slice(0, 4), slice(4, 10))]
        assert slopes[0] == pytest.approx(slopes[1], abs=1e-4)


def test_a_target_out_of_reach_is_approached():
    tables = np.full((2, 4), 0.25)
    information = np.array([-1.0, 0.0, 0.0, 1.0])
    found = _tilted(tables, information, np.array([4]), np.array([5.0, -5.0]))
    assert np.isfinite(found).all()
    assert found[0] @ information > 0.8
    assert found[1] @ information < -0.8


def test_tables_without_records_start_from_the_rule():
    rule, _ = both_rounds()
    cells = np.zeros((1, WORKLOAD.cells))
    np.testing.assert_allclose(mean_scores(cells, rule), mean_scores(rule.proportions[None], rule), atol=1e-6)
    tilted = tilt_to(mean_scores(cells, rule), cells, np.array([100.0]), rule)
    np.testing.assert_allclose(np.add.reduceat(tilted[0], WORKLOAD.offsets[:-1]), 100.0)


def test_targets_follow_precise_scores_and_ignore_drowned_ones():
    pool = scored_pool(50.0)
    assert pool.scores is not None
    rule = pool.scores.rule
    truth = mean_scores(exact_pool().counts.astype(float), rule)
    sizes = np.full(6, 3000.0)
    guess = np.tile(truth.mean(axis=0), (6, 1))
    near = target_scores(guess, sizes, pool.scores)
    weights = LossWeights().signed
    assert np.abs((near - truth) @ weights).max() < 0.25 * np.abs((guess - truth) @ weights).max()


def test_scores_that_are_noise_move_nothing():
    """400 clients whose scores are noise of a standard deviation of 10 bits a row (fixed seed)."""
    rule, releases = both_rounds()
    plan = releases[-1].plan
    unit = np.array(rule.queries.units)
    noise = np.rint(np.random.default_rng(0).normal(0, 1, (400, 6)) * plan.scale).astype(np.int64)
    scores = ClientScores(rule, noise, (plan,), (0,) * 400, (True,) * 400, (2,) * 400)
    sizes = np.full(400, float(plan.scale[0] * unit[0] / 10))
    from_tables = np.tile(rule.centres[1:], (400, 1))
    moved = target_scores(from_tables, sizes, scores) - from_tables
    assert np.sqrt((moved @ LossWeights().signed) ** 2).mean() < 3.0


def test_scores_bring_losses_closer_to_the_truth():
    """Fixed seeds: over ten draws, errors of the loss of single clients are smaller with the second round."""
    truth = np.array([FederationLoss(exact_pool())([name]) for name in scored_pool().clients])

    def error(pool):
        loss = FederationLoss(denoise(pool))
        return float(np.mean((np.array([loss([name]) for name in pool.clients]) - truth) ** 2))

    with_scores = [error(scored_pool(0.3, seed)) for seed in range(10)]
    without = [error(replace(scored_pool(0.3, seed), scores=None)) for seed in range(10)]
    assert np.mean(with_scores) < np.mean(without)


def test_selection_takes_scores_by_itself():
    pool = scored_pool()
    chosen = select(pool, 2)
    assert chosen.denoise == "reference"
    assert set(chosen.names) <= set(pool.clients)
    assert select(pool, 2, weights=LossWeights.preset("utility")).loss != chosen.loss
    for method in ("none", "clip", "shrink"):
        with pytest.raises(SelectionError, match=f"scores go with denoise reference, got {method}"):
            denoise(pool, method=method)


def test_what_makes_no_rule_is_refused():
    pool = exact_pool()
    with pytest.raises(SelectionError, match=r"plan of 6 scores of one D, got \[\]"):
        make_rule(pool, plan_noise(6, epsilon=1.0))
    single = Workload(SCHEMA.names, SCHEMA.domain, (*WORKLOAD.sets, (0,)))
    counts = np.column_stack([pool.counts, np.full((6, 3), 1000)])
    plan = replace(pool.plan, weights=(1,) * 7, rounds=())
    with pytest.raises(SelectionError, match="two-way tables only"):
        make_rule(replace(pool, workload=single, counts=counts, plans=(plan,)), made_plan().part(2))


def test_rules_that_are_not_of_a_loss_are_refused():
    rule, _ = both_rounds()
    check_rule(rule, WORKLOAD)
    with pytest.raises(SelectionError, match="other tables than the pool's"):
        check_rule(rule, Workload(SCHEMA.names, SCHEMA.domain, WORKLOAD.sets[:-1]))
    halves = np.vstack([rule.coefficients[:1], 0.5 * rule.coefficients[1:]])
    with pytest.raises(SelectionError, match="every table must belong to one component"):
        check_rule(replace(rule, coefficients=halves), WORKLOAD)


def test_narrow_laplace_noise_is_denoised():
    """Noise so narrow that its variance is lost in a float."""
    for epsilon in (500.0, 1e5):
        plan = plan_scores(SCHEMA, WORKLOAD, epsilon=epsilon, mechanism="discrete-laplace")
        tables = first_round(plan)
        rule = make_rule(Pool.from_releases(tables), plan.part(2))
        pool = Pool.from_releases(tables + second_round(plan, rule), rule=rule)
        assert np.isfinite(denoise(pool).counts).all()
        assert select(Pool.from_releases(tables), 2).k == 2


def test_one_client_with_scores_is_a_pool():
    assert select(scored_pool().subset(["c0"]), 1).names == ("c0",)


def test_scores_are_never_exact():
    with pytest.raises(PrivacyError, match="epsilon must be finite"):
        plan_scores(SCHEMA, WORKLOAD, epsilon=float("inf"))


def test_tables_that_the_loss_does_not_weigh_share_alike():
    triple = Workload(SCHEMA.names, SCHEMA.domain, ((0, 1, 3),))
    assert plan_scores(SCHEMA, triple, epsilon=1.0).tables == 1
