"""Models whose parameters are stacked over clients.

Inputs come as positions of ones: for every row and categorical input the one-hot position of its category, and last
the position of a constant one, which stands for the bias. A first layer is then a sum of rows of its weights, and no
one-hot matrix is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fedsel.errors import TrainingError
from fedsel.training.layout import Layout
from fedsel.training.memory import Need
from fedsel.training.task import Task

MLP_HIDDEN = (32, 32, 32)
"""Hidden widths of the network of PCS (arXiv 2605.20975, experiments)."""

_FEW_BYTES = 64  # whatever the number of rows


class Batch(NamedTuple):
    """One batch of every client of a stack; or those of several steps, with a leading axis of steps in every tensor.

    Parameters
    ----------
    positions : Tensor of int64, shape (clients, batch, inputs + 1)
        Positions of ones, the constant's last; as `Stack.prepare` returns them.
    numeric : Tensor, shape (clients, batch, numeric inputs)
        Standardised numbers.
    target, weight : Tensor, shape (clients, batch, 1)
        Targets as 0 or 1, and factor of each row in the loss; 0 where a batch is padded.
    """

    positions: Tensor
    numeric: Tensor
    target: Tensor
    weight: Tensor

    def steps(self) -> Iterator[Batch]:
        """Yield the batches one step after another."""
        return map(Batch, *(tensor.unbind(0) for tensor in self))


class Stack(Protocol):
    """Parameters of some clients, and the gradient of each client's own loss.

    Attributes
    ----------
    parameters : Tensor, shape (clients * size,)
        In the layout of a stack.
    gradient : Tensor, shape (clients * trained size,)
        In the layout of a stack of what is trained, `Layout.trained`.
    """

    parameters: Tensor
    gradient: Tensor

    def first(self, kept: int) -> Stack:
        """Return the stack of the first clients, which may go on from copies."""

    def prepare(self, positions: Tensor) -> Tensor:
        """Return positions, (steps, clients, batch, inputs + 1), as `backward` wants them; may change them in place."""

    def backward(self, batch: Batch) -> None:
        """Write the gradient of sum(weight * binary cross-entropy) for every client."""


class StackedModel(Protocol):
    """A model of the logit of the positive category.

    Attributes
    ----------
    dtype : torch.dtype
        Of parameters.
    device : torch.device
        Where parameters are.
    """

    dtype: torch.dtype
    device: torch.device

    @property
    def layout(self) -> Layout:
        """Shapes of its parameters."""

    @property
    def description(self) -> str:
        """What it is, in a few words."""

    @property
    def step_need(self) -> Need:
        """Most bytes that one client's batch takes in `Stack.backward`, besides parameters and gradient."""

    @property
    def row_need(self) -> Need:
        """Most bytes that `logits` takes, besides its arguments."""

    def initial(self, seed: int) -> Tensor:
        """Draw parameters, (size,)."""

    def stack(self, parameters: Tensor, clients: int, seeds: Sequence[int]) -> Stack:
        """Return a stack around a vector of parameters, (clients * size,), which it changes in place.

        `seeds` holds one number per client, for models that are random in training.
        """

    def logits(self, parameters: Tensor, positions: Tensor, numeric: Tensor) -> Tensor:
        """Return logits, (rows,), of one model, (size,), for positions (rows, inputs + 1) and numbers (rows, n)."""


