from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task, same_split

torch = require_extra("torch", "train")

from torch import nn  # noqa: E402

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.aggregators import AGGREGATORS, FedAvg, FedProx, Scaffold, make_aggregator  # noqa: E402
from fedsel.training.batches import Rows, shuffled  # noqa: E402
from fedsel.training.data import FederatedData  # noqa: E402
from fedsel.training.local import LocalRule, LocalSettings, LocalTrainer  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.module_model import ModuleModel  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.splitting import stream_seed  # noqa: E402
from training_reference import dense, flat, load, network  # noqa: E402

DOUBLE = torch.float64
SIZES = (13, 4, 30, 1, 13, 9)
LARGE, SMALL = 2**26, 2**10


def dropout(inputs):
    return nn.Sequential(nn.Linear(inputs, 6), nn.ReLU(), nn.Dropout(0.4), nn.Linear(6, 1))


def batch_norm(inputs):
    return nn.Sequential(nn.Linear(inputs, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))


def cumulative_norm(inputs):
    return nn.Sequential(nn.BatchNorm1d(inputs, momentum=None), nn.Linear(inputs, 1))


def layer_norm(inputs):
    inner = nn.Sequential(nn.Linear(inputs, 6), nn.LayerNorm(6), nn.GELU())
    return nn.Sequential(nn.Sequential(inner, nn.Linear(6, 4)), nn.GroupNorm(2, 4), nn.Tanh(), nn.Linear(4, 1))


class Residual(nn.Module):
    """A forward of its own, a parameter used twice, one that is never used, and noise that no layer announces."""

    def __init__(self, inputs):
        super().__init__()
        self.first, self.again, self.last = nn.Linear(inputs, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, rows):
        values = torch.relu(self.first(rows))
        values = values + torch.relu(self.again(self.again(values)))
        return self.last(nn.functional.dropout(values, 0.3, self.training))


class Embedded(nn.Module):
    """An embedding of every category, and the numbers."""

    def __init__(self, categories, chance=0.0):
        super().__init__()
        self.table, self.drop, self.last = nn.Embedding(categories, 3), nn.Dropout(chance), nn.Linear(4, 1)

    def forward(self, positions, numbers):
        return self.last(self.drop(torch.cat([self.table(positions).mean(dim=1), numbers], dim=1)))


MAPPED = {"layer_norm": (layer_norm, "one-hot"), "embedding": (Embedded, "positions")}
LOOPED = {
    "dropout": (dropout, "one-hot"),
    "batch_norm": (batch_norm, "one-hot"),
    "cumulative_norm": (cumulative_norm, "one-hot"),
    "residual": (Residual, "one-hot"),
    "embedding_dropout": (lambda categories: Embedded(categories, 0.3), "positions"),
}


def module_with(factory, inputs, vector):
    """A module of its own with the parameters and buffers of a vector."""
    module = factory(inputs).double()
    rest = vector
    with torch.no_grad():
        for array in (*module.parameters(), *module.buffers()):
            array.copy_(rest[: array.numel()].view(array.shape))
            rest = rest[array.numel() :]
    assert len(rest) == 0
    return module


def vector_of(module):
    return torch.cat([array.detach().reshape(-1).double() for array in (*module.parameters(), *module.buffers())])


def called(module, client, form, rows):
    if form == "one-hot":
        return module(dense(client)[rows])
    positions = torch.tensor(client.codes + client.task.offsets[:-1]).long()
    return module(positions[rows], torch.tensor(client.numeric).double()[rows])


def plain_training(client, factory, form, start, settings, orders, seed, *, mu=0.0, correction=None):
    """The module trained as one would by hand; a batch of one row leaves running statistics alone."""
    categories = client.task.categories
    module = module_with(factory, categories + (len(client.task.numeric) if form == "one-hot" else 0), start)
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimiser = kinds[settings.optimiser](module.parameters(), lr=settings.learning_rate)
    first = [parameter.detach().clone() for parameter in module.parameters()]
    target, step = torch.tensor(client.target).double()[:, None], 0
    for order in orders:
        for rows in torch.as_tensor(order).split(settings.batch_size):
            module.train()
            if len(rows) == 1:
                for part in module.modules():
                    if isinstance(part, nn.BatchNorm1d):
                        part.eval()
            torch.manual_seed(seed + step)
            loss = nn.functional.binary_cross_entropy_with_logits(called(module, client, form, rows), target[rows])
            optimiser.zero_grad()
            loss.backward()
            shift = 0
            for parameter, begin in zip(module.parameters(), first, strict=True):
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad += mu * (parameter.detach() - begin)
                if correction is not None:
                    parameter.grad += correction[shift : shift + parameter.numel()].view(parameter.shape)
                    shift += parameter.numel()
            optimiser.step()
            step += 1
    return vector_of(module)


