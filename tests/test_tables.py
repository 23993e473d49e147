from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import Marginals, Workload, count
from fedsel.errors import DataError, SchemaError
from reference import made_schema

DTYPES = (np.uint8, np.uint16, np.int32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    domain=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    rows=st.sampled_from([0, 1, 2, 3, 100, 2047, 2048, 2049, 5000]),
    reverse=st.booleans(),
)
def test_counts_equal_a_histogram_of_each_table(seed, domain, rows, reverse):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, rows).astype(DTYPES[i % 3]) for i, size in enumerate(domain)]
    if reverse:
        columns = [np.repeat(column, 2)[::-2] for column in columns]
    every = [s for order in (1, 2, 3) for s in combinations(range(len(domain)), order)]
    chosen = [s for s in every if rng.random() < 0.6] or every[:1]
    workload = Workload(tuple(f"v{i}" for i in range(len(domain))), tuple(domain), tuple(chosen))
    marginals = count(columns, workload)
    for t, members in enumerate(workload.sets):
        expected = np.zeros(workload.shapes[t], dtype=np.int64)
        np.add.at(expected, tuple(columns[v].astype(int) for v in members), 1)
        assert np.array_equal(marginals.table(t), expected)


def test_layout_and_labels():
    schema = made_schema([3, 4, 2])
    workload = Workload.pairs(schema)
    assert workload.sets == ((0, 1), (0, 2), (1, 2))
    assert workload.offsets.tolist() == [0, 12, 18, 26]
    assert workload.cells == 26
    assert workload.label(1) == "v0 x v2"
    assert Workload.of(schema, [("v2", "v0"), ("v1",)]).sets == ((0, 2), (1,))
    assert len(Workload.marginals(schema, order=3).sets) == 1


def test_batches_add_up():
    rng = np.random.default_rng(0)
    workload = Workload.pairs(made_schema([3, 4, 2]))
    columns = [rng.integers(0, size, 1000).astype(np.uint8) for size in (3, 4, 2)]
    parts = [count([column[first : first + 300] for column in columns], workload) for first in range(0, 1000, 300)]
    total = sum(parts[1:], parts[0])
    assert np.array_equal(total.counts, count(columns, workload).counts)
    with pytest.raises(DataError, match="different workloads"):
        parts[0] + Marginals(Workload.pairs(made_schema([3, 4])), np.zeros(12, dtype=np.int64))


def test_columns_are_borrowed_not_copied():
    base = np.zeros((50_000, 3), dtype=np.uint8)
    base[:, 1] = 1
    columns = [base[:, i] for i in range(3)]
    marginals = count(columns, Workload.pairs(made_schema([3, 4, 2])))
    assert marginals.table(0)[0, 1] == 50_000


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([np.zeros(3, np.uint8)] * 2, "expected 3 columns, one per variable, got 2"),
        ([np.zeros(3, np.uint8)] * 2 + [np.zeros(4, np.uint8)], r"column 2 must have shape \(3,\)"),
        ([np.zeros(3, np.uint8)] * 2 + [np.zeros((3, 1), np.uint8)], r"column 2 must have shape \(3,\)"),
        ([np.zeros(3, np.uint8)] * 2 + [np.zeros(3)], "column 2 must be uint8, uint16 or int32, got float64"),
        ([np.zeros(3, np.uint8)] * 2 + [np.zeros(3, ">i4")], "column 2 must be uint8, uint16 or int32, got >i4"),
        ([np.zeros(3, np.uint8)] * 2 + [np.array([0, 1, 2], np.uint8)], "must be between 0 and 1, got 2 in row 2"),
        ([np.zeros(3, np.uint8)] * 2 + [np.array([0, -1, 0], np.int32)], "must be between 0 and 1, got -1 in row 1"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        count(columns, Workload.pairs(made_schema([3, 4, 2])))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (((0, 1), (0, 1)), "occurs twice"),
        (((1, 0),), "must increase"),
        (((0, 3),), "between 0 and 2"),
        (((-1, 0),), "between 0 and 2"),
        (((),), "must hold 1 to 3 variables, got 0"),
    ],
)
def test_bad_workloads_are_refused(sets, message):
    with pytest.raises(SchemaError, match=message):
        Workload(("a", "b", "c"), (3, 4, 2), sets)


def test_counting_nothing_is_refused():
    schema = made_schema([3, 4, 2])
    empty = Workload(schema.names, schema.domain, ())
    assert (empty.cells, empty.offsets.tolist()) == (0, [0])
    with pytest.raises(DataError, match="at least one variable set is needed, got none"):
        count([np.zeros(3, dtype=np.uint8)] * 3, empty)


def test_bad_workload_requests_are_refused():
    schema = made_schema([3, 4, 2])
    with pytest.raises(SchemaError, match="order must be between 1 and 3, got 4"):
        Workload.marginals(schema, order=4)
    with pytest.raises(SchemaError, match="the schema has no variable 'x'"):
        Workload.of(schema, [("v0", "x")])
    with pytest.raises(DataError, match=r"expected 26 cells, got shape \(3,\)"):
        Marginals(Workload.pairs(schema), np.zeros(3, dtype=np.int64))
