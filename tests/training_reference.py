"""Federated training as a plain loop: one client after another, torch's own modules and optimisers, float64."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn


def dense(client):
    """One-hot inputs, then numbers, (rows, inputs)."""
    parts = [
        np.eye(client.task.schema.variable(name).size)[client.codes[:, i]] for i, name in enumerate(client.task.inputs)
    ]
    return torch.tensor(np.concatenate([*parts, client.numeric.astype(float)], axis=1))


def network(inputs, hidden, dtype=torch.float64):
    widths = (inputs, *hidden, 1)
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after, dtype=dtype), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def load(net, task, parameters):
    """Give a network the parameters of an `Mlp`, (size,)."""
    linear = [layer for layer in net if isinstance(layer, nn.Linear)]
    width, rest = linear[0].out_features, parameters
    sizes = [(task.categories + 1) * width, len(task.numeric) * width]
    table, numeric, rest = rest[: sizes[0]], rest[sizes[0] : sum(sizes)], rest[sum(sizes) :]
    table = table.view(-1, width)
    with torch.no_grad():
        linear[0].weight.copy_(torch.cat([table[:-1], numeric.view(-1, width)]).T)
        linear[0].bias.copy_(table[-1])
        for layer in linear[1:]:
            count = layer.weight.numel()
            layer.weight.copy_(rest[:count].view(layer.in_features, layer.out_features).T)
            layer.bias.copy_(rest[count : count + layer.out_features])
            rest = rest[count + layer.out_features :]
    assert len(rest) == 0


def flat(tensors, task):
    """Parameters or gradients of a network, in the order of `Mlp`."""
    (weight, bias), *others = list(zip(tensors[::2], tensors[1::2], strict=True))
    split = task.categories
    parts = [weight.T[:split], bias, weight.T[split:]]
    for matrix, offset in others:
        parts += [matrix.T, offset]
    return torch.cat([part.reshape(-1) for part in parts])


def train_client(client, parameters, hidden, *, optimiser, rate, orders, batch, mu=0.0, correction=None):
    """Parameters after local training, (size,); `orders` holds the row order of each epoch."""
    inputs, target = dense(client).to(parameters.dtype), torch.tensor(client.target).to(parameters.dtype)[:, None]
    net = network(inputs.shape[1], hidden, parameters.dtype)
    load(net, client.task, parameters)
    start = [p.detach().clone() for p in net.parameters()]
    shift = None
    if correction is not None:
        other = network(inputs.shape[1], hidden, parameters.dtype)
        load(other, client.task, correction)
        shift = [p.detach() for p in other.parameters()]
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimise = kinds[optimiser](net.parameters(), lr=rate)
    loss = nn.BCEWithLogitsLoss()
    for order in orders:
        for rows in torch.as_tensor(order).split(batch):
            optimise.zero_grad()
            value = loss(net(inputs[rows]), target[rows])
            if mu:
                value = value + mu / 2 * sum(((p - s) ** 2).sum() for p, s in zip(net.parameters(), start, strict=True))
            value.backward()
            if shift is not None:
                for p, extra in zip(net.parameters(), shift, strict=True):
                    p.grad += extra
            optimise.step()
    return flat([p.detach() for p in net.parameters()], client.task)
