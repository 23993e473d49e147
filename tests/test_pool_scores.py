from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedsel import Pool
from fedsel.errors import PoolError, PrivacyError, ReleaseError
from fedsel.pool_scores import ClientScores
from fedsel.privacy.client import release
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.plan import NoisePlan
from fedsel.release_file import read_release, write_release
from fedsel.score_rule import RECORDS, ScoreTotals
from fedsel.tables import count
from score_samples import COLUMNS, NAMES, SCHEMA, WORKLOAD, both_rounds, first_round, made_plan, second_round


def test_both_rounds_make_one_pool():
    rule, releases = both_rounds()
    pool = Pool.from_releases(releases, rule=rule)
    assert pool.clients == NAMES
    assert pool.scores is not None
    exact = np.array([rule.total(columns).counts for columns in COLUMNS])
    scale = releases[-1].plan.scale
    assert np.abs((pool.scores.counts - exact) / scale).max() < 6
    np.testing.assert_allclose(pool.scores.values, pool.scores.counts * np.array(rule.queries.units))
    np.testing.assert_allclose(pool.scores.variance[0], (scale * np.array(rule.queries.units)) ** 2)
    assert pool.plan.weights == made_plan().part(1).weights
    assert pool.private.sentence.startswith("Each client's 2 releases together are (epsilon = 4, delta = 1e-05)")
    assert pool.private.seeded == 6


def test_the_records_score_sharpens_the_sizes():
    rule, releases = both_rounds()
    whole, tables = Pool.from_releases(releases, rule=rule), Pool.from_releases(releases[:6])
    assert np.all(whole.totals().standard_error < 0.9 * tables.totals().standard_error)
    assert np.all(np.abs(whole.totals().estimate - 3000) < 6 * whole.totals().standard_error)


def test_releases_of_scores_survive_the_file(tmp_path):
    rule, releases = both_rounds()
    for one in (releases[0], releases[-1]):
        path = tmp_path / f"{one.round}.parquet"
        write_release(one, path)
        back = read_release(path)
        assert back == one
        assert back.protocol == made_plan()
    assert back.score_names[-1] == RECORDS
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "2.parquet")
    assert table.column("table").to_pylist()[0] == "score: loss"
    assert table.column("variable_1").null_count == table.num_rows == 6
    stated = json.loads(pq.read_metadata(tmp_path / "2.parquet").metadata[b"fedsel"])
    assert stated["format"] == 2
    assert stated["rule"] == rule.identity
    assert stated["protocol"]["rounds"] == [6, 6]
    assert stated["queries"][0]["unit"] == rule.bounds[0] / 256


def test_tables_and_scores_in_one_round(tmp_path):
    rule, _ = both_rounds()
    plan = made_plan(rounds=1)
    releases = [
        release(count(columns, WORKLOAD), SCHEMA, plan, client=name, scores=rule.total(columns), seed=1)
        for name, columns in zip(NAMES, COLUMNS, strict=True)
    ]
    write_release(releases[0], tmp_path / "both.parquet")
    assert read_release(tmp_path / "both.parquet") == releases[0]
    pool = Pool.from_releases(releases, rule=rule)
    assert pool.scores is not None
    assert len(pool.plan.weights) == len(WORKLOAD.sets)
    assert pool.scores.plans[0].scores == (256,) * 6
    assert pool.private.sentence.startswith("Each client's release is (epsilon = 4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda first, second: first[:5] + second, r"client c5: the releases hold scores, but no tables"),
        (lambda first, second: first + second[:4], r"client c4, c5: the releases hold tables, but no scores"),
        (lambda first, second: first + second + second[:1], "client 'c0' has two releases of scores"),
        (lambda first, second: second, "the releases hold scores only"),
        (lambda first, second: first, "a score rule was given, but no release holds scores"),
        (
            lambda first, second: first_round(made_plan(3.0)) + second,
            "tables and scores of client 'c0' are not rounds of one protocol",
        ),
        (
            lambda first, second: [replace(one, protocol=None) for one in first] + second,
            "tables and scores of client 'c0' are not rounds of one protocol",
        ),
        (
            lambda first, second: [*first, replace(second[0], seeded=False), *second[1:]],
            r"scores differ between clients in seeded noise \(5 of 6 clients\)",
        ),
    ],
)
def test_rounds_that_do_not_go_together_are_refused(change, message):
    rule, releases = both_rounds()
    with pytest.raises(PoolError, match=message):
        Pool.from_releases(change(releases[:6], releases[6:]), rule=rule)


