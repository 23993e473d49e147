"""The scores of a pool's clients, gathered from their releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedsel.errors import PoolError
from fedsel.pool_builder import differences, some
from fedsel.privacy.limits import COUNT_BOUND
from fedsel.privacy.noise_tail import usable_variance
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release, check_plan, check_round
from fedsel.score_rule import ScoreRule


@dataclass(frozen=True, eq=False)
class ClientScores:
    """Noisy scores of the clients of a pool, a row per client.

    Parameters
    ----------
    rule : ScoreRule
        How rows were scored.
    counts : ndarray of int64, shape (clients, scores)
        Noisy totals, in the units of ``rule.queries``.
    plans : tuple of NoisePlan
        The different plans of the scores.
    plan_index : tuple of int
        Which of `plans` each client's scores have.
    seeded : tuple of bool
        Whether each client's noise came from a seeded generator.
    rounds : tuple of int
        Round of each client's scores.

    Raises
    ------
    PoolError
        If the parts do not fit each other.
    ReleaseError
        If a plan is out of range.
    """

    rule: ScoreRule
    counts: npt.NDArray[np.int64]
    plans: tuple[NoisePlan, ...]
    plan_index: tuple[int, ...]
    seeded: tuple[bool, ...]
    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        shape = (len(self.plan_index), len(self.rule.queries.names))
        if self.counts.dtype != np.int64 or self.counts.shape != shape:
            raise PoolError(
                f"scores: counts: expected int64 of shape {shape}, got {self.counts.dtype} {self.counts.shape}"
            )
        if self.counts.min(initial=0) < -COUNT_BOUND or self.counts.max(initial=0) > COUNT_BOUND:
            raise PoolError("scores: counts: expected between -2**40 and 2**40, got one beyond")
        if len(self.rounds) != len(self.plan_index):
            raise PoolError(f"scores: rounds: expected {len(self.plan_index)}, got {len(self.rounds)}")
        for number in set(self.rounds):
            check_round(number)
        if len(self.seeded) != len(self.plan_index) or set(self.plan_index) != set(range(len(self.plans))):
            raise PoolError("scores: every plan must be used, and every client have one")
        for plan in self.plans:
            check_plan(plan, 0, self.rule.queries)

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """Totals in bits, the last in records, (clients, scores)."""
        return np.asarray(self.counts * np.array(self.rule.queries.units))

    @cached_property
    def variance(self) -> npt.NDArray[np.float64]:
        """Noise variance of `values`, in squared units, (clients, scores)."""
        by_plan = np.stack([usable_variance(plan) for plan in self.plans])
        return np.asarray(by_plan[list(self.plan_index)] * np.array(self.rule.queries.units) ** 2)

    def subset(self, rows: list[int]) -> ClientScores:
        """Return the scores of some rows only, in the given order."""
        used = sorted({self.plan_index[row] for row in rows})
        return replace(
            self,
            counts=np.ascontiguousarray(self.counts[rows]),
            plans=tuple(self.plans[plan] for plan in used),
            plan_index=tuple(used.index(self.plan_index[row]) for row in rows),
            seeded=tuple(self.seeded[row] for row in rows),
            rounds=tuple(self.rounds[row] for row in rows),
        )

    @property
    def mixed(self) -> list[str]:
        """What differs between the clients' scores, one phrase each."""
        return differences(self.plans, self.rounds, self.seeded)


class ScoreBuilder:
    """Takes the releases that hold scores, one after another.

    Parameters
    ----------
    rule : ScoreRule or None
        The rule they must have been made under; required once one comes.
    """

    def __init__(self, rule: ScoreRule | None) -> None:
        self._rule = rule
        self._held: dict[str, tuple[Release, str]] = {}

    @property
    def used(self) -> bool:
        """Whether a release with scores has come."""
        return bool(self._held)

    def add(self, release: Release, *, source: str) -> None:
        """Take one release; `source` names it in messages.

        Raises
        ------
        PoolError
            If its rule is not known, or not that of the others, or the client has come before.
        """
        if release.scores is None:
            raise PoolError(f"{source}: expected scores, got tables only")
        if self._rule is None:
            raise PoolError(f"{source}: the release holds scores: the rule that they were made under must be given")
        if release.scores != self._rule.queries:
            raise PoolError(
                f"{source}: score rule: expected {self._rule.identity[:12]}, got {release.scores.rule[:12]}"
            )
        if release.schema.fingerprint != self._rule.schema.fingerprint:
            what = self._rule.schema.difference(release.schema) or "fingerprints differ"
            raise PoolError(f"{source}: schema differs from that of the score rule: {what}")
        if release.client in self._held:
            first = self._held[release.client][1]
            raise PoolError(f"{source}: client {release.client!r} has two releases of scores, the first in {first}")
        self._held[release.client] = (release, source)

    def finish(self, protocols: Mapping[str, NoisePlan | None], *, allow_mixed: bool = False) -> ClientScores:
        """Return the scores in the order of the clients' tables.

        Parameters
        ----------
        protocols : mapping of str to (NoisePlan or None)
            The clients that have released tables, and the plan of several rounds that these were the first of, if any.
        allow_mixed : bool
            Accept scores that differ in noise or seeding.

        Raises
        ------
        PoolError
            If clients have tables only or scores only, or the two are neither of one release nor rounds of one
            protocol: their guarantees would then add up, which neither states.
        """
        assert self._rule is not None
        for kind, missing in (
            ("tables, but no scores", [name for name in protocols if name not in self._held]),
            ("scores, but no tables", [name for name in self._held if name not in protocols]),
        ):
            if missing:
                raise PoolError(f"client {some(missing)}: the releases hold {kind}")
        plans: dict[NoisePlan, int] = {}
        index, seeded, counts, rounds = [], [], [], []
        for name, protocol in protocols.items():
            release, source = self._held[name]
            if not release.workload.sets and (protocol is None or release.protocol != protocol):
                raise PoolError(f"{source}: tables and scores of client {name!r} are not rounds of one protocol")
            index.append(plans.setdefault(release.score_plan, len(plans)))
            seeded.append(release.seeded)
            counts.append(release.score_counts)
            rounds.append(release.round)
        scores = ClientScores(self._rule, np.stack(counts), tuple(plans), tuple(index), tuple(seeded), tuple(rounds))
        if scores.mixed and not allow_mixed:
            raise PoolError(
                f"scores differ between clients in {'; '.join(scores.mixed)}; mixed releases must be allowed explicitly"
            )
        return scores
