"""From columns of every library to conditions."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from fedsel.subgroups import AttributeRules, SubgroupDiscovery
from fedsel.subgroups.attributes import fit_attribute
from fedsel.subgroups.bins import cut_points
from fedsel.subgroups.space import build_space


def texts(column, **rules):
    rules = AttributeRules(**rules)
    return [condition.text for condition in fit_attribute("a", pd.Series(column), rules).conditions(rules)]


def space_of(columns, **rules):
    columns = {name: pd.Series(column) for name, column in columns.items()}
    return build_space(columns, AttributeRules(**rules), least_rows=1, max_memory=1e9)


def test_categories_are_sorted_and_need_not_be_seen_in_order():
    assert texts(["b", "a", "c", "a"]) == ["a = a", "a = b", "a = c"]
    assert texts([True, False, True]) == ["a = False", "a = True"]
    assert texts(pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)) == [
        "a = low",
        "a = mid",
        "a = high",
    ]


def test_numbers_of_few_values_are_categories_and_others_bins():
    assert texts([3, 1, 2, 1]) == ["a = 1", "a = 2", "a = 3"]
    assert texts([1.5, 2.0, 2.0]) == ["a = 1.5", "a = 2"]
    assert texts(list(range(100)), bins=4) == ["a < 25", "a in [25, 50)", "a in [50, 75)", "a >= 75"]
    assert texts(list(range(100)), bins=4, binning="width") == [
        "a < 24.75",
        "a in [24.75, 49.5)",
        "a in [49.5, 74.25)",
        "a >= 74.25",
    ]
    assert texts([1, 2, 3], cuts={"a": [2.5]}) == ["a < 2.5", "a >= 2.5"]


def test_intervals_and_thresholds():
    assert texts(list(range(90)), bins=3, intervals="thresholds") == ["a < 30", "a < 60", "a >= 30", "a >= 60"]
    assert texts(list(range(90)), bins=3, intervals="all") == [
        "a < 30",
        "a < 60",
        "a in [30, 60)",
        "a >= 30",
        "a >= 60",
    ]


def test_sets_of_categories():
    assert texts(["a", "b", "c"], set_size=2) == [
        "a = a",
        "a = b",
        "a = c",
        "a in {a, b}",
        "a in {a, c}",
        "a in {b, c}",
    ]
    # All categories together say nothing.
    assert texts(["a", "b"], set_size=2) == ["a = a", "a = b"]


def test_cut_points_that_look_alike_get_more_digits():
    assert texts([0.0, 1.0], cuts={"a": [1.23456781, 1.23456789]}) == [
        "a < 1.2345678",
        "a in [1.2345678, 1.2345679)",
        "a >= 1.2345679",
    ]


def test_missing_values_are_left_out_or_a_condition():
    column = [1.0, None, 2.0, None, 3.0]
    y = [True, True, False, True, False]
    out = SubgroupDiscovery(k=20, min_quality=-1.0, depth=1).fit({"a": column}, y)
    assert {s.description: s.rows for s in out.subgroups_} == {"a = 1": 1, "a = 2": 1, "a = 3": 1}
    assert out.rows_ == 5
    kept = SubgroupDiscovery(k=20, depth=1, missing="condition").fit({"a": column}, y)
    assert (kept.subgroups_[0].description, kept.subgroups_[0].rows) == ("a is missing", 2)


@pytest.mark.parametrize("rules", [{}, {"bins": 3}, {"intervals": "all"}, {"set_size": 3}, {"missing": "condition"}])
def test_conditions_hold_where_their_words_say(rules):
    rng = np.random.default_rng(0)
    columns = {
        "text": rng.choice(["x", "y", "z", "ü"], 200),
        "number": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200)),
    }
    space = space_of(columns, **rules)
    for number, condition in enumerate(space.conditions):
        values = columns[condition.attribute]
        words = condition.text.removeprefix(condition.attribute)
        if words == " is missing":
            expected = np.isnan(values)
        elif condition.attribute == "text":
            expected = np.isin(values, words.strip(" ={}in").split(", "))
        else:
            cuts = np.array([-np.inf, *space.attributes[1].cuts, np.inf])
            first, last = condition.ranges[0]
            expected = (values >= cuts[first]) & (values < cuts[last + 1])
        assert space.cover([number]).tolist() == expected.tolist(), condition.text


def test_every_library_gives_the_same_conditions():
    data = {
        "text": ["b", None, "a", "b", "a", "b"],
        "whole": [1, 2, 3, 4, 5, None],
        "number": [1.5, 2.5, None, 4.5, 5.5, 6.5],
        "truth": [True, False, None, True, False, True],
    }
    y = [1, 0, 0, 1, 1, 1]
    frame = pd.DataFrame(data)
    forms = [
        data,
        frame,
        frame.convert_dtypes(),
        frame.astype({"text": "category"}),
        pa.table(data),
        pa.table({**data, "text": pa.array(data["text"]).dictionary_encode()}),
        {name: np.array(values, dtype=object) for name, values in data.items()},
        {**data, "number": np.ma.masked_invalid(np.array(data["number"], dtype=float))},
    ]
    lists = []
    for form in forms:
        found = SubgroupDiscovery(k=100, depth=2, missing="condition", min_quality=-9.0).fit(form, y)
        lists.append([(s.description, s.rows, s.quality) for s in found.subgroups_])
        assert found.transform(form).sum(axis=0).tolist() == [s.rows for s in found.subgroups_]
    assert len(lists[0]) > 30
    for other in lists[1:]:
        assert other == lists[0]


def test_an_array_names_its_columns():
    X = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    assert SubgroupDiscovery().fit(X, [0, 1, 0, 1]).subgroups_[0].description == "x0 = 1"


@given(
    st.lists(st.one_of(st.integers(-50, 50), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e300, -1e300])), min_size=1),
    st.integers(2, 8),
    st.sampled_from(["quantile", "width"]),
)
def test_cut_points_increase_and_leave_no_bin_empty_below(values, bins, binning):
    values = np.array(values, dtype=float)
    cuts = cut_points(values, bins, binning)
    assert len(cuts) < bins
    assert list(cuts) == sorted(set(cuts))
    assert all(values.min() < cut for cut in cuts)
    if binning == "quantile":
        assert all((values >= cut).any() for cut in cuts)
        assert bool(cuts) == (values.min() < values.max())


def test_a_column_of_mostly_one_value_is_cut_above_it():
    assert cut_points(np.array([0.0] * 95 + [3.0] * 2 + [7.0] * 3), 5, "quantile") == (3.0,)
