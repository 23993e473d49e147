"""Any torch module of standard layers as a model stacked over clients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedsel.errors import TrainingError
from fedsel.training.layout import Layout
from fedsel.training.models import Batch
from fedsel.training.task import Task


class ModuleModel:
    """A module from inputs, (rows, inputs), to logits, (rows, 1).

    Inputs are the one-hot categories, then the numbers. Gradients come from automatic differentiation, mapped over the
    clients; for perceptrons `Mlp` is several times faster.

    Parameters
    ----------
    task : Task
        Gives the number of inputs.
    factory : callable
        Makes the module for a number of inputs, its parameters drawn from torch's generator.
    dtype : torch.dtype
        Of parameters.
    device : torch.device or str
        Where parameters are.

    Raises
    ------
    TrainingError
        If the module has buffers, such as batch normalisation's, which have no meaning for a stack of clients; has no
        parameters; or is random, as with dropout.
    """

    def __init__(
        self,
        task: Task,
        factory: Callable[[int], nn.Module],
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self._categories = task.categories
        self.dtype, self.device = dtype, torch.device(device)
        self._factory, self._inputs = factory, task.categories + len(task.numeric)
        self._module = self._made(0)
        for name, part in self._module.named_modules():
            if next(part.buffers(recurse=False), None) is not None:
                raise TrainingError(f"module {name} ({type(part).__name__}) has buffers; a stack of clients cannot")
            if isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0:
                raise TrainingError(f"module {name} ({type(part).__name__}) is random; training must repeat exactly")
        self._names, shapes = [], []
        for name, parameter in self._module.named_parameters():
            self._names.append(name)
            shapes.append(tuple(parameter.shape))
        if not shapes:
            raise TrainingError("the module has no parameters to train")
        self._layout = Layout(shapes)

    def _made(self, seed: int) -> nn.Module:
        before = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(seed)
            return self._factory(self._inputs).to(self.device, self.dtype)
        finally:
            torch.default_generator.set_state(before)

    @property
    def layout(self) -> Layout:
        """Shapes of the module's parameters, in its own order."""
        return self._layout

    @property
    def description(self) -> str:
        """Name of the module's class and number of its parameters."""
        return f"{type(self._module).__name__} of {self._layout.size:,} parameters"

    def initial(self, seed: int) -> Tensor:
        """Draw the parameters of a new module; torch's own generator is left as it was."""
        return torch.cat([parameter.detach().reshape(-1) for parameter in self._made(seed).parameters()])

    def stack(self, parameters: Tensor, clients: int) -> ModuleStack:
        """Return a stack around a vector of parameters, (clients * size,)."""
        return ModuleStack(self, parameters, clients)

    def inputs(self, positions: Tensor, numeric: Tensor) -> Tensor:
        """Return dense inputs, (..., categories + numbers); the constant's position is left out."""
        dense = torch.zeros(*positions.shape[:-1], self._categories, dtype=self.dtype, device=positions.device)
        return torch.cat([dense.scatter_(-1, positions[..., :-1], 1.0), numeric], dim=-1)

    def call(self, arrays: list[Tensor], inputs: Tensor) -> Tensor:
        """Return the module's outputs, (rows, 1), for its parameters and inputs."""
        outputs: Tensor = functional_call(self._module, dict(zip(self._names, arrays, strict=True)), (inputs,))
        if outputs.shape != (len(inputs), 1):
            raise TrainingError(f"the module must return shape ({len(inputs)}, 1), got {tuple(outputs.shape)}")
        return outputs

    def logits(self, parameters: Tensor, positions: Tensor, numeric: Tensor) -> Tensor:
        """Return logits, (rows,)."""
        arrays = [view[0] for view in self._layout.views(parameters, 1)]
        return self.call(arrays, self.inputs(positions, numeric))[:, 0]


class ModuleStack:
    """Modules of one kind, one per client."""

    def __init__(self, model: ModuleModel, parameters: Tensor, clients: int) -> None:
        self.parameters = parameters
        self.gradient = torch.zeros_like(parameters)
        self._model = model
        self._views = model.layout.views(parameters, clients)
        self._gradient_views = model.layout.views(self.gradient, clients)

        def loss(arrays: list[Tensor], inputs: Tensor, target: Tensor, weight: Tensor) -> Tensor:
            logits = model.call(arrays, inputs)
            return nn.functional.binary_cross_entropy_with_logits(logits, target, weight, reduction="sum")

        self._gradients = vmap(grad(loss))

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the positions as they are: every client has its own inputs."""
        return positions

    def backward(self, batch: Batch) -> None:
        """Write the gradients."""
        inputs = self._model.inputs(batch.positions, batch.numeric)
        for view, gradient in zip(
            self._gradient_views, self._gradients(self._views, inputs, batch.target, batch.weight), strict=True
        ):
            view.copy_(gradient)
