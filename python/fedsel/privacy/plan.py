"""The noise a release will carry, decided and stated before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError

Adjacency = Literal["add-remove", "replace-one"]
Mechanism = Literal["discrete-gaussian", "discrete-laplace", "none"]
Accounting = Literal["exact", "zcdp", "rdp", "pure", "none"]


@dataclass(frozen=True)
class NoisePlan:
    """Mechanism, noise scale of every query and the guarantee they give jointly.

    A query is a table, or a score: one integer, a sum over rows of integers between -D and D. A protocol of several
    rounds has one plan for all of them, whose noise is fixed before the first; what is asked in a later round may
    depend on earlier releases.

    Parameters
    ----------
    mechanism : {"discrete-gaussian", "discrete-laplace", "none"}
        ``"none"`` is an exact, non-private release (epsilon is infinite).
    adjacency : {"add-remove", "replace-one"}
        Which neighbouring data sets the guarantee speaks of; record level, within one client.
    epsilon, delta : float
        The guarantee of the joint release of all queries, of all rounds.
    numerator : int
        P: query t has sigma_t^2 = P / w_t (discrete Gaussian) or scale b_t = P / w_t (discrete Laplace). 0 without
        noise.
    weights : tuple of int
        w_t, one positive integer per query: the tables first, then the scores.
    accounting : {"exact", "zcdp", "rdp", "pure", "none"}
        How the guarantee was derived.
    scores : tuple of int
        D of each score, the last ``len(scores)`` queries; none by default.
    rounds : tuple of int
        How many of the queries each round releases, in order; all in one round if not given.

    Raises
    ------
    PrivacyError
        If the parts do not fit each other.
    """

    mechanism: Mechanism
    adjacency: Adjacency
    epsilon: float
    delta: float
    numerator: int
    weights: tuple[int, ...]
    accounting: Accounting
    scores: tuple[int, ...] = ()
    rounds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.mechanism == "none":
            if self.epsilon != np.inf or self.numerator != 0:
                raise PrivacyError(f"a plan without noise must state epsilon = inf, got {self.epsilon}")
        elif self.numerator < 1:
            raise PrivacyError(f"numerator must be a positive integer, got {self.numerator}")
        if not self.weights or any(w < 1 for w in self.weights):
            raise PrivacyError("weights must be positive integers, one per table")
        if len(self.scores) > len(self.weights) or any(d < 1 for d in self.scores):
            raise PrivacyError(
                f"scores must be positive integers, at most one per query ({len(self.weights)}), got {self.scores}"
            )
        if not self.rounds:
            object.__setattr__(self, "rounds", (len(self.weights),))
        if any(n < 1 for n in self.rounds) or sum(self.rounds) != len(self.weights):
            raise PrivacyError(
                f"rounds must be positive and add up to the number of queries ({len(self.weights)}), got {self.rounds}"
            )

    @property
    def tables(self) -> int:
        """Number of tables, which come before the scores."""
        return len(self.weights) - len(self.scores)

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """Most that one record adds to a cell of each query: 1 for a table, D for a score, (queries,)."""
        return (1,) * self.tables + self.scores

    @property
    def scale(self) -> npt.NDArray[np.float64]:
        """Sigma (discrete Gaussian) or b (discrete Laplace) of each query, in its own unit, (queries,)."""
        ratio = self.numerator / np.array(self.weights, dtype=np.float64)
        return np.sqrt(ratio) if self.mechanism == "discrete-gaussian" else ratio

    def part(self, round: int) -> NoisePlan:
        """Return what the release of one round needs: its queries with their noise, as a plan of one round.

        The guarantee stated is that of the whole plan, which a part keeps all the more. A ledger is charged the whole
        plan, never its parts.

        Parameters
        ----------
        round : int
            Round within the plan, from 1.

        Raises
        ------
        PrivacyError
            If the plan has no such round.
        """
        if not 1 <= round <= len(self.rounds):
            raise PrivacyError(f"round must be between 1 and {len(self.rounds)}, got {round}")
        last = sum(self.rounds[:round])
        first = last - self.rounds[round - 1]
        scores = self.scores[max(0, first - self.tables) : max(0, last - self.tables)]
        return replace(self, weights=self.weights[first:last], scores=scores, rounds=())
