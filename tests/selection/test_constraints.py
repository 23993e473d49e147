from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsel import LossWeights, select
from fedsel.errors import InfeasibleError, SelectionError
from fedsel.selection import ClientAttributes, Constraints, Quota
from fedsel.selection.constraints import resolve
from reference import components, made_pool

METHODS = ("expand", "anneal", "exhaustive", "greedy", "descent")


def attributes(pool):
    return ClientAttributes(
        {
            name: {"region": "north" if row % 3 else "south", "cost": f"{0.1 * (row % 5 + 1):.1f}"}
            for row, name in enumerate(pool.clients)
        }
    )


def keeps(pool, rows, constraints):
    names = {pool.clients[row] for row in rows}
    table = constraints.attributes.values
    records = np.maximum(0, np.rint(pool.totals().estimate[list(rows)])).sum()
    cost = round(sum(float(table[name]["cost"]) for name in names), 6) if table else 0.0
    return (
        names >= set(constraints.include)
        and not names & set(constraints.exclude)
        and (not constraints.min_records or records >= constraints.min_records)
        and (constraints.budget is None or cost <= constraints.budget)
        and all(
            q.at_least
            <= sum(table[name][q.attribute] == q.value for name in names)
            <= (len(names) if q.at_most is None else q.at_most)
            for q in constraints.quotas
        )
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), k=st.integers(2, 5), data=st.data())
def test_every_search_keeps_the_constraints_and_enumeration_proves_the_best(seed, k, data):
    pool = made_pool(seed, clients=9, domain=[3, 4, 2])
    known = attributes(pool)
    totals = pool.totals().estimate
    constraints = Constraints(
        include=tuple(data.draw(st.lists(st.sampled_from(pool.clients[:3]), max_size=2, unique=True))),
        exclude=tuple(data.draw(st.lists(st.sampled_from(pool.clients[3:6]), max_size=2, unique=True))),
        min_records=data.draw(st.sampled_from([None, float(np.median(totals)) * k])),
        quotas=tuple(
            data.draw(
                st.lists(
                    st.builds(
                        Quota,
                        attribute=st.just("region"),
                        value=st.sampled_from(["north", "south"]),
                        at_least=st.integers(0, 2),
                        at_most=st.sampled_from([None, 2, 3]),
                    ),
                    max_size=2,
                )
            )
        ),
        budget=data.draw(st.sampled_from([None, 0.3 * k])),
        attributes=known,
    )
    allowed = [rows for rows in combinations(range(9), k) if keeps(pool, rows, constraints)]
    if not allowed:
        with pytest.raises(SelectionError, match="these clash"):
            select(pool, k, constraints=constraints)
        return
    signed = LossWeights().signed
    losses = {rows: float(components(pool, rows, "v0", "v2") @ signed) for rows in allowed}
    best = min(losses, key=lambda rows: losses[rows])
    for method in METHODS:
        found = select(pool, k, search=method, constraints=constraints, seed=seed % 100)
        assert found.certificate.kind == "proof"
        assert found.loss == pytest.approx(losses[best], abs=1e-9)
        for names in [found.names, *(runner.members for runner in found.runner_ups)]:
            assert tuple(pool.index(name) for name in names) in losses
        alone = select(pool, k, search=method, constraints=constraints, certificate="none")
        assert tuple(pool.index(name) for name in alone.names) in losses
    assert found.constraints == resolve(constraints, pool).labels(pool.clients)


def test_the_clash_is_named_without_what_has_no_part_in_it():
    pool = made_pool(1, clients=6, domain=[3, 4, 2])
    constraints = Constraints(
        include=("c001",),
        exclude=("c000", "c003"),  # all of the south
        quotas=(Quota("region", "south", at_least=1), Quota("region", "north", at_most=5)),
        budget=100,
        attributes=attributes(pool),
    )
    with pytest.raises(SelectionError) as refusal:
        select(pool, 3, constraints=constraints)
    message = str(refusal.value)
    assert "no federation of k = 3 of 6 clients keeps all constraints" in message
    for part in ("at least 1 with region=south", "exclude c000", "exclude c003"):
        assert part in message
    for other in ("north", "cost", "c001"):
        assert other not in message


