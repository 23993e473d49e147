from __future__ import annotations

import numpy as np
import pytest

from conftest import require_extra
from training_samples import made_data, made_task

torch = require_extra("torch", "train")

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.batches import Rows, shuffled  # noqa: E402
from fedsel.training.local import LocalRule, LocalSettings, LocalTrainer  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.optimisers import Adam, FusedAdam  # noqa: E402
from training_reference import dense, flat, load, network, train_client  # noqa: E402

SIZES = (13, 4, 30, 1, 13, 8)
LARGE, SMALL = 2**26, 2**10


def trained(data, model, settings, *, rule=None, memory=LARGE, clients=None, round_=1, dtype=torch.float64):
    """Deltas in the order of the clients asked for, and their steps."""
    clients = list(range(len(data))) if clients is None else clients
    trainer = LocalTrainer(model, Rows(data, dtype=dtype, device="cpu"), memory=LARGE, side_by_side=memory)
    deltas, steps, chunks = torch.zeros(len(clients), model.layout.size, dtype=dtype), [0] * len(clients), 0
    with torch.no_grad():
        for update in trainer.train(
            model.initial(0).to(dtype), clients, settings, rule or LocalRule(), seed=5, round_=round_
        ):
            deltas[update.slots] = update.delta
            for slot, count in zip(update.slots, update.steps.tolist(), strict=True):
                steps[slot] = count
            chunks += 1
    return deltas, steps, chunks


def orders_of(data, number, settings, round_=1):
    """Row order of each epoch of a client, counted from its first row, without the padding."""
    rows = Rows(data, dtype=torch.float64, device="cpu")
    plan = shuffled(rows, [number], batch=settings.batch_size, epochs=settings.epochs, seed=5, round_=round_)
    taken = plan.order[0][plan.weight[0] > 0] - rows.first[number]
    return taken.reshape(settings.epochs, -1)


