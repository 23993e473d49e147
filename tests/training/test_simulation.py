from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task, same_split

torch = require_extra("torch", "train")

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.aggregators import FairFed, FedAvg, FedProx, Scaffold, make_aggregator  # noqa: E402
from fedsel.training.batches import Rows, shuffled  # noqa: E402
from fedsel.training.data import ClientData, FederatedData  # noqa: E402
from fedsel.training.local import LocalSettings  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.module_model import ModuleModel  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.splitting import Split, split  # noqa: E402
from training_reference import train_client  # noqa: E402

SGD = LocalSettings("sgd", 0.2, batch_size=8)


@pytest.fixture(scope="module")
def data():
    return made_data([60, 25, 90, 40, 33])


def run(data, aggregator, *, members=None, hidden=(4,), dtype=torch.float32, simulation=None, **settings):
    world = simulation or Simulation(split(data, seed=0), Mlp(data.task, hidden, dtype=dtype))
    settings = {"rounds": 3, "local": SGD, **settings}
    return world.run(members or list(data.names), aggregator, RunSettings(**settings))


def test_a_budget_of_zero_makes_fairfed_fedavg_bit_for_bit(data):
    for partial in (None, 2):
        plain = run(data, FedAvg(), clients_per_round=partial)
        fair = run(data, FairFed(beta=0.0), clients_per_round=partial)
        assert torch.equal(plain.parameters, fair.parameters)
        assert plain.history == fair.history
    assert not torch.equal(run(data, FairFed(beta=1.0)).parameters, run(data, FedAvg()).parameters)


def test_no_proximal_term_makes_fedprox_fedavg(data):
    assert torch.equal(run(data, FedAvg()).parameters, run(data, FedProx(mu=0.0)).parameters)
    assert not torch.equal(run(data, FedAvg()).parameters, run(data, FedProx(mu=1.0)).parameters)


def test_variates_of_zero_make_scaffold_fedavg(data):
    class ZeroVariates(Scaffold):
        def _renew(self, round_, slots, change):
            super()._renew(round_, slots, change * 0)

    plain = run(data, FedAvg(weighting="uniform"))
    assert torch.equal(plain.parameters, run(data, ZeroVariates()).parameters)
    assert not torch.equal(plain.parameters, run(data, Scaffold()).parameters)


@pytest.mark.parametrize("kind", [FedAvg, FedProx, Scaffold, FairFed])
def test_one_client_is_central_training(data, kind):
    parts = split(data, seed=0)
    model = Mlp(data.task, (4,), dtype=torch.float64)
    aggregator = kind(mu=0.0) if kind is FedProx else kind()
    found = run(data, aggregator, members=["c2"], dtype=torch.float64, seed=7)
    rows = Rows(parts.train, dtype=torch.float64, device="cpu")
    orders = []
    for round_ in (1, 2, 3):
        plan = shuffled(rows, [2], batch=8, epochs=1, seed=7, round_=round_)
        orders.append(plan.order[0][plan.weight[0] > 0] - rows.first[2])
    start = Simulation(parts, model).run(["c2"], FedAvg(), RunSettings(1, LocalSettings("sgd", 1e-300), seed=7))
    expected = train_client(
        parts.train["c2"], start.parameters, (4,), optimiser="sgd", rate=0.2, orders=orders, batch=8
    )
    assert torch.allclose(found.parameters, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["fedavg", "scaffold", "fairfed"])
def test_the_order_of_clients_does_not_matter(data, name):
    first = run(data, make_aggregator(name), clients_per_round=3)
    backwards = FederatedData(reversed(data.clients))
    second = run(backwards, make_aggregator(name), members=list(reversed(data.names)), clients_per_round=3)
    assert torch.equal(first.parameters, second.parameters)
    assert first.history == second.history


def test_memory_does_not_change_the_numbers(data, monkeypatch):
    whole = run(data, FedAvg(), dtype=torch.float64)
    world = Simulation(split(data, seed=0), Mlp(data.task, (4,), dtype=torch.float64))
    world._trainer._side_by_side = 2048
    world._test._block = world._validation._block = 3
    chunked = run(data, FedAvg(), simulation=world)
    assert torch.allclose(whole.parameters, chunked.parameters, rtol=0, atol=1e-14)


def test_a_module_trains_like_the_fast_path(data):
    torch.manual_seed(0)

    class SameStart(ModuleModel):
        def initial(self, seed):
            return torch.zeros(self.layout.size, dtype=torch.float64)

    class ZeroStart(Mlp):
        def initial(self, seed):
            return super().initial(seed) * 0

    fast = Simulation(split(data, seed=0), ZeroStart(data.task, (), dtype=torch.float64))
    slow = Simulation(split(data, seed=0), SameStart(data.task, lambda n: torch.nn.Linear(n, 1), dtype=torch.float64))
    local = LocalSettings("adam", 0.01, batch_size=8)
    a = run(data, FedAvg(), simulation=fast, local=local)
    b = run(data, FedAvg(), simulation=slow, local=local)
    assert [row["loss"] for row in a.history] == pytest.approx([row["loss"] for row in b.history], abs=1e-12)


