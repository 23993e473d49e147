"""A round of local training beside a plain torch loop over clients: MLP 32-32-32, batch 32, Adam, one thread.

pytest benchmarks/test_training.py --benchmark-columns=min,median,rounds --benchmark-group-by=group
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedsel.training.batches import Rows
from fedsel.training.data import ClientData, FederatedData
from fedsel.training.extra import torch_threads
from fedsel.training.local import LocalRule, LocalSettings, LocalTrainer
from fedsel.training.models import MLP_HIDDEN, Mlp
from fedsel.training.module_model import ModuleModel
from fedsel.training.sources import example_rows

BATCH, RATE = 32, 1e-3
MEMORY = 16 * 2**20


def five_states():
    """Made rows of five states: 195,665."""
    found = example_rows(clients=("CT", "GA", "IN", "KY", "PA"))
    rows, parts = 195_665, []
    for client in found.clients:
        parts.append(client.take(np.arange(min(client.rows, rows))))
        rows -= parts[-1].rows
    return FederatedData(parts)


def many_clients():
    """500 clients of 400 rows."""
    source = example_rows(clients=("OH", "PA", "IL", "MI", "GA")).clients
    return FederatedData(
        ClientData(f"c{i:03}", part.task, part.codes, part.numeric, part.target, part.group)
        for i in range(500)
        for part in [source[i % 5].take(np.arange(i // 5 * 400, i // 5 * 400 + 400))]
    )


MADE = {"5 clients, 195,665 rows": five_states, "500 clients x 400 rows": many_clients}


@pytest.fixture(scope="module", params=MADE)
def world(request):
    data = MADE[request.param]()
    return request.param, data, Rows(data, dtype=torch.float32, device="cpu")


def plain_round(data, rows, parameters):
    """What one writes first: every client by itself, one-hot inputs made beforehand, torch's own layers and Adam."""
    inputs = data.task.categories
    updates = []
    for number in range(len(data)):
        part = slice(rows.first[number], rows.first[number + 1])
        one_hot = torch.zeros(part.stop - part.start, inputs).scatter_(1, rows.positions[part, :-1].long(), 1.0)
        target = rows.target[part, None]
        layers, width = [], inputs
        for after in MLP_HIDDEN:
            layers += [nn.Linear(width, after), nn.ReLU()]
            width = after
        net = nn.Sequential(*layers, nn.Linear(width, 1))
        optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
        loss = nn.BCEWithLogitsLoss()
        for batch in torch.randperm(len(target)).split(BATCH):
            optimiser.zero_grad()
            loss(net(one_hot[batch]), target[batch]).backward()
            optimiser.step()
        updates.append(torch.cat([p.detach().reshape(-1) for p in net.parameters()]))
    return torch.stack(updates)


def stacked_round(data, rows, parameters):
    trainer = LocalTrainer(Mlp(data.task), rows, memory=MEMORY)
    clients = list(range(len(data)))
    with torch.no_grad():
        settings = LocalSettings("adam", RATE, BATCH)
        return list(trainer.train(parameters, clients, settings, LocalRule(), seed=0, round_=1))


def network(inputs, *between):
    """Layers as in `plain_round`, with one more after the first."""
    layers, width = [], inputs
    for after in MLP_HIDDEN:
        layers += [nn.Linear(width, after), *(between if width == inputs else ()), nn.ReLU()]
        width = after
    return nn.Sequential(*layers, nn.Linear(width, 1))


def plain_modules(data, rows, make):
    """The loop of `plain_round` over any module."""
    for number in range(len(data)):
        part = slice(rows.first[number], rows.first[number + 1])
        inputs = data.task.categories
        one_hot = torch.zeros(part.stop - part.start, inputs).scatter_(1, rows.positions[part, :-1].long(), 1.0)
        target, net, loss = rows.target[part, None], make(inputs), nn.BCEWithLogitsLoss()
        optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
        for batch in torch.randperm(len(target)).split(BATCH):
            optimiser.zero_grad()
            loss(net(one_hot[batch]), target[batch]).backward()
            optimiser.step()


def stacked_modules(data, rows, make):
    model = ModuleModel(data.task, make)
    trainer = LocalTrainer(model, rows, memory=MEMORY)
    with torch.no_grad():
        settings = LocalSettings("adam", RATE, BATCH)
        return list(trainer.train(model.initial(0), range(len(data)), settings, LocalRule(), seed=0, round_=1))


MODULES = {
    "layers alone": lambda inputs: network(inputs),
    "dropout": lambda inputs: network(inputs, nn.Dropout(0.2)),
    "batch normalisation": lambda inputs: network(inputs, nn.BatchNorm1d(MLP_HIDDEN[0])),
}


@pytest.mark.parametrize("kind", [plain_modules, stacked_modules], ids=["plain torch", "fedsel"])
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("clients", [5, 100])
def test_a_round_of_modules(benchmark, clients, name, kind):
    """40,000 rows by 5 or 100 clients."""
    data = many_clients()
    if clients == 5:
        data = FederatedData(client.take(np.arange(8000)) for client in five_states().clients)
    else:
        data = FederatedData(data.clients[:clients])
    rows = Rows(data, dtype=torch.float32, device="cpu")
    benchmark.group = f"a round of modules: {clients} clients, {name}"
    with torch_threads(1):
        benchmark.pedantic(kind, (data, rows, MODULES[name]), rounds=3, iterations=1, warmup_rounds=0)


@pytest.mark.parametrize("kind", [plain_round, stacked_round], ids=["plain torch", "fedsel"])
def test_a_round(benchmark, world, kind):
    name, data, rows = world
    benchmark.group = f"a round: {name}"
    with torch_threads(1):
        parameters = Mlp(data.task).initial(0)
        benchmark.pedantic(kind, (data, rows, parameters), rounds=3, iterations=1, warmup_rounds=0)
    benchmark.extra_info["rows per second"] = int(data.rows.sum() / benchmark.stats.stats.min)
