from __future__ import annotations

import numpy as np
import pytest

from fedsel import Marginals, Schema, Variable, Workload, count, encode
from fedsel.datasets.decode import decode
from fedsel.datasets.example import load_example
from fedsel.datasets.tree import fit_tree
from fedsel.errors import DataError
from reference import made_schema, mutual_information


def test_rows_have_the_tables_of_the_tree():
    """Cells of the tree's own pairs and one-way tables within six standard deviations, 150,000 rows, fixed seed."""
    example = load_example()
    exact = example.marginals("CT")
    model = fit_tree(exact)
    rows = 150_000
    made = count([c.astype(np.int32) for c in model.sample(rows, seed=1)], example.workload)
    edges = {(min(v, p), max(v, p)) for v, p in enumerate(model.parent) if p >= 0}
    assert len(edges) == 10
    for t, pair in enumerate(example.workload.sets):
        p = exact.table(t) / exact.table(t).sum()
        if pair in edges:
            spread = np.sqrt(rows * p * (1 - p))
            assert np.all(np.abs(made.table(t) - rows * p) <= 6 * spread)


def test_the_tree_has_the_most_information_among_all_trees():
    example = load_example()
    exact = example.marginals("WY")
    information = {pair: mutual_information(exact.table(t)) for t, pair in enumerate(example.workload.sets)}
    model = fit_tree(exact)
    found = sum(information[min(v, p), max(v, p)] for v, p in enumerate(model.parent) if p >= 0)
    joined, best = {0}, 0.0  # Prim's algorithm
    while len(joined) < 11:
        value, new = max((information[min(a, b), max(a, b)], b) for a in joined for b in range(11) if b not in joined)
        best += value
        joined.add(new)
    assert found == pytest.approx(best, abs=1e-12)


def test_decoded_rows_encode_to_the_same_codes():
    schema = Schema(
        name="mixed",
        variables=(
            Variable(name="age", bins=(0, 18, 30.5, 65), missing="category"),
            Variable(name="count", bins=(-1, 0, 10, 20)),
            Variable(name="group", categories=("a", "b", "ü"), missing="category"),
            Variable(name="y", categories=(0, 1), role="target"),
        ),
    )
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, size, 500).astype(np.int32) for size in schema.domain]
    values = decode(schema, codes, seed=3)
    assert values["count"].dtype == np.int64
    again = encode(schema, values)
    for before, after in zip(codes, again.columns, strict=True):
        assert np.array_equal(before, after)


def test_example_rows_encode():
    example = load_example()
    codes = fit_tree(example.marginals("WY")).sample(400, seed=0)
    again = encode(example.schema, decode(example.schema, codes, seed=0))
    assert all(np.array_equal(a, b) for a, b in zip(codes, again.columns, strict=True))


def test_tables_that_cannot_carry_a_tree_are_refused():
    schema = made_schema([3, 4, 2])
    pairs = Workload.pairs(schema)
    with pytest.raises(DataError, match="at least one row"):
        fit_tree(Marginals(pairs, np.zeros(pairs.cells, dtype=np.int64)))
    some = Workload.of(schema, [("v0", "v1")])
    with pytest.raises(DataError, match="tables of all pairs"):
        fit_tree(Marginals(some, np.ones(some.cells, dtype=np.int64)))