@pytest.mark.parametrize("memory", [LARGE, SMALL])
@pytest.mark.parametrize("settings", [LocalSettings("adam", 0.05, 4, 2), LocalSettings("sgd", 0.3, 4, 1)])
@pytest.mark.parametrize("name", [*MAPPED, *LOOPED])
def test_equal_to_one_client_after_another(name, settings, memory):
    factory, form = {**MAPPED, **LOOPED}[name]
    task = made_task(numeric=1)
    data = made_data(SIZES, task=task)
    model = ModuleModel(task, factory, form=form, dtype=DOUBLE)
    assert model.mapped == (name in MAPPED)
    rows = Rows(data, dtype=DOUBLE, device="cpu")
    start = model.initial(0)
    trainer = LocalTrainer(model, rows, memory=LARGE, side_by_side=memory)
    generator = torch.Generator().manual_seed(1)
    correction = torch.randn(len(SIZES), model.layout.size, dtype=DOUBLE, generator=generator) / 10
    for rule in (LocalRule(proximal=0.5), LocalRule(correction=lambda slots: correction[slots])):
        before = torch.random.get_rng_state()
        deltas = torch.zeros(len(SIZES), model.layout.size, dtype=DOUBLE)
        with torch.no_grad():
            for update in trainer.train(start, range(len(SIZES)), settings, rule, seed=5, round_=2):
                deltas[update.slots] = update.delta
        assert torch.equal(torch.random.get_rng_state(), before)
        for number, client in enumerate(data.clients):
            plan = shuffled(rows, [number], batch=settings.batch_size, epochs=settings.epochs, seed=5, round_=2)
            orders = (plan.order[0][plan.weight[0] > 0] - rows.first[number]).reshape(settings.epochs, -1)
            expected = plain_training(
                client, factory, form, start, settings, orders, stream_seed(5, "local training", 2, client.name),
                mu=rule.proximal, correction=None if rule.correction is None else correction[number],
            )  # fmt: skip
            assert torch.allclose(deltas[number], expected - start, rtol=0, atol=1e-10)


def test_clients_draw_from_streams_of_their_own():
    task = made_task()
    twin = made_client("a", 20, task=task)
    data = FederatedData([twin, replace(twin, name="b")])
    model = ModuleModel(task, dropout, dtype=DOUBLE)
    trainer = LocalTrainer(model, Rows(data, dtype=DOUBLE, device="cpu"), memory=LARGE)
    local = LocalSettings("sgd", 0.1, batch_size=20)

    def deltas(clients, *, round_=1):
        with torch.no_grad():
            return next(iter(trainer.train(model.initial(0), clients, local, LocalRule(), seed=1, round_=round_))).delta

    both = deltas([0, 1])
    assert not torch.allclose(both[0], both[1], atol=1e-4)  # one batch of the same rows: only the masks differ
    assert torch.equal(deltas([1])[0], both[1])
    assert not torch.allclose(deltas([0, 1], round_=2), both, atol=1e-4)


def run(model, data, aggregator, **settings):
    fields = {"rounds": 1, "local": LocalSettings("sgd", 0.1, batch_size=8), **settings}
    return Simulation(same_split(data), model).run(list(data.names), aggregator, RunSettings(**fields))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_buffers_are_averaged_whatever_the_aggregator(name):
    data = made_data([40, 24])
    model = ModuleModel(data.task, batch_norm, dtype=DOUBLE)
    trained = model.layout.trained.size
    first = model.initial(stream_seed(0, "model"))
    trainer = LocalTrainer(model, Rows(data, dtype=DOUBLE, device="cpu"), memory=LARGE)
    with torch.no_grad():
        (update,) = trainer.train(first, [0, 1], LocalSettings("sgd", 0.1, batch_size=8), LocalRule(), seed=0, round_=1)
    # SCAFFOLD and FedAdam change nothing in the clients' first round; FedProx and FairFed are told not to.
    options = {"fairfed": {"beta": 0.0}, "fedprox": {"mu": 0.0}}.get(name, {})
    shares = [0.5, 0.5] if name == "scaffold" else [40 / 64, 24 / 64]
    expected = first + torch.tensor(shares, dtype=DOUBLE) @ update.delta[torch.argsort(torch.tensor(update.slots))]
    found = run(model, data, make_aggregator(name, **options), rounds=1).parameters
    assert torch.allclose(found[trained:], expected[trained:], rtol=0, atol=1e-12)
    later = run(model, data, make_aggregator(name), rounds=4).parameters
    variance = model.layout.views(later, 1)[len(model.layout.trained.shapes) + 1]
    assert (variance > 0).all()


