"""Counting 190,000 rows into the 55 pair tables of 11 variables, beside numpy and pandas.

pytest benchmarks/test_count.py --benchmark-group-by=group --benchmark-sort=min
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fedsel import Workload, count
from fedsel.datasets.example import load_example
from fedsel.datasets.tree import fit_tree

ROWS = 190_000


@pytest.fixture(scope="module")
def rows():
    example = load_example()
    columns = [c.astype(np.uint8) for c in fit_tree(example.marginals("PA")).sample(ROWS, seed=0)]
    return columns, example.workload


def bincount(columns, workload: Workload):
    """One `np.bincount` a table, the best of numpy; codes are widened beforehand."""
    domain = workload.domain
    return np.concatenate(
        [np.bincount(columns[i] * domain[j] + columns[j], minlength=domain[i] * domain[j]) for i, j in workload.sets]
    )


@pytest.mark.benchmark(group="count")
def test_fedsel(benchmark, rows):
    columns, workload = rows
    result = benchmark(count, columns, workload)
    assert np.array_equal(result.counts, bincount([c.astype(np.int64) for c in columns], workload))


@pytest.mark.benchmark(group="count")
def test_numpy_bincount(benchmark, rows):
    columns, workload = rows
    benchmark(bincount, [c.astype(np.int64) for c in columns], workload)


@pytest.mark.benchmark(group="count")
def test_pandas_crosstab(benchmark, rows):
    columns, _ = rows
    frame = pd.DataFrame(dict(enumerate(columns)))
    benchmark.pedantic(
        lambda: [pd.crosstab(frame[i], frame[j]) for i, j in combinations(range(11), 2)], rounds=3, iterations=1
    )