def test_a_clash_with_the_size():
    pool = made_pool(1, clients=5, domain=[3, 4, 2])
    with pytest.raises(SelectionError, match=r"k = 2 .* clash: include c000; include c001; include c002"):
        select(pool, 2, constraints=Constraints(include=("c000", "c001", "c002")))
    with pytest.raises(SelectionError, match="clash: exclude c000"):
        select(pool, 5, constraints=Constraints(exclude=("c000",)))


def test_costs_add_up_as_written():
    """0.1 three times is within a budget of 0.3, which it is not in floating point."""
    pool = made_pool(2, clients=4, domain=[3, 4, 2])
    known = ClientAttributes({name: {"cost": "0.1"} for name in pool.clients})
    assert select(pool, 3, constraints=Constraints(budget=0.3, attributes=known)).k == 3
    with pytest.raises(SelectionError, match=r"total cost at most 0\.29"):
        select(pool, 3, constraints=Constraints(budget=0.29, attributes=known))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: Constraints(include=("x",)), "include: the pool has no client 'x'"),
        (lambda a: Constraints(exclude=("x",)), "exclude: the pool has no client 'x'"),
        (lambda a: Constraints(include=("c000",), exclude=("c000",)), "cannot be both included and excluded"),
        (lambda a: Constraints(min_records=-1), r"min_records must be between 0 and 1e\+15, got -1"),
        (lambda a: Constraints(budget=float("nan")), r"budget must be between 0 and 1e\+15, got nan"),
        (
            lambda a: Constraints(quotas=(Quota("region", "west", at_least=1),), attributes=a),
            "no client has region=west",
        ),
        (lambda a: Constraints(quotas=(Quota("size", "1", at_least=1),), attributes=a), "no attribute 'size', only"),
        (lambda a: Constraints(budget=1, cost="region", attributes=a), "region must be a number of at least 0"),
        (lambda a: Constraints(budget=1), "client 'c000' is missing"),
        (lambda a: Constraints(quotas=(Quota("region", "north", 2, 1),)), "0 <= at_least <= at_most"),
    ],
)
def test_bad_constraints_are_refused(make, message):
    pool = made_pool(3, clients=4, domain=[3, 4, 2])
    with pytest.raises(SelectionError, match=message):
        select(pool, 2, constraints=make(attributes(pool)))


