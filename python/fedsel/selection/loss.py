"""The federation loss of a pool: which tables it uses, and its value for any members."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from operator import index

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.schema import Schema
from fedsel.selection.arguments import is_whole
from fedsel.selection.fixed_point import refuse_lost, to_int32
from fedsel.selection.weights import Components, LossWeights

Sensitive = str | Sequence[str] | None
"""Which sensitive attributes a loss guards: one, several, or the schema's first."""


def active_sensitive(schema: Schema, sensitive: Sensitive) -> tuple[str, ...]:
    """Return the sensitive attributes a loss guards.

    Raises
    ------
    SelectionError
        If the schema lacks a target or a sensitive attribute, or a named one is not sensitive or named twice.
    """
    if schema.target is None:
        raise SelectionError(f"schema {schema.name!r}: the loss needs a variable of role target, it has none")
    if not schema.sensitive:
        raise SelectionError(f"schema {schema.name!r}: the loss needs a variable of role sensitive, it has none")
    if sensitive is None:
        return schema.sensitive[:1]
    names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    for name in names:
        if name not in schema.sensitive:
            raise SelectionError(f"sensitive must be one of {list(schema.sensitive)}, got {name!r}")
    if not names or len(set(names)) != len(names):
        raise SelectionError(f"sensitive must name different attributes, at least one, got {list(names)}")
    return names


def component_of(pair: tuple[str, str], sensitive: tuple[str, ...], target: str) -> int | None:
    """Return the position of a pair's sum among the components; None for two active sensitive attributes."""
    guarded = sum(name in sensitive for name in pair)
    if guarded == 2:
        return None
    if guarded:
        return 0 if target in pair else 1
    return 3 if target in pair else 2


