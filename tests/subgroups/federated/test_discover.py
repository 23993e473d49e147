from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from discovery_samples import plain_qualities, run_rounds, small_clients, small_schema
from fedsel.encode import Codes
from fedsel.errors import FedselError, PoolError, SubgroupError
from fedsel.pool import Pool
from fedsel.schema import Schema, Variable
from fedsel.subgroups import SubgroupDiscovery
from fedsel.subgroups.federated import Questions, SubgroupProtocol, answer, discover, next_questions
from fedsel.subgroups.federated.gathering import gather_rounds
from fedsel.subgroups.federated.result import ClientRate

ALL_PAIRS = 6


def described(subgroup, schema):  # type: ignore[no-untyped-def]
    return tuple((schema.names.index(c.attribute), c.ranges[0][0]) for c in subgroup.conditions)


@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("base", [None, 0.3])
@pytest.mark.parametrize("direction", ["higher", "lower", "both"])
def test_exact_releases_give_what_masks_over_all_rows_give(outcomes: int, base: float | None, direction: str) -> None:
    schema = small_schema(outcomes=outcomes)
    clients = small_clients(7, schema)
    protocol = SubgroupProtocol.make(schema, pairs=ALL_PAIRS)
    rounds = run_rounds(protocol, clients, [protocol.plan(np.inf)] * len(clients))
    found = discover(protocol, rounds, k=1000, direction=direction, base=base)  # type: ignore[arg-type]
    plain = plain_qualities(clients, schema, positive=outcomes - 1, base=base)
    sign = {"higher": lambda q: q, "lower": lambda q: -q, "both": abs}[direction]
    wanted = {d: q for d, q in plain.items() if sign(q) > 1e-12}
    got = {described(s, schema): s.quality for s in found.subgroups}
    assert set(got) == set(wanted)
    for description, quality in got.items():
        assert quality == pytest.approx(wanted[description], abs=1e-12)
    ordered = [sign(s.quality) for s in found.subgroups]
    assert all(a >= b - 2e-12 for a, b in pairwise(ordered))
    assert all(s.error == pytest.approx(0, abs=1e-9) and s.measured for s in found.subgroups)
    assert found.records == pytest.approx(sum(c.rows for c in clients))


def test_exact_releases_give_what_the_central_search_gives() -> None:
    pd = pytest.importorskip("pandas")
    schema = small_schema()
    clients = small_clients(3, schema)
    protocol = SubgroupProtocol.make(schema, pairs=ALL_PAIRS)
    found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(np.inf)] * len(clients)), k=12)
    frame = pd.DataFrame(
        {name: np.concatenate([c.columns[i] for c in clients]).astype(str) for i, name in enumerate(schema.names)}
    )
    central = SubgroupDiscovery(search="exhaustive", depth=2, k=12, positive="1").fit(frame.drop(columns="y"), frame.y)
    assert [s.description for s in found.subgroups] == [s.description for s in central.subgroups_]
    assert [s.quality for s in found.subgroups] == pytest.approx([s.quality for s in central.subgroups_], abs=1e-12)


def test_a_planted_subgroup_is_found_privately() -> None:
    schema = small_schema()
    clients = small_clients(1, schema, (3000, 2000, 50, 0))
    protocol = SubgroupProtocol.make(schema, pairs=2)
    found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(1.0)] * 4), k=3)
    assert "x0 = 1 and x1 = 0" in [s.description for s in found.subgroups]
    assert found.private.epsilon_max == 1.0
    assert found.private.seeded == 4


def test_what_was_not_released_is_predicted_and_says_so() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=1)
    rounds = run_rounds(protocol, small_clients(1, schema, (3000, 2000, 50, 0)), [protocol.plan(5.0)] * 4)
    found = discover(protocol, rounds, k=100)
    assert any(not s.measured for s in found.subgroups)
    assert all(s.clients == () for s in found.subgroups if not s.measured)
    only = discover(protocol, rounds, k=100, measured_only=True)
    assert all(s.measured for s in only.subgroups)
    first = discover(protocol, rounds[:1], k=5)
    assert any("round 1 only" in note for note in first.notes)