def test_scores_need_their_rule():
    rule, releases = both_rounds()
    with pytest.raises(PoolError, match="the rule that they were made under must be given"):
        Pool.from_releases(releases)
    other = replace(rule, centres=(0.0,) * 5)
    with pytest.raises(PoolError, match=f"score rule: expected {other.identity[:12]}, got {rule.identity[:12]}"):
        Pool.from_releases(releases, rule=other)


def test_a_stored_pool_keeps_its_scores(tmp_path):
    rule, releases = both_rounds()
    pool = Pool.from_releases(releases, rule=rule)
    pool.save(tmp_path / "pool")
    back = Pool.load(tmp_path / "pool")
    assert back.scores is not None
    assert back.scores.rule.identity == rule.identity
    assert back.scores.plans == pool.scores.plans
    np.testing.assert_array_equal(back.scores.counts, pool.scores.counts)
    meta = tmp_path / "pool" / "pool.json"
    content = json.loads(meta.read_text())
    for damage in (
        {"scores": None},
        {"format": 1},
        {"format": 3},
        {"plan_index": [1e400, 0, 0, 0, 0, 0]},
        {"rounds": [[1]] * 6},
        {"sets": [[0.5, 1.2]]},
        *(
            {"scores": {**content["scores"], **change}}
            for change in (
                {"counts": [[1]]},
                {"counts": [[1.7] * 6] * 6},
                {"seeded": ["false"] * 6},
                {"rounds": [2]},
                {"plan_index": ["0"] * 6},
            )
        ),
    ):
        meta.write_text(json.dumps({**content, **damage}))
        with pytest.raises(PoolError, match=r"pool\.json"):
            Pool.load(tmp_path / "pool")
    meta.write_text(json.dumps(content))
    other = replace(rule, bounds=tuple(2 * bound for bound in rule.bounds))
    (tmp_path / "pool" / "rule.json").write_text(other.to_json())
    with pytest.raises(PoolError, match=f"expected the rule '{rule.identity[:12]}' that the scores were made under"):
        Pool.load(tmp_path / "pool")


def test_a_subset_keeps_the_scores_of_its_clients():
    rule, releases = both_rounds()
    pool = Pool.from_releases(releases, rule=rule).subset(["c4", "c1"])
    assert pool.scores is not None
    np.testing.assert_array_equal(pool.scores.counts[1], releases[7].counts)


def test_bad_scores_are_refused():
    rule, releases = both_rounds()
    pool = Pool.from_releases(releases, rule=rule)
    scores = pool.scores
    assert isinstance(scores, ClientScores)
    for changes, message in (
        ({"counts": scores.counts[:, :3]}, "counts: expected int64 of shape"),
        ({"counts": scores.counts + 2**41}, r"expected between -2\*\*40 and 2\*\*40"),
        ({"seeded": (True,)}, "every plan must be used"),
        ({"rounds": (2,)}, "rounds: expected 6, got 1"),
    ):
        with pytest.raises(PoolError, match=message):
            replace(scores, **changes)
    with pytest.raises(PoolError, match="scores: expected 6, got 2"):
        replace(pool, scores=scores.subset([0, 1]))


