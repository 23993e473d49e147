"""Weights of the federation loss and the four sums they weigh."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError

SMALLEST, _LARGEST = 1e-12, 1e9


@dataclass(frozen=True)
class Components:
    """Sums of mutual informations in bits; the loss is linear in them.

    Parameters
    ----------
    sensitive_target : float
        I(S; T): direct bias.
    sensitive_feature : float
        Sum over features of I(S; N_k): proxy bias.
    feature_feature : float
        Sum over pairs of features of I(N_k; N_j): redundancy.
    feature_target : float
        Sum over features of I(N_k; T): predictive signal.
    """

    sensitive_target: float
    sensitive_feature: float
    feature_feature: float
    feature_target: float


COMPONENT_NAMES = tuple(field.name for field in fields(Components))


@dataclass(frozen=True)
class LossWeights:
    """Weights of the four components; the signal is subtracted, everything else is added.

    loss = sensitive_target I(S;T) + sensitive_feature sum I(S;N_k) + feature_feature sum I(N_k;N_j)
    - feature_target sum I(N_k;T).

    The defaults are the weights that Proactive Client Selection (arXiv 2605.20975, section IV-C) found for US census
    tasks (alpha, beta, gamma, lambda there).

    Raises
    ------
    SelectionError
        If a weight is negative or above 1e9, positive but below 1e-12, or all are 0.
    """

    sensitive_target: float = 2.0
    sensitive_feature: float = 0.89
    feature_feature: float = 0.11
    feature_target: float = 1.33

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (value == 0 or SMALLEST <= value <= _LARGEST):
                raise SelectionError(
                    f"weight {field.name} must be 0 or between {SMALLEST:g} and {_LARGEST:g}, got {value}"
                )
        if not any(self.signed):
            raise SelectionError("at least one weight must be positive, all are 0")

    @classmethod
    def preset(cls, name: str) -> LossWeights:
        """Return named weights; see `PRESETS`.

        Raises
        ------
        SelectionError
            If there are none of that name.
        """
        if name not in PRESETS:
            raise SelectionError(f"weights must be one of {', '.join(PRESETS)}, got {name!r}")
        return PRESETS[name]

    @property
    def signed(self) -> npt.NDArray[np.float64]:
        """Factor of each component in the loss, (4,), in the order of `Components`."""
        return np.array([self.sensitive_target, self.sensitive_feature, self.feature_feature, -self.feature_target])


PRESETS = {
    "pcs": LossWeights(),
    "pcs-repository": LossWeights(1.0, 1.0, 0.1, 0.5),
    "fairness": LossWeights(2.0, 0.89, 0.0, 0.0),
    "utility": LossWeights(0.0, 0.0, 0.11, 1.33),
}
"""Named weights: ``pcs`` as printed in the paper, ``pcs-repository`` those its published federations were found with,
``fairness`` and ``utility`` the two halves of ``pcs`` by themselves."""
