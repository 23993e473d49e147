from __future__ import annotations

import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task

torch = require_extra("torch", "train")

from torch import nn  # noqa: E402

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.batches import Rows  # noqa: E402
from fedsel.training.models import Batch, Mlp  # noqa: E402
from fedsel.training.module_model import ModuleModel  # noqa: E402
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


def test_a_module_gives_the_gradients_of_the_fast_path():
    task = made_task(numeric=2)
    data = made_data([6, 6], task=task)
    fast = Mlp(task, (4, 3), dtype=DOUBLE)
    slow = ModuleModel(task, lambda inputs: network(inputs, (4, 3)), dtype=DOUBLE)
    weight = torch.full((2, 6, 1), 1 / 6, dtype=DOUBLE)
    parameters = torch.stack([fast.initial(seed) for seed in range(2)])
    stack = fast.stack(fast.layout.pack(parameters), 2)
    stack.backward(batch_of(fast, data, stack, weight))
    expected = fast.layout.unpack(stack.gradient, 2)
    moved = []
    for row in parameters:
        net = network(9, (4, 3))
        load(net, task, row)
        moved.append(torch.cat([p.detach().reshape(-1) for p in net.parameters()]))
    other = slow.stack(slow.layout.pack(torch.stack(moved)), 2)
    with torch.no_grad():
        other.backward(batch_of(slow, data, other, weight))
    for number in range(2):
        arrays = [view[number] for view in slow.layout.views(other.gradient, 2)]
        assert torch.allclose(flat(arrays, task), expected[number], atol=1e-13)


def test_a_module_starts_from_its_seed_and_leaves_the_generator_alone():
    model = ModuleModel(made_task(), lambda inputs: nn.Linear(inputs, 1))
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = model.initial(1)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first, model.initial(1))
    assert not torch.equal(first, model.initial(2))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda n: nn.Sequential(nn.BatchNorm1d(n), nn.Linear(n, 1)), r"module 0 \(BatchNorm1d\) has buffers"),
        (lambda n: nn.Sequential(nn.Linear(n, 1), nn.Dropout(0.5)), r"module 1 \(Dropout\) is random"),
        (lambda n: nn.ReLU(), "has no parameters"),
    ],
)
def test_modules_that_cannot_be_stacked_are_refused(made, message):
    with pytest.raises(TrainingError, match=message):
        ModuleModel(made_task(), made)


def test_a_module_of_another_shape_is_refused():
    task = made_task()
    model = ModuleModel(task, lambda inputs: nn.Linear(inputs, 2))
    rows = Rows(made_data([4]), dtype=torch.float32, device="cpu")
    with pytest.raises(TrainingError, match=r"must return shape \(4, 1\), got \(4, 2\)"), torch.no_grad():
        model.logits(model.initial(0), rows.positions.long(), rows.numeric)


def test_widths_must_be_positive():
    with pytest.raises(TrainingError, match=r"hidden widths must be at least 1, got \(3, 0\)"):
        Mlp(made_task(), (3, 0))
