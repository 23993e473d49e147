"""Ways of choosing a federation, to compare with one another. They see the clients through their releases only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.certificates import CertificateMode
from fedsel.selection.denoising import denoise
from fedsel.selection.methods import check_size
from fedsel.selection.select import select
from fedsel.selection.weights import PRESETS, LossWeights

CHOICES = {
    "fedsel": "lowest federation loss",
    "random": "k clients at random",
    "random-matched": "k clients at random, with about as many records together as fedsel's",
    "all": "every candidate",
    "largest": "the k with most records, as estimated from the releases",
    "nearest": "the k whose denoised tables are nearest to those of all candidates",
    "utility": "lowest federation loss by redundancy and signal alone",
    "fairness": "lowest federation loss by direct and proxy bias alone",
}
"""Names of the choices, and what they choose."""

REPEATED = ("random", "random-matched")
"""Choices that differ from draw to draw."""

_DRAWS, _CLOSE = 1000, 20  # random federations drawn, and how many of those closest in records may be taken


def choose(name: str, pool: Pool, k: int, *, seed: int) -> tuple[str, ...]:
    """Choose a federation.

    Parameters
    ----------
    name : str
        One of `CHOICES`.
    pool : Pool
        The candidates' releases.
    k : int
        Number of members; without meaning for ``all``.
    seed : int
        Seed of the random choices, and of the search.

    Returns
    -------
    tuple of str
        Names of the members, in pool order.

    Raises
    ------
    SelectionError
        If there is no such choice, or k is not between 1 and the number of candidates.
    """
    if name not in _WAYS:
        raise SelectionError(f"choice must be one of {', '.join(CHOICES)}, got {name!r}")
    check_size(k, pool)
    rows = _WAYS[name](pool, k, np.random.default_rng(seed))
    return tuple(pool.clients[row] for row in sorted(int(row) for row in rows))


def table_distances(pool: Pool) -> npt.NDArray[np.float64]:
    """Return how far each client's tables are from the pool's, (clients,).

    The total variation distance of the normalised tables, negative cells set to 0, averaged over tables: between 0 and
    1. A client without counts in a table is at distance 1.

    Parameters
    ----------
    pool : Pool
        Denoised or exact tables.
    """
    total = np.zeros(len(pool))
    for table in range(len(pool.workload.sets)):
        cells = pool.table(table).reshape(len(pool), -1)
        own = np.maximum(cells, 0).astype(np.float64)
        together = np.maximum(cells.sum(axis=0), 0).astype(np.float64)
        sums = own.sum(axis=1, keepdims=True)
        shares = own / np.where(sums > 0, sums, 1.0)
        distance = np.abs(shares - together / max(1.0, together.sum())).sum(axis=1) / 2
        total += np.where(sums[:, 0] > 0, distance, 1.0)
    return total / len(pool.workload.sets)


def _lowest_loss(
    weights: LossWeights | None, certificate: CertificateMode = "auto"
) -> Callable[[Pool, int, np.random.Generator], list[int]]:
    def chosen(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
        found = select(
            pool, k, weights=weights, certificate=certificate, runner_ups=0, threads=1, seed=int(rng.integers(2**32))
        )
        return [pool.index(name) for name in found.names]

    return chosen


def _random(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
    return [int(row) for row in rng.choice(len(pool), k, replace=False)]


def _matched(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
    records = pool.totals().estimate
    wanted = records[_lowest_loss(None, "none")(pool, k, rng)].sum()
    drawn = np.array([_random(pool, k, rng) for _ in range(_DRAWS)])
    close = np.argsort(np.abs(records[drawn].sum(axis=1) - wanted), kind="stable")[:_CLOSE]
    return [int(row) for row in drawn[rng.choice(close)]]


def _all(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
    return list(range(len(pool)))


def _largest(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
    return [int(row) for row in np.argsort(-pool.totals().estimate, kind="stable")[:k]]


def _nearest(pool: Pool, k: int, rng: np.random.Generator) -> list[int]:
    return [int(row) for row in np.argsort(table_distances(denoise(pool)), kind="stable")[:k]]


_WAYS: dict[str, Callable[[Pool, int, np.random.Generator], list[int]]] = {
    "fedsel": _lowest_loss(None),
    "random": _random,
    "random-matched": _matched,
    "all": _all,
    "largest": _largest,
    "nearest": _nearest,
    "utility": _lowest_loss(PRESETS["utility"]),
    "fairness": _lowest_loss(PRESETS["fairness"]),
}
