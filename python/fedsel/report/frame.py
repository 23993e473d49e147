"""What every figure of a report is computed in: the pool's loss, the members, and who may be exchanged for whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.constraints import Constraints, Ruleset, resolve
from fedsel.selection.denoising import denoise
from fedsel.selection.loss import FederationLoss
from fedsel.selection.methods import available_threads
from fedsel.selection.result import Selection

WORK = 2_000_000_000
"""Cell additions one figure may cost: a second or two on one core. What would cost more is sampled, and says so."""

_OVERHEAD = 8  # one evaluation of the logarithms costs about as much as adding this many clients
_BLOCK = 2**21  # member entries handed to the core at once
_TOLERANCE = 1e-9  # bits


@dataclass(frozen=True, eq=False)
class Frame:
    """A chosen federation in its pool.

    Parameters
    ----------
    selection : Selection
        What was chosen.
    pool : Pool
        What it was chosen from.
    loss : FederationLoss
        The loss that the selection used.
    members : ndarray of int64, shape (k,)
        Pool rows of the members, ascending.
    constraints : Constraints
        What every federation must satisfy.
    ruleset : Ruleset
        The same in rows of the pool.
    threads : int
        Threads to use.
    """

    selection: Selection
    pool: Pool
    loss: FederationLoss
    members: npt.NDArray[np.int64]
    constraints: Constraints
    ruleset: Ruleset
    threads: int

    @property
    def k(self) -> int:
        """Number of members."""
        return len(self.members)

    @cached_property
    def outsiders(self) -> npt.NDArray[np.int64]:
        """Pool rows that are not members and not excluded, ascending."""
        barred = {*self.ruleset.excluded, *self.members.tolist()}
        return np.array([row for row in range(len(self.pool)) if row not in barred], dtype=np.int64)

    @cached_property
    def free(self) -> npt.NDArray[np.int64]:
        """Pool rows that are neither required nor excluded, ascending."""
        return np.array(self.ruleset.free(len(self.pool)), dtype=np.int64)

    @property
    def total(self) -> int:
        """Number of federations of k members that hold all required and no excluded client, other rules apart."""
        return math.comb(len(self.free), self.k - len(self.ruleset.fixed))

    @property
    def cells(self) -> int:
        """Cells of all tables of a client."""
        return self.pool.workload.cells

    def affordable(self, k: int) -> int:
        """Return how many federations of k members may be evaluated within `WORK`."""
        return WORK // ((k + _OVERHEAD) * self.cells)

    def components(self, federations: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Component sums in bits, (federations, 4), of federations given as pool rows, (federations, members)."""
        step = max(1, _BLOCK // federations.shape[1])
        blocks = [
            self.loss.components_of(federations[first : first + step], threads=self.threads)
            for first in range(0, len(federations), step)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, 4))

    def losses(self, federations: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Losses in bits, (federations,), of federations given as pool rows, (federations, members)."""
        losses: npt.NDArray[np.float64] = self.components(federations) @ self.loss.weights.signed
        return losses

    def allowed(self, federations: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether federations keep the rules, (federations,); required and excluded clients apart."""
        kept = np.ones(len(federations), dtype=bool)
        for rule in self.ruleset.rules:
            sums = rule.amounts[federations].sum(axis=1)
            kept &= (rule.lower <= sums) & (sums <= rule.upper)
        return kept

    def without(self, row: int) -> npt.NDArray[np.int64]:
        """Members but one, (k - 1,)."""
        rest: npt.NDArray[np.int64] = self.members[self.members != row]
        return rest

    def rows(self, names: Iterable[str]) -> tuple[int, ...]:
        """Pool rows of named clients, ascending."""
        return tuple(sorted(self.pool.index(name) for name in names))

    def known(self) -> Iterator[tuple[int, ...]]:
        """Federations that the search itself reported: the best, the runner-ups, the best of every chain."""
        yield tuple(self.members.tolist())
        for runner_up in self.selection.runner_ups:
            yield self.rows(runner_up.members)
        for chain in self.selection.chains:
            yield self.rows(chain.members)


def frame(
    selection: Selection, pool: Pool, *, constraints: Constraints | None = None, threads: int | None = None
) -> Frame:
    """Put a selection back into its pool.

    Parameters
    ----------
    selection : Selection
        What was chosen.
    pool : Pool
        What it was chosen from.
    constraints : Constraints or None
        What it was chosen under.
    threads : int or None
        Threads to use, by default all that this process may run on.

    Returns
    -------
    Frame

    Raises
    ------
    SelectionError
        If the selection was not made from this pool or not under these constraints.
    PoolError
        If the pool lacks one of the clients.
    """
    if selection.pool_size != len(pool):
        raise SelectionError(f"the selection was made from {selection.pool_size} clients, the pool has {len(pool)}")
    members = np.array(sorted(pool.index(name) for name in selection.names), dtype=np.int64)
    loss = FederationLoss(
        denoise(pool, method=selection.denoise),  # type: ignore[arg-type]
        weights=selection.weights,
        sensitive=selection.sensitive,
    )
    value = loss(members.tolist())
    if not math.isclose(value, selection.loss, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        raise SelectionError(
            f"the selection was made from other releases: its loss is {selection.loss:.6f} bits, here {value:.6f}"
        )
    rules = constraints or Constraints()
    ruleset = resolve(rules, pool)
    if ruleset.labels(pool.clients) != selection.constraints:
        made, given = ("; ".join(labels) or "none" for labels in (selection.constraints, ruleset.labels(pool.clients)))
        raise SelectionError(f"constraints: the selection was made under: {made}; given: {given}")
    return Frame(
        selection=selection,
        pool=pool,
        loss=loss,
        members=members,
        constraints=rules,
        ruleset=ruleset,
        threads=available_threads(threads),
    )
