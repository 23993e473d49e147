"""What counts as a whole number among arguments."""

from __future__ import annotations

from typing import SupportsIndex, TypeGuard

import numpy as np


def is_whole(number: object) -> TypeGuard[SupportsIndex]:
    """Whether this is an integer, numpy's included; booleans are not meant as numbers."""
    return hasattr(number, "__index__") and not isinstance(number, bool | np.bool_ | np.ndarray)
