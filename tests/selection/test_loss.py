from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import FederationLoss, LossWeights, Workload, _core
from fedsel.errors import SelectionError
from fedsel.selection.fixed_point import to_int32
from fedsel.selection.loss_tables import component_of
from reference import components, made_exact_pool, made_pool, made_schema

domains = st.lists(st.integers(1, 19), min_size=3, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    domain=domains,
    level=st.sampled_from(_core.levels()),
    low=st.sampled_from([-2000, -200, 0]),
    empty=st.sampled_from([0.0, 0.5, 1.0]),
    size=st.integers(1, 6),
)
def test_components_equal_the_reference(seed, domain, level, low, empty, size):
    pool = made_pool(seed, clients=6, domain=domain, low=low, empty=empty)
    loss = FederationLoss(pool, level=level)
    members = np.random.default_rng(seed).choice(6, size, replace=False)
    expected = components(pool, members, "v0", f"v{len(domain) - 1}")
    found = np.array(list(asdict(loss.components([int(m) for m in members])).values()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    domain=domains,
    level=st.sampled_from(_core.levels()),
    rows=st.sampled_from([(0, 1), (0, 3), (0, 900)]),
    size=st.integers(1, 6),
)
def test_tables_that_agree_are_one_dot_product_with_the_same_components(seed, domain, level, rows, size):
    pool = made_exact_pool(seed, clients=6, domain=domain, rows=rows)
    loss = FederationLoss(pool, level=level)
    assert loss.model.consistent
    members = [int(m) for m in np.random.default_rng(seed).choice(6, size, replace=False)]
    expected = components(pool, members, "v0", f"v{len(domain) - 1}")
    found = np.array(list(asdict(loss.components(members)).values()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    parts = np.zeros(4)
    for pair, value in loss.information(members).items():
        parts[component_of(pair, loss.sensitive, pool.schema.target)] += value
    np.testing.assert_allclose(found, parts, rtol=0, atol=1e-11)


def test_tables_that_disagree_by_one_record_are_evaluated_one_by_one():
    pool = made_exact_pool(3, clients=4, domain=[3, 4, 2])
    counts = pool.counts.copy()
    counts[2, 5] += 1
    assert not FederationLoss(replace(pool, counts=counts)).model.consistent


def test_levels_agree_to_1e12():
    pool = made_pool(1, clients=30, domain=[5, 9, 18, 2, 7, 2])
    federations = np.array([np.random.default_rng(i).choice(30, 7, replace=False) for i in range(50)])
    values = [
        FederationLoss(pool, level=level).components_of(federations) @ LossWeights().signed for level in _core.levels()
    ]
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=0, atol=1e-12)


def test_many_federations_at_once_equal_one_by_one_for_any_threads():
    pool = made_pool(2, clients=20, domain=[3, 4, 5, 2])
    loss = FederationLoss(pool)
    federations = np.array([np.random.default_rng(i).choice(20, 4, replace=False) for i in range(200)])
    single = np.array([list(asdict(loss.components(row.tolist())).values()) for row in federations])
    for threads in (1, 2, 8):
        assert np.array_equal(loss.components_of(federations, threads=threads), single)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), swaps=st.integers(0, 12))
def test_a_state_under_swaps_equals_a_fresh_evaluation(seed, swaps):
    pool = made_pool(seed, clients=9, domain=[4, 1, 6, 2])
    loss, rng = FederationLoss(pool), np.random.default_rng(seed)
    state = loss.state(["c000", "c003", "c007"])
    for _ in range(swaps):
        out = rng.choice(state.members)
        outsiders = sorted(set(pool.clients) - set(state.members))
        state.swap(str(out), str(rng.choice(outsiders)))
    assert state.components == loss.components(state.members)
    assert state.loss == pytest.approx(loss(state.members), abs=1e-12)


def test_information_is_a_value_a_pair():
    pool = made_pool(3, clients=4, domain=[3, 4, 2])
    information = FederationLoss(pool).information(["c001", "c002"])
    assert list(information) == [("v0", "v1"), ("v0", "v2"), ("v1", "v2")]
    sums = FederationLoss(pool).components(["c001", "c002"])
    assert information["v0", "v2"] == sums.sensitive_target
    assert information["v1", "v2"] == sums.feature_target


