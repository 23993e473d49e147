"""Aggregators: what a server makes of the clients' updates, one published method a file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fedsel.errors import TrainingError
from fedsel.training.aggregators.fairfed import FairFed
from fedsel.training.aggregators.fedadam import FedAdam
from fedsel.training.aggregators.fedavg import FedAvg
from fedsel.training.aggregators.fedprox import FedProx
from fedsel.training.aggregators.scaffold import Scaffold

__all__ = ["AGGREGATORS", "FairFed", "FedAdam", "FedAvg", "FedProx", "Scaffold", "make_aggregator"]

AGGREGATORS: dict[str, type[FedAvg]] = {kind.name: kind for kind in (FedAvg, FedProx, Scaffold, FedAdam, FairFed)}


def make_aggregator(name: str, **options: Any) -> FedAvg:
    """Return a new aggregator by name.

    Raises
    ------
    TrainingError
        If there is none of that name, or it has no such option.
    """
    if name not in AGGREGATORS:
        raise TrainingError(f"aggregator must be one of {', '.join(AGGREGATORS)}, got {name!r}")
    known = {field.name: field.default for field in fields(AGGREGATORS[name])}
    for option, value in options.items():
        if option not in known:
            raise TrainingError(f"{name} has no option {option!r}; it has {', '.join(known)}")
        if isinstance(known[option], float) and not isinstance(value, int | float):
            raise TrainingError(f"{name}: {option} must be a number, got {value!r}")
    return AGGREGATORS[name](**options)
