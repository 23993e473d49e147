"""The numbers of a report against plain computations."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from fedsel import FederationLoss, Pool, select
from fedsel.errors import SelectionError
from fedsel.report import contributions as contributions_module
from fedsel.report import frame as frame_module
from fedsel.report import gather
from fedsel.report.charts import axis, histogram, traces
from fedsel.selection import Constraints
from reference import components, made_pool, mutual_information

DOMAIN = [3, 4, 2, 2]


def plain_loss(pool, members, weights):
    return float(components(pool, members, "v0", "v3") @ weights.signed)


@pytest.fixture(scope="module")
def case():
    pool = made_pool(4, clients=12, domain=DOMAIN)
    selection = select(pool, 4)
    return pool, selection, gather(selection, pool, seed=3)


def test_contributions_equal_brute_force(case):
    pool, selection, evidence = case
    chosen = [pool.index(name) for name in selection.names]
    outside = [row for row in range(len(pool)) if row not in chosen]
    assert {item.member for item in evidence.contributions.examined} == set(selection.members)
    for item in evidence.contributions.examined:
        rest = [row for row in chosen if pool.clients[row] != item.member.name]
        assert item.without == pytest.approx(plain_loss(pool, rest, selection.weights), abs=1e-9)
        loss, replacement = min((plain_loss(pool, [*rest, row], selection.weights), row) for row in outside)
        assert item.replaced == pytest.approx(loss, abs=1e-9)
        assert item.replacement == pool.clients[replacement]
    assert sum(item.share for item in evidence.contributions.examined) == pytest.approx(1)
    assert evidence.contributions.tried == evidence.contributions.outsiders == 8


def test_a_small_number_of_federations_is_compared_and_ranked_completely(case):
    pool, selection, evidence = case
    everything = sorted(plain_loss(pool, rows, selection.weights) for rows in combinations(range(12), 4))
    assert evidence.comparison.complete
    assert sorted(evidence.comparison.losses) == pytest.approx(everything, abs=1e-9)
    assert evidence.comparison.better == 0
    expected = (np.mean(everything) - selection.loss) / np.std(everything, ddof=1)
    assert evidence.comparison.distance == pytest.approx(expected)
    near = evidence.near_optimal
    assert near.complete
    assert len(near.losses) == 10  # a hundredth of 495 is fewer than 10
    assert near.losses == pytest.approx(everything[:10], abs=1e-9)


def test_frequencies_count_the_best_federations(case):
    pool, selection, evidence = case
    ranked = sorted(combinations(range(12), 4), key=lambda rows: plain_loss(pool, rows, selection.weights))
    counts = Counter(row for rows in ranked[:10] for row in rows)
    assert evidence.near_optimal.frequency == pytest.approx([counts[row] / 10 for row in range(12)])


@pytest.mark.parametrize("size", [4, 6])
def test_random_federations_are_valid_and_evaluated(size):
    pool = made_pool(5, clients=20, domain=DOMAIN)
    selection = select(pool, size)
    evidence = gather(selection, pool, seed=1)
    comparison = evidence.comparison
    assert not comparison.complete
    assert comparison.federations.shape == (1000, size)
    assert all(len(set(rows)) == size for rows in comparison.federations.tolist())
    for number in (0, 17, 999):
        members = comparison.federations[number].tolist()
        assert comparison.losses[number] == pytest.approx(plain_loss(pool, members, selection.weights), abs=1e-9)
    # Every client is drawn about equally often: five standard deviations.
    counts = np.bincount(comparison.federations.ravel(), minlength=20)
    share = size / 20
    assert np.abs(counts - 1000 * share).max() < 5 * math.sqrt(1000 * share * (1 - share))


def test_near_optimal_federations_are_exact_after_a_proof_and_else_a_good_sample():
    pool = made_pool(6, clients=20, domain=DOMAIN)
    proved = select(pool, 5)
    assert proved.certificate.kind == "proof"
    exact = gather(proved, pool).near_optimal
    loss = FederationLoss(pool)
    rows = np.array(list(combinations(range(20), 5)))
    everything = np.sort(loss.components_of(rows) @ loss.weights.signed)
    assert exact.complete
    assert exact.losses == pytest.approx(everything[:156], abs=1e-9)  # a hundredth of 15,504, rounded up
    sampled = gather(select(pool, 5, certificate="none"), pool).near_optimal
    assert not sampled.complete
    assert len(sampled.losses) == 156
    assert sampled.losses[0] == pytest.approx(everything[0], abs=1e-9)
    both = {*map(tuple, exact.federations.tolist())} & {*map(tuple, sampled.federations.tolist())}
    assert len(both) > 100


def test_information_equals_the_loss_and_plain_tables(case):
    pool, selection, evidence = case
    loss = FederationLoss(pool)
    for members, matrix in (
        (selection.names, evidence.information.federation),
        (pool.clients, evidence.information.pool),
    ):
        rows = [pool.index(name) for name in members]
        for t, (i, j) in enumerate(pool.workload.sets):
            expected = mutual_information(pool.table(t)[rows].sum(axis=0))
            assert matrix[i, j] == matrix[j, i] == pytest.approx(expected, abs=1e-9)
            assert matrix[i, j] == loss.information(members)[pool.schema.names[i], pool.schema.names[j]]
        assert np.isnan(np.diag(matrix)).all()
    assert evidence.information.roles == ("sensitive", "feature", "feature", "target")
    assert [pair.part for pair in evidence.information.pairs] == [
        "sensitive_feature",
        "sensitive_feature",
        "sensitive_target",
        "feature_feature",
        "feature_target",
        "feature_target",
    ]


def test_the_same_seed_gives_the_same_evidence_for_any_threads():
    pool = made_pool(7, clients=40, domain=DOMAIN)
    selection = select(pool, 8, certificate="none")
    one, two = (gather(selection, pool, seed=5, threads=threads) for threads in (1, 3))
    assert one.contributions.examined == two.contributions.examined
    assert (one.comparison.losses == two.comparison.losses).all()
    assert (one.near_optimal.federations == two.near_optimal.federations).all()
    assert one.digest == two.digest
    assert (gather(selection, pool, seed=6).comparison.losses != one.comparison.losses).any()


def test_large_pools_are_sampled_and_say_so(monkeypatch):
    monkeypatch.setattr(frame_module, "WORK", 100_000)
    monkeypatch.setattr(contributions_module, "MOST_MEMBERS", 3)
    pool = made_pool(8, clients=300, domain=[2, 2, 2])
    selection = select(pool, 9, certificate="none")
    found = gather(selection, pool).contributions
    assert len(found.examined) == 3
    assert found.tried == 100_000 // (17 * 12) // 3 < found.outsiders == 291
    largest = sorted((member.records for member in selection.members), reverse=True)[:3]
    assert [item.member.records for item in found.examined] == largest
    met = {name for other in selection.runner_ups for name in other.members} - set(selection.names)
    assert met <= {pool.clients[row] for row in found.entering}


def test_constraints_hold_in_every_comparison():
    pool = made_pool(9, clients=16, domain=DOMAIN)
    sizes = dict(zip(pool.clients, pool.totals().estimate, strict=True))
    enough = 1.05 * 6 * float(np.mean(list(sizes.values())))
    rules = Constraints(include=("c003",), exclude=("c001", "c002"), min_records=enough)
    selection = select(pool, 6, constraints=rules)
    evidence = gather(selection, pool, constraints=rules)
    for federations in (evidence.comparison.federations, evidence.near_optimal.federations):
        assert len(federations)
        for rows in federations.tolist():
            names = {pool.clients[row] for row in rows}
            assert "c003" in names
            assert not names & {"c001", "c002"}
            assert sum(round(sizes[name]) for name in names) >= enough
    required = [item for item in evidence.contributions.examined if item.required]
    assert [(item.member.name, item.replacement) for item in required] == [("c003", None)]
    assert evidence.near_optimal.frequency[pool.index("c003")] == 1
    chosen = set(selection.names)
    for item in evidence.contributions.examined:
        if item.replacement is not None:
            after = chosen - {item.member.name} | {item.replacement}
            assert sum(round(sizes[name]) for name in after) >= enough
            assert item.replacement not in ("c001", "c002")
    with pytest.raises(SelectionError, match="constraints: the selection was made under: include c003"):
        gather(selection, pool)


def test_a_selection_of_another_pool_is_refused(case):
    pool, selection, _ = case
    other = made_pool(5, clients=12, domain=DOMAIN)
    with pytest.raises(SelectionError, match="other releases"):
        gather(selection, other)
    with pytest.raises(SelectionError, match="12 clients, the pool has 11"):
        gather(selection, pool.subset(pool.clients[:11]))
    with pytest.raises(SelectionError, match="seed must be between"):
        gather(selection, pool, seed=-1)


def test_the_digest_tells_releases_apart(case):
    pool, selection, evidence = case
    counts = pool.counts.copy()
    counts[11, 0] += 1
    changed = Pool(**{name: getattr(pool, name) for name in pool.__dataclass_fields__} | {"counts": counts})
    assert gather(select(changed, 4), changed).digest != evidence.digest
    assert gather(replace(selection, seed=1), pool).digest == evidence.digest


def test_histograms_count_every_value():
    values = np.random.default_rng(0).normal(size=1000)
    chart = histogram(values, -6.0)
    assert sum(bar.count for bar in chart.bars) == 1000
    assert 0 < chart.mark < 10
    assert max(bar.height for bar in chart.bars) == 100
    assert histogram(np.array([0.25, 0.25]), 0.25).bars[0].count == 2


def test_axes_and_traces():
    scale = axis(-0.52, -0.11)
    assert scale.ticks == (-0.5, -0.4, -0.3, -0.2, -0.1)
    assert scale.low < -0.52 < -0.11 < scale.high
    chart = traces([[1.0, 0.5, 0.25], [2.0], list(np.linspace(2, 0, 5000))])
    assert [len(line.split()) for line in chart.lines] == [3, 1, 240]
    assert chart.longest == 5000
    assert chart.lines[2].split()[-1].startswith("100.00,")


def test_importing_reports_does_not_load_jinja2():
    code = "import sys, fedsel, fedsel.report; assert 'jinja2' not in sys.modules and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
