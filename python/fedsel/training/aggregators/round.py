"""What an aggregator gets to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from fedsel.training.fairness import Counts
from fedsel.training.local import LocalSettings, Update


@dataclass(frozen=True, eq=False)
class Setup:
    """The federation, before the first round.

    Parameters
    ----------
    records : ndarray of int64, shape (clients,)
        Training rows of each client.
    initial : Tensor, shape (size,)
        The first global model.
    local : LocalSettings
        What clients do in a round.
    privileged : int
        Number of the privileged group.
    """

    records: npt.NDArray[np.int64]
    initial: Tensor
    local: LocalSettings
    privileged: int


@dataclass(frozen=True, eq=False)
class Round:
    """One round, before local training.

    Parameters
    ----------
    number : int
        Counted from 1.
    parameters : Tensor, shape (size,)
        The global model.
    clients : tuple of int
        Numbers of the clients that take part.
    counts : callable
        Returns each participant's counts of outcomes of the global model on its training rows, (participants, groups,
        2, 2).
    gradients : callable
        Yields each participant's gradient of its mean loss at the global model.
    """

    number: int
    parameters: Tensor
    clients: tuple[int, ...]
    counts: Callable[[], Counts]
    gradients: Callable[[], Iterator[Update]]