class FederationLoss:
    """Potential federation loss of subsets of a pool (PCS, arXiv 2605.20975, section IV-C), in bits.

    Mutual informations come from the summed tables of the members: a negative sum counts as 0, and each table is
    normalised by its own total. With several active sensitive attributes the first two sums run over all of them; what
    these share with each other counts nowhere. Sensitive attributes that are not active count as features.

    Parameters
    ----------
    pool : Pool
        Must tabulate every pair of the schema's variables.
    weights : LossWeights
        Weights of the four components.
    sensitive : str, sequence of str or None
        The active sensitive attributes; by default the schema's first.
    level : {"auto", "plain", "avx2", "avx512"}
        Instruction set of the kernels; results agree to 1e-12 bits.

    Raises
    ------
    SelectionError
        If the schema lacks a target or a sensitive attribute, or the pool lacks a pair.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        weights: LossWeights | None = None,
        sensitive: Sensitive = None,
        level: str = "auto",
    ) -> None:
        schema, workload = pool.schema, pool.workload
        self.clients = pool.clients
        self.weights = LossWeights() if weights is None else weights
        self.sensitive = active_sensitive(schema, sensitive)
        names = schema.names
        position = {members: t for t, members in enumerate(workload.sets) if len(members) == 2}
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        assert schema.target is not None  # active_sensitive has checked
        kinds = [component_of((names[i], names[j]), self.sensitive, schema.target) for i, j in pairs]
        pairs = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind is not None]
        components = [kind for kind in kinds if kind is not None]
        missing = [pair for pair in pairs if pair not in position]
        if missing:
            first = " x ".join(names[v] for v in missing[0])
            raise SelectionError(f"the loss needs the table of every pair of variables; the pool lacks {first}")
        self.pairs = tuple((names[i], names[j]) for i, j in pairs)
        tables = [position[pair] for pair in pairs]
        if tables == list(range(len(workload.sets))):
            counts = pool.counts
        else:
            ranges = [np.arange(*workload.offsets[t : t + 2]) for t in tables]
            counts = np.ascontiguousarray(pool.counts[:, np.concatenate(ranges)])
        sizes = workload.sizes[tables]
        scaled, shift = to_int32(counts, sizes)
        refuse_lost(counts, sizes, shift, pool.clients)
        self.shift = shift + max(0, round(math.log2(pool.unit)))
        domain = workload.domain
        specs = [(domain[i], domain[j], c, i, j) for (i, j), c in zip(pairs, components, strict=True)]
        try:
            self.model = _core.LossModel(scaled, specs, list(self.weights.signed), level)
        except ValueError as error:
            raise SelectionError(str(error)) from None

    def reweighted(self, weights: LossWeights) -> FederationLoss:
        """Return the loss of the same pool under other weights; the tables are shared."""
        other = copy(self)
        other.weights = weights
        other.model = self.model.reweighted(list(weights.signed))
        return other

    def rows(self, members: Iterable[str | int]) -> list[int]:
        """Return the pool rows of members given as names or rows.

        Raises
        ------
        SelectionError
            If a member is unknown or given twice, or none is given.
        """
        position = {name: row for row, name in enumerate(self.clients)}
        rows: list[int] = []
        for member in members:
            if not isinstance(member, str) and not is_whole(member):
                raise SelectionError(f"a member must be a name or a whole number, got {member!r}")
            row = position.get(member, -1) if isinstance(member, str) else index(member)
            if not 0 <= row < len(self.clients):
                raise SelectionError(f"the pool has no client {member!r}")
            if row in rows:
                raise SelectionError(f"member {self.clients[row]!r} is given twice")
            rows.append(row)
        if not rows:
            raise SelectionError("a federation needs at least one member, got none")
        return rows

    def components(self, members: Iterable[str | int]) -> Components:
        """Return the four component sums of one federation, in bits."""
        rows = np.array([self.rows(members)], dtype=np.uint32)
        return Components(*(float(c) for c in self.model.components(rows)[0]))

    def components_of(self, federations: npt.ArrayLike, *, threads: int = 1) -> npt.NDArray[np.float64]:
        """Component sums of many federations of one size.

        Parameters
        ----------
        federations : array_like of int, shape (federations, k)
            Pool rows of the members.
        threads : int
            Threads to use.

        Returns
        -------
        ndarray of float64, shape (federations, 4)
            In bits.

        Raises
        ------
        SelectionError
            If a row is out of range or occurs twice in a federation.
        """
        rows = np.asarray(federations)
        if rows.size and rows.dtype.kind not in "iu":
            raise SelectionError(f"members must be whole numbers, got {rows.dtype}")
        if rows.size and (rows.min() < 0 or rows.max() >= len(self.clients)):
            raise SelectionError(f"members must be between 0 and {len(self.clients) - 1}")
        try:
            return self.model.components(rows.astype(np.uint32), threads)
        except ValueError as error:
            raise SelectionError(str(error)) from None

    def losses_of(self, federations: npt.ArrayLike, *, threads: int = 1) -> npt.NDArray[np.float64]:
        """Return the losses of many federations of one size in bits, (federations,); arguments as `components_of`."""
        # Not a matrix product: how that rounds depends on the number of federations.
        return np.asarray((self.components_of(federations, threads=threads) * self.weights.signed).sum(axis=1))

    def __call__(self, members: Iterable[str | int]) -> float:
        """Return the loss of one federation, in bits."""
        return float(self.losses_of([self.rows(members)])[0])

    def information(self, members: Iterable[str | int]) -> dict[tuple[str, str], float]:
        """Return the mutual information of every pair of variables in a federation, in bits."""
        values = self.model.information(self.rows(members))
        return {pair: float(value) for pair, value in zip(self.pairs, values, strict=True)}

    def state(self, members: Sequence[str | int]) -> FederationState:
        """Return a federation that can be changed by swaps, each in O(cells) whatever its size."""
        return FederationState(self, members)


class FederationState:
    """One federation whose summed tables follow swaps.

    Parameters
    ----------
    loss : FederationLoss
        The loss of the pool.
    members : sequence of str or int
        Names or pool rows to start from.
    """

    def __init__(self, loss: FederationLoss, members: Sequence[str | int]) -> None:
        self._loss = loss
        self._state = _core.FederationState(loss.model, loss.rows(members))

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, in pool order."""
        return tuple(self._loss.clients[row] for row in sorted(self._state.members))

    @property
    def components(self) -> Components:
        """The four component sums, in bits."""
        return Components(*(float(c) for c in self._state.components()))

    @property
    def loss(self) -> float:
        """The loss, in bits."""
        return float((self._state.components() * self._loss.weights.signed).sum())

    def swap(self, out: str | int, in_: str | int) -> None:
        """Replace a member by an outsider.

        Raises
        ------
        SelectionError
            If `out` is not a member or `in_` not an outsider.
        """
        [leaving], [entering] = self._loss.rows([out]), self._loss.rows([in_])
        try:
            self._state.swap(leaving, entering)
        except ValueError as error:
            raise SelectionError(str(error)) from None
