"""Sums over clients that hide the summands."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class SecureSum(Protocol):
    """A protocol by which a server learns a sum and none of its summands.

    Attributes
    ----------
    label : str
        What it is and what it protects, for the results it went into.
    """

    label: str

    def total(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum over clients, (...), of one array per client, (clients, ...)."""


class PlainSum:
    """A sum in the clear, for simulations."""

    label = "plain sum: no secure aggregation, the server sees every summand"

    def __str__(self) -> str:
        return "plain"

    def total(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum over clients."""
        return np.asarray(values.sum(axis=0))
