from __future__ import annotations

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from sklearn import metrics as sklearn

from fedsel.errors import TrainingError
from fedsel.training.fairness import count_outcomes, measure
from fedsel.training.fairness_terms import base_counts, global_terms, local_difference

LABELS = ("a", "b", "c", "d")


def made(seed, rows=200, groups=2, clients=1):
    rng = np.random.default_rng(seed)
    group, client = rng.integers(0, groups, rows), rng.integers(0, clients, rows)
    target = rng.random(rows) < 0.3 + 0.1 * group
    predicted = rng.random(rows) < 0.2 + 0.4 * target + 0.1 * group
    return target, predicted, group, client


def metrics_of(target, predicted, group, *, groups=2, privileged=0):
    counts = count_outcomes(target, predicted, group, groups)[0]
    return measure(counts, groups=LABELS[:groups], privileged=privileged)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_fairlearn_and_scikit_learn(seed, groups):
    target, predicted, group, _ = made(seed, groups=groups)
    found = metrics_of(target, predicted, group, groups=groups)
    assert found.accuracy == pytest.approx(sklearn.accuracy_score(target, predicted))
    assert found.balanced_accuracy == pytest.approx(sklearn.balanced_accuracy_score(target, predicted))
    assert found.f1 == pytest.approx(sklearn.f1_score(target, predicted))
    assert found.precision == pytest.approx(sklearn.precision_score(target, predicted))
    assert found.recall == pytest.approx(sklearn.recall_score(target, predicted))
    frame = fairlearn.MetricFrame(
        metrics={
            "accuracy": sklearn.accuracy_score,
            "true_positive_rate": fairlearn.true_positive_rate,
            "false_positive_rate": fairlearn.false_positive_rate,
            "selection_rate": fairlearn.selection_rate,
            "balanced_accuracy": sklearn.balanced_accuracy_score,
            "f1": sklearn.f1_score,
            "rows": fairlearn.count,
        },
        y_true=target,
        y_pred=predicted,
        sensitive_features=group,
    )
    for number, rates in enumerate(found.groups):
        for name in frame.by_group.columns:
            assert getattr(rates, name) == pytest.approx(frame.by_group[name][number])
    assert found.eod_range == pytest.approx(frame.difference()["true_positive_rate"])
    assert found.spd_range == pytest.approx(
        fairlearn.demographic_parity_difference(target, predicted, sensitive_features=group)
    )
    assert found.mad_range == pytest.approx(frame.difference()["accuracy"])


def test_signs_by_hand():
    #            privileged group 0: 2 of 3 positives found  |  group 1: 1 of 2 found
    target = np.array([1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
    predicted = np.array([1, 1, 0, 1, 1, 0, 0, 0], dtype=bool)
    group = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = metrics_of(target, predicted, group)
    assert found.eod == pytest.approx(1 / 2 - 2 / 3)
    assert found.spd == pytest.approx(1 / 4 - 3 / 4)
    assert found.mad == pytest.approx(abs(3 / 4 - 2 / 4))
    other = metrics_of(target, predicted, group, privileged=1)
    assert (other.eod, other.spd, other.mad) == (-found.eod, -found.spd, found.mad)
    assert found.undefined == ()


def test_unprivileged_groups_are_taken_together():
    target, predicted, group, _ = made(1, groups=4)
    found = metrics_of(target, predicted, group, groups=4, privileged=2)
    two = metrics_of(target, predicted, (group == 2).astype(int), privileged=1)
    assert (found.eod, found.spd, found.mad) == (two.eod, two.spd, two.mad)


def test_an_absent_group_is_stated_and_left_out():
    target, predicted, group, _ = made(2)
    found = metrics_of(target, predicted, group, groups=3)
    assert found.groups[2].rows == 0
    assert found.groups[2].accuracy is None
    assert found.undefined == ("c: no rows",)
    assert found.eod_range == metrics_of(target, predicted, group).eod_range
    assert found.eod == metrics_of(target, predicted, group).eod


def test_what_cannot_be_computed_is_none_and_named():
    target, predicted = np.zeros(4, dtype=bool), np.array([0, 0, 1, 0], dtype=bool)
    found = metrics_of(target, predicted, np.array([0, 0, 1, 1]))
    assert found.accuracy == 0.75
    assert found.balanced_accuracy is found.eod is found.recall is None
    assert found.f1 == 0.0
    assert found.spd == 0.5
    assert found.undefined == (
        "a: no positive rows",
        "b: no positive rows",
        "balanced_accuracy is undefined",
        "recall is undefined",
        "eod is undefined",
        "eod_range is undefined",
    )
    one_group = metrics_of(target, predicted, np.zeros(4, dtype=int))
    assert one_group.spd is one_group.mad is one_group.spd_range is None
    assert one_group.accuracy == 0.75
    nothing = metrics_of(target[:0], predicted[:0], np.zeros(0, dtype=int))
    assert nothing.rows == 0
    assert nothing.accuracy is nothing.f1 is nothing.precision is None


@pytest.mark.parametrize("metric", ["eod", "spd"])
@pytest.mark.parametrize("groups", [2, 3])
def test_terms_of_clients_add_up_to_the_pooled_difference(metric, groups):
    target, predicted, group, client = made(3, groups=groups, clients=6)
    lonely = (client == 0) & (group == 1)  # client 0 has one group only where there are two
    target, predicted, group, client = (values[~lonely] for values in (target, predicted, group, client))
    counts = count_outcomes(target, predicted, group, groups, client=client, clients=6)
    totals = base_counts(counts, metric, 1).sum(axis=0)
    terms = global_terms(counts, totals, metric, 1)
    pooled = metrics_of(target, predicted, group, groups=groups, privileged=1)
    assert float(terms.sum()) == pytest.approx(getattr(pooled, metric), abs=1e-12)
    own, defined = local_difference(counts, metric, 1)
    for number in range(6):
        mine = client == number
        alone = metrics_of(target[mine], predicted[mine], group[mine], groups=groups, privileged=1)
        assert defined[number] == (getattr(alone, metric) is not None)
        assert own[number] == pytest.approx(getattr(alone, metric) or 0.0)
    assert not defined[0]


def test_counts_of_clients_add():
    target, predicted, group, client = made(4, clients=3)
    counts = count_outcomes(target, predicted, group, 2, client=client, clients=3)
    assert counts.shape == (3, 2, 2, 2)
    assert np.array_equal(counts.sum(axis=0), count_outcomes(target, predicted, group, 2)[0])
    assert counts[1].sum() == (client == 1).sum()


def test_values_out_of_range_are_refused():
    target, predicted, group, client = made(5, clients=3)
    with pytest.raises(TrainingError, match="group must be between 0 and 0, got values from 0 to 1"):
        count_outcomes(target, predicted, group, 1)
    with pytest.raises(TrainingError, match="client must be between 0 and 1"):
        count_outcomes(target, predicted, group, 2, client=client, clients=2)
    with pytest.raises(TrainingError, match="must have one length, got 200, 200, 199"):
        count_outcomes(target, predicted, group[1:], 2)
