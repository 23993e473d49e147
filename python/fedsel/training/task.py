"""What a model learns: inputs, target and sensitive attribute of a schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedsel.errors import TrainingError
from fedsel.schema import Schema


@dataclass(frozen=True)
class NumericInput:
    """A raw number among the inputs, standardised as (value - centre) / scale.

    Parameters
    ----------
    name : str
        Column of the raw data.
    centre, scale : float
        Public constants, such as from a codebook; never computed from the clients' rows.

    Raises
    ------
    TrainingError
        If a constant is not finite or the scale not positive.
    """

    name: str
    centre: float
    scale: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.centre):
            raise TrainingError(f"numeric input {self.name}: centre must be finite, got {self.centre}")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise TrainingError(f"numeric input {self.name}: scale must be positive and finite, got {self.scale}")


@dataclass(frozen=True)
class Task:
    """Inputs, target and sensitive attribute.

    Parameters
    ----------
    schema : Schema
        Its target must have two categories; the second is the positive one.
    sensitive : str
        The active sensitive attribute, whose categories are the groups.
    privileged : int
        Code of the privileged group; fairness differences are the other groups minus this one.
    inputs : tuple of str
        Variables that are inputs, one-hot over the schema's categories.
    numeric : tuple of NumericInput
        Raw numbers that are inputs too.

    Raises
    ------
    TrainingError
        If the schema has no such target or attribute, or an input is unknown, repeated, or the target itself.
    """

    schema: Schema
    sensitive: str
    privileged: int
    inputs: tuple[str, ...]
    numeric: tuple[NumericInput, ...] = ()

    def __post_init__(self) -> None:
        target = self.schema.target
        if target is None:
            raise TrainingError(f"schema {self.schema.name}: training needs a target, it has none")
        categories = self.schema.labels(target)
        if len(categories) != 2:
            raise TrainingError(f"target {target}: must have two categories, got {len(categories)}")
        if self.sensitive not in self.schema.sensitive:
            known = ", ".join(self.schema.sensitive) or "none"
            raise TrainingError(f"sensitive attribute must be one of {known}, got {self.sensitive!r}")
        if not 0 <= self.privileged < len(self.groups):
            raise TrainingError(
                f"privileged group must be between 0 and {len(self.groups) - 1}, the codes of {self.sensitive}, "
                f"got {self.privileged}"
            )
        if not self.inputs and not self.numeric:
            raise TrainingError("a model needs at least one input, got none")
        for name in self.inputs:
            if name not in self.schema.names or name == target:
                raise TrainingError(f"input must be a variable of the schema other than the target, got {name!r}")
        for names in (self.inputs, tuple(number.name for number in self.numeric)):
            if len(set(names)) < len(names):
                raise TrainingError(f"an input is there twice: {', '.join(names)}")

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        sensitive: str | None = None,
        privileged: str | None = None,
        sensitive_inputs: bool = True,
        numeric: Sequence[NumericInput] = (),
    ) -> Task:
        """Return the task of a schema: all variables but the target are inputs.

        Parameters
        ----------
        schema : Schema
            The schema.
        sensitive : str, optional
            The active sensitive attribute; by default the schema's first.
        privileged : str, optional
            Label of the privileged group; by default the attribute's first category.
        sensitive_inputs : bool
            Whether sensitive variables are inputs too.
        numeric : sequence of NumericInput
            Raw numbers that are inputs too.

        Raises
        ------
        TrainingError
            If the schema lacks a target or a sensitive attribute, or has no such group.
        """
        if not schema.sensitive:
            raise TrainingError(f"schema {schema.name}: fairness needs a sensitive attribute, it has none")
        active = schema.sensitive[0] if sensitive is None else sensitive
        if active not in schema.sensitive:
            raise TrainingError(f"sensitive attribute must be one of {', '.join(schema.sensitive)}, got {active!r}")
        labels = schema.labels(active)
        if privileged is not None and privileged not in labels:
            raise TrainingError(f"privileged group must be one of {', '.join(labels)}, got {privileged!r}")
        roles = ("feature", "sensitive") if sensitive_inputs else ("feature",)
        return cls(
            schema,
            active,
            0 if privileged is None else labels.index(privileged),
            tuple(variable.name for variable in schema.variables if variable.role in roles),
            tuple(numeric),
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of the sensitive attribute's categories."""
        return self.schema.labels(self.sensitive)

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """First one-hot position of each categorical input, and the number of all at the end, (inputs + 1,)."""
        sizes = [self.schema.variable(name).size for name in self.inputs]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def categories(self) -> int:
        """Number of one-hot positions."""
        return int(self.offsets[-1])

    def difference(self, other: Task) -> str | None:
        """Return one line on the first difference to another task, or None."""
        schemas = self.schema.difference(other.schema)
        if schemas is not None:
            return schemas
        for field in ("sensitive", "privileged", "inputs", "numeric"):
            if getattr(self, field) != getattr(other, field):
                return f"{field}: {getattr(self, field)} and {getattr(other, field)}"
        return None