def test_both_populations_are_measured_every_round(data):
    result = run(data, FedAvg(), members=["c0", "c2"])
    assert len(result.history) == 9
    last = {(row["part"], row["population"]): row for row in result.history if row["round"] == 3}
    parts = split(data, seed=0)
    assert last["test", "all clients"]["rows"] == parts.test.rows.sum()
    assert last["test", "members"]["rows"] == parts.test["c0"].rows + parts.test["c2"].rows
    assert last["validation", "members"]["rows"] == parts.validation["c0"].rows + parts.validation["c2"].rows
    assert result.test["members"].accuracy == last["test", "members"]["accuracy"]
    assert result.members == ("c0", "c2")


def test_evaluations_may_be_rarer(data):
    result = run(data, FedAvg(), rounds=5, evaluate_every=3)
    assert sorted({row["round"] for row in result.history}) == [3, 5]


def test_early_stop_returns_the_best_model(data):
    wild = LocalSettings("sgd", 30.0, batch_size=2)
    result = run(data, FedAvg(), rounds=40, patience=3, local=wild, hidden=(8, 8))
    losses = [row["loss"] for row in result.history if row["part"] == "validation"]
    assert result.stop_reason == "early stop"
    assert result.rounds == len(losses) < 40
    assert result.round == losses.index(min(losses)) + 1 == result.rounds - 3
    best = [row for row in result.history if row["part"] == "test" and row["round"] == result.round]
    assert result.test["members"].f1 == best[0]["f1"]
    assert run(data, FedAvg(), patience=50).stop_reason == "completed"


# --- bad input -------------------------------------------------------------------------------------------------------


def test_a_client_without_rows_is_refused_by_name():
    data = FederatedData([made_client("full", 20), made_client("none", 0)])
    with pytest.raises(TrainingError, match="client 'none' has no training rows"):
        run(data, FedAvg())
    result = run(data, FedAvg(), members=["full"])  # an outsider without rows does no harm
    assert result.test["members"].rows == 5


def test_more_participants_than_members_are_refused(data):
    with pytest.raises(TrainingError, match="clients_per_round must be between 1 and 2, the members, got 3"):
        run(data, FedAvg(), members=["c0", "c1"], clients_per_round=3)


def test_unknown_members_are_refused(data):
    with pytest.raises(TrainingError, match="the data hold no client 'TX'"):
        run(data, FedAvg(), members=["TX"])


@pytest.mark.parametrize("name", ["rounds", "patience", "evaluate_every", "clients_per_round"])
def test_counts_must_be_positive(name):
    with pytest.raises(TrainingError, match=f"{name} must be at least 1, got 0"):
        RunSettings(**{name: 0})


def test_memory_and_threads_must_be_positive(data):
    with pytest.raises(TrainingError, match="memory_mb must be at least 1, got 0"):
        Simulation(same_split(data), Mlp(data.task), memory_mb=0)


def test_a_diverging_client_is_named():
    task = made_task(numeric=1)
    tame, wild = made_client("tame", 40, task=task), made_client("wild", 40, task=task)
    wild = ClientData("wild", task, wild.codes, wild.numeric * 1e38, wild.target, wild.group)
    message = "round 1: client 'wild' diverged, its update is not finite; lower the learning rate, 0.2"
    with pytest.raises(TrainingError, match=message):
        run(FederatedData([tame, wild]), FedAvg())


def test_one_class_and_one_group_train_and_are_stated():
    task = made_task()
    base = made_client("a", 40, task=task)
    one = ClientData("a", task, base.codes, base.numeric, np.zeros(40, dtype=bool), np.zeros(40, dtype=np.int32))
    result = run(FederatedData([one]), FedAvg())
    assert result.test["members"].eod is None
    assert "members: f: no rows" in result.notes
    assert "members: balanced_accuracy is undefined" in result.notes
    assert not any("nan" in json.dumps(row).lower() for row in result.history)


def test_a_client_of_one_row_takes_part():
    data = FederatedData([made_client("one", 1), made_client("many", 50)])
    result = run(data, FedAvg(), members=["one"])
    assert result.test["members"].rows == 0
    assert result.test["members"].accuracy is None
    assert result.test["all clients"].accuracy is not None
    assert [row["loss"] for row in result.history if row["part"] == "validation"] == [None] * 3


def test_threads_of_torch_are_put_back(data):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(data, FedAvg(), rounds=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_subsets_of_a_split_hold_the_same_clients(data):
    parts = split(data, seed=0).subset(("c1", "c3"))
    assert isinstance(parts, Split)
    assert parts.train.names == parts.test.names == parts.validation.names == ("c1", "c3")
