from __future__ import annotations

import numpy as np
import pytest

from fedsel.errors import TrainingError
from fedsel.training.data import ClientData, FederatedData
from fedsel.training.splitting import split, stream_seed, thin
from training_samples import made_client, made_data, made_task


def numbered(name, rows):
    """A client whose numeric input is its row's number."""
    task = made_task(numeric=1)
    base = made_client(name, rows, task=task)
    return ClientData(name, task, base.codes, np.arange(rows, dtype=np.float32)[:, None], base.target, base.group)


def numbers(client):
    return client.numeric[:, 0].astype(int).tolist()


def test_parts_are_disjoint_and_hold_every_row():
    data = FederatedData([numbered("a", 101), numbered("b", 40)])
    parts = split(data, seed=3)
    for name, rows in (("a", 101), ("b", 40)):
        held = [numbers(part[name]) for part in (parts.train, parts.validation, parts.test)]
        assert sorted(row for part in held for row in part) == list(range(rows))
        assert len(held[2]) == rows // 4
        assert len(held[1]) == int(rows * 0.15)


def test_a_client_of_one_row_trains_on_it():
    parts = split(FederatedData([numbered("a", 1), numbered("b", 0)]), seed=0)
    assert parts.train.rows.tolist() == [1, 0]
    assert parts.validation.rows.tolist() == parts.test.rows.tolist() == [0, 0]


def test_draws_depend_on_seed_and_name_alone():
    a, b = numbered("a", 50), numbered("b", 50)
    alone, together = split(FederatedData([a]), seed=1), split(FederatedData([b, a]), seed=1)
    assert numbers(alone.test["a"]) == numbers(together.test["a"])
    assert numbers(together.test["a"]) != numbers(together.test["b"])
    assert numbers(split(FederatedData([a]), seed=2).test["a"]) != numbers(alone.test["a"])
    assert numbers(thin(FederatedData([a]), 20, seed=1)["a"]) != numbers(alone.train["a"])[:20]
    assert stream_seed(1, "x", 11) != stream_seed(1, "x1", 1)


def test_thinning_keeps_proportions():
    data = FederatedData([numbered("a", 300), numbered("b", 100)])
    thinned = thin(data, 40, seed=0)
    assert thinned.rows.tolist() == [30, 10]
    assert len(set(numbers(thinned["a"]))) == 30
    assert thin(data, 400, seed=0) is data
    small = FederatedData([numbered("a", 1000), numbered("b", 3), numbered("c", 0)])
    assert thin(small, 10, seed=0).rows.tolist() == [10, 1, 0]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"test": 1.0}, "share of test rows must be at least 0 and below 1, got 1.0"),
        ({"validation": -0.1}, "share of validation rows must be"),
        ({"test": 0.5, "validation": 0.5}, "must add up to less than 1, got 1"),
    ],
)
def test_impossible_shares_are_refused(shares, message):
    with pytest.raises(TrainingError, match=message):
        split(made_data([5]), seed=0, **shares)


def test_rows_to_keep_must_be_positive():
    with pytest.raises(TrainingError, match="rows to keep must be at least 1, got 0"):
        thin(made_data([5]), 0, seed=0)
