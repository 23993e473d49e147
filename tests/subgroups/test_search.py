"""What is found, beside plain searches."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fedsel import _core
from fedsel.subgroups import QUALITIES, SubgroupDiscovery
from subgroup_reference import all_subgroups, beam, made_rows

NAMES = (*QUALITIES, 0.3)


def masks_of(discovery, X):
    """The conditions as boolean masks, by their words."""
    masks = []
    for condition in discovery.conditions_:
        attribute, _, value = condition.text.partition(" = ")
        masks.append(np.asarray(X[attribute]) == int(value))
    return masks


def listed(discovery):
    position = {condition: number for number, condition in enumerate(discovery.conditions_)}
    return [(s.quality, [position[c] for c in s.conditions], s.rows) for s in discovery.subgroups_]


def assert_same(found, expected):
    assert [item[1:] for item in found] == [item[1:] for item in expected]
    assert [item[0] for item in found] == pytest.approx([item[0] for item in expected], rel=1e-9, abs=1e-12)


def assert_same_but_for_rounding(found, expected, count):
    """Equal values may come in another order where a formula rounds otherwise, and those equal to the last differ."""

    def ordered(items):
        return sorted(((round(q, 7), len(numbers), numbers, rows) for q, numbers, rows in items), key=rank)

    def rank(item):
        return (-item[0], *item[1:])

    ours, theirs = ordered(found), ordered(expected)[:count]
    assert len(ours) == count
    assert [item[0] for item in ours] == [item[0] for item in theirs]
    last = ours[-1][0]
    assert [item for item in ours if item[0] > last] == [item for item in theirs if item[0] > last]


@pytest.mark.parametrize("quality", NAMES)
@pytest.mark.parametrize("direction", ["higher", "lower", "both"])
@pytest.mark.parametrize("engine", ["bitsets", "marginals"])
def test_exhaustive_search_equals_trying_all(quality, direction, engine):
    X, y = made_rows(3, 300)
    options = dict(quality=quality, direction=direction, min_support=4, max_support=200, depth=3, k=25)
    found = SubgroupDiscovery(search="exhaustive", engine=engine, **options).fit(X, y)
    floor = 1.0 if quality == "lift" else 0.0
    expected = all_subgroups(
        masks_of(found, X), y, quality, depth=3, direction=direction, least=4, most=200, floor=floor
    )
    assert_same_but_for_rounding(listed(found), expected, 25)


@pytest.mark.parametrize("quality", ["wracc", "binomial", "gain", "piatetsky-shapiro", 0.7])
@pytest.mark.parametrize("direction", ["higher", "lower", "both"])
def test_numbers_count_by_their_mean(quality, direction):
    X, y = made_rows(5, 250, numbers=True)
    found = SubgroupDiscovery(
        quality=quality, direction=direction, search="exhaustive", depth=4, k=12, min_support=10
    ).fit(X, y)
    expected = all_subgroups(masks_of(found, X), y, quality, depth=4, direction=direction, least=10)
    assert_same_but_for_rounding(listed(found), expected, 12)
    for subgroup in found.subgroups_:
        covered = np.logical_and.reduce(
            [np.asarray(X[c.attribute]) == int(c.text.split()[-1]) for c in subgroup.conditions]
        )
        assert subgroup.mean == pytest.approx(y[covered].mean(), rel=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5, 40])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_width_and_depth_do_what_they_say(width, depth):
    X, y = made_rows(8, 400, sizes=(3, 4, 3, 5))
    found = SubgroupDiscovery(quality="binomial", width=width, depth=depth, k=15).fit(X, y)
    assert_same(listed(found), beam(masks_of(found, X), y, "binomial", depth=depth, width=width, k=15))
    assert max(len(s.conditions) for s in found.subgroups_) <= depth
    # Every round refines at most `width` descriptions.
    assert found.evaluations_ <= len(found.conditions_) * (1 + width * (depth - 1))


def test_a_wider_beam_never_finds_worse():
    X, y = made_rows(21, 600, sizes=(4, 5, 6, 3, 3))
    best = [
        np.sum([s.quality for s in SubgroupDiscovery(quality=0.3, width=width, depth=3, k=1).fit(X, y).subgroups_])
        for width in (1, 3, 10, 1000)
    ]
    assert best == sorted(best)
    exact = SubgroupDiscovery(quality=0.3, search="exhaustive", depth=3, k=1).fit(X, y)
    assert best[-1] == exact.subgroups_[0].quality


def test_engines_levels_and_threads_agree_to_the_bit():
    X, y = made_rows(13, 70_000, sizes=(2, 3, 9, 5))
    base = SubgroupDiscovery(search="exhaustive", k=40, quality="gain", min_support=20, engine="bitsets", threads=1)
    first = base.fit(X, y).subgroups_
    for change in ({"threads": 3}, {"engine": "marginals"}, {"engine": "marginals", "threads": 2}):
        assert SubgroupDiscovery(**{**base.get_params(), **change}).fit(X, y).subgroups_ == first
    space = base._space
    conditions = [(owner, list(c.ranges)) for owner, c in zip(space.owners, space.conditions, strict=True)]
    for level in _core.levels():
        table = _core.BitTable(list(space.codes), conditions, y.astype(np.int64), level=level)
        quality = _core.SubgroupQuality("standard", exponent=0.0, direction="higher", least_rows=20, most_rows=70_000)
        found = _core.subgroup_exact(
            table, quality, depth=3, keep=40, floor=0.0, threads=1, time_limit=math.inf, progress=None
        )["found"]
        assert [(q, rows) for q, _, rows, _ in found] == [(s.quality, s.rows) for s in first]


def test_ties_go_to_fewer_conditions_then_to_earlier_columns():
    y = np.arange(40) < 10
    X = {"late": y, "early": y, "other": np.arange(40) % 2 == 0}
    found = SubgroupDiscovery(k=4, depth=2).fit(X, y)
    assert [s.description for s in found.subgroups_] == [
        "late = True",
        "early = True",
        "late = True and early = True",
        "late = True and other = False",
    ]


def test_supports_bound_the_rows():
    X, y = made_rows(2, 500)
    for support in (30, 0.06):
        found = SubgroupDiscovery(quality="gain", min_support=support, max_support=0.2, k=50).fit(X, y)
        assert found.subgroups_
        assert all(30 <= s.rows <= 100 for s in found.subgroups_)
    assert SubgroupDiscovery(quality="gain", min_support=1, k=1).fit(X, y).subgroups_[0].rows < 30


def test_min_quality_is_a_bound_that_is_not_reached():
    X, y = made_rows(2, 500)
    everything = SubgroupDiscovery(k=1000, search="exhaustive").fit(X, y).subgroups_
    cut = everything[7].quality
    found = SubgroupDiscovery(k=1000, search="exhaustive", min_quality=cut).fit(X, y).subgroups_
    assert found == tuple(s for s in everything if s.quality > cut)
    with_bad = SubgroupDiscovery(k=1000, search="exhaustive", min_quality=-math.inf).fit(X, y).subgroups_
    assert len(with_bad) > len(everything)
    assert with_bad[-1].quality < 0


def test_k_is_the_length_of_the_list():
    X, y = made_rows(2, 500)
    longest = SubgroupDiscovery(k=40).fit(X, y).subgroups_
    assert SubgroupDiscovery(k=7).fit(X, y).subgroups_ == longest[:7]


def test_a_time_limit_and_ctrl_c_return_the_best_so_far():
    X, y = made_rows(4, 3000, sizes=(3,) * 20)
    limited = SubgroupDiscovery(
        search="exhaustive", quality="gain", depth=9, time_limit=0.3, engine="bitsets", k=5
    ).fit(X, y)
    assert limited.stop_reason_ == "time limit"
    assert len(limited.subgroups_) == 5

    def interrupt(done, planned):
        raise KeyboardInterrupt

    stopped = SubgroupDiscovery(search="exhaustive", quality="gain", depth=9, engine="bitsets").fit(
        X, y, progress=interrupt
    )
    assert stopped.stop_reason_ == "interrupted"
    assert stopped.subgroups_


def test_an_error_of_the_progress_callback_comes_out():
    X, y = made_rows(4, 3000, sizes=(3,) * 20)

    def fail(done, planned):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        SubgroupDiscovery(search="exhaustive", quality="gain", depth=9, engine="bitsets").fit(X, y, progress=fail)


def test_results_become_a_table_and_json():
    X, y = made_rows(2, 500)
    found = SubgroupDiscovery(k=3, significance="bonferroni").fit(X, y)
    frame = found.to_frame()
    assert list(frame["description"]) == [s.description for s in found.subgroups_]
    assert {"p_value", "adjusted_p_value", "effect"} <= set(frame.columns)
    assert json.loads(json.dumps(found.subgroups_[0].to_dict()))["rows"] == found.subgroups_[0].rows


def test_covers_and_other_rows():
    X, y = made_rows(2, 500)
    found = SubgroupDiscovery(k=6).fit(X, y)
    covers = found.transform(X)
    assert covers.shape == (500, 6)
    assert covers.sum(axis=0).tolist() == [s.rows for s in found.subgroups_]
    assert found.evaluate(X, y) == found.subgroups_
    few = SubgroupDiscovery(k=2, min_support=150).fit(X, y)
    assert (
        len(few.evaluate({name: column[:50] for name, column in X.items()}, y[:50])) == 2
    )  # fewer rows than a support
    part = {name: np.append(column[:100], 99) for name, column in X.items()}  # 99: not seen before
    other = found.evaluate(part, np.append(y[:100], True))
    assert [s.rows for s in other] == covers[:100].sum(axis=0).tolist()
    assert [s.share for s in other] == [s.rows / 101 for s in other]


def test_the_estimator_has_the_face_of_scikit_learn():
    from sklearn.base import clone

    found = SubgroupDiscovery(depth=2, cuts={"age": [20, 40]})
    assert clone(found).get_params() == found.get_params()
    assert found.set_params(depth=1).depth == 1
    assert repr(found) == "SubgroupDiscovery(depth=1, cuts={'age': [20, 40]})"


def test_the_examples_of_the_documents():
    import doctest
    import re

    from conftest import ROOT
    from fedsel.subgroups import discovery

    tried = doctest.testmod(discovery)
    assert (tried.failed, tried.attempted) == (0, 5)
    text = (ROOT / "docs" / "subgroups.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(block, {})