def test_extra_tables_are_left_out():
    pool = made_pool(4, clients=5, domain=[3, 4, 2])
    schema = pool.schema
    sets = ((0,), (0, 1), (1, 2), (0, 1, 2), (0, 2))
    workload = Workload(schema.names, schema.domain, sets)
    blocks = {pair: pool.table(t).reshape(5, -1) for t, pair in enumerate(pool.workload.sets)}
    counts = np.hstack([blocks.get(s, np.full((5, size), 7)) for s, size in zip(sets, workload.sizes, strict=True)])
    plan = type(pool.plan)(**{**asdict(pool.plan), "weights": (1,) * 5, "rounds": ()})
    wide = type(pool)(
        **{
            **{f: getattr(pool, f) for f in ("clients", "schema", "plan_index", "seeded", "rounds", "rows")},
            "workload": workload,
            "counts": np.ascontiguousarray(counts),
            "plans": (plan,),
        }
    )
    assert FederationLoss(wide).components([0, 3]) == FederationLoss(pool).components([0, 3])


def test_the_active_sensitive_attribute_can_be_chosen():
    pool = made_pool(5, clients=4, domain=[3, 4, 5, 2], sensitive=(0, 2))
    assert FederationLoss(pool).sensitive == ("v0",)
    loss = FederationLoss(pool, sensitive="v2")
    expected = components(pool, [0, 1], "v2", "v3")
    np.testing.assert_allclose(list(asdict(loss.components([0, 1])).values()), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: FederationLoss(p, sensitive="v1"), r"sensitive must be one of \['v0'\], got 'v1'"),
        (lambda p: FederationLoss(p, level="mmx"), "level must be auto, plain, avx2 or avx512, got mmx"),
        (lambda p: FederationLoss(p)([]), "a federation needs at least one member"),
        (lambda p: FederationLoss(p)(["nobody"]), "the pool has no client 'nobody'"),
        (lambda p: FederationLoss(p)([0, "c000"]), "member 'c000' is given twice"),
        (lambda p: FederationLoss(p)([4]), "the pool has no client 4"),
        (lambda p: FederationLoss(p)([1.9, 2.0]), "a member must be a name or a whole number, got 1.9"),
        (lambda p: FederationLoss(p)([True]), "a member must be a name or a whole number, got True"),
        (lambda p: FederationLoss(p).components_of([[1.0]]), "members must be whole numbers, got float64"),
        (lambda p: LossWeights(1.7e308), "weight sensitive_target must be 0 or between"),
        (lambda p: FederationLoss(p).components_of([[0, 4]]), "members must be between 0 and 3"),
        (lambda p: FederationLoss(p).components_of([[0, 0]]), "member 0 is given twice"),
        (lambda p: FederationLoss(p).state([0, 1]).swap(2, 3), "client 2 is not a member"),
        (lambda p: FederationLoss(p).state([0, 1]).swap(0, 1), "client 1 is not an outsider"),
        (lambda p: LossWeights(-1.0), "weight sensitive_target must be 0 or between 1e-12 and 1e\\+09, got -1.0"),
        (lambda p: LossWeights(0, 0, 0, 0), "at least one weight must be positive"),
        (lambda p: LossWeights(feature_target=float("nan")), "weight feature_target must be 0 or between"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(SelectionError, match=message):
        make(made_pool(6, clients=4, domain=[3, 4, 2]))


def test_roles_and_pairs_must_exist():
    pool = made_pool(7, clients=2, domain=[3, 4, 2], sensitive=())
    with pytest.raises(SelectionError, match="needs a variable of role sensitive"):
        FederationLoss(pool)
    pool = made_pool(7, clients=2, domain=[3, 4, 2])
    fewer = Workload.of(made_schema([3, 4, 2]), [("v0", "v1"), ("v1", "v2")])
    short = type(pool)(
        **{
            **{f: getattr(pool, f) for f in ("clients", "schema", "plan_index", "seeded", "rounds", "rows")},
            "workload": fewer,
            "counts": np.zeros((2, fewer.cells), dtype=np.int64),
            "plans": (type(pool.plan)(**{**asdict(pool.plan), "weights": (1, 1), "rounds": ()}),),
        }
    )
    with pytest.raises(SelectionError, match="the pool lacks v0 x v2"):
        FederationLoss(short)


def test_large_counts_are_scaled_without_changing_the_information():
    pool = made_pool(8, clients=6, domain=[5, 6, 2], low=0, high=2**36)
    loss = FederationLoss(pool)
    assert loss.shift > 0
    expected = components(pool, [0, 2, 5], "v0", "v2")
    np.testing.assert_allclose(list(asdict(loss.components([0, 2, 5])).values()), expected, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), bits=st.integers(1, 39), clients=st.integers(1, 30))
