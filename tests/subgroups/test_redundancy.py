"""Filters, diversity and significance."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from fedsel.subgroups import SubgroupDiscovery
from fedsel.subgroups.result import p_text
from subgroup_reference import made_rows, quality_of

OPTIONS = dict(search="exhaustive", quality="binomial", depth=3, min_support=5)


def masks(found, X):
    covers = found.transform(X)
    return [covers[:, i] for i in range(covers.shape[1])]


def mask_of(conditions, X):
    return np.logical_and.reduce([X[c.attribute] == int(c.text.split()[-1]) for c in conditions])


def test_every_reported_condition_improves():
    X, y = made_rows(6, 600)
    everything = SubgroupDiscovery(k=2000, **OPTIONS).fit(X, y).subgroups_

    def gain(subgroup):
        shorter = [c for c in combinations(subgroup.conditions, len(subgroup.conditions) - 1)]
        return subgroup.quality - max(quality_of("binomial", mask_of(c, X), y) if c else 0.0 for c in shorter)

    for least in (0.0, 0.01):
        found = SubgroupDiscovery(k=15, min_improvement=least, **OPTIONS).fit(X, y).subgroups_
        expected = [s for s in everything if gain(s) > 1e-12 and gain(s) >= least][:15]
        assert [s.description for s in found] == [s.description for s in expected]
        assert 0 < len(found) <= 15
    assert len(found) < len(everything)


def test_overlaps_stay_below_the_limit_and_nothing_else_is_left_out():
    X, y = made_rows(6, 600)
    everything = SubgroupDiscovery(k=2000, **OPTIONS).fit(X, y)
    found = SubgroupDiscovery(k=12, max_overlap=0.3, **OPTIONS).fit(X, y)
    kept = []
    for mask, subgroup in zip(masks(everything, X), everything.subgroups_, strict=True):
        if all((mask & other).sum() <= 0.3 * (mask | other).sum() for other, _ in kept):
            kept.append((mask, subgroup))
    assert found.subgroups_ == tuple(subgroup for _, subgroup in kept[:12])


def test_filters_look_further_until_enough_pass():
    y = np.arange(400) % 4 == 0
    X = {f"same{i}": y for i in range(12)} | {"other": np.arange(400) % 8 == 0}
    found = SubgroupDiscovery(k=2, depth=3, max_overlap=0.9, search="exhaustive").fit(X, y)
    assert [s.description for s in found.subgroups_] == ["same0 = True", "other = True"]


def test_diverse_results_overlap_less():
    X, y = made_rows(6, 2000, sizes=(3, 4, 5, 4, 3))

    def mean_overlap(diversity):
        found = SubgroupDiscovery(k=8, diversity=diversity, diversity_weight=0.3, **OPTIONS).fit(X, y)
        assert len(found.subgroups_) == 8
        pairs = combinations(masks(found, X), 2)
        return np.mean([(a & b).sum() / (a | b).sum() for a, b in pairs])

    assert mean_overlap("cover") < 0.7 * mean_overlap("none")


@pytest.mark.parametrize("diversity", ["cover", "description"])
def test_diverse_beams_keep_their_width(diversity):
    X, y = made_rows(6, 2000, sizes=(3, 4, 5, 4, 3))
    found = SubgroupDiscovery(k=5, width=4, depth=3, diversity=diversity).fit(X, y)
    assert found.evaluations_ <= len(found.conditions_) * (1 + 2 * 4)
    best = max(s.quality for s in found.subgroups_)
    assert found.subgroups_[0].quality == best


def test_weight_one_is_no_diversity_by_cover():
    X, y = made_rows(6, 500)
    plain = SubgroupDiscovery(k=8, **OPTIONS).fit(X, y).subgroups_
    assert SubgroupDiscovery(k=8, diversity="cover", diversity_weight=1.0, **OPTIONS).fit(X, y).subgroups_ == plain


@pytest.mark.parametrize("direction", ["higher", "lower", "both"])
def test_p_values_are_those_of_fishers_test(direction):
    X, y = made_rows(6, 120)
    found = SubgroupDiscovery(k=5, direction=direction, significance="bonferroni").fit(X, y)
    side = {"higher": "greater", "lower": "less"}
    for subgroup in found.subgroups_:
        n, p, positives = subgroup.rows, subgroup.positives, int(y.sum())
        table = [[p, n - p], [positives - p, 120 - positives - n + p]]
        if direction == "both":
            ends = [stats.fisher_exact(table, alternative=s).pvalue for s in side.values()]
            expected = min(1.0, 2 * min(ends))
        else:
            expected = stats.fisher_exact(table, alternative=side[direction]).pvalue
        assert subgroup.p_value == pytest.approx(expected, rel=1e-9)
        assert subgroup.adjusted_p_value == pytest.approx(min(1.0, expected * found.descriptions_), rel=1e-9)


def test_p_values_of_numbers_are_those_of_random_samples():
    X, y = made_rows(9, 200, numbers=True)
    found = SubgroupDiscovery(k=3, significance="bonferroni", min_support=40, quality="gain").fit(X, y)
    rng = np.random.default_rng(1)
    weak = next(s for s in found.subgroups_ if s.rows >= 40)
    means = np.array([rng.choice(y, weak.rows, replace=False).mean() for _ in range(20_000)])
    spread = np.std(means)
    assert weak.p_value == pytest.approx(stats.norm.sf((weak.mean - y.mean()) / spread), rel=0.3)


def test_the_number_of_descriptions():
    X, y = made_rows(1, 300, sizes=(2, 3, 4))
    assert SubgroupDiscovery(depth=1).fit(X, y).descriptions_ == 9
    assert SubgroupDiscovery(depth=2).fit(X, y).descriptions_ == 9 + (6 + 8 + 12)
    assert SubgroupDiscovery(depth=5).fit(X, y).descriptions_ == 9 + 26 + 24
    overlapping = SubgroupDiscovery(depth=2, set_size=2).fit(X, y)
    n = len(overlapping.conditions_)
    assert overlapping.descriptions_ == n + n * (n - 1) // 2


def test_shuffled_outcomes_seldom_look_significant():
    """At a level of 0.1, 60 noise data sets report 6 on average; 16 or more with probability 2e-4."""
    rng = np.random.default_rng(0)
    reported = 0
    for seed in range(60):
        X, _ = made_rows(seed, 150)
        noise = rng.random(150) < 0.3
        found = SubgroupDiscovery(significance="permutation", permutations=39, max_p_value=0.1, depth=2, seed=seed).fit(
            X, noise
        )
        reported += bool(found.subgroups_)
    assert reported <= 15


def test_real_effects_survive_and_their_values_follow_the_definition():
    X, y = made_rows(6, 600)
    found = SubgroupDiscovery(significance="permutation", permutations=50, k=30, seed=3, threads=1)
    subgroups = found.fit(X, y).subgroups_
    assert found.permutations_ == 50
    assert subgroups[0].adjusted_p_value == pytest.approx(1 / 51)
    values = [s.adjusted_p_value for s in subgroups]
    assert values == sorted(values)
    assert found.fit(X, y).subgroups_ == subgroups
    kept = SubgroupDiscovery(significance="permutation", permutations=50, k=30, seed=3, max_p_value=0.02).fit(X, y)
    assert kept.subgroups_ == tuple(s for s in subgroups if s.adjusted_p_value <= 0.02)


def test_vanishing_p_values_are_shown_as_bounds():
    assert [p_text(p) for p in (0.0, 1e-310, 2.345e-300, 0.01234, 1.0)] == [
        *("<1e-300", "<1e-300", "2.3e-300", "0.012", "1"),
    ]


def test_a_time_limit_ends_the_shuffles():
    X, y = made_rows(6, 600)
    found = SubgroupDiscovery(significance="permutation", permutations=10**7, time_limit=0.5).fit(X, y)
    assert 0 < found.permutations_ < 10**7
