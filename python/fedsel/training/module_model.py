"""Any torch module as a model stacked over clients."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import binary_cross_entropy_with_logits

from fedsel.errors import TrainingError
from fedsel.training.layout import Layout
from fedsel.training.memory import Need, measured
from fedsel.training.models import Batch
from fedsel.training.task import Task

Form = Literal["one-hot", "positions"]
Inputs = tuple[Tensor, ...]


class ModuleModel:
    """A module whose outputs are logits, (rows, 1).

    Gradients come from automatic differentiation, mapped over the clients of a step where torch can do that; where it
    cannot (dropout and anything else random), and for modules with buffers (batch normalisation), one client after
    another does. For perceptrons `Mlp` is many times faster.

    Buffers, such as the running statistics of batch normalisation, are part of the global model, behind the
    parameters. A client changes its own in training; afterwards they become the weighted mean of the clients',
    whatever the aggregator does with parameters. Neither optimisers nor an aggregator's rules touch them. Buffers of
    whole numbers are rounded where they are used.

    A client draws its random numbers, such as dropout's, from a stream of its own, which depends on seed, round, name
    and step. Evaluation is in the module's evaluation mode. A batch of one row has no statistics of its own: batch
    normalisation then takes the running ones.

    Parameters
    ----------
    task : Task
        Gives the number of inputs.
    factory : callable
        Makes the module for a number of inputs, its parameters drawn from torch's generator: for ``form="one-hot"``
        the number of categories of all inputs and of numbers, for ``form="positions"`` of categories alone.
    form : {"one-hot", "positions"}
        What the module is called with: the one-hot categories, then the numbers, (rows, inputs); or the one-hot
        positions, int64 (rows, categorical inputs) below the number of categories, as an embedding takes them, and the
        numbers, (rows, numeric inputs).
    dtype : torch.dtype
        Of parameters.
    device : torch.device or str
        Where parameters are.

    Raises
    ------
    TrainingError
        If the module has no parameters, or a buffer of whole numbers too large for `dtype`.
    """

    def __init__(
        self,
        task: Task,
        factory: Callable[[int], nn.Module],
        *,
        form: Form = "one-hot",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if form not in ("one-hot", "positions"):
            raise TrainingError(f"form must be one-hot or positions, got {form!r}")
        self._categories, self._numeric, self._form = task.categories, len(task.numeric), form
        self._columns = len(task.inputs)
        self.dtype, self.device = dtype, torch.device(device)
        self._factory = factory
        module = self._made(0)
        self._training, self._evaluating = module.train(), copy.deepcopy(module).eval()
        self._one_row = copy.deepcopy(module)
        for part in self._one_row.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.eval()
        self._names = [name for name, _ in module.named_parameters()]
        if not self._names:
            raise TrainingError("the module has no parameters to train")
        self._buffers = {name: buffer.dtype for name, buffer in module.named_buffers()}
        for name, buffer in module.named_buffers():
            if not torch.equal(buffer.to(dtype).to(buffer.dtype), buffer):
                raise TrainingError(f"buffer {name} of {buffer.dtype} cannot be kept exactly as {dtype}")
        shapes = [tuple(array.shape) for array in (*module.parameters(), *module.buffers())]
        self._layout = Layout(shapes, trained=len(self._names))
        self.mapped = self._can_be_mapped()

    def _made(self, seed: int) -> nn.Module:
        with own_randomness(self.device):
            torch.manual_seed(seed)
            inputs = self._categories + (self._numeric if self._form == "one-hot" else 0)
            return self._factory(inputs).to(self.device, self.dtype)

    def _can_be_mapped(self) -> bool:
        """Try one step of two clients; torch warns where a mapped operation would be slower than a loop."""
        if self._buffers:
            return False
        stack = ModuleStack(self, self._layout.pack(self.initial(0).expand(2, -1)), 2, (0, 0))
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("error")
                stack.backward_mapped(self._made_batch(2, 2))
        except (RuntimeError, UserWarning):
            return False
        return True

    def _made_batch(self, clients: int, rows: int) -> Batch:
        zeros = torch.zeros(clients, rows, 1, dtype=self.dtype, device=self.device)
        return Batch(
            zeros.new_zeros(clients, rows, self._columns + 1, dtype=torch.int64),
            zeros.new_zeros(clients, rows, self._numeric),
            zeros,
            torch.ones_like(zeros),
        )

    @property
    def layout(self) -> Layout:
        """Shapes of the module's parameters in its own order, then of its buffers."""
        return self._layout

    @property
    def description(self) -> str:
        """Name of the module's class, number of its parameters, and how clients' gradients are computed."""
        size = self._layout.trained.size
        how = "mapped over clients" if self.mapped else "one client after another"
        return f"{type(self._training).__name__} of {size:,} parameters, {how}"

    @cached_property
    def step_need(self) -> Need:
        """Measured on a few made rows."""

        def step(rows: int) -> Callable[[], object]:
            stack = self.stack(self.initial(0), 1, (0,))
            return partial(stack.backward, self._made_batch(1, rows))

        return measured(step)

    @cached_property
    def row_need(self) -> Need:
        """Measured on a few made rows."""

        def predicted(rows: int) -> Callable[[], object]:
            batch = self._made_batch(1, rows)
            return partial(self.logits, self.initial(0), batch.positions[0], batch.numeric[0])

        return measured(predicted)

    def initial(self, seed: int) -> Tensor:
        """Draw the parameters of a new module; torch's own generator is left as it was."""
        module = self._made(seed)
        arrays = (*module.parameters(), *module.buffers())
        return torch.cat([array.detach().reshape(-1).to(self.dtype) for array in arrays])

    def stack(self, parameters: Tensor, clients: int, seeds: Sequence[int]) -> ModuleStack:
        """Return a stack around a vector of parameters, (clients * size,)."""
        return ModuleStack(self, parameters, clients, tuple(seeds))

    def inputs(self, positions: Tensor, numeric: Tensor) -> Inputs:
        """Return what the module is called with; the constant's position is left out."""
        if self._form == "positions":
            return positions[..., :-1], numeric
        dense = torch.zeros(*positions.shape[:-1], self._categories, dtype=self.dtype, device=positions.device)
        return (torch.cat([dense.scatter_(-1, positions[..., :-1], 1.0), numeric], dim=-1),)

    def call(self, arrays: Sequence[Tensor], buffers: Sequence[Tensor], inputs: Inputs, *, training: bool) -> Tensor:
        """Return the module's outputs, (rows, 1); buffers may be changed in place."""
        rows = len(inputs[0])
        module = self._evaluating if not training else self._one_row if rows == 1 else self._training
        names = (*self._names, *self._buffers)
        outputs: Tensor = functional_call(module, dict(zip(names, (*arrays, *buffers), strict=True)), inputs)
        if outputs.shape != (rows, 1):
            raise TrainingError(f"the module must return shape ({rows}, 1), got {tuple(outputs.shape)}")
        return outputs

    def as_buffers(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return copies of stored buffers in the module's own types."""
        return [
            (value if kind.is_floating_point else value.round()).to(kind, copy=True)
            for value, kind in zip(values, self._buffers.values(), strict=True)
        ]

    def logits(self, parameters: Tensor, positions: Tensor, numeric: Tensor) -> Tensor:
        """Return logits, (rows,)."""
        arrays = [view[0] for view in self._layout.views(parameters, 1)]
        trained = len(self._names)
        buffers = self.as_buffers(arrays[trained:])
        return self.call(arrays[:trained], buffers, self.inputs(positions, numeric), training=False)[:, 0]


class ModuleStack:
    """Modules of one kind, one per client.

    Parameters
    ----------
    model : ModuleModel
        What they are.
    parameters : Tensor, shape (clients * size,)
        In the layout of a stack.
    clients : int
        How many.
    seeds : tuple of int
        Of each client's random numbers.
    steps : int
        Steps already taken with these seeds.
    """

    def __init__(
        self, model: ModuleModel, parameters: Tensor, clients: int, seeds: tuple[int, ...], steps: int = 0
    ) -> None:
        layout = model.layout
        self.parameters = parameters
        self.gradient = parameters.new_zeros(clients * layout.trained.size)
        self._model, self._seeds, self._steps = model, seeds, steps
        views = layout.views(parameters, clients)
        count = len(layout.trained.shapes)
        self._views, self._buffers = views[:count], views[count:]
        self._gradient_views = layout.trained.views(self.gradient, clients)

    def first(self, kept: int) -> ModuleStack:
        """Return the stack of the first clients."""
        parameters = self._model.layout.first(self.parameters, len(self._seeds), kept)
        return ModuleStack(self._model, parameters, kept, self._seeds[:kept], self._steps)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the positions as they are: every client has its own inputs."""
        return positions

    def backward(self, batch: Batch) -> None:
        """Write the gradients, and take the clients' buffers one step further."""
        if self._model.mapped:
            self.backward_mapped(batch)
        else:
            with own_randomness(self._model.device):
                for client, seed in enumerate(self._seeds):
                    torch.manual_seed((seed + self._steps) % 2**63)
                    self._backward_of(client, batch)
        self._steps += 1

    def backward_mapped(self, batch: Batch) -> None:
        """Write the gradients, all clients together."""

        def loss(arrays: list[Tensor], inputs: Inputs, target: Tensor, weight: Tensor) -> Tensor:
            logits = self._model.call(arrays, (), inputs, training=True)
            return binary_cross_entropy_with_logits(logits, target, weight, reduction="sum")

        inputs = self._model.inputs(batch.positions, batch.numeric)
        gradients = vmap(grad(loss))(self._views, inputs, batch.target, batch.weight)
        for view, gradient in zip(self._gradient_views, gradients, strict=True):
            view.copy_(gradient)

    def _backward_of(self, client: int, batch: Batch) -> None:
        # Padding must not reach statistics over the batch.
        rows = batch.weight[client, :, 0] > 0
        positions, numeric, target, weight = (tensor[client][rows] for tensor in batch)
        # Copies, since buffers change in place while their neighbours in the vector are needed for the gradient.
        arrays = [view[client].clone().requires_grad_() for view in self._views]
        buffers = self._model.as_buffers([view[client] for view in self._buffers])
        with torch.enable_grad():
            logits = self._model.call(arrays, buffers, self._model.inputs(positions, numeric), training=True)
            loss = binary_cross_entropy_with_logits(logits, target, weight, reduction="sum")
            gradients = torch.autograd.grad(loss, arrays, allow_unused=True)
        for view, gradient in zip(self._gradient_views, gradients, strict=True):
            view[client] = 0.0 if gradient is None else gradient
        for view, buffer in zip(self._buffers, buffers, strict=True):
            view[client] = buffer


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Leave torch's generators afterwards as they were before."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