def test_clients_choose_budgets_of_their_own() -> None:
    schema = small_schema()
    clients = small_clients(2, schema, (2000, 500, 300, 100))
    protocol = SubgroupProtocol.make(schema, pairs=2)
    epsilons = [2.0, 0.5, 1.0, np.inf]
    found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(e) for e in epsilons]), k=5)
    assert found.epsilons == tuple(epsilons)
    assert found.private.exact == 1
    assert found.to_dict()["clients"][3] == {"client": "c3", "epsilon": "inf"}


@pytest.mark.parametrize("rows", [(0, 0), (1, 0)])
def test_clients_without_rows_give_no_subgroup_and_no_crash(rows: tuple[int, ...]) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    rounds = run_rounds(protocol, small_clients(0, schema, rows), [protocol.plan(np.inf)] * len(rows))
    found = discover(protocol, rounds)
    assert found.subgroups == ()
    assert "nothing to compare" in found.notes[0]


def test_no_positive_outcome_gives_no_subgroup() -> None:
    schema = small_schema()
    clients = []
    for codes in small_clients(0, schema, (400, 300)):
        clients.append(replace(codes, columns=(*codes.columns[:-1], np.zeros_like(codes.columns[-1]))))
    protocol = SubgroupProtocol.make(schema, pairs=2)
    for epsilon in (np.inf, 1.0):
        found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(epsilon)] * 2))
        if epsilon == np.inf:
            assert found.subgroups == ()
            assert "the positives of all clients" in found.notes[0]


def test_a_client_that_drops_out_is_named_in_the_notes() -> None:
    schema = small_schema()
    clients = small_clients(5, schema, (900, 800, 700))
    protocol = SubgroupProtocol.make(schema, pairs=2, confirm=2)
    plans = [protocol.plan(3.0)] * 3
    rounds = run_rounds(protocol, clients, plans)
    short = [rounds[0], rounds[1].subset(["c0", "c2"]), rounds[2].subset(["c0", "c2"])]
    found = discover(protocol, short, k=4)
    assert any("round 2 lacks 1 of 3 clients" in note for note in found.notes)
    assert all(s.confirmed is None for s in found.subgroups)
    whole = discover(protocol, rounds, k=4)
    assert any(s.confirmed is not None for s in whole.subgroups)
    stranger = replace(rounds[1], clients=("c0", "c1", "c9"))
    with pytest.raises(SubgroupError, match="client 'c9' has not released round 1"):
        discover(protocol, [rounds[0], stranger])


def test_the_order_of_clients_does_not_matter() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    rounds = run_rounds(protocol, small_clients(5, schema, (900, 800, 700)), [protocol.plan(1.0)] * 3)
    turned = [pool.subset(["c2", "c0", "c1"]) for pool in rounds]
    first, second = discover(protocol, rounds), discover(protocol, turned)
    assert [s.description for s in first.subgroups] == [s.description for s in second.subgroups]
    assert [s.quality for s in first.subgroups] == pytest.approx([s.quality for s in second.subgroups], rel=1e-9)


def test_rounds_are_gathered_by_client_whatever_numbers_their_ledgers_gave() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    clients, plan = small_clients(5, schema, (900, 800)), protocol.plan(1.0)
    starts = (1, 4)
    one = [
        answer(protocol, codes, plan, client=f"c{i}", seed=0, first_round=start)
        for i, (codes, start) in enumerate(zip(clients, starts, strict=True))
    ]
    questions = next_questions(protocol, gather_rounds(protocol, one))
    two = [
        answer(protocol, codes, plan, client=f"c{i}", seed=0, first_round=start, questions=questions)
        for i, (codes, start) in enumerate(zip(clients, starts, strict=True))
    ]
    rounds = gather_rounds(protocol, [two[1], one[0], one[1], two[0]])
    assert [pool.clients for pool in rounds] == [("c0", "c1")] * 2
    assert [r.round for r in two] == [2, 5]
    with pytest.raises(SubgroupError, match="expected one release for each of 2 rounds"):
        gather_rounds(protocol, [one[0], one[0]])
    with pytest.raises(SubgroupError, match="expected 5 tables of round 1"):
        gather_rounds(protocol, two)
    with pytest.raises(SubgroupError, match="at least one release"):
        gather_rounds(protocol, [])


