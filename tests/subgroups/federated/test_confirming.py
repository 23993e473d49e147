from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discovery_samples import plain_qualities, run_rounds, small_clients, small_schema
from fedsel.experiments.subgroup_checks import calibration, null
from fedsel.experiments.subgroup_corpus import made_corpus
from fedsel.subgroups.federated import SubgroupProtocol, discover
from fedsel.subgroups.federated.belief import believe
from fedsel.subgroups.federated.confirming import no_association
from fedsel.subgroups.federated.evidence import read_round

FALSE_ALARM = 1e-6


def test_confirmed_intervals_cover_at_their_level() -> None:
    """At least 95 %, up to what 1e-6 of false alarms leaves; trials are independent, subgroups of one are not."""
    outcomes = list(calibration(made_corpus(11), range(40), [1.0]))
    share = np.mean([one.confirmed for one in outcomes])
    # a trial's share varies at most as a coin's: Hoeffding
    slack = np.sqrt(np.log(1 / FALSE_ALARM) / (2 * len(outcomes)))
    assert share >= 0.95 - slack / 4  # a quarter: shares of ten intervals are far less spread than coins
    assert abs(np.mean([one.fresh for one in outcomes])) < 1.0


def test_where_nothing_is_to_be_found_little_is_called_found() -> None:
    outcomes = list(null(made_corpus(12), range(30), [2.0]))
    small = sum(any(p <= 0.05 / len(one.p_values) for p in one.p_values) for one in outcomes if one.p_values)
    # Bonferroni within a trial: at most 5 % of trials, which are independent
    assert small <= stats.binom.isf(FALSE_ALARM, len(outcomes), 0.05)
    false = sum(one.discoveries > 0 for one in outcomes)
    assert false <= stats.binom.isf(FALSE_ALARM, len(outcomes), 0.1)


def test_differences_between_clients_are_no_association() -> None:
    """Simpson: two clients of different rates, in which the attribute is unevenly spread."""
    schema = small_schema((2, 2))
    clients = []
    for rate, spread in ((0.8, 0.9), (0.1, 0.1)):
        x = (np.arange(1000) < 1000 * spread).astype(np.uint8)
        y = np.zeros(1000, dtype=np.uint8)
        for code in (0, 1):
            mine = np.flatnonzero(x == code)
            y[mine[: round(rate * len(mine))]] = 1
        z = (np.arange(1000) % 2).astype(np.uint8)
        codes = small_clients(0, schema, (1000,))[0]
        clients.append(type(codes)((x, z, y), 1000, 0, (0, 0, 0)))
    protocol = SubgroupProtocol.make(schema, pairs=1, confirm=2)
    rounds = run_rounds(protocol, clients, [protocol.plan(np.inf)] * 2)
    found = discover(protocol, rounds, k=1, depth=1)
    assert found.subgroups[0].quality > 0.1
    belief = believe(protocol, rounds)
    table = next(t for t in read_round(protocol, rounds[0], rounds[0].clients) if t.attributes == (0,))
    assert no_association(belief, table, (1,)) == pytest.approx(1.0)


def test_an_association_within_clients_is_called_one() -> None:
    schema = small_schema()
    clients = small_clients(1, schema, (3000, 2000))
    protocol = SubgroupProtocol.make(schema, pairs=2, confirm=3)
    found = discover(protocol, run_rounds(protocol, clients, [protocol.plan(3.0)] * 2), k=3)
    truth = plain_qualities(clients, schema, positive=1)
    confirmed = [s for s in found.subgroups if s.confirmed is not None]
    assert confirmed
    for subgroup in confirmed:
        fresh = subgroup.confirmed
        assert fresh is not None
        assert fresh.adjusted_p_value < 1e-6
        key = tuple((schema.names.index(c.attribute), c.ranges[0][0]) for c in subgroup.conditions)
        assert fresh.low - 0.02 < truth[key] < fresh.high + 0.02


def test_the_choice_does_not_know_the_confirmation() -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2, confirm=3)
    rounds = run_rounds(protocol, small_clients(1, schema, (300, 200)), [protocol.plan(0.5)] * 2)
    two = discover(protocol, rounds[:2], k=8)
    three = discover(protocol, rounds, k=8)
    assert [s.description for s in two.subgroups] == [s.description for s in three.subgroups]
