"""The federation loss of a pool: which tables it uses, and its value for any members."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from copy import copy
from operator import index
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsel import _core
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.arguments import is_whole
from fedsel.selection.denoising import DenoiseMethod, resolve_method
from fedsel.selection.fixed_point import refuse_lost, to_int32, total_shift
from fedsel.selection.loss_tables import LossTables, Sensitive
from fedsel.selection.prepared_file import PreparedFile
from fedsel.selection.weights import Components, LossWeights


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
        self.clients = pool.clients
        self.weights = LossWeights() if weights is None else weights
        tables = LossTables.of(pool, sensitive)
        self.sensitive, self.pairs = tables.sensitive, tables.pairs
        counts = tables.of_counts(pool.counts)
        scaled, shift = to_int32(counts, tables.sizes)
        refuse_lost(counts, tables.sizes, shift, pool.clients)
        self.shift = total_shift(shift, pool.unit)
        try:
            self.model = _core.LossModel(scaled, tables.specs, list(self.weights.signed), level)
        except ValueError as error:
            raise SelectionError(str(error)) from None

    @classmethod
    def prepared(
        cls,
        pool: Pool,
        path: str | os.PathLike[str],
        *,
        denoise_method: DenoiseMethod = "auto",
        weights: LossWeights | None = None,
        sensitive: Sensitive = None,
        level: str = "auto",
    ) -> FederationLoss:
        """Return the loss of a pool that `prepare` has laid out in a file, which is mapped into memory, not read.

        Parameters
        ----------
        pool : Pool
            The releases that the file was made from, as they are before denoising.
        path : path
            The file. It must stay as it is while the loss is in use; if it is cut, what uses the loss raises.
        denoise_method : {"auto", "none", "clip", "consistent", "shrink", "reference"}
            As of `select`; must be what the file was denoised by.
        weights, sensitive, level
            As of `FederationLoss`; the sensitive attributes must be those that the file was made for.

        Returns
        -------
        FederationLoss

        Raises
        ------
        SelectionError
            If the file is not what `prepare` writes, is damaged, or was made from another pool.
        """
        file = PreparedFile.open(Path(path))
        tables = LossTables.of(pool, sensitive)
        file.check_pool(pool, tables, resolve_method(pool, denoise_method))
        loss = cls.__new__(cls)
        loss.clients = pool.clients
        loss.weights = LossWeights() if weights is None else weights
        loss.sensitive, loss.pairs = tables.sensitive, tables.pairs
        loss.shift = file.shift
        loss.model = file.map_model(tables, list(loss.weights.signed), level)
        return loss

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