def test_releases_of_other_protocols_are_refused() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    other = SubgroupProtocol.make(schema, pairs=3)
    clients = small_clients(5, schema, (90, 80))
    releases = [answer(other, codes, other.plan(1.0), client=f"c{i}", seed=0) for i, codes in enumerate(clients)]
    with pytest.raises(SubgroupError, match="of a plan of"):
        gather_rounds(protocol, releases)
    with pytest.raises(SubgroupError, match="plan: expected rounds of"):
        answer(protocol, clients[0], other.plan(1.0), client="c0")


def test_bins_that_differ_between_clients_are_refused_by_name() -> None:
    def schema(edge: float) -> Schema:
        return Schema("s", (Variable("age", bins=(0, edge, 100)), Variable("y", role="target", categories=(0, 1))))

    codes = Codes((np.array([0, 1], dtype=np.uint8), np.array([0, 1], dtype=np.uint8)), 2, 0, (0, 0))
    protocols = [SubgroupProtocol.make(schema(edge)) for edge in (30, 40)]
    releases = [answer(p, codes, p.plan(1.0), client=f"c{i}", seed=0) for i, p in enumerate(protocols)]
    with pytest.raises(PoolError, match="variable age"):
        Pool.from_releases(releases, allow_mixed=True)
    pool = Pool.from_releases(releases[1:])
    with pytest.raises(SubgroupError, match=r"schema differs from that of the protocol: .*age"):
        discover(protocols[0], [pool])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": True}, "k must be a whole number"),
        ({"depth": 0}, "depth must be 1 or 2"),
        ({"depth": 3}, "depth must be 1 or 2"),
        ({"base": 1.5}, "base must be between 0 and 1, got 1.5"),
        ({"level": 1.0}, r"level must be between 0 and 1 \(exclusive\), got 1.0"),
        ({"direction": "up"}, "direction must be one of higher, lower, both, got 'up'"),
    ],
)
def test_parameters_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=1)
    rounds = run_rounds(protocol, small_clients(0, schema, (50,)), [protocol.plan(1.0)])
    with pytest.raises(FedselError, match=message):
        discover(protocol, rounds, **options)  # type: ignore[arg-type]


def test_depth_and_k_do_what_they_say() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=3)
    rounds = run_rounds(protocol, small_clients(2, schema, (2000, 900)), [protocol.plan(2.0)] * 2)
    for k in (1, 3, 7):
        assert len(discover(protocol, rounds, k=k).subgroups) == k
    shallow = discover(protocol, rounds, k=50, depth=1)
    assert {len(s.conditions) for s in shallow.subgroups} == {1}
    with pytest.raises(SubgroupError, match="nothing left to ask"):
        next_questions(protocol, rounds)


def test_coverage_is_that_of_records_clients_and_budgets() -> None:
    """Exact counts by a client of a large and one of a small budget, whom the best description covers unequally."""
    schema = small_schema((2, 2))
    parts = []
    for covered, rows in ((300, 1000), (900, 1000), (0, 500)):
        x = (np.arange(rows) < covered).astype(np.uint8)
        codes = (x, (np.arange(rows) % 2).astype(np.uint8), (x & (np.arange(rows) % 4 != 0)).astype(np.uint8))
        parts.append(Codes(codes, rows, 0, (0, 0, 0)))
    protocol = SubgroupProtocol.make(schema, pairs=0)
    found = discover(protocol, run_rounds(protocol, parts, [protocol.plan(e) for e in (8.0, 2.0, 2.0)]), k=1, depth=1)
    assert found.subgroups[0].description == "x0 = 1"
    assert found.coverage is not None
    assert found.coverage.records == pytest.approx(1200 / 2500, abs=0.03)
    assert found.coverage.by_budget == pytest.approx((8 * 300 + 2 * 900) / (8000 + 2000 + 1000), abs=0.03)
    assert found.coverage.clients == pytest.approx(2 / 3)
    exact = discover(protocol, run_rounds(protocol, parts, [protocol.plan(np.inf)] * 3), k=1, depth=1)
    assert exact.coverage is not None
    assert exact.coverage.by_budget is None