def test_releases_with_scores_that_contradict_themselves_are_refused():
    _, releases = both_rounds()
    second = releases[-1]
    for changes, message in (
        ({"plan": replace(second.plan, scores=(128,) * 6)}, r"plan: scores: expected \(256"),
        ({"scores": None, "counts": second.counts[:0]}, "at least one table or score"),
        ({"protocol": replace(made_plan(), epsilon=3.0)}, "none of its parts up to round 2"),
        ({"protocol": made_plan(rounds=1)}, "expected 2 to 100 rounds, got 1"),
        ({"round": 1}, "none of its parts up to round 1"),
        ({"counts": second.counts[:5]}, r"expected shape \(6,\)"),
    ):
        with pytest.raises(ReleaseError, match=message):
            replace(second, **changes)
    with pytest.raises(PrivacyError, match="round must be between 1 and 2, got 3"):
        release(None, SCHEMA, made_plan(), client="c0", part=3)


def test_the_second_round_is_covered_by_the_charge_of_the_first(tmp_path):
    rule, _ = both_rounds()
    plan = made_plan()
    marginals, scores = count(COLUMNS[0], WORKLOAD), rule.total(COLUMNS[0])
    with Ledger.create(tmp_path / "l", client="c0", epsilon=4.0, delta=1e-5) as ledger:
        release(marginals, SCHEMA, plan, client="c0", ledger=ledger)
        assert ledger.remaining.epsilon == 0
        second = release(None, SCHEMA, plan, client="c0", scores=scores, ledger=ledger, round=2, part=2)
        assert second.round == 2
        assert len(ledger.charges) == 1


def test_the_noise_of_one_seed_differs_between_rules():
    """Or the difference of two releases would be exact."""
    rule, releases = both_rounds()
    other = replace(rule, bounds=tuple(2 * bound for bound in rule.bounds))
    again = second_round(made_plan(), other)
    exact = rule.total(COLUMNS[0]).counts - other.total(COLUMNS[0]).counts
    assert not np.array_equal(releases[6].counts - again[0].counts, exact)


def test_scores_of_other_promises_or_unstated_mixtures_are_refused():
    rule, releases = both_rounds()
    pool = Pool.from_releases(releases, rule=rule)
    scores = pool.scores
    looser = replace(scores, plans=(replace(scores.plans[0], epsilon=9.0),))
    with pytest.raises(PoolError, match=r"scores: epsilon: expected 4\.0, that of the tables, got 9\.0"):
        replace(pool, scores=looser)
    late = [*releases[:-1], replace(releases[-1], round=9)]
    with pytest.raises(PoolError, match=r"scores differ between clients in round \(2, 9\)"):
        Pool.from_releases(late, rule=rule)
    mixed = Pool.from_releases(late, rule=rule, allow_mixed=True)
    assert mixed.mixed == ("scores: round (2, 9)",)
    assert mixed.round == 9


def test_counts_too_large_for_a_release_are_clipped_not_refused():
    """Nothing is charged for a release that the data then make impossible; clipping moves no neighbours apart."""
    rule, _ = both_rounds()
    huge = ScoreTotals(rule.queries, np.full(6, 2**60))
    found = release(None, SCHEMA, made_plan(), client="c0", scores=huge, seed=0, round=2, part=2)
    assert np.all(np.abs(found.counts - 2**39) < 6 * found.plan.scale)


def test_a_long_protocol_does_not_stall_the_reader():
    _, releases = both_rounds()
    many = NoisePlan("discrete-gaussian", "add-remove", 4.0, 1e-5, 84, (1,) * 200_000, "exact", (), (1,) * 200_000)
    with pytest.raises(ReleaseError, match="expected 2 to 100 rounds, got 200000"):
        replace(releases[-1], protocol=many)


def test_rounds_of_one_seed_get_different_noise():
    rule, releases = both_rounds()
    again = second_round(made_plan(), rule, seed=1)
    assert not np.array_equal(again[0].counts, releases[6].counts)
    exact = rule.total(COLUMNS[0]).counts
    assert not np.array_equal(releases[6].counts - exact, (releases[0].counts - count(COLUMNS[0], WORKLOAD).counts)[:6])
