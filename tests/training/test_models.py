from __future__ import annotations

import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task

torch = require_extra("torch", "train")

from torch import nn  # noqa: E402

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.batches import Rows  # noqa: E402
from fedsel.training.models import Batch, Mlp  # noqa: E402
from training_reference import dense, flat, load, network  # noqa: E402

DOUBLE = torch.float64


def batch_of(model, data, stack, weight):
    """All clients' rows, which are as many for each, as one batch."""
    rows, clients = Rows(data, dtype=DOUBLE, device="cpu"), len(data)
    shape = (clients, len(rows.target) // clients)
    positions = stack.prepare(rows.positions.long().view(1, *shape, -1))[0]
    return Batch(positions, rows.numeric.view(*shape, -1), rows.target.view(*shape, 1), weight)


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3, 2)])
@pytest.mark.parametrize("numeric", [0, 2])
def test_gradients_equal_automatic_differentiation(hidden, numeric):
    task = made_task(numeric=numeric)
    data = made_data([7, 7, 7], task=task)
    model = Mlp(task, hidden, dtype=DOUBLE)
    parameters = torch.stack([model.initial(seed) for seed in range(3)])
    weight = torch.rand(3, 7, 1, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    stack = model.stack(model.layout.pack(parameters), 3)
    stack.backward(batch_of(model, data, stack, weight))
    gradients = model.layout.unpack(stack.gradient, 3)
    for number, client in enumerate(data.clients):
        net = network(task.categories + numeric, hidden)
        load(net, task, parameters[number])
        loss = nn.BCEWithLogitsLoss(weight=weight[number], reduction="sum")
        loss(net(dense(client)), torch.tensor(client.target, dtype=DOUBLE)[:, None]).backward()
        expected = flat([p.grad for p in net.parameters()], task)
        assert torch.allclose(gradients[number], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("hidden", [(), (5, 3)])
def test_logits_equal_a_plain_network(hidden):
    task = made_task(numeric=1)
    client = made_client("a", 9, task=task)
    model = Mlp(task, hidden, dtype=DOUBLE)
    parameters = model.initial(4)
    net = network(task.categories + 1, hidden)
    load(net, task, parameters)
    rows = Rows(made_data([9], task=task), dtype=DOUBLE, device="cpu")
    with torch.no_grad():
        expected = net(dense(made_client("c0", 9, task=task)))[:, 0]
        assert torch.allclose(model.logits(parameters, rows.positions.long(), rows.numeric), expected, atol=1e-13)
    assert client.rows == 9


def test_initial_parameters_repeat_and_stay_within_their_bounds():
    task = made_task()
    model = Mlp(task, (16,))
    assert torch.equal(model.initial(1), model.initial(1))
    assert not torch.equal(model.initial(1), model.initial(2))
    table, _, out, _ = model.layout.views(model.initial(1), 1)
    assert 0.9 / 7**0.5 < table.abs().max() <= 1 / 7**0.5
    assert 0.7 / 16**0.5 < out.abs().max() <= 1 / 16**0.5


def test_widths_must_be_positive():
    with pytest.raises(TrainingError, match=r"hidden widths must be at least 1, got \(3, 0\)"):
        Mlp(made_task(), (3, 0))