def test_names_of_any_length_and_script_pass_through() -> None:
    long = "Ü" * 3000 + " 中文 \u202e<b>&"
    schema = Schema(
        "s",
        (
            Variable("größe <i>", categories=("a", long)),
            Variable("z", categories=("p", "q")),
            Variable("y", role="target", categories=("no", "yes")),
        ),
    )
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 500).astype(np.uint8)
    y = (rng.random(500) < 0.2 + 0.6 * x).astype(np.uint8)
    codes = Codes((x, rng.integers(0, 2, 500).astype(np.uint8), y), 500, 0, (0, 0, 0))
    protocol = SubgroupProtocol.make(schema)
    found = discover(protocol, run_rounds(protocol, [codes], [protocol.plan(np.inf)]), k=1)
    assert found.subgroups[0].description == f"größe <i> = {long}"


def test_too_many_conditions_for_bit_sets_are_no_matter_of_tables() -> None:
    """A thousand categories an attribute: whole tables, no bits a condition."""
    schema = small_schema((1000, 1000))
    rng = np.random.default_rng(0)
    x, z = (rng.integers(0, 1000, 5000).astype(np.uint16) for _ in range(2))
    y = (x < 10).astype(np.uint8)
    protocol = SubgroupProtocol.make(schema, pairs=0)
    codes = Codes((x, z, y), 5000, 0, (0, 0, 0))
    found = discover(protocol, run_rounds(protocol, [codes], [protocol.plan(np.inf)]), k=10, depth=1)
    assert {s.conditions[0].ranges[0][0] for s in found.subgroups} == set(range(10))


def test_a_client_that_did_not_release_a_table_has_no_records_in_it() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=ALL_PAIRS)
    rounds = run_rounds(protocol, small_clients(5, schema, (900, 800, 700)), [protocol.plan(3.0)] * 3)
    found = discover(protocol, [rounds[0], rounds[1].subset(["c0", "c2"])], k=20)
    json.dumps(found.to_dict(), allow_nan=False)
    pair = next(s for s in found.subgroups if len(s.conditions) == 2)
    assert pair.clients[1] == ClientRate("c1", None, None, None, None)
    assert all(rate.records is not None for rate in (pair.clients[0], pair.clients[2]))


def test_a_round_that_nobody_released_is_named() -> None:
    """Rounds 2 and 3 have as many tables, so that one could pass for the other."""
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2, confirm=2)
    plan, (codes,) = protocol.plan(1.0), small_clients(5, schema, (900,))
    first = answer(protocol, codes, plan, client="c", seed=0)
    third = Questions(protocol.identity, 3, ((0,), (1,)))
    last = answer(protocol, codes, plan, client="c", seed=0, questions=third)
    with pytest.raises(SubgroupError, match="round 2: expected a release of at least one client before those of round"):
        gather_rounds(protocol, [first, last])


def test_the_standard_deviation_of_a_prediction_counts_what_was_not_measured() -> None:
    """Attributes interact in this population: margins alone would claim five times too little."""
    schema = small_schema()
    within = []
    for seed in range(5):
        clients = small_clients(seed, schema, (3000, 2000, 500))
        protocol = SubgroupProtocol.make(schema, pairs=2)
        found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(4.0)] * 3), k=1000, direction="both")
        truth = plain_qualities(clients, schema, positive=1)
        predicted = [s for s in found.subgroups if not s.measured]
        within += [abs(s.quality - truth[described(s, schema)]) < 2 * s.error for s in predicted]
    assert len(within) > 100
    assert np.mean(within) > 0.95
