from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedsel import Workload
from fedsel.errors import ReleaseError
from fedsel.privacy.plan import NoisePlan
from fedsel.release import COUNT_BOUND
from fedsel.schema import Schema, Variable
from release_samples import PAIRS, PUBLIC, SCHEMA, exact_plan, gaussian, sample


def test_counts_are_a_read_only_copy() -> None:
    counts = sample().counts.copy()
    release = sample(counts=counts)
    before = release.counts.copy()
    counts += 1
    assert np.array_equal(release.counts, before)
    with pytest.raises(ValueError, match="read-only"):
        release.counts[0] = 1


def test_table_is_a_view_in_its_own_shape() -> None:
    release = sample()
    assert release.table(0).shape == (2, 3)
    assert np.array_equal(release.table(1).ravel(), release.counts[6:14])
    assert np.shares_memory(release.table(1), release.counts)


def test_equality_looks_at_everything() -> None:
    assert sample() == sample()
    assert sample() != sample("south")
    assert sample() != sample(counts=sample().counts + 1)
    assert sample() != sample(seeded=True)
    assert sample() != "north"
    with pytest.raises(TypeError, match="unhashable"):
        hash(sample())


def test_exact_and_seeded_are_apart() -> None:
    exact = sample(plan=exact_plan())
    assert exact.exact
    assert not exact.seeded
    seeded = sample(seeded=True)
    assert seeded.seeded
    assert not seeded.exact


def test_negative_counts_only_with_noise() -> None:
    counts = np.full(PAIRS.cells, -1, dtype=np.int64)
    assert sample(counts=counts).counts.min() == -1
    with pytest.raises(ReleaseError, match=r"counts: an exact release has no negative count, got one$"):
        sample(counts=counts, plan=exact_plan())


@pytest.mark.parametrize("name", ["", " north", "north ", "a\nb", "a\x1b[31mb", "x" * 201, "e\u0301t\u00e9", 5, None])
def test_client_names_that_are_refused(name: Any) -> None:
    with pytest.raises(ReleaseError, match=r"^client: "):
        sample(name)


@pytest.mark.parametrize("name", ["a", "été", "病院 7", "St. Mary's / ward 3", "x" * 200])
def test_client_names_that_are_accepted(name: str) -> None:
    assert sample(name).client == name


def test_rows_need_a_public_schema_and_replace_one() -> None:
    replace = gaussian(adjacency="replace-one")
    assert sample(schema=PUBLIC, plan=replace, rows=400).rows == 400
    with pytest.raises(ReleaseError, match="rows: the schema does not declare sizes public"):
        sample(plan=replace, rows=400)
    with pytest.raises(ReleaseError, match="rows: adjacency add-remove protects the size"):
        sample(schema=PUBLIC, rows=400)
    for rows in (-1, 2.0, True, COUNT_BOUND + 1):
        with pytest.raises(ReleaseError, match="rows: expected an integer between 0"):
            sample(schema=PUBLIC, plan=replace, rows=rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "gauss"}, "mechanism: expected one of discrete-gaussian, discrete-laplace, none, got 'gauss'"),
        ({"adjacency": "swap"}, "adjacency: expected one of add-remove, replace-one, got 'swap'"),
        ({"accounting": "moments"}, "accounting: expected one of"),
        ({"accounting": "none"}, "accounting: mechanism 'discrete-gaussian' does not go with accounting 'none'"),
        ({"accounting": "pure"}, "delta: pure accounting states delta = 0"),
        ({"epsilon": 0.0}, "epsilon: expected a number above 0, got 0.0"),
        ({"epsilon": -1.0}, "epsilon: expected a number above 0, got -1.0"),
        ({"epsilon": float("nan")}, "epsilon: expected a number above 0, got nan"),
        ({"epsilon": float("inf")}, "epsilon: inf does not go with mechanism 'discrete-gaussian'"),
        ({"delta": 0.0}, "delta: the discrete Gaussian needs a number above 0"),
        ({"delta": 1.0}, "delta: expected a number of"),
        ({"delta": -1e-9}, "delta: expected a number of"),
        ({"delta": float("nan")}, "delta: expected a number of"),
        ({"weights": (1, 1)}, "weights: expected 6, one per table, got 2"),
        ({"numerator": 2**63}, "noise scale: numerator and weights must be at most 2"),
        ({"epsilon": 9e-10}, "epsilon must be between 1e-09 and"),
        ({"epsilon": 1.1e6}, "epsilon must be between 1e-09 and"),
        (
            {"mechanism": "discrete-laplace", "accounting": "pure", "delta": 0.0, "numerator": 2**34},
            r"noise scale: the widest noise must stay within 2\*\*39 records, got a scale of 1\.718e\+10",
        ),
    ],
)
def test_plans_that_are_refused(changes: dict[str, Any], message: str) -> None:
    counts = sample().counts
    with pytest.raises(ReleaseError, match=message):
        sample(counts=counts, plan=gaussian(**changes))


@pytest.mark.parametrize("count", [COUNT_BOUND + 4711, -COUNT_BOUND - 4711])
def test_a_refusal_never_shows_a_count(count: int) -> None:
    counts = np.zeros(PAIRS.cells, dtype=np.int64)
    counts[7] = count
    with pytest.raises(ReleaseError, match=r"counts: .* 2\*\*40, got one (below|above)") as caught:
        sample(counts=counts)
    assert str(abs(count)) not in str(caught.value)
    counts[7] = -4711
    with pytest.raises(ReleaseError, match=r"no negative count, got one$"):
        sample(counts=counts, plan=exact_plan())


def test_laplace_plan_is_accepted() -> None:
    plan = NoisePlan("discrete-laplace", "replace-one", 2.0, 0.0, 12, (1, 1, 1, 2, 2, 2), "pure")
    assert sample(plan=plan).plan == plan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": np.zeros(3, dtype=np.int64)}, r"counts: expected shape \(44,\), got \(3,\)"),
        ({"counts": np.zeros(44)}, "counts: expected an array of int64, got float64"),
        ({"counts": [0] * 44}, "counts: expected an array of int64, got list"),
        ({"counts": np.full(44, COUNT_BOUND + 1)}, "counts: expected between"),
        ({"counts": np.full(44, np.iinfo(np.int64).min)}, "counts: expected between"),
        ({"round": 0}, "round: expected an integer between 1"),
        ({"round": True}, "round: expected an integer between 1"),
        ({"round": "1"}, "round: expected an integer between 1"),
        ({"seeded": 1}, "seeded: expected true or false, got 1"),
        ({"schema": Schema("other", (Variable("sex", categories=("F", "M")),))}, "workload: expected the schema's"),
    ],
)
def test_parts_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        sample(**changes)


def test_domain_sizes_must_be_the_schemas() -> None:
    workload = Workload(SCHEMA.names, (2, 3, 5, 2), PAIRS.sets)
    with pytest.raises(ReleaseError, match="workload: expected the schema's domain sizes"):
        sample(workload=workload, counts=np.zeros(workload.cells, dtype=np.int64))


def test_absurd_workloads_are_refused_before_anything_is_allocated() -> None:
    bins = tuple(range(300_001))
    schema = Schema("large", (Variable("a", bins=bins), Variable("b", bins=bins), Variable("c", bins=bins)))
    workload = Workload.marginals(schema, order=3)
    with pytest.raises(ReleaseError, match="workload: a release holds at most 2000000 cells, got 27000000000000000"):
        sample(schema=schema, workload=workload, plan=gaussian(1), counts=np.zeros(1, dtype=np.int64))
