from __future__ import annotations

from itertools import combinations

import pytest

from fedsel import LossWeights
from fedsel.errors import SelectionError
from fedsel.selection import Constraints, pareto_front
from reference import components, made_pool


def halves(pool, rows):
    weighted = components(pool, rows, "v0", f"v{len(pool.schema.names) - 1}") * LossWeights().signed
    return weighted[:2].sum(), -weighted[2:].sum()


@pytest.mark.parametrize("seed", range(5))
def test_no_federation_beats_a_point_of_the_convex_front(seed):
    pool = made_pool(seed, clients=9, domain=[3, 4, 5, 2])
    front = pareto_front(pool, 3, steps=41)
    every = {rows: halves(pool, rows) for rows in combinations(range(9), 3)}
    for point in front.points:
        rows = tuple(pool.index(name) for name in point.members)
        assert (point.unfairness, point.utility) == pytest.approx(every[rows], abs=1e-9)
    unfairness = [point.unfairness for point in front.points]
    utility = [point.utility for point in front.points]
    assert unfairness == sorted(unfairness)
    assert utility == sorted(utility)
    # Both ends, and the optimum of every mixture that was tried.
    for step in range(41):
        x = step / 40
        best = min((1 - x) * u - x * v for u, v in every.values())
        assert min((1 - x) * p.unfairness - x * p.utility for p in front.points) == pytest.approx(best, abs=1e-9)


def test_constraints_are_kept():
    pool = made_pool(7, clients=8, domain=[3, 4, 2])
    front = pareto_front(pool, 3, constraints=Constraints(include=("c004",), exclude=("c001",)))
    assert all("c004" in point.members and "c001" not in point.members for point in front.points)


def test_half_weights_are_enough():
    pool = made_pool(8, clients=6, domain=[3, 4, 2])
    assert pareto_front(pool, 2, weights=LossWeights.preset("fairness")).points


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 1}, "steps must be between 2 and 1000, got 1"),
        ({"steps": 2.5}, "steps must be between 2 and 1000, got 2.5"),
        ({"threads": 0}, "threads must be between 1 and 1024, got 0"),
        ({"seed": -1}, "seed must be between 0 and"),
        ({"time_limit": 0.0}, "time_limit must be positive, got 0.0"),
        ({"k": 0}, "k must be between 1 and 5, got 0"),
        ({"k": 6}, "k must be between 1 and 5, got 6"),
    ],
)
def test_bad_options_are_refused(options, message):
    pool = made_pool(9, clients=5, domain=[3, 4, 2])
    with pytest.raises(SelectionError, match=message):
        pareto_front(pool, **{"k": 2, **options})


def test_tiny_weights_may_vanish_in_a_mixture():
    pool = made_pool(8, clients=6, domain=[3, 4, 2])
    assert pareto_front(pool, 2, weights=LossWeights(1e-12, 0.0, 0.0, 1.0)).points