def test_scaled_counts_never_overflow_their_sums(seed, bits, clients):
    rng = np.random.default_rng(seed)
    sizes = np.array([3, 1, 8])
    counts = rng.integers(-(2**bits), 2**bits, size=(clients, 12))
    scaled, shift = to_int32(counts, sizes)
    sums = np.add.reduceat(np.abs(scaled.astype(np.int64)).sum(axis=0), [0, 3, 4])
    assert sums.max() < 2**31
    if shift:
        assert np.abs(scaled * 2.0**shift - counts).max() <= 2.0 ** (shift - 1)
        smaller = np.rint(counts / 2.0 ** (shift - 1))
        room = clients * 8 * (shift > 1)
        assert np.add.reduceat(np.abs(smaller).sum(axis=0), [0, 3, 4]).max() + room >= 2**31 - 1 - clients * 8
    else:
        assert np.array_equal(scaled, counts)


def test_several_sensitive_attributes_at_once():
    pool = made_pool(5, clients=4, domain=[3, 4, 5, 2], sensitive=(0, 2))
    loss = FederationLoss(pool, sensitive=("v0", "v2"))
    information = FederationLoss(pool).information([0, 1])
    found = loss.components([0, 1])
    assert found.sensitive_target == pytest.approx(information["v0", "v3"] + information["v2", "v3"], abs=1e-12)
    assert found.sensitive_feature == pytest.approx(information["v0", "v1"] + information["v1", "v2"], abs=1e-12)
    assert found.feature_feature == 0.0
    assert found.feature_target == pytest.approx(information["v1", "v3"], abs=1e-12)
    assert ("v0", "v2") not in loss.information([0, 1])
    for names in ((), ("v0", "v0"), ("v0", "v1")):
        with pytest.raises(SelectionError, match="sensitive must"):
            FederationLoss(pool, sensitive=names)


def test_other_weights_share_the_tables():
    pool = made_pool(6, clients=5, domain=[3, 4, 2])
    loss = FederationLoss(pool)
    other = loss.reweighted(LossWeights.preset("pcs-repository"))
    assert other([0, 3]) == FederationLoss(pool, weights=LossWeights(1.0, 1.0, 0.1, 0.5))([0, 3])
    assert loss([0, 3]) == FederationLoss(pool)([0, 3])
    halves = [loss.reweighted(LossWeights.preset(name))([0, 3]) for name in ("fairness", "utility")]
    assert sum(halves) == pytest.approx(loss([0, 3]), abs=1e-12)
    with pytest.raises(SelectionError, match="weights must be one of pcs, pcs-repository, fairness, utility"):
        LossWeights.preset("best")


def test_a_client_that_would_wipe_out_others_is_named():
    pool = made_pool(3, clients=6, domain=[3, 4, 2], low=0, high=400)
    counts = pool.counts.copy()
    counts[2] = 2**39
    hostile = replace(pool, counts=counts)
    with pytest.raises(SelectionError, match=r"client 'c002' states so many records .* leave 'c002' out of the pool"):
        FederationLoss(hostile)
    FederationLoss(hostile.subset([name for name in pool.clients if name != "c002"]))


def test_whole_numbers_of_numpy_are_members():
    pool = made_pool(3, clients=4, domain=[3, 4, 2])
    loss = FederationLoss(pool)
    assert loss(np.array([0, 3])) == loss([0, 3])
