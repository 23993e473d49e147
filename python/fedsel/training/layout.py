"""How the parameters of several clients lie in one vector.

A model's parameters are a few arrays. For one client they lie one after another, (size,). For a stack of clients they
lie array by array, and within an array client by client: every array is then one contiguous block, (clients, *shape),
that a batched product reads and writes in place, and one pass over the whole vector updates everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Layout:
    """Shapes of a model's parameter arrays.

    Parameters
    ----------
    shapes : sequence of tuple of int
        One per array.
    trained : int, optional
        How many of them, the first, move down gradients; the others are buffers. By default all.

    Attributes
    ----------
    trained : Layout
        Of those alone. They come first in the vector of one client, and in that of a stack.
    """

    def __init__(self, shapes: Sequence[Sequence[int]], *, trained: int | None = None) -> None:
        self.shapes = tuple(tuple(shape) for shape in shapes)
        self.sizes = tuple(math.prod(shape) for shape in self.shapes)
        self.size = sum(self.sizes)
        self.trained: Layout = self if trained in (None, len(self.shapes)) else Layout(self.shapes[:trained])

    def views(self, stacked: Tensor, clients: int) -> list[Tensor]:
        """Return the arrays of a stacked vector, each (clients, *shape), sharing its memory."""
        parts = torch.split(stacked, [clients * size for size in self.sizes])
        return [part.view(clients, *shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def pack(self, rows: Tensor) -> Tensor:
        """Return a stacked vector, (clients * size,), of one client per row, (clients, size)."""
        return torch.cat([part.reshape(-1) for part in torch.split(rows, list(self.sizes), dim=1)])

    def unpack(self, stacked: Tensor, clients: int) -> Tensor:
        """Return one client per row, (clients, size); the reverse of `pack`."""
        return torch.cat([view.reshape(clients, -1) for view in self.views(stacked, clients)], dim=1)

    def first(self, stacked: Tensor, clients: int, kept: int) -> Tensor:
        """Return the stacked vector of the first `kept` clients."""
        return torch.cat([view[:kept].reshape(-1) for view in self.views(stacked, clients)])
