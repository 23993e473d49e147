"""How many bytes a model's work takes, so that a setting can bound it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedsel.errors import TrainingError

MEBIBYTE = 2**20
_FEW, _MORE = 8, 16  # rows


@dataclass(frozen=True)
class Need:
    """Bytes that work on some rows takes at most.

    Parameters
    ----------
    fixed, per_row : int
        Of no row, and of each.
    """

    fixed: int
    per_row: int

    def of(self, rows: int) -> int:
        """Return the bytes for this many rows."""
        return self.fixed + self.per_row * rows


def measured(work: Callable[[int], Callable[[], object]]) -> Need:
    """Measure work whose need grows with its rows, as layers' does.

    All that it allocates is counted as if nothing were freed before its end, which bounds what it takes at any time.

    Parameters
    ----------
    work : callable
        Returns what is to be measured, for a number of rows.
    """
    few, more = (_allocated(work(rows)) for rows in (_FEW, _MORE))
    per_row = -(-max(0, more - few) // (_MORE - _FEW))
    return Need(max(0, few - _FEW * per_row), per_row)


def too_little(what: str, need: int, memory: int) -> TrainingError:
    """Return the error for a setting that is too small; all in bytes."""
    return TrainingError(
        f"memory_mb must be at least {-(-need // MEBIBYTE)}, which {what} takes, got {memory / MEBIBYTE:g}"
    )


def _allocated(work: Callable[[], object]) -> int:
    seen = _Allocations()
    with torch.no_grad(), seen:
        work()
    return seen.total


class _Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the bytes of new tensors; results that share memory with an argument are none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = {_storage(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and _storage(leaf) not in known:
                known.add(_storage(leaf))
                self.total += leaf.untyped_storage().nbytes()
        return result


def _storage(tensor: Tensor) -> int:
    # By object: tensors of the meta device have no address.
    return int(tensor.untyped_storage()._cdata)
