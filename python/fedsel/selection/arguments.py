"""Checks of arguments that several entry points share."""

from __future__ import annotations

from typing import SupportsIndex, TypeGuard

import numpy as np

from fedsel.errors import SelectionError


def is_whole(number: object) -> TypeGuard[SupportsIndex]:
    """Whether this is an integer, numpy's included; booleans are not meant as numbers."""
    return hasattr(number, "__index__") and not isinstance(number, bool | np.bool_ | np.ndarray)


def check_numbers(**numbers: tuple[int, int, int]) -> None:
    """Refuse numbers, given as name=(number, smallest, largest), that are not whole or not between their bounds."""
    for name, (number, low, high) in numbers.items():
        if not is_whole(number) or not low <= number <= high:
            raise SelectionError(f"{name} must be between {low} and {high}, got {number}")


def check_effort(seed: int, threads: int | None, time_limit: float) -> None:
    """Refuse a seed, a number of threads or a time limit that no search can have."""
    check_numbers(seed=(seed, 0, 2**64 - 1), threads=(1 if threads is None else threads, 1, 1024))
    if not (isinstance(time_limit, float | int) and time_limit > 0):
        raise SelectionError(f"time_limit must be positive, got {time_limit!r}")
