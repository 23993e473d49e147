"""The noise a release will carry, decided and stated before any row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError

Adjacency = Literal["add-remove", "replace-one"]
Mechanism = Literal["discrete-gaussian", "discrete-laplace", "none"]
Accounting = Literal["exact", "zcdp", "rdp", "pure", "none"]


@dataclass(frozen=True)
class NoisePlan:
    """Mechanism, noise scale of every table and the guarantee they give jointly.

    Parameters
    ----------
    mechanism : {"discrete-gaussian", "discrete-laplace", "none"}
        ``"none"`` is an exact, non-private release (epsilon is infinite).
    adjacency : {"add-remove", "replace-one"}
        Which neighbouring data sets the guarantee speaks of; record level, within one client.
    epsilon, delta : float
        The guarantee of the joint release of all tables.
    numerator : int
        P: table t has sigma_t^2 = P / w_t (discrete Gaussian) or scale b_t = P / w_t (discrete Laplace). 0 without
        noise.
    weights : tuple of int
        w_t, one positive integer per table.
    accounting : {"exact", "zcdp", "rdp", "pure", "none"}
        How the guarantee was derived.
    """

    mechanism: Mechanism
    adjacency: Adjacency
    epsilon: float
    delta: float
    numerator: int
    weights: tuple[int, ...]
    accounting: Accounting

    def __post_init__(self) -> None:
        if self.mechanism == "none":
            if self.epsilon != np.inf or self.numerator != 0:
                raise PrivacyError(f"a plan without noise must state epsilon = inf, got {self.epsilon}")
        elif self.numerator < 1:
            raise PrivacyError(f"numerator must be a positive integer, got {self.numerator}")
        if not self.weights or any(w < 1 for w in self.weights):
            raise PrivacyError("weights must be positive integers, one per table")

    @property
    def scale(self) -> npt.NDArray[np.float64]:
        """Sigma (discrete Gaussian) or b (discrete Laplace) of each table, in counts, (tables,)."""
        ratio = self.numerator / np.array(self.weights, dtype=np.float64)
        return np.sqrt(ratio) if self.mechanism == "discrete-gaussian" else ratio
