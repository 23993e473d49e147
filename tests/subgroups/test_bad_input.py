"""What cannot be used says so in one line; what looks odd but can be used works."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedsel.errors import DataError
from fedsel.subgroups import SubgroupDiscovery
from subgroup_reference import made_rows

X, Y = made_rows(1, 200)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth must be a whole number of at least 1, got 0"),
        ({"depth": 2.5}, "depth must be a whole number of at least 1, got 2.5"),
        ({"width": 0}, "width must be a whole number of at least 1, got 0"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": True}, "k must be a whole number of at least 1, got True"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"quality": "f1"}, "quality must be one of wracc, .* got 'f1'"),
        ({"quality": 1.5}, "exponent between 0 and 1, got 1.5"),
        ({"direction": "up"}, "direction must be higher, lower or both, got 'up'"),
        ({"search": "astar"}, "search must be one of beam, exhaustive, got 'astar'"),
        ({"engine": "gpu"}, "engine must be one of"),
        ({"engine": "marginals"}, "engine marginals needs search exhaustive, got beam"),
        ({"engine": "marginals", "search": "exhaustive", "depth": 4}, "a depth of at most 3, got 4"),
        ({"engine": "marginals", "search": "exhaustive", "set_size": 2}, "conditions of one category or bin each"),
        ({"min_support": 0}, "min_support must be a number of rows of at least 1 or a share"),
        ({"min_support": 1.5}, "min_support must be"),
        ({"min_support": math.nan}, "min_support must be"),
        ({"min_support": 0.5, "max_support": 0.1}, "min_support must not exceed max_support, got 100 and 20 rows"),
        ({"min_support": 500}, "min_support must not exceed max_support"),
        ({"min_quality": "high"}, "min_quality must be a number, got 'high'"),
        ({"bins": 1}, "bins must be a whole number between 2 and 1,000, got 1"),
        ({"cuts": {"v3": [3, 2]}}, "cuts of v3: cut points must increase, got"),
        ({"cuts": {"v3": []}}, "cuts of v3: at least one cut point is needed"),
        ({"cuts": {"other": [3]}}, "cuts and categorical: no column other; X has v0, v1, v2, v3"),
        ({"binning": "jenks"}, "binning must be one of quantile, width, got 'jenks'"),
        ({"intervals": "some"}, "intervals must be one of"),
        ({"missing": "drop"}, "missing must be one of exclude, condition, got 'drop'"),
        ({"set_size": 0}, "set_size must be a whole number of at least 1, got 0"),
        ({"max_overlap": 2}, "max_overlap must be between 0 and 1, got 2"),
        ({"diversity": "most"}, "diversity must be one of none, description, cover, got 'most'"),
        ({"diversity_weight": -1}, "diversity_weight must be between 0 and 1, got -1"),
        ({"significance": "fdr"}, "significance must be none, bonferroni or permutation, got 'fdr'"),
        ({"max_p_value": 0.05}, "max_p_value needs significance bonferroni or permutation, got none"),
        ({"time_limit": 0}, "time_limit must be above 0 seconds, got 0"),
        ({"exclude": ["v9"]}, "X: no column v9 to exclude; it has v0, v1, v2, v3"),
        ({"exclude": list(X)}, "X: at least one column is needed besides the outcome, got none"),
        ({"max_memory": 10.0}, "conditions on 200 rows take 0.0 GB as bit sets, more than max_memory"),
    ],
)
def test_impossible_parameters(options, message):
    with pytest.raises(DataError, match=message):
        SubgroupDiscovery(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "outcome", "message"),
    [
        (X, np.zeros(200, bool), "positive and negative rows are needed, got 0 positive of 200; y has False"),
        (X, np.ones(200), "got 200 positive of 200"),
        (X, np.full(200, 7), "the outcome must differ between rows, got 7 throughout"),
        (X, np.where(Y, "yes", "no"), "say which value counts as positive; y has"),
        (X, Y[:-1], "y must have one outcome a row of X, got 199 for 200 rows"),
        (X, [None, *Y[1:]], "every row needs an outcome, got 1 missing of 200"),
        (X, np.where(Y, np.inf, 3.0), "numbers must be finite, got inf"),
        (X, np.where(Y, 1e308, -1e308), "range of the numbers is too small or too large"),
        (X, "v7", "X: no column v7; it has v0, v1, v2, v3"),
        (X, np.zeros((200, 2)), "y must be one-dimensional"),
        ({}, Y, "X: at least one column is needed, got none"),
        ({"a": []}, [], "X: at least one row is needed, got none"),
        ({"a": [1, 2], "b": [1]}, [0, 1], "columns differ in length: a has 2 rows, b has 1"),
        ({"a": [{}, []]}, [0, 1], "column a must hold numbers, text, true/false or categories, got"),
        ({3: [1, 2]}, [0, 1], "column names must be text, got 3"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), [0], "column a is there twice"),
        ({"a": pd.to_datetime(["2020-01-01", "2021-01-01"])}, [0, 1], "column a must hold numbers, text"),
        ({"a": [1j, 2j]}, [0, 1], "column a must hold numbers, text, true/false"),
        ([1, 2], [0, 1], "X must be a DataFrame, a pyarrow table, a mapping of arrays or a two-dimensional array"),
        ({"a": [5, 5, 5]}, [0, 1, 0], "no column gives a condition that covers some of the 3 rows but not all"),
    ],
)
def test_impossible_data(rows, outcome, message):
    with pytest.raises(DataError, match=message):
        SubgroupDiscovery().fit(rows, outcome)


def test_a_value_that_never_occurs_is_no_outcome():
    with pytest.raises(DataError, match="got 0 positive of 200; y has"):
        SubgroupDiscovery(positive="maybe").fit(X, np.where(Y, "yes", "no"))


def test_before_fit():
    with pytest.raises(DataError, match="call fit first"):
        SubgroupDiscovery().transform(X)
    with pytest.raises(DataError, match="there is no parameter beam"):
        SubgroupDiscovery().set_params(beam=3)


def test_other_rows_must_have_the_same_columns():
    found = SubgroupDiscovery().fit({"a": np.arange(200.0), **X}, Y)
    with pytest.raises(DataError, match="X: no column a"):
        found.transform(X)
    with pytest.raises(DataError, match="column a was numeric when its bins were cut, got"):
        found.transform({**X, "a": ["x"] * 200})


def test_conditions_that_cover_everything_or_nothing_are_left_out():
    constant = {"same": ["x"] * 200, "unused": pd.Categorical(["p"] * 100 + ["q"] * 100, categories=["p", "q", "r"])}
    found = SubgroupDiscovery(k=1000, min_quality=-math.inf).fit({**X, **constant}, Y)
    assert {c.text for c in found.conditions_ if c.attribute in constant} == {"unused = p", "unused = q"}
    assert not any("same" in s.description for s in found.subgroups_)


def test_unicode_and_very_long_names():
    long = "ß" * 5000
    column = np.where(Y, long, "a\nb\t„c“ 数")
    best = SubgroupDiscovery(k=1).fit({"naïve 列": column}, Y).subgroups_[0]
    assert best.description == f"naïve 列 = {long}"
    other = SubgroupDiscovery(k=1, direction="lower").fit({"naïve 列": column}, Y).subgroups_[0]
    assert other.description == "naïve 列 = a b „c“ 数"


def test_a_million_categories():
    y = np.arange(1_000_000) % 3 == 0
    names = {"id": [f"r{i}" for i in range(1_000_000)], "code": np.where(y, "a", "b")}
    with pytest.raises(DataError, match="column id has 1,000,000 distinct values, more than max_categories = 1,000"):
        SubgroupDiscovery().fit(names, y)
    with pytest.raises(DataError, match="1,000,002 conditions on 1,000,000 rows take"):
        SubgroupDiscovery(max_categories=2_000_000).fit(names, y)
    # A least support leaves the million out.
    found = SubgroupDiscovery(max_categories=2_000_000, min_support=10).fit(names, y)
    assert found.subgroups_[0].description == "code = a"


def test_too_many_sets():
    column = [f"c{i % 300}" for i in range(600)]
    with pytest.raises(DataError, match="column a gives 335,291,425 conditions"):
        SubgroupDiscovery(set_size=4).fit({"a": column}, np.arange(600) % 2)


def test_no_subgroup_is_an_empty_list():
    even = {"a": ["x", "x", "y", "y"]}
    found = SubgroupDiscovery(significance="bonferroni").fit(even, [0, 1, 0, 1])
    assert found.subgroups_ == ()
    assert len(found.to_frame()) == 0
    assert found.transform(even).shape == (4, 0)
    assert found.evaluate(even, [0, 1, 0, 1]) == ()


def test_missing_everywhere():
    nothing = {"gone": [None] * 200, "nan": np.full(200, np.nan)}
    found = SubgroupDiscovery(missing="condition").fit({**X, **nothing}, Y)
    assert {c.attribute for c in found.conditions_} == set(X)
