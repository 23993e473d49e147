from __future__ import annotations

import re
import tracemalloc

import pytest

from conftest import require_extra
from training_samples import made_data, made_task, same_split

torch = require_extra("torch", "train")

from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.aggregators import FedAvg, FedProx, Scaffold  # noqa: E402
from fedsel.training.local import LocalSettings  # noqa: E402
from fedsel.training.memory import measured  # noqa: E402
from fedsel.training.models import Batch, Mlp  # noqa: E402
from fedsel.training.module_model import ModuleModel  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402

MEBIBYTE = 2**20
LARGE = 1024  # no bound here


def peak(work):
    """Most bytes that torch and numpy held at once during some work, beyond those before, by their own counting."""
    tracemalloc.start()
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            work()
            most = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        highest = max(highest, held)
    return highest + most


def mlp(task):
    return Mlp(task, (64, 64))


def normed(task):
    return ModuleModel(task, lambda n: nn.Sequential(nn.Linear(n, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 1)))


def random(task):
    return ModuleModel(task, lambda n: nn.Sequential(nn.Linear(n, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1)))


CASES = {
    "adam": (mlp, FedAvg, LocalSettings("adam", 0.01, 32)),
    "proximal": (mlp, lambda: FedProx(mu=0.1), LocalSettings("adam", 0.01, 32)),
    "scaffold": (mlp, lambda: Scaffold(option="I"), LocalSettings("sgd", 0.01, 32)),
    "large batches": (mlp, FedAvg, LocalSettings("sgd", 0.01, 256)),
    "mapped": (normed, FedAvg, LocalSettings("adam", 0.01, 32)),
    "one by one": (random, FedAvg, LocalSettings("adam", 0.01, 32)),
}


@pytest.fixture(scope="module")
def data():
    return made_data([300, *range(100, 160)], task=made_task(numeric=2))


def round_of(data, case, memory_mb):
    model, aggregator, local = CASES[case]
    world = Simulation(same_split(data), model(data.task), memory_mb=memory_mb)
    return lambda: world.run(list(data.names), aggregator(), RunSettings(1, local))


@pytest.mark.parametrize("case", CASES)
def test_a_round_stays_within_its_memory(data, case):
    memory_mb = 4
    # What the bound leaves out: the rows, which are there; models in double precision; SCAFFOLD's variates.
    size = CASES[case][0](data.task).layout.size
    kept = 16 * 8 * size + (4 * size * (len(data) + 3) if case == "scaffold" else 0)
    assert peak(round_of(data, case, memory_mb)) - kept < memory_mb * MEBIBYTE


@pytest.mark.parametrize("case", ["adam", "large batches"])
def test_without_the_bound_the_same_round_takes_more(data, case):
    assert peak(round_of(data, case, LARGE)) > 4 * MEBIBYTE


@pytest.mark.parametrize("case", ["adam", "mapped", "one by one"])
def test_memory_does_not_change_the_numbers(data, case):
    small, large = round_of(data, case, 4)(), round_of(data, case, LARGE)()
    assert torch.allclose(small.parameters, large.parameters, rtol=0, atol=1e-6)
    for one, other in zip(small.history, large.history, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-6)


def test_a_setting_too_small_for_one_client_names_the_need(data):
    world = Simulation(same_split(data), Mlp(data.task, (512, 512)), memory_mb=2)
    message = r"memory_mb must be at least \d+, which training client 'c0' alone, batches of 32 rows, takes, got 2"
    with pytest.raises(TrainingError, match=message) as caught:
        world.run(list(data.names), FedAvg(), RunSettings(1))
    need = int(re.search(r"least (\d+)", str(caught.value))[1])
    assert Simulation(same_split(data), Mlp(data.task, (512, 512)), memory_mb=need).run(
        list(data.names), FedAvg(), RunSettings(1)
    )
    with pytest.raises(TrainingError, match=f"memory_mb must be at least {need}"):
        Simulation(same_split(data), Mlp(data.task, (512, 512)), memory_mb=need - 1).run(
            list(data.names), FedAvg(), RunSettings(1)
        )


def test_a_setting_too_small_for_one_row_names_the_need(data):
    wide = ModuleModel(
        data.task, lambda n: nn.Sequential(nn.Linear(n, 1), nn.Linear(1, 400_000, bias=False), nn.Linear(400_000, 1))
    )
    with pytest.raises(
        TrainingError, match=r"memory_mb must be at least [2-9], which predicting a single row takes, got 1"
    ):
        Simulation(same_split(data), wide, memory_mb=1)


def test_needs_are_fixed_and_per_row():
    kept = torch.ones(100)

    def work(rows):
        return lambda: (torch.zeros(1000), torch.zeros(rows, 10) + 1, kept.view(10, 10), kept.add_(1))

    need = measured(work)
    assert (need.fixed, need.per_row) == (4000, 80)
    assert need.of(5) == 4400


@pytest.mark.parametrize("hidden", [(), (3,), (64, 16, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_needs_of_a_perceptron_cover_what_it_allocates_closely(hidden, dtype):
    task = made_task(numeric=2)
    model = Mlp(task, hidden, dtype=dtype)
    rows = 32

    def batch(count):
        like = torch.zeros(1, count, 1, dtype=dtype)
        positions = like.new_zeros(1, 1, count, len(task.inputs) + 1, dtype=torch.int64)
        return Batch(positions, like.new_zeros(1, count, 2), like, like)

    def step(count):
        stack, made = model.stack(model.initial(0), 1), batch(count)
        made = made._replace(positions=stack.prepare(made.positions)[0])
        return lambda: stack.backward(made)

    def predicted(count):
        made, parameters = batch(count), model.initial(0)
        return lambda: model.logits(parameters, made.positions[0, 0], made.numeric[0])

    for stated, work in ((model.step_need, step), (model.row_need, predicted)):
        found = measured(work).of(rows)
        assert found <= stated.of(rows) <= 1.5 * found + 64 * rows
