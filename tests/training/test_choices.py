from __future__ import annotations

import numpy as np
import pytest

from fedsel.errors import SelectionError
from fedsel.selection.weights import PRESETS
from fedsel.training.choices import CHOICES, choose, table_distances
from reference import best_by_enumeration, made_pool


@pytest.fixture(scope="module")
def pool():
    return made_pool(0, clients=12, domain=(2, 3, 2, 2), low=0)


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_gives_k_members_and_repeats(pool, name):
    members = choose(name, pool, 4, seed=1)
    assert len(members) == (12 if name == "all" else 4)
    assert len(set(members)) == len(members)
    assert members == tuple(sorted(members, key=pool.index)) == choose(name, pool, 4, seed=1)


@pytest.mark.parametrize(("name", "preset"), [("fedsel", "pcs"), ("utility", "utility"), ("fairness", "fairness")])
def test_loss_choices_are_the_best_federations_of_their_weights(pool, name, preset):
    _, members = best_by_enumeration(pool, 3, PRESETS[preset].signed, "v0", "v3")
    assert choose(name, pool, 3, seed=0) == tuple(pool.clients[row] for row in sorted(members))


def test_the_largest_have_most_records(pool):
    records = pool.totals().estimate
    members = choose("largest", pool, 5, seed=0)
    outsiders = [row for row, name in enumerate(pool.clients) if name not in members]
    assert min(records[pool.index(name)] for name in members) >= max(records[outsiders])


def test_random_federations_differ_between_seeds(pool):
    drawn = {choose("random", pool, 4, seed=seed) for seed in range(20)}
    assert len(drawn) > 15
    assert {name for members in drawn for name in members} == set(pool.clients)


def test_matched_federations_have_about_the_records_of_fedsels(pool):
    records = pool.totals().estimate

    def total(members):
        return sum(records[pool.index(name)] for name in members)

    wanted = total(choose("fedsel", pool, 4, seed=0))
    matched = [total(choose("random-matched", pool, 4, seed=seed)) for seed in range(20)]
    free = [total(choose("random", pool, 4, seed=seed)) for seed in range(20)]
    assert np.abs(np.array(matched) - wanted).max() < 0.2 * np.abs(np.array(free) - wanted).max()
    assert len({choose("random-matched", pool, 4, seed=seed) for seed in range(20)}) > 5


def test_distances_by_hand(pool):
    distances = table_distances(pool)
    for row in range(len(pool)):
        parts = []
        for table in range(len(pool.workload.sets)):
            cells = np.maximum(pool.table(table)[row], 0)
            whole = pool.table(table).sum(axis=0)
            parts.append(np.abs(cells / cells.sum() - whole / whole.sum()).sum() / 2)
        assert distances[row] == pytest.approx(np.mean(parts))
    nearest = choose("nearest", pool, 3, seed=0)
    assert {pool.index(name) for name in nearest} == set(np.argsort(distances)[:3].tolist())


def test_a_client_without_counts_is_farthest():
    pool = made_pool(1, clients=3, domain=(2, 2, 2), low=1)
    counts = pool.counts.copy()
    counts[1] = 0
    from dataclasses import replace

    assert table_distances(replace(pool, counts=counts))[1] == 1.0


def test_unknown_choices_and_sizes_are_refused(pool):
    with pytest.raises(SelectionError, match=r"choice must be one of fedsel, random, .*got 'best'"):
        choose("best", pool, 3, seed=0)
    with pytest.raises(SelectionError, match="k must be between 1 and 12, got 13"):
        choose("random", pool, 13, seed=0)
