"""Mutual information of every pair of variables: in the federation, and in the whole pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.report.frame import Frame

Part = Literal["sensitive_target", "sensitive_feature", "feature_feature", "feature_target"]


@dataclass(frozen=True)
class PairInformation:
    """Two variables.

    Parameters
    ----------
    first, second : int
        Their positions in the schema.
    part : str
        Component of the loss that the pair belongs to.
    federation, pool : float
        Mutual information in bits in the summed tables of the federation and of all clients.
    """

    first: int
    second: int
    part: Part
    federation: float
    pool: float


@dataclass(frozen=True, eq=False)
class Information:
    """All pairs.

    Parameters
    ----------
    variables : tuple of str
        Names in schema order.
    roles : tuple of str
        ``"target"``, ``"sensitive"`` (an active one) or ``"feature"``, as the loss treats each.
    pairs : tuple of PairInformation
        One per pair of variables.
    """

    variables: tuple[str, ...]
    roles: tuple[str, ...]
    pairs: tuple[PairInformation, ...]

    @property
    def federation(self) -> npt.NDArray[np.float64]:
        """Symmetric matrix in bits, (variables, variables), NaN on the diagonal."""
        return self._matrix([pair.federation for pair in self.pairs])

    @property
    def pool(self) -> npt.NDArray[np.float64]:
        """As `federation`, for all clients."""
        return self._matrix([pair.pool for pair in self.pairs])

    def _matrix(self, values: list[float]) -> npt.NDArray[np.float64]:
        matrix = np.full((len(self.variables),) * 2, np.nan)
        for pair, value in zip(self.pairs, values, strict=True):
            matrix[pair.first, pair.second] = matrix[pair.second, pair.first] = value
        return matrix


def information(frame: Frame) -> Information:
    """Compute the mutual informations of the federation and of the pool.

    Parameters
    ----------
    frame : Frame
        The chosen federation in its pool.

    Returns
    -------
    Information
    """
    names = frame.pool.schema.names
    position = {name: i for i, name in enumerate(names)}
    target, sensitive = frame.pool.schema.target, frozenset(frame.loss.sensitive)
    inside = frame.loss.information(frame.members.tolist())
    outside = frame.loss.information(range(len(frame.pool)))
    return Information(
        variables=names,
        roles=tuple("target" if name == target else "sensitive" if name in sensitive else "feature" for name in names),
        pairs=tuple(
            PairInformation(
                first=position[pair[0]],
                second=position[pair[1]],
                part=_part(not sensitive.isdisjoint(pair), target in pair),
                federation=value,
                pool=outside[pair],
            )
            for pair, value in inside.items()
        ),
    )


def _part(has_sensitive: bool, has_target: bool) -> Part:
    if has_sensitive:
        return "sensitive_target" if has_target else "sensitive_feature"
    return "feature_target" if has_target else "feature_feature"
