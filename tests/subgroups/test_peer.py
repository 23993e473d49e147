"""Top lists beside pysubgroup's: Adult, breast cancer and made data, every quality function both have."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pysubgroup as ps
import pytest
from sklearn.datasets import load_breast_cancer

from fedsel.subgroups import SubgroupDiscovery
from subgroup_reference import made_rows

K = 20
PEERS = {
    "wracc": ps.WRAccQF,
    "binomial": ps.SimpleBinomialQF,
    "gain": ps.LiftQF,
    0.25: lambda: ps.StandardQF(0.25),
    "chi2": ps.ChiSquaredQF,
}
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)

# pysubgroup divides by the rows of descriptions that cover none.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def adult(data_dir):
    rows = pd.read_csv(data_dir / "adult.data", names=ADULT, skipinitialspace=True, nrows=5000)
    return rows.drop(columns=["fnlwgt", "income"]), (rows["income"] == ">50K").to_numpy()


def breast_cancer():
    loaded = load_breast_cancer(as_frame=True)
    return loaded.data.iloc[:, [0, 1, 7, 20, 22, 27]], (loaded.target == 1).to_numpy()


def made():
    X, y = made_rows(31, 800, sizes=(3, 4, 5, 4, 3))
    return pd.DataFrame({name: [f"c{value}" for value in column] for name, column in X.items()}), y


@pytest.fixture(params=["adult", "breast cancer", "made"])
def rows(request):
    if request.param == "adult":
        return adult(request.getfixturevalue("data_dir"))
    return breast_cancer() if request.param == "breast cancer" else made()


def selector(condition, attribute):
    """The same condition for pysubgroup."""
    first, last = condition.ranges[0]
    if attribute.categories is not None:
        return ps.EqualitySelector(condition.attribute, attribute.categories[first])
    edges = [-math.inf, *attribute.cuts, math.inf]
    return ps.IntervalSelector(condition.attribute, edges[first], edges[last + 1])


def peer_list(found, X, target, quality, algorithm, *, depth, least=1):
    """(quality, condition numbers) of pysubgroup's list, and whether its last value may go on beyond the list."""
    space = found._space
    selectors = [selector(c, space.attributes[o]) for c, o in zip(space.conditions, space.owners, strict=True)]
    number = {repr(s): i for i, s in enumerate(selectors)}
    task = ps.SubgroupDiscoveryTask(
        X.assign(outcome=target[1]),
        target[0],
        selectors,
        qf=quality,
        result_set_size=K,
        depth=depth,
        min_quality=0.0,
        constraints=[ps.MinSupportConstraint(least)],
    )
    result = algorithm.execute(task).results
    return [(q, sorted(number[repr(s)] for s in description.selectors)) for q, description, _ in result]


def assert_same_list(found, theirs, *, scale=1.0):
    """Same values; same descriptions but among those whose value is the last, of which there may be more."""
    position = {condition: i for i, condition in enumerate(found.conditions_)}
    ours = [(s.quality, [position[c] for c in s.conditions]) for s in found.subgroups_]
    assert len(ours) == len(theirs) > 5
    assert [q for q, _ in ours] == pytest.approx([q * scale for q, _ in theirs], rel=1e-9)
    last = ours[-1][0] * (1 + 1e-9)
    clear = {tuple(numbers) for q, numbers in ours if q > last}
    assert clear == {tuple(numbers) for q, numbers in theirs if q * scale > last}


@pytest.mark.parametrize("quality", PEERS)
def test_exhaustive_lists(rows, quality):
    X, y = rows
    options = dict(quality=quality, search="exhaustive", depth=2, k=K, min_quality=0.0)
    least = 20 if quality in ("gain", 0.25, "chi2") else 1
    if quality == "chi2":  # pysubgroup wants five rows inside and outside, and takes both directions
        options |= {"direction": "both", "max_support": len(y) - 5}
    found = SubgroupDiscovery(min_support=least, **options).fit(X, y)
    theirs = peer_list(
        found,
        X,
        (ps.BinaryTarget("outcome", True), y),
        PEERS[quality](),
        ps.SimpleSearch(show_progress=False) if quality == "chi2" else ps.DFS(),
        depth=2,
        least=least,
    )
    assert_same_list(found, theirs)


@pytest.mark.parametrize("quality", ["wracc", "binomial", 0.25])
def test_beam_lists(rows, quality):
    X, y = rows
    found = SubgroupDiscovery(quality=quality, depth=3, width=K, k=K, min_support=5).fit(X, y)
    target = (ps.BinaryTarget("outcome", True), y)
    theirs = peer_list(found, X, target, PEERS[quality](), ps.BeamSearch(K), depth=3, least=5)
    assert_same_list(found, theirs)


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_lists_of_numbers(rows, exponent):
    X, y = rows
    numbers = np.round(np.random.default_rng(0).normal(y * 2.0, 1.0), 2)
    found = SubgroupDiscovery(quality=exponent, search="exhaustive", depth=2, k=K, min_support=5).fit(X, numbers)
    target = (ps.NumericTarget("outcome"), numbers)
    search = ps.SimpleSearch(show_progress=False)
    theirs = peer_list(found, X, target, ps.StandardQFNumeric(exponent), search, depth=2, least=5)
    assert_same_list(found, theirs, scale=len(y) ** -exponent)