def test_attribute_files(tmp_path):
    path = tmp_path / "clients.csv"
    path.write_text("client,region,cost\nCT, north ,1.5\nMÄ,south,2\n", encoding="utf-8-sig")
    table = ClientAttributes.read(path)
    assert table.text("CT", "region") == "north"
    assert table.number("MÄ", "cost") == 2
    for content, message in (
        ("name,region\nCT,north\n", "a column 'client' is needed"),
        ("client,region\nCT,north\nCT,south\n", "line 3: client 'CT' occurs twice"),
        ("client,region\nCT\n", "line 2: expected 2 fields"),
        ("client,region\nCT,north,west\n", "line 2: expected 2 fields"),
        ("", "a column 'client' is needed"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(SelectionError, match=message):
            ClientAttributes.read(path)
    path.write_bytes(b"client\n\xff\n")
    with pytest.raises(SelectionError, match="cannot be read"):
        ClientAttributes.read(path)
    with pytest.raises(SelectionError, match="cannot be read"):
        ClientAttributes.read(tmp_path / "nowhere.csv")


def test_a_range_of_sizes_reports_each_and_the_smallest_good_one():
    pool = made_pool(4, clients=9, domain=[3, 4, 2])
    found = select(pool, (2, 6), tolerance=0.02)
    assert [size.k for size in found.sizes] == [2, 3, 4, 5, 6]
    for size in found.sizes:
        alone = select(pool, size.k)
        assert (size.loss, size.members, size.certificate) == (alone.loss, alone.names, "proof")
    best = min(size.loss for size in found.sizes)
    assert found.loss == pytest.approx(best, abs=1e-12)
    assert found.smallest == next(size for size in found.sizes if size.loss <= best + 0.02)
    assert select(pool, (2, 6), tolerance=100.0).smallest.k == 2
    assert select(pool, 3).smallest is None
    with pytest.raises(SelectionError, match="the largest k must be between 3 and 9, got 2"):
        select(pool, (3, 2))
    with pytest.raises(SelectionError, match="the largest k must be between 3 and 9, got 10"):
        select(pool, (3, 10))
    with pytest.raises(SelectionError, match="k must be a number, or a smallest and a largest one, got '3'"):
        select(pool, "3")
    with pytest.raises(SelectionError, match="tolerance must be at least 0, got -1"):
        select(pool, (2, 3), tolerance=-1)


def test_amounts_of_very_different_size_are_decided_exactly():
    """The solver's tolerance is wider than the smaller costs; whole numbers decide."""
    pool = made_pool(5, clients=8, domain=[3, 4, 2])
    costs = [13, 124, 37454321540, 56497271593, 384334, 28, 2706589622, 18093498]
    budget = 96676660628
    known = ClientAttributes({name: {"cost": str(cost)} for name, cost in zip(pool.clients, costs, strict=True)})
    allowed = [rows for rows in combinations(range(8), 7) if sum(costs[row] for row in rows) <= budget]
    assert len(allowed) == 6
    found = select(pool, 7, constraints=Constraints(budget=budget, attributes=known))
    assert tuple(pool.index(name) for name in found.names) in allowed
    assert found.certificate.kind == "proof"


@pytest.mark.parametrize("text", ["1e99999999", "10_0", "inf", "nan", "-1", "", "1/3"])
def test_costs_that_are_no_numbers_are_refused_at_once(text):
    pool = made_pool(3, clients=2, domain=[3, 4, 2])
    known = ClientAttributes({name: {"cost": text} for name in pool.clients})
    with pytest.raises(SelectionError, match="cost must be a number of at least 0"):
        select(pool, 1, constraints=Constraints(budget=1, attributes=known))


def test_loose_and_huge_rules():
    pool = made_pool(3, clients=4, domain=[3, 4, 2])
    known = attributes(pool)
    loose = Constraints(quotas=(Quota("region", "north", at_most=10**20),), budget=1e15, attributes=known)
    assert select(pool, 2, constraints=loose).k == 2
    dear = ClientAttributes({name: {"cost": "600000000000000000000"} for name in pool.clients})
    with pytest.raises(SelectionError, match="costs are too large to add up exactly"):
        select(pool, 2, constraints=Constraints(budget=1, attributes=dear))


def test_sizes_that_no_federation_can_have_are_left_out_and_named():
    pool = made_pool(4, clients=6, domain=[3, 4, 2])
    three = Constraints(include=("c000", "c001", "c002"))
    found = select(pool, (2, 4), constraints=three)
    assert [size.k for size in found.sizes] == [3, 4]
    assert any(note.startswith("k = 2 was left out: no federation") for note in found.notes)
    with pytest.raises(InfeasibleError, match="k = 2"):
        select(pool, (1, 2), constraints=three)


def test_columns_of_attribute_files_have_their_own_names(tmp_path):
    path = tmp_path / "clients.csv"
    path.write_text("client,region,region\nCT,a,b\n", encoding="utf-8")
    with pytest.raises(SelectionError, match="every column needs its own name"):
        ClientAttributes.read(path)


def test_costs_have_at_most_six_decimals():
    pool = made_pool(3, clients=2, domain=[3, 4, 2])
    known = ClientAttributes({name: {"cost": "0.0000001"} for name in pool.clients})
    with pytest.raises(SelectionError, match="costs and budget must have at most 6 decimals"):
        select(pool, 1, constraints=Constraints(budget=1, attributes=known))
