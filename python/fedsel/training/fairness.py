"""Accuracy and fairness of predictions, from counts of groups, targets and predictions.

Counts are all that any metric here needs, and they add: counts of clients sum to those of their federation. A rate
whose denominator is 0 is *undefined*: it is None and named in `Metrics.undefined`, never 0 and never NaN. A difference
between groups is taken over the groups where the rate is defined, and undefined where fewer than two are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.errors import TrainingError

Counts = npt.NDArray[np.int64]
"""Rows per group, target and prediction, (..., groups, 2, 2)."""


def count_outcomes(
    target: npt.NDArray[np.bool_],
    predicted: npt.NDArray[np.bool_],
    group: npt.NDArray[np.integer],
    groups: int,
    *,
    client: npt.NDArray[np.integer] | None = None,
    clients: int = 1,
) -> Counts:
    """Count rows by client, group, target and prediction.

    Parameters
    ----------
    target, predicted : ndarray of bool, shape (rows,)
        Truth and prediction.
    group : ndarray of int, shape (rows,)
        Group of each row, between 0 and `groups` - 1.
    groups : int
        Number of groups.
    client : ndarray of int, shape (rows,), optional
        Client of each row, between 0 and `clients` - 1.
    clients : int
        Number of clients.

    Returns
    -------
    ndarray of int64, shape (clients, groups, 2, 2)

    Raises
    ------
    TrainingError
        If lengths differ, or a group or client is out of range.
    """
    number = np.zeros(len(target), dtype=np.int64) if client is None else client.astype(np.int64)
    for name, values, bound in (("group", group, groups), ("client", number, clients)):
        if not len(values) == len(target) == len(predicted):
            raise TrainingError(
                f"target, predicted and {name} must have one length, got {len(target)}, {len(predicted)}, {len(values)}"
            )
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < bound:
            raise TrainingError(
                f"{name} must be between 0 and {bound - 1}, got values from {values.min()} to {values.max()}"
            )
    cell = ((number * groups + group) * 2 + target.astype(np.int64)) * 2 + predicted.astype(np.int64)
    return np.bincount(cell, minlength=clients * groups * 4).reshape(clients, groups, 2, 2)


@dataclass(frozen=True)
class GroupRates:
    """Rates within one group; None where the denominator is 0.

    Parameters
    ----------
    group : str
        Its label.
    rows : int
        Its rows.
    accuracy, true_positive_rate, false_positive_rate, selection_rate : float or None
        P(Yhat = Y), P(Yhat = 1 | Y = 1), P(Yhat = 1 | Y = 0) and P(Yhat = 1).
    balanced_accuracy, f1 : float or None
        As in `Metrics`.
    """

    group: str
    rows: int
    accuracy: float | None
    true_positive_rate: float | None
    false_positive_rate: float | None
    selection_rate: float | None
    balanced_accuracy: float | None
    f1: float | None


@dataclass(frozen=True)
class Metrics:
    """Metrics of one set of predictions; None where undefined.

    Parameters
    ----------
    rows : int
        Rows.
    accuracy, precision, recall, f1 : float or None
        Of the positive category; F1 is 2 TP / (2 TP + FP + FN).
    balanced_accuracy : float or None
        Mean of the true positive and the true negative rate; undefined unless both categories occur.
    eod, spd : float or None
        Equal opportunity difference, TPR(A = 0) - TPR(A = 1), and statistical parity difference, P(Yhat = 1 | A = 0) -
        P(Yhat = 1 | A = 1): A = 1 is the privileged group, A = 0 all others together (FairFed, arXiv 2110.00857,
        equations 2 and 3).
    mad : float or None
        |accuracy(A = 0) - accuracy(A = 1)| (PCS, arXiv 2605.20975).
    eod_range, spd_range, mad_range : float or None
        Largest minus smallest rate over the single groups; with two groups, the absolute difference.
    groups : tuple of GroupRates
        One per category of the sensitive attribute.
    undefined : tuple of str
        What is undefined, and why.
    """

    rows: int
    accuracy: float | None
    balanced_accuracy: float | None
    f1: float | None
    precision: float | None
    recall: float | None
    eod: float | None
    spd: float | None
    mad: float | None
    eod_range: float | None
    spd_range: float | None
    mad_range: float | None
    groups: tuple[GroupRates, ...]
    undefined: tuple[str, ...]


METRIC_NAMES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "eod",
    "spd",
    "mad",
    "eod_range",
    "spd_range",
    "mad_range",
)


def measure(counts: Counts, *, groups: Sequence[str], privileged: int) -> Metrics:
    """Compute all metrics of some counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (groups, 2, 2)
        Rows per group, target and prediction.
    groups : sequence of str
        Labels of the groups.
    privileged : int
        Number of the privileged group.

    Returns
    -------
    Metrics
    """
    rates = tuple(_group_rates(label, part) for label, part in zip(groups, counts, strict=True))
    whole = counts.sum(axis=0)
    (tn, fp), (fn, tp) = whole.tolist()
    others = _group_rates("the other groups", np.delete(counts, privileged, axis=0).sum(axis=0))
    favoured = rates[privileged]
    mad = _minus(others.accuracy, favoured.accuracy)
    overall = _group_rates("all", whole)
    values = {
        "accuracy": overall.accuracy,
        "balanced_accuracy": overall.balanced_accuracy,
        "f1": overall.f1,
        "precision": _ratio(tp, tp + fp),
        "recall": _ratio(tp, tp + fn),
        "eod": _minus(others.true_positive_rate, favoured.true_positive_rate),
        "spd": _minus(others.selection_rate, favoured.selection_rate),
        "mad": None if mad is None else abs(mad),
        "eod_range": _range([rate.true_positive_rate for rate in rates]),
        "spd_range": _range([rate.selection_rate for rate in rates]),
        "mad_range": _range([rate.accuracy for rate in rates]),
    }
    missing = [f"{rate.group}: no rows" for rate in rates if not rate.rows]
    missing += [f"{rate.group}: no positive rows" for rate in rates if rate.rows and rate.true_positive_rate is None]
    undefined = [f"{name} is undefined" for name, value in values.items() if value is None]
    return Metrics(rows=tn + fp + fn + tp, **values, groups=rates, undefined=(*missing, *undefined))


def _group_rates(label: str, counts: Counts) -> GroupRates:
    (tn, fp), (fn, tp) = counts.tolist()
    rows, recall, false_positives = tn + fp + fn + tp, _ratio(tp, tp + fn), _ratio(fp, tn + fp)
    balanced = None if recall is None or false_positives is None else (recall + 1 - false_positives) / 2
    return GroupRates(
        label,
        rows,
        _ratio(tn + tp, rows),
        recall,
        false_positives,
        _ratio(tp + fp, rows),
        balanced,
        _ratio(2 * tp, 2 * tp + fp + fn),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _range(rates: Sequence[float | None]) -> float | None:
    defined = [rate for rate in rates if rate is not None]
    return max(defined) - min(defined) if len(defined) > 1 else None