def test_evaluation_takes_running_statistics_and_no_dropout():
    task = made_task()
    data = made_data([30], task=task)
    rows = Rows(data, dtype=DOUBLE, device="cpu")
    for factory in (batch_norm, dropout):
        model = ModuleModel(task, factory, dtype=DOUBLE)
        vector = model.initial(3)
        vector[model.layout.trained.size :] += 0.5
        module = module_with(factory, task.categories, vector).eval()
        with torch.no_grad():
            found = model.logits(vector, rows.positions.long(), rows.numeric)
            assert torch.allclose(found, module(dense(data.clients[0]))[:, 0], rtol=0, atol=1e-12)
            one = model.logits(vector, rows.positions[:1].long(), rows.numeric[:1])
            assert torch.allclose(one, found[:1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("option", ["I", "II"])
def test_a_random_module_repeats(option):
    data = made_data([40, 24, 7])
    model = ModuleModel(data.task, lambda n: nn.Sequential(nn.BatchNorm1d(n), dropout(n)))
    first, second = (run(model, data, Scaffold(option=option), rounds=3) for _ in range(2))
    assert torch.equal(first.parameters, second.parameters)
    other = run(model, data, Scaffold(option=option), rounds=3, seed=1)
    assert not torch.equal(first.parameters, other.parameters)


def test_invariants_hold_for_modules_with_buffers():
    data = made_data([40, 24])
    model = ModuleModel(data.task, batch_norm)
    plain = run(model, data, FedAvg(), rounds=3)
    assert torch.equal(plain.parameters, run(model, data, FedProx(mu=0.0), rounds=3).parameters)
    fair = make_aggregator("fairfed", beta=0.0)
    assert torch.equal(plain.parameters, run(model, data, fair, rounds=3).parameters)


def test_a_full_gradient_does_not_touch_the_global_model():
    data = made_data([300, 40])
    model = ModuleModel(data.task, batch_norm, dtype=DOUBLE)
    trainer = LocalTrainer(model, Rows(data, dtype=DOUBLE, device="cpu"), memory=LARGE)
    start = model.initial(0)
    kept = start.clone()
    with torch.no_grad():
        (update,) = trainer.gradients(start, [0, 1], seed=0, round_=1)
    assert torch.equal(start, kept)
    assert not update.delta[:, model.layout.trained.size :].any()
    assert update.delta[:, : model.layout.trained.size].any(dim=1).all()


def test_gradients_equal_those_of_the_fast_path():
    task = made_task(numeric=2)
    data = made_data([24, 9], task=task)
    fast = Mlp(task, (4, 3), dtype=DOUBLE)
    slow = ModuleModel(task, lambda inputs: network(inputs, (4, 3)), dtype=DOUBLE)
    net = network(task.categories + 2, (4, 3))
    load(net, task, fast.initial(1))
    rows = Rows(data, dtype=DOUBLE, device="cpu")
    found = []
    for model, start in ((fast, fast.initial(1)), (slow, vector_of(net))):
        trainer = LocalTrainer(model, rows, memory=LARGE)
        with torch.no_grad():
            (update,) = trainer.gradients(start, [0, 1], seed=0, round_=1)
        found.append(update.delta)
    for number in range(2):
        arrays = [view[0] for view in slow.layout.views(found[1][number], 1)]
        assert torch.allclose(flat(arrays, task), found[0][number], rtol=0, atol=1e-13)


def test_a_module_starts_from_its_seed_and_leaves_the_generator_alone():
    model = ModuleModel(made_task(), dropout)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = model.initial(1)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first, model.initial(1))
    assert not torch.equal(first, model.initial(2))


def test_the_description_says_how():
    assert ModuleModel(made_task(), layer_norm).description.endswith("parameters, mapped over clients")
    assert ModuleModel(made_task(), dropout).description.endswith("parameters, one client after another")


class LargeBuffer(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.last = nn.Linear(inputs, 1)
        self.register_buffer("hash", torch.tensor([2**24 + 1]))


@pytest.mark.parametrize(
    ("made", "form", "message"),
    [
        (lambda n: nn.ReLU(), "one-hot", "has no parameters"),
        (LargeBuffer, "one-hot", r"buffer hash of torch\.int64 cannot be kept exactly as torch\.float32"),
        (dropout, "dense", "form must be one-hot or positions, got 'dense'"),
    ],
)
def test_modules_that_cannot_be_stacked_are_refused(made, form, message):
    with pytest.raises(TrainingError, match=message):
        ModuleModel(made_task(), made, form=form)


def test_a_module_of_another_shape_is_refused():
    with pytest.raises(TrainingError, match=r"must return shape \(2, 1\), got \(2, 2\)"):
        ModuleModel(made_task(), lambda inputs: nn.Linear(inputs, 2))