@pytest.mark.parametrize("memory", [LARGE, SMALL])
@pytest.mark.parametrize("hidden", [(), (5, 3)])
@pytest.mark.parametrize("settings", [LocalSettings("adam", 0.01, 4, 2), LocalSettings("sgd", 0.3, 5, 1)])
def test_equal_to_one_client_after_another(settings, hidden, memory):
    task = made_task(numeric=1)
    data = made_data(SIZES, task=task)
    model = Mlp(task, hidden, dtype=torch.float64)
    deltas, steps, chunks = trained(data, model, settings, memory=memory)
    assert chunks == (1 if memory == LARGE else len(SIZES))
    for number, client in enumerate(data.clients):
        orders = orders_of(data, number, settings)
        assert sorted(orders[0]) == list(range(client.rows))
        expected = train_client(
            client,
            model.initial(0),
            hidden,
            optimiser=settings.optimiser,
            rate=settings.learning_rate,
            orders=orders,
            batch=settings.batch_size,
        )
        assert torch.allclose(deltas[number], expected - model.initial(0), rtol=0, atol=1e-12)
        assert steps[number] == settings.epochs * -(-client.rows // settings.batch_size)


def test_equal_in_single_precision_too():
    task = made_task()
    data = made_data(SIZES, task=task)
    model = Mlp(task, (8, 8))
    settings = LocalSettings("adam", 1e-3, 4, 1)
    deltas, _, _ = trained(data, model, settings, dtype=torch.float32)
    for number, client in enumerate(data.clients):
        expected = train_client(
            client,
            model.initial(0),
            (8, 8),
            optimiser="adam",
            rate=1e-3,
            orders=orders_of(data, number, settings),
            batch=4,
        )
        assert torch.allclose(deltas[number], expected - model.initial(0), rtol=0, atol=1e-6)


def test_proximal_term_and_correction_enter_the_gradient():
    task = made_task()
    data = made_data(SIZES, task=task)
    model = Mlp(task, (3,), dtype=torch.float64)
    settings = LocalSettings("sgd", 0.2, 4, 2)
    correction = torch.randn(
        len(SIZES), model.layout.size, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    for rule in (LocalRule(proximal=0.7), LocalRule(correction=lambda slots: correction[slots])):
        deltas, _, _ = trained(data, model, settings, rule=rule, memory=SMALL)
        for number, client in enumerate(data.clients):
            expected = train_client(
                client,
                model.initial(0),
                (3,),
                optimiser="sgd",
                rate=0.2,
                orders=orders_of(data, number, settings),
                batch=4,
                mu=rule.proximal,
                correction=None if rule.correction is None else correction[number],
            )
            assert torch.allclose(deltas[number], expected - model.initial(0), rtol=0, atol=1e-12)


def test_a_client_does_not_depend_on_the_others():
    data = made_data(SIZES)
    model = Mlp(data.task, (4,), dtype=torch.float64)
    together, _, _ = trained(data, model, LocalSettings())
    some, _, _ = trained(data, model, LocalSettings(), clients=[4, 1])
    assert torch.allclose(some, together[[4, 1]], rtol=0, atol=1e-14)
    another, _, _ = trained(data, model, LocalSettings(batch_size=4), round_=2)
    assert not torch.allclose(another, trained(data, model, LocalSettings(batch_size=4))[0], atol=1e-6)


@pytest.mark.parametrize("memory", [LARGE, SMALL])
def test_full_gradients_equal_those_of_the_mean_loss(memory):
    data = made_data([300, 5, 700])
    model = Mlp(data.task, (3,), dtype=torch.float64)
    trainer = LocalTrainer(model, Rows(data, dtype=torch.float64, device="cpu"), memory=LARGE, side_by_side=memory)
    found = {}
    with torch.no_grad():
        for update in trainer.gradients(model.initial(0), [2, 0, 1], seed=0, round_=1):
            found |= {[2, 0, 1][slot]: row for slot, row in zip(update.slots, update.delta, strict=True)}
    for number, client in enumerate(data.clients):
        net = network(data.task.categories, (3,))
        load(net, data.task, model.initial(0))
        target = torch.tensor(client.target, dtype=torch.float64)[:, None]
        torch.nn.BCEWithLogitsLoss()(net(dense(client)), target).backward()
        expected = flat([p.grad for p in net.parameters()], data.task)
        assert torch.allclose(found[number], expected, rtol=0, atol=1e-13)


def test_both_forms_of_adam_equal_torchs_own():
    start = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gradients = torch.randn(20, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = start.clone().requires_grad_()
    reference = torch.optim.Adam([expected], lr=0.05)
    for gradient in gradients:
        expected.grad = gradient.clone()
        reference.step()
    kinds = [Adam, FusedAdam] if hasattr(torch, "_fused_adam_") else [Adam]
    for kind in kinds:
        moved = start.clone()
        optimiser = kind(moved, 0.05)
        for gradient in gradients:
            optimiser.step(moved, gradient)
        assert torch.allclose(moved, expected.detach(), rtol=0, atol=1e-12)


def test_every_row_is_taken_once_an_epoch_and_weighs_one_in_its_batch():
    data = made_data([10, 3])
    rows = Rows(data, dtype=torch.float64, device="cpu")
    plan = shuffled(rows, [1, 0], batch=4, epochs=3, seed=0, round_=1)
    assert plan.clients == (0, 1)
    assert plan.steps == (9, 3)
    weight = plan.weight[0].reshape(9, 4)
    assert np.allclose(weight.sum(axis=1), 1)
    assert (weight > 0).sum(axis=1).tolist() == [4, 4, 2] * 3
    assert not plan.weight[1][12:].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": "lion"}, "optimiser must be adam or sgd, got 'lion'"),
        ({"learning_rate": 0.0}, "learning rate must be positive and finite, got 0.0"),
        ({"learning_rate": float("nan")}, "learning rate must be positive"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(TrainingError, match=message):
        LocalSettings(**settings)
