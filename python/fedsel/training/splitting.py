"""Shares of each client's rows: thinning, and the split into training, validation and test rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from fedsel.errors import TrainingError
from fedsel.training.data import ClientData, FederatedData

TEST_SHARE = 0.25
VALIDATION_SHARE = 0.15
TUNING_SHARE = 0.2


def stream_seed(seed: int, *parts: object) -> int:
    """Return a 63-bit seed for one purpose: it depends on every part and on nothing else, such as an order.

    Parameters
    ----------
    seed : int
        Seed of the whole run.
    *parts : object
        What the stream is for: a word, a round, a client's name.
    """
    text = "\x1f".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def thin(data: FederatedData, rows: int, *, seed: int) -> FederatedData:
    """Keep a random share of every client's rows, the same share for all, so that sizes keep their proportions.

    Parameters
    ----------
    data : FederatedData
        All rows.
    rows : int
        Most rows of all clients together, up to rounding; nothing happens where there are no more. A client with any
        row keeps at least one.
    seed : int
        Seed of the draw; each client's draw depends on its name, not on the others.

    Raises
    ------
    TrainingError
        If `rows` is not positive.
    """
    if rows < 1:
        raise TrainingError(f"rows to keep must be at least 1, got {rows}")
    total = int(data.rows.sum())
    if total <= rows:
        return data
    share = rows / total

    def thinned(client: ClientData) -> ClientData:
        rng = np.random.default_rng(stream_seed(seed, "thin", client.name))
        kept = rng.permutation(client.rows)[: max(1, round(client.rows * share))]
        return client.take(np.sort(kept))

    return FederatedData(map(thinned, data.clients))


def set_apart(data: FederatedData) -> tuple[FederatedData, FederatedData]:
    """Divide every client's rows into those that settings are tuned on, and the others, which results come from.

    The division is the same for every seed, so that no repetition trains or tests on a row that tuning has seen.

    Parameters
    ----------
    data : FederatedData
        All rows.

    Returns
    -------
    tuple of FederatedData
        A random fifth (`TUNING_SHARE`) of each client's rows, rounded down, and the rest.
    """
    parts: tuple[list[ClientData], list[ClientData]] = ([], [])
    for client in data.clients:
        order = np.random.default_rng(stream_seed(0, "tuning rows", client.name)).permutation(client.rows)
        held = int(client.rows * TUNING_SHARE)
        parts[0].append(client.take(np.sort(order[:held])))
        parts[1].append(client.take(np.sort(order[held:])))
    return FederatedData(parts[0]), FederatedData(parts[1])


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts of every client's rows, fixed before anything is trained; the same clients in each.

    Parameters
    ----------
    train, validation, test : FederatedData
        Rows to train on, to choose settings by, and to report.
    """

    train: FederatedData
    validation: FederatedData
    test: FederatedData

    def subset(self, names: tuple[str, ...]) -> Split:
        """Return the split of the named clients only."""
        return Split(self.train.subset(names), self.validation.subset(names), self.test.subset(names))


def split(data: FederatedData, *, seed: int, test: float = TEST_SHARE, validation: float = VALIDATION_SHARE) -> Split:
    """Split each client's rows at random.

    Parameters
    ----------
    data : FederatedData
        All rows.
    seed : int
        Seed of the draw; each client's draw depends on its name, not on the others.
    test, validation : float
        Shares, rounded down to whole rows, so that a client of one row trains on it and is tested on none.

    Raises
    ------
    TrainingError
        If the shares are not between 0 and 1, or leave nothing to train on.
    """
    for name, share in (("test", test), ("validation", validation)):
        if not 0 <= share < 1:
            raise TrainingError(f"share of {name} rows must be at least 0 and below 1, got {share}")
    if test + validation >= 1:
        raise TrainingError(f"shares of test and validation rows must add up to less than 1, got {test + validation:g}")
    parts: tuple[list[ClientData], list[ClientData], list[ClientData]] = ([], [], [])
    for client in data.clients:
        order = np.random.default_rng(stream_seed(seed, "split", client.name)).permutation(client.rows)
        tested = int(client.rows * test)
        validated = int(client.rows * validation)
        bounds = (tested + validated, tested, 0)
        ends = (client.rows, tested + validated, tested)
        for part, first, last in zip(parts, bounds, ends, strict=True):
            part.append(client.take(np.sort(order[first:last])))
    return Split(*map(FederatedData, parts))
