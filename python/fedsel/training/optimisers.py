"""Local optimisers over one vector of stacked parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor

Optimiser = Literal["adam", "sgd"]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Steps(Protocol):
    """An optimiser's state for one stack."""

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Change the parameters in place."""

    def shrink(self, first: Callable[[Tensor], Tensor]) -> None:
        """Keep the state of the first clients only; `first` takes them out of a stacked vector."""


class Sgd:
    """Plain stochastic gradient descent."""

    def __init__(self, parameters: Tensor, learning_rate: float) -> None:
        self._learning_rate = learning_rate

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Go down the gradient."""
        parameters.add_(gradient, alpha=-self._learning_rate)

    def shrink(self, first: Callable[[Tensor], Tensor]) -> None:
        """Nothing is kept."""


class Adam:
    """Adam (Kingma & Ba 2015, algorithm 1) with its default constants; all clients are at the same step."""

    def __init__(self, parameters: Tensor, learning_rate: float) -> None:
        self._learning_rate = learning_rate
        self._mean = torch.zeros_like(parameters)
        self._square = torch.zeros_like(parameters)
        self._count = 0

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Take one step."""
        self._count += 1
        # The corrections for the zero start are moved to the step size and epsilon, which saves two passes.
        root = math.sqrt(1 - BETA2**self._count)
        size = self._learning_rate * root / (1 - BETA1**self._count)
        self._mean.lerp_(gradient, 1 - BETA1)
        self._square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        parameters.addcdiv_(self._mean, self._square.sqrt().add_(EPSILON * root), value=-size)

    def shrink(self, first: Callable[[Tensor], Tensor]) -> None:
        """Keep the first clients' moments."""
        self._mean, self._square = first(self._mean), first(self._square)


class FusedAdam(Adam):
    """The same in one pass, with the kernel that torch's own Adam calls; only where this torch has it."""

    def __init__(self, parameters: Tensor, learning_rate: float) -> None:
        super().__init__(parameters, learning_rate)
        self._steps = torch.zeros((), device=parameters.device)

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Take one step."""
        self._steps.add_(1)
        torch._fused_adam_(
            [parameters],
            [gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self._learning_rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )


def local_optimiser(name: Optimiser, parameters: Tensor, learning_rate: float) -> Steps:
    """Return a fresh optimiser: clients keep no state between rounds."""
    if name == "sgd":
        return Sgd(parameters, learning_rate)
    return (FusedAdam if hasattr(torch, "_fused_adam_") else Adam)(parameters, learning_rate)
