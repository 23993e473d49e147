"""Clients as they come: each odd one trains by a stated rule, or is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task

torch = require_extra("torch", "train")

from fedsel.errors import DivergedError, TrainingError  # noqa: E402
from fedsel.privacy.calibration import plan_noise  # noqa: E402
from fedsel.training.aggregators import AGGREGATORS, make_aggregator  # noqa: E402
from fedsel.training.comparison import compare  # noqa: E402
from fedsel.training.comparison_settings import ComparisonSettings  # noqa: E402
from fedsel.training.data import ClientData, FederatedData  # noqa: E402
from fedsel.training.local import LocalSettings  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.sources import ExampleSource  # noqa: E402
from fedsel.training.splitting import Split, split  # noqa: E402


def of_one_class(name, value):
    client = made_client(name, 30)
    return replace(client, target=np.full(30, value))


def of_one_group(name, value):
    client = made_client(name, 30)
    codes = client.codes.copy()
    codes[:, list(client.task.inputs).index(client.task.sensitive)] = value
    return replace(client, codes=codes, group=np.full(30, value))


def train(data, name, *, parts=None, members=None, **settings):
    world = Simulation(parts or split(data, seed=0), Mlp(data.task, (4,)))
    local = LocalSettings(AGGREGATORS[name].optimisers[0], 0.05, batch_size=8)
    run = RunSettings(**{"rounds": 3, "local": local, **settings})
    return world.run(members or list(data.names), make_aggregator(name), run)


ODD = {
    "one class": [of_one_class("no", False), of_one_class("yes", True), made_client("both", 30)],
    "one class everywhere": [of_one_class("no", False), of_one_class("never", False)],
    "one group": [of_one_group("m", 0), of_one_group("f", 1), made_client("both", 30)],
    "one group everywhere": [of_one_group("m", 0), of_one_group("n", 0)],
    "one row": [made_client("one", 1), made_client("other", 1), made_client("many", 30)],
    "one row everywhere": [made_client("one", 1), made_client("other", 1)],
}


@pytest.mark.parametrize("name", AGGREGATORS)
@pytest.mark.parametrize("odd", ODD)
def test_odd_clients_train_with_every_aggregator(odd, name):
    result = train(FederatedData(ODD[odd]), name)
    assert bool(torch.isfinite(result.parameters).all())
    assert "nan" not in json.dumps(result.history).lower()
    absent = {
        "one class everywhere": "members: recall is undefined",
        "one group everywhere": "members: f: no rows",
        "one row everywhere": "members: accuracy is undefined",
    }
    if odd in absent:
        assert absent[odd] in result.notes
        assert result.test["members"].eod is None


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_client_without_rows_is_refused_by_name_whatever_the_aggregator(name):
    with pytest.raises(TrainingError, match="client 'none' has no training rows"):
        train(FederatedData([made_client("none", 0), made_client("many", 30)]), name)


def test_a_group_absent_in_test_is_stated_there_and_trained_on():
    data = FederatedData([made_client("a", 60), made_client("b", 60)])
    test = FederatedData(client.take(np.flatnonzero(client.group == 0)) for client in data.clients)
    result = train(data, "fairfed", parts=Split(data, data, test))
    assert result.test["members"].eod is None
    assert result.test["members"].accuracy is not None
    assert "members: f: no rows" in result.notes
    valid = [row for row in result.history if row["part"] == "validation"]
    assert all(row["eod"] is not None for row in valid)  # a part where the group is there


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_feature_that_is_not_finite_is_refused_by_client_and_row(bad):
    client = made_client("north", 5, task=made_task(numeric=1))
    numeric = client.numeric.copy()
    numeric[3, 0] = bad
    with pytest.raises(TrainingError, match=f"client 'north': row 4: x0 must be a finite number, got {bad}"):
        replace(client, numeric=numeric)


def test_features_that_are_no_codes_are_refused_by_client_and_variable():
    client = made_client("north", 5)
    with pytest.raises(TrainingError, match="client 'north': colour: expected category codes, got float64"):
        replace(client, codes=np.full(client.codes.shape, np.nan))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_diverging_client_is_named_whatever_the_aggregator(name):
    task = made_task(numeric=1)
    tame, wild = made_client("tame", 40, task=task), made_client("wild", 40, task=task)
    wild = ClientData("wild", task, wild.codes, wild.numeric * 1e38, wild.target, wild.group)
    with pytest.raises(DivergedError, match="round 1: client 'wild' diverged, its update is not finite"):
        train(FederatedData([tame, wild]), name, local=LocalSettings("sgd", 0.2, batch_size=8))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_more_participants_than_members_are_refused_whatever_the_aggregator(name):
    with pytest.raises(TrainingError, match="clients_per_round must be between 1 and 2, the members, got 3"):
        train(made_data([20, 20]), name, clients_per_round=3)


# --- a comparison ----------------------------------------------------------------------------------------------------

SETTINGS = ComparisonSettings(
    k=3,
    pairs=(("fedsel", "fedavg"), ("random", "fedavg")),
    seeds=2,
    draws=1,
    candidates=0.2,
    rows=4_000,
    run=RunSettings(2),
    rates=(0.01,),
    effort=1,
    hidden=(4,),
)


def test_a_training_that_diverges_is_stated_and_the_others_go_on(monkeypatch):
    whole, calls = Simulation.run, []

    def sometimes(world, members, aggregator, settings, **options):
        calls.append(members)
        if len(calls) == 3:  # one of tuning, then the first repetition's second
            raise DivergedError("round 1: client 'CT' diverged")
        return whole(world, members, aggregator, settings, **options)

    monkeypatch.setattr(Simulation, "run", sometimes)
    found = compare(ExampleSource(), plan_noise(55, epsilon=1.0), SETTINGS)
    lost = [row for row in found.results if row["round"] is None]
    assert [(row["seed"], row["choice"], row["population"]) for row in lost] == [
        (0, "random", "members"),
        (0, "random", "all clients"),
    ]
    assert all(row["accuracy"] is None and len(row["members"]) == 3 for row in lost)
    assert all(row["accuracy"] is not None for row in found.results if row not in lost)
    assert "random, fedavg, seed 0: round 1: client 'CT' diverged" in found.notes


def test_a_comparison_of_nothing_but_divergence_is_an_error(monkeypatch):
    whole, calls = Simulation.run, []

    def once(world, members, aggregator, settings, **options):
        calls.append(members)
        if len(calls) > 1:
            raise DivergedError("round 1: client 'CT' diverged")
        return whole(world, members, aggregator, settings, **options)

    monkeypatch.setattr(Simulation, "run", once)
    with pytest.raises(TrainingError, match=r"every training diverged; the last: .*client 'CT' diverged"):
        compare(ExampleSource(), plan_noise(55, epsilon=1.0), SETTINGS)
