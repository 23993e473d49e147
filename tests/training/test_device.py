"""Everything is made on the model's device. The meta device computes nothing, and refuses to mix with the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import require_extra
from training_samples import made_data, made_task

torch = require_extra("torch", "train")

from torch import nn  # noqa: E402

from fedsel.training.aggregators import AGGREGATORS, make_aggregator  # noqa: E402
from fedsel.training.aggregators.round import Round, Setup  # noqa: E402
from fedsel.training.batches import Rows  # noqa: E402
from fedsel.training.local import LocalRule, LocalSettings, LocalTrainer  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.module_model import ModuleModel  # noqa: E402

META = "meta"
MODELS = {
    "perceptron": lambda task, device: Mlp(task, (4, 3), device=device),
    "logistic regression": lambda task, device: Mlp(task, (), device=device),
    "module": lambda task, device: ModuleModel(
        task, lambda n: nn.Sequential(nn.Linear(n, 4), nn.LayerNorm(4), nn.Linear(4, 1)), device=device
    ),
}


@pytest.fixture(scope="module")
def data():
    return made_data([13, 4, 30], task=made_task(numeric=1))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_training_and_prediction_stay_on_the_device(data, name, optimiser):
    model = MODELS[name](data.task, META)
    rows = Rows(data, dtype=torch.float32, device=META)
    trainer = LocalTrainer(model, rows, memory=2**26, side_by_side=2**14)
    start = model.initial(0)
    assert start.device.type == META
    shift = torch.zeros(3, model.layout.size, device=META)
    rule = LocalRule(proximal=0.1, correction=lambda slots: shift[slots])
    with torch.no_grad():
        updates = list(trainer.train(start, [0, 1, 2], LocalSettings(optimiser, 0.1, 4), rule, seed=0, round_=1))
        updates += trainer.gradients(start, [0, 1, 2], seed=0, round_=1)
        logits = model.logits(start, rows.positions.long(), rows.numeric)
    assert {update.delta.device.type for update in updates} == {META}
    assert logits.device.type == META


@pytest.mark.parametrize("name", AGGREGATORS)
def test_aggregators_stay_on_the_device(data, name):
    model = MODELS["perceptron"](data.task, META)
    trainer = LocalTrainer(model, Rows(data, dtype=torch.float32, device=META), memory=2**26)
    aggregator = make_aggregator(name)
    local = LocalSettings(aggregator.optimisers[0], 0.1, 4)
    start = model.initial(0)
    aggregator.begin(Setup(data.rows, start, local, 0))
    counts = np.ones((3, 2, 2, 2), dtype=np.int64)
    round_ = Round(
        1,
        start,
        (0, 1, 2),
        counts=lambda: counts,
        gradients=lambda: trainer.gradients(start, [0, 1, 2], seed=0, round_=1),
    )
    shares = torch.from_numpy(aggregator.shares(round_)).to(META)
    mean = torch.zeros_like(start, dtype=torch.float64)
    with torch.no_grad():
        for update in trainer.train(start, [0, 1, 2], local, aggregator.rule(round_), seed=0, round_=1):
            aggregator.receive(round_, update)
            mean += shares[update.slots] @ update.delta.double()
        parameters = aggregator.step(round_, mean)
    assert (parameters.device.type, parameters.dtype) == (META, torch.float32)
    aggregator.restore({key: value for key, value in aggregator.state().items()})