class Mlp:
    """A multi-layer perceptron with rectified hidden layers; without hidden layers, logistic regression.

    The gradient is written by hand as batched products, which is several times faster than automatic differentiation
    for the small networks of tabular data.

    Parameters
    ----------
    task : Task
        Gives the number of inputs.
    hidden : tuple of int
        Widths of the hidden layers.
    dtype : torch.dtype
        Of parameters.
    device : torch.device or str
        Where parameters are.

    Raises
    ------
    TrainingError
        If a width is not positive.
    """

    def __init__(
        self,
        task: Task,
        hidden: tuple[int, ...] = MLP_HIDDEN,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if any(width < 1 for width in hidden):
            raise TrainingError(f"hidden widths must be at least 1, got {hidden}")
        self.hidden = tuple(hidden)
        self._table = task.categories + 1
        self._inputs, self._numeric = len(task.inputs), len(task.numeric)
        self.dtype, self.device = dtype, torch.device(device)
        widths = (*self.hidden, 1)
        shapes: list[tuple[int, int]] = [(self._table, widths[0]), (self._numeric, widths[0])]
        for before, after in pairwise(widths):
            shapes += [(before, after), (1, after)]
        self._layout = Layout(shapes)

    @property
    def layout(self) -> Layout:
        """Shapes: table of the first layer with the bias last, numeric weights, then weights and bias per layer."""
        return self._layout

    @property
    def description(self) -> str:
        """Such as ``MLP 32-32-32``."""
        return f"MLP {'-'.join(map(str, self.hidden))}" if self.hidden else "logistic regression"

    @property
    def step_need(self) -> Need:
        """What `MlpStack.backward` allocates, as if nothing were freed before its end."""
        width = self._layout.shapes[0][1]
        # Two tensors for the error before every layer; a row of errors for every table row that was summed.
        back = 2 * sum(self.hidden) + (self._inputs + 1) * width
        return Need(_FEW_BYTES, self._forward_bytes + self.dtype.itemsize * back)

    @property
    def row_need(self) -> Need:
        """What `logits` allocates."""
        numbers = self._layout.shapes[0][1] if self._numeric else 0  # added to the sums over the table, as a copy
        return Need(_FEW_BYTES, self._forward_bytes + self.dtype.itemsize * numbers)

    @property
    def _forward_bytes(self) -> int:
        # Outputs of every layer; and what torch notes of the sums over tables: bag of every position, and of every row
        # its offset, size and maximum.
        return self.dtype.itemsize * (sum(self.hidden) + 1) + 8 * (self._inputs + 1) + 24

    def initial(self, seed: int) -> Tensor:
        """Draw uniformly within 1 / sqrt(inputs of the layer), as torch's linear layers do."""
        generator = torch.Generator().manual_seed(seed)
        fan_in = [self._table - 1 + self._numeric] * 2 + [width for width in self.hidden for _ in range(2)]
        parts = [
            (torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1) / math.sqrt(max(1, inputs))
            for size, inputs in zip(self._layout.sizes, fan_in, strict=True)
        ]
        return torch.cat(parts).to(self.device, self.dtype)

    def stack(self, parameters: Tensor, clients: int, seeds: Sequence[int] = ()) -> MlpStack:
        """Return a stack around a vector of parameters, (clients * size,); nothing is random in it."""
        return MlpStack(self._layout, parameters, clients)

    def logits(self, parameters: Tensor, positions: Tensor, numeric: Tensor) -> Tensor:
        """Return logits, (rows,)."""
        table, weights, *layers = self._layout.views(parameters, 1)
        values = torch.nn.functional.embedding_bag(positions, table[0], mode="sum")
        if self._numeric:
            values = torch.addmm(values, numeric, weights[0])
        for matrix, bias in zip(layers[::2], layers[1::2], strict=True):
            values = torch.addmm(bias[0], values.relu_(), matrix[0])
        return values[:, 0]


class MlpStack:
    """Networks of one shape, one per client, as batched matrices."""

    def __init__(self, layout: Layout, parameters: Tensor, clients: int) -> None:
        self.parameters = parameters
        self.gradient = torch.zeros_like(parameters)
        self._layout, self._clients = layout, clients
        table, self._weights, *layers = layout.views(parameters, clients)
        table_gradient, self._weights_gradient, *gradients = layout.views(self.gradient, clients)
        self._width = table.shape[2]
        # All clients' tables under one another: a client's rows begin at its number times the rows of a table.
        self._table, self._table_gradient = table.view(-1, self._width), table_gradient.view(-1, self._width)
        self._first = torch.arange(clients, device=parameters.device)[:, None, None] * table.shape[1]
        self._layers = list(zip(layers[::2], layers[1::2], strict=True))
        self._backward = [
            (matrix.transpose(1, 2), gradient, bias_gradient)
            for (matrix, _), gradient, bias_gradient in zip(self._layers, gradients[::2], gradients[1::2], strict=True)
        ]

    def first(self, kept: int) -> MlpStack:
        """Return the stack of the first clients."""
        return MlpStack(self._layout, self._layout.first(self.parameters, self._clients, kept), kept)

    def prepare(self, positions: Tensor) -> Tensor:
        """Move every client's positions to its rows of the stacked table."""
        _, clients, rows, inputs = positions.shape
        self._bags = torch.arange(0, clients * rows * inputs, inputs, device=positions.device)
        return positions.add_(self._first)

    def backward(self, batch: Batch) -> None:
        """Write the gradients, layer by layer from the last."""
        clients, rows, inputs = batch.positions.shape
        positions = batch.positions.view(-1)
        # What `torch.nn.functional.embedding_bag` calls for sums, without its checks at every step.
        values = torch.embedding_bag(self._table, positions, self._bags, False, 0)[0].view(clients, rows, -1)
        if batch.numeric.shape[2]:
            values.baddbmm_(batch.numeric, self._weights)
        hidden = []
        for matrix, bias in self._layers:
            hidden.append(values.relu_())
            values = torch.baddbmm(bias, values, matrix)
        # The derivative of the cross-entropy by the logit is the probability minus the target.
        error = values.sigmoid_().sub_(batch.target).mul_(batch.weight)
        for (transposed, gradient, bias_gradient), before in zip(
            reversed(self._backward), reversed(hidden), strict=True
        ):
            torch.bmm(before.transpose(1, 2), error, out=gradient)
            torch.sum(error, 1, keepdim=True, out=bias_gradient)
            # Zero where the rectifier was: `before` is its output.
            error = torch.ops.aten.threshold_backward.default(torch.bmm(error, transposed), before, 0)
        if batch.numeric.shape[2]:
            torch.bmm(batch.numeric.transpose(1, 2), error, out=self._weights_gradient)
        # A row's error goes to every table row that was summed for it.
        spread = error.reshape(-1, 1, self._width).expand(-1, inputs, -1).reshape(-1, self._width)
        self._table_gradient.zero_().scatter_add_(0, positions.unsqueeze(1).expand(-1, self._width), spread)
