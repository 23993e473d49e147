"""Small federations for tests of training; needs no torch."""

from __future__ import annotations

import numpy as np

from fedsel import Schema, Variable
from fedsel.training.data import ClientData, FederatedData
from fedsel.training.splitting import Split
from fedsel.training.task import NumericInput, Task


def made_schema(*, groups=2, name="made"):
    return Schema(
        name=name,
        variables=(
            Variable(name="colour", categories=("red", "green", "blue")),
            Variable(name="size", categories=(1, 2)),
            Variable(name="sex", role="sensitive", categories=tuple("mfx"[:groups])),
            Variable(name="outcome", role="target", categories=(False, True)),
        ),
    )


def made_task(*, groups=2, numeric=0):
    inputs = [NumericInput(f"x{i}", centre=i, scale=2.0) for i in range(numeric)]
    return Task.of(made_schema(groups=groups), numeric=inputs)


def made_client(name, rows, *, task=None, seed=0):
    task = task or made_task()
    rng = np.random.default_rng([seed, rows, *name.encode()])
    codes = np.stack([rng.integers(0, task.schema.variable(v).size, rows) for v in task.inputs], axis=1)
    group = codes[:, list(task.inputs).index(task.sensitive)]
    logit = codes @ rng.normal(size=codes.shape[1]) - 1 + 0.5 * group
    return ClientData(
        name,
        task,
        codes,
        rng.normal(size=(rows, len(task.numeric))).astype(np.float32),
        rng.random(rows) < 1 / (1 + np.exp(-logit)),
        group,
    )


def made_data(sizes, **options):
    return FederatedData(made_client(f"c{i}", rows, **options) for i, rows in enumerate(sizes))


def same_split(data):
    """Train, validate and test on the same rows."""
    return Split(data, data, data)
