"""The candidates: the releases of all clients of one schema, workload and promise, as one array."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedsel.errors import FedselError, PoolError
from fedsel.pool_builder import differences, some
from fedsel.pool_gathering import gather
from fedsel.pool_scores import ClientScores
from fedsel.privacy.limits import COUNT_BOUND
from fedsel.privacy.noise_tail import usable_variance
from fedsel.privacy.plan import NoisePlan
from fedsel.privacy.statement import PrivacyStatement, state
from fedsel.release import Release, check_client_name, check_plan, check_round, check_rows, check_workload
from fedsel.schema import Schema
from fedsel.score_rule import ScoreRule
from fedsel.tables import Workload

_BLOCK_BYTES = 2**24  # counts are looked over in blocks, so that a memory-mapped pool is never held whole


class Totals(NamedTuple):
    """Estimated number of records of each client, (clients,), and its standard error, (clients,), in records."""

    estimate: npt.NDArray[np.float64]
    standard_error: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Validated releases of one round, a row per client.

    Parameters
    ----------
    clients : tuple of str
        Unique names, in the order of the rows.
    schema : Schema
        What the categories mean; the same for all.
    workload : Workload
        Which tables; the same for all.
    counts : ndarray of int64, shape (clients, cells)
        Noisy counts in records, C-contiguous and read-only; may be memory-mapped.
    plans : tuple of NoisePlan
        The different plans among the clients; one, unless the pool is mixed.
    plan_index : tuple of int
        Which of `plans` each client's release has.
    seeded : tuple of bool
        Whether each client's noise came from a seeded generator.
    rounds : tuple of int
        Round of each client's release.
    rows : tuple of (int or None)
        Each client's public number of records, None where it is not public.
    unit : float
        Records per count: 1, except for denoised counts, which are kept in fixed point.
    scores : ClientScores or None
        The clients' scores, if they have released any.

    Raises
    ------
    PoolError
        If the parts do not fit each other.
    ReleaseError
        If a name, plan, round or number of records is out of range.
    """

    clients: tuple[str, ...]
    schema: Schema
    workload: Workload
    counts: npt.NDArray[np.int64]
    plans: tuple[NoisePlan, ...]
    plan_index: tuple[int, ...]
    seeded: tuple[bool, ...]
    rounds: tuple[int, ...]
    rows: tuple[int | None, ...]
    unit: float = 1.0
    scores: ClientScores | None = None

    def __post_init__(self) -> None:
        if not self.clients:
            raise PoolError("a pool needs at least one client, got none")
        for name in self.clients:
            check_client_name(name)
        if len(self._position) != len(self.clients):
            seen: set[str] = set()
            twice = next(name for name in self.clients if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise PoolError(f"pool: client {twice!r} occurs twice")
        check_workload(self.workload, self.schema)
        if not self.workload.sets:
            raise PoolError("a pool needs at least one table, got a workload of none")
        for field in ("plan_index", "seeded", "rounds", "rows"):
            if len(getattr(self, field)) != len(self.clients):
                raise PoolError(
                    f"pool: {field}: expected {len(self.clients)}, one per client, got {len(getattr(self, field))}"
                )
        if set(self.plan_index) != set(range(len(self.plans))) or len(set(self.plans)) != len(self.plans):
            raise PoolError("pool: plans: every plan must differ from the others and be used by a client")
        for plan in self.plans:
            check_plan(plan, len(self.workload.sets))
        for number in set(self.rounds):
            check_round(number)
        for rows, index in set(zip(self.rows, self.plan_index, strict=True)):
            check_rows(rows, self.schema, self.plans[index])
        if self.scores is not None:
            self._check_scores(self.scores)
        self._check_counts()

    def _check_scores(self, scores: ClientScores) -> None:
        if len(scores.plan_index) != len(self.clients):
            raise PoolError(f"pool: scores: expected {len(self.clients)}, got {len(scores.plan_index)}")
        for tables, own in set(zip(self.plan_index, scores.plan_index, strict=True)):
            for field in ("mechanism", "adjacency", "epsilon", "delta", "accounting", "numerator"):
                expected, got = getattr(self.plans[tables], field), getattr(scores.plans[own], field)
                if expected != got:
                    raise PoolError(f"pool: scores: {field}: expected {expected}, that of the tables, got {got}")

    def _check_counts(self) -> None:
        shape = (len(self.clients), self.workload.cells)
        if self.counts.dtype != np.int64 or self.counts.shape != shape:
            raise PoolError(
                f"pool: counts: expected int64 of shape {shape}, got {self.counts.dtype} {self.counts.shape}"
            )
        if not self.counts.flags.c_contiguous:
            raise PoolError("pool: counts: expected a C-contiguous array")
        step = max(1, _BLOCK_BYTES // (8 * shape[1]))
        for first in range(0, shape[0], step):
            block = self.counts[first : first + step]
            if block.min() < -COUNT_BOUND or block.max() > COUNT_BOUND:
                row = first + int(np.argmax(np.abs(np.clip(block, -2 * COUNT_BOUND, 2 * COUNT_BOUND)).max(axis=1)))
                raise PoolError(f"pool: counts: client {self.clients[row]!r} has a count beyond 2**40 in magnitude")
        if self.counts.flags.writeable:
            view = self.counts.view()
            view.setflags(write=False)
            object.__setattr__(self, "counts", view)

    @classmethod
    def from_releases(
        cls, releases: Iterable[Release], *, rule: ScoreRule | None = None, allow_mixed: bool = False
    ) -> Pool:
        """Gather releases.

        Parameters
        ----------
        releases : iterable of Release
            One per client; two where tables and scores were released in different rounds.
        rule : ScoreRule, optional
            The rule that scores were made under, required if there are scores.
        allow_mixed : bool
            Accept releases that differ in budget, noise, adjacency, round or seeding; `mixed` then says in what.
            Different schemas, workloads or rules are never accepted.

        Returns
        -------
        Pool

        Raises
        ------
        PoolError
            If there is none, a client occurs twice, or releases do not go together.
        """
        held = list(releases)
        named = ((release, f"client {release.client!r}") for release in held)
        return cls(**gather(named, most=len(held), rule=rule, allow_mixed=allow_mixed))

    @classmethod
    def open(
        cls,
        paths: Iterable[str | os.PathLike[str]],
        *,
        rule: ScoreRule | None = None,
        allow_mixed: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Pool:
        """Read release files, one after another, straight into the pool's array.

        Parameters
        ----------
        paths : iterable of path
            One release file per client, or two: tables and scores.
        rule, allow_mixed
            As in `from_releases`.
        progress : callable, optional
            Called after every file with (files read, files).

        Returns
        -------
        Pool

        Raises
        ------
        ReleaseError
            If a file is not a valid release.
        PoolError
            As in `from_releases`; the message names the file.
        """
        from fedsel.release_file import ReleaseReader

        files = [Path(path) for path in paths]
        reader = ReleaseReader()

        def read() -> Iterator[tuple[Release, str]]:
            for number, file in enumerate(files, start=1):
                yield reader.read(file), str(file)
                if progress is not None:
                    progress(number, len(files))

        return cls(**gather(read(), most=len(files), rule=rule, allow_mixed=allow_mixed))

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Store the pool as a folder of ``counts.npy`` and ``pool.json``; see `fedsel.pool_folder`."""
        from fedsel.pool_folder import save_pool

        save_pool(self, Path(folder), overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Pool:
        """Open a stored pool, its counts memory-mapped; see `fedsel.pool_folder`."""
        from fedsel.pool_folder import load_pool

        fields = load_pool(Path(folder))
        try:
            return cls(**fields)
        except FedselError as error:
            raise PoolError(f"{folder}: {error}") from None

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.clients)}

    def __len__(self) -> int:
        return len(self.clients)

    def index(self, client: str) -> int:
        """Row of a client.

        Raises
        ------
        PoolError
            If the pool has no such client.
        """
        try:
            return self._position[client]
        except KeyError:
            raise PoolError(f"the pool has no client {client!r}; it has {some(self.clients)}") from None

    def subset(self, clients: Sequence[str]) -> Pool:
        """Return a pool of the named clients only, in the given order (counts are copied).

        Raises
        ------
        PoolError
            If a name is unknown or repeated, or none is given.
        """
        rows = [self.index(name) for name in clients]
        if not rows:
            raise PoolError("a pool needs at least one client, got none")
        used = sorted({self.plan_index[row] for row in rows})
        return Pool(
            clients=tuple(self.clients[row] for row in rows),
            schema=self.schema,
            workload=self.workload,
            counts=np.ascontiguousarray(self.counts[rows]),
            plans=tuple(self.plans[plan] for plan in used),
            plan_index=tuple(used.index(self.plan_index[row]) for row in rows),
            seeded=tuple(self.seeded[row] for row in rows),
            rounds=tuple(self.rounds[row] for row in rows),
            rows=tuple(self.rows[row] for row in rows),
            unit=self.unit,
            scores=None if self.scores is None else self.scores.subset(rows),
        )

    def table(self, index: int) -> npt.NDArray[np.int64]:
        """Return one table of all clients, (clients, categories of the first variable, ...); a read-only view."""
        first, last = self.workload.offsets[index : index + 2]
        return self.counts[:, first:last].reshape(len(self), *self.workload.shapes[index])

    def plan_of(self, client: str) -> NoisePlan:
        """Return the plan of one client's release."""
        return self.plans[self.plan_index[self.index(client)]]

    @property
    def plan(self) -> NoisePlan:
        """The plan that all clients share.

        Raises
        ------
        PoolError
            If clients have different plans.
        """
        if len(self.plans) > 1:
            raise PoolError(f"the clients of this pool have {len(self.plans)} different noise plans, expected one")
        return self.plans[0]

    @property
    def round(self) -> int:
        """Round of the pool: the latest among its releases."""
        return max(self.rounds + (() if self.scores is None else self.scores.rounds))

    @property
    def exact(self) -> bool:
        """Whether every client's counts are exact, that is: not private at all."""
        return all(plan.mechanism == "none" for plan in self.plans)

    @cached_property
    def scale(self) -> npt.NDArray[np.float64]:
        """Sigma (discrete Gaussian) or b (discrete Laplace) of each client's tables, in records, (clients, tables)."""
        return _read_only(np.stack([plan.scale for plan in self.plans])[list(self.plan_index)])

    @cached_property
    def variance(self) -> npt.NDArray[np.float64]:
        """Noise variance of a cell in each client's tables, in records squared, (clients, tables).

        0 for exact counts only: the noise of a discrete Laplace may be so narrow that no float holds its variance.
        """
        return _read_only(np.stack([usable_variance(plan) for plan in self.plans])[list(self.plan_index)])

    @cached_property
    def mixed(self) -> tuple[str, ...]:
        """What differs between the clients' releases, one phrase each, for the result to state; empty if nothing."""
        found = differences(self.plans, self.rounds, self.seeded)
        return tuple(found if self.scores is None else [*found, *(f"scores: {one}" for one in self.scores.mixed)])

    @cached_property
    def private(self) -> PrivacyStatement:
        """What the releases promise."""
        plans = [self.plans[plan] for plan in self.plan_index]
        if self.scores is None:
            return state(plans, seeded=self.seeded)
        seeded = [any(pair) for pair in zip(self.seeded, self.scores.seeded, strict=True)]
        return state(plans, seeded=seeded, rounds=1 if self.scores.rounds == self.rounds else 2)

    def totals(self) -> Totals:
        """Estimate how many records each client has.

        Every table counts every record, so its noisy total estimates the same number with variance
        cells * (noise variance), and so does the last score; their noises are independent and are combined by inverse
        variance. Where the number is public, or the counts are exact, the standard error is 0.

        Returns
        -------
        Totals
        """
        sums = self.unit * np.add.reduceat(self.counts, self.workload.offsets[:-1], axis=1)
        variance = self.variance * self.workload.sizes
        if self.scores is not None:
            sums = np.column_stack([sums, self.scores.values[:, -1]])
            variance = np.column_stack([variance, self.scores.variance[:, -1]])
        noisy = variance[:, 0] > 0
        # An exact release has no variance to weigh by, and all its tables state the same total.
        weight = np.where(noisy[:, None], 1.0 / np.where(noisy[:, None], variance, 1.0), 1.0)
        estimate = (sums * weight).sum(axis=1) / weight.sum(axis=1)
        error = np.where(noisy, 1.0 / np.sqrt(weight.sum(axis=1)), 0.0)
        for row, known in enumerate(self.rows):
            if known is not None:
                estimate[row], error[row] = known, 0.0
        return Totals(estimate, error)


def _read_only(array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    array.setflags(write=False)
    return array
