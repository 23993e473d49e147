"""The one thing that leaves a client: noisy integers (its tables, its scores), with the promise they carry."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from fedsel.errors import PrivacyError, ReleaseError
from fedsel.privacy.limits import COUNT_BOUND, MAX_CELLS, check_noise
from fedsel.privacy.plan import Accounting, Adjacency, Mechanism, NoisePlan
from fedsel.schema import Schema
from fedsel.score_rule import ScoreQueries
from fedsel.tables import Workload

MAX_CLIENT_NAME = 200
MAX_ROUND = 1_000_000
MAX_PROTOCOL_ROUNDS = 100


def check_client_name(name: object) -> str:
    """Return a client's name unchanged, or refuse it.

    A name is 1 to 200 printable characters, without white space at its ends, in Unicode normal form C: two names that
    look alike are then the same name.

    Raises
    ------
    ReleaseError
        If the name does not fit.
    """
    if not isinstance(name, str):
        raise ReleaseError(f"client: expected a name (str), got {type(name).__name__}")
    if not 1 <= len(name) <= MAX_CLIENT_NAME:
        raise ReleaseError(f"client: a name must have 1 to {MAX_CLIENT_NAME} characters, got {len(name)}")
    if not name.isprintable() or name != name.strip():
        raise ReleaseError(f"client: a name must be printable and neither start nor end with a space, got {name!r}")
    if unicodedata.normalize("NFC", name) != name:
        raise ReleaseError(f"client: a name must be in Unicode normal form C, got {name!r}")
    return name


def check_round(number: object) -> int:
    """Return a round's number (an integer from 1) unchanged, or raise `ReleaseError`."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_ROUND:
        raise ReleaseError(f"round: expected an integer between 1 and {MAX_ROUND}, got {number!r}")
    return number


def check_plan(plan: NoisePlan, tables: int, scores: ScoreQueries | None = None) -> None:
    """Refuse a plan that no release may carry.

    Raises
    ------
    ReleaseError
        If a name is unknown, epsilon or delta is out of range, the parts contradict each other, the queries are not
        those of the release, there are several rounds, or the noise is too wide for the bound on counts.
    """
    for field, value, known in (
        ("mechanism", plan.mechanism, get_args(Mechanism)),
        ("adjacency", plan.adjacency, get_args(Adjacency)),
        ("accounting", plan.accounting, get_args(Accounting)),
    ):
        if value not in known:
            raise ReleaseError(f"{field}: expected one of {', '.join(known)}, got {value!r}")
    exact = plan.mechanism == "none"
    if (plan.accounting == "none") != exact:
        raise ReleaseError(f"accounting: mechanism {plan.mechanism!r} does not go with accounting {plan.accounting!r}")
    if not plan.epsilon > 0:
        raise ReleaseError(f"epsilon: expected a number above 0, got {plan.epsilon!r}")
    if math.isinf(plan.epsilon) != exact:
        raise ReleaseError(f"epsilon: {plan.epsilon!r} does not go with mechanism {plan.mechanism!r}")
    if not 0 <= plan.delta < 1:
        raise ReleaseError(f"delta: expected a number of [0, 1), got {plan.delta!r}")
    if plan.mechanism == "discrete-gaussian" and plan.delta == 0:
        raise ReleaseError("delta: the discrete Gaussian needs a number above 0, got 0")
    if plan.accounting == "pure" and plan.delta != 0:
        raise ReleaseError(f"delta: pure accounting states delta = 0, got {plan.delta!r}")
    if len(plan.rounds) > 1:
        raise ReleaseError(f"plan: a release states the noise of its own round, got {len(plan.rounds)} rounds")
    expected = () if scores is None else (scores.resolution,) * len(scores.names)
    if plan.scores != expected:
        raise ReleaseError(f"plan: scores: expected {expected}, what each may change by, got {plan.scores}")
    if plan.tables != tables:
        raise ReleaseError(f"weights: expected {tables}, one per table, got {plan.tables}")
    try:
        check_noise(plan)
    except PrivacyError as error:
        raise ReleaseError(str(error)) from None


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy counts of one client's tables, or its noisy scores, or both. Public once written.

    Parameters
    ----------
    client : str
        Name of the client.
    schema : Schema
        What the categories mean.
    workload : Workload
        Which tables, over the schema's variables; may be none.
    counts : ndarray of int64, shape (cells + scores,)
        Noisy counts, may be negative: all tables one after another, in records, then the scores, in their units. Kept
        as a read-only copy.
    plan : NoisePlan
        Mechanism, scale of every query, adjacency and guarantee.
    round : int
        Round of the protocol, from 1.
    seeded : bool
        Whether the noise came from a seeded generator: experiments only, since whoever knows the seed can remove it.
    rows : int or None
        Number of records, only where the schema declares sizes public and the adjacency is replace-one.
    scores : ScoreQueries or None
        Which scores; none by default.
    protocol : NoisePlan or None
        Plan of all rounds, whose joint guarantee `plan` states, if there are several.

    Raises
    ------
    ReleaseError
        If a part is out of range or two parts contradict each other.
    """

    client: str
    schema: Schema
    workload: Workload
    counts: npt.NDArray[np.int64]
    plan: NoisePlan
    round: int = 1
    seeded: bool = False
    rows: int | None = None
    scores: ScoreQueries | None = None
    protocol: NoisePlan | None = None

    def __post_init__(self) -> None:
        check_client_name(self.client)
        check_round(self.round)
        check_workload(self.workload, self.schema)
        if not self.workload.sets and self.scores is None:
            raise ReleaseError("a release needs at least one table or score, got none")
        check_plan(self.plan, len(self.workload.sets), self.scores)
        check_protocol(self.protocol, self.plan, self.round)
        if not isinstance(self.seeded, bool):
            raise ReleaseError(f"seeded: expected true or false, got {self.seeded!r}")
        counts = _checked_counts(self.counts, self.workload.cells, len(self.score_names), exact=self.exact)
        object.__setattr__(self, "counts", counts)
        check_rows(self.rows, self.schema, self.plan)

    @property
    def exact(self) -> bool:
        """Whether the counts are exact, that is: not private at all."""
        return self.plan.mechanism == "none"

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores, none if there are none."""
        return () if self.scores is None else self.scores.names

    @property
    def table_counts(self) -> npt.NDArray[np.int64]:
        """Counts of all tables, (cells,), in records; a read-only view."""
        return self.counts[: self.workload.cells]

    @property
    def score_counts(self) -> npt.NDArray[np.int64]:
        """Counts of the scores, (scores,), in their units; a read-only view."""
        return self.counts[self.workload.cells :]

    @property
    def table_plan(self) -> NoisePlan:
        """Noise of the tables alone; the guarantee is that of the whole plan."""
        if not self.plan.scores:
            return self.plan
        return replace(self.plan, weights=self.plan.weights[: self.plan.tables], scores=(), rounds=())

    @property
    def score_plan(self) -> NoisePlan:
        """Noise of the scores alone; the guarantee is that of the whole plan."""
        return replace(self.plan, weights=self.plan.weights[self.plan.tables :], rounds=())

    def table(self, index: int) -> npt.NDArray[np.int64]:
        """Return the counts of one table, in its own shape (a read-only view)."""
        first, last = self.workload.offsets[index : index + 2]
        return self.counts[first:last].reshape(self.workload.shapes[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return (
            (self.client, self.round, self.seeded, self.rows, self.plan, self.workload, self.scores, self.protocol)
            == (
                *(other.client, other.round, other.seeded, other.rows),
                *(other.plan, other.workload, other.scores, other.protocol),
            )
            and self.schema.fingerprint == other.schema.fingerprint
            and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]  # equality looks at the counts, an array


def check_protocol(protocol: NoisePlan | None, plan: NoisePlan, round: int) -> None:
    """Refuse a plan of several rounds that the release's plan is no part of.

    Raises
    ------
    ReleaseError
        If it has one round only, or none of its parts that may be due by this round is the release's plan.
    """
    if protocol is None:
        return
    if not 1 < len(protocol.rounds) <= MAX_PROTOCOL_ROUNDS:
        raise ReleaseError(f"protocol: expected 2 to {MAX_PROTOCOL_ROUNDS} rounds, got {len(protocol.rounds)}")
    if plan not in (protocol.part(number) for number in range(1, min(round, len(protocol.rounds)) + 1)):
        raise ReleaseError(f"protocol: none of its parts up to round {round} is the noise of this release")


def check_workload(workload: Workload, schema: Schema) -> None:
    """Refuse a workload that is not over the schema's variables, or too large.

    Raises
    ------
    ReleaseError
        If names or domain sizes differ, or there are more than `MAX_CELLS` cells.
    """
    if workload.names != tuple(schema.names):
        raise ReleaseError(f"workload: expected the schema's variables {schema.names}, got {workload.names}")
    if workload.domain != tuple(schema.domain):
        raise ReleaseError(f"workload: expected the schema's domain sizes {schema.domain}, got {workload.domain}")
    # Python integers: the product of three hostile domain sizes may pass 2**63, which `workload.cells` could not hold.
    cells = sum(math.prod(shape) for shape in workload.shapes)
    if cells > MAX_CELLS:
        raise ReleaseError(f"workload: a release holds at most {MAX_CELLS} cells, got {cells}")


def check_rows(rows: object, schema: Schema, plan: NoisePlan) -> None:
    """Refuse a number of records that may not be published.

    Raises
    ------
    ReleaseError
        If it is given although the schema hides sizes or the adjacency protects them, or is out of range.
    """
    if rows is None:
        return
    if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows <= COUNT_BOUND:
        raise ReleaseError(f"rows: expected an integer between 0 and {COUNT_BOUND}, got {rows!r}")
    if schema.sizes != "public":
        raise ReleaseError("rows: the schema does not declare sizes public, so a release must not state them")
    if plan.adjacency != "replace-one":
        raise ReleaseError(f"rows: adjacency {plan.adjacency} protects the size, only replace-one allows to state it")


def _checked_counts(counts: npt.NDArray[np.int64], cells: int, scores: int, *, exact: bool) -> npt.NDArray[np.int64]:
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
        raise ReleaseError(f"counts: expected an array of int64, got {getattr(counts, 'dtype', type(counts).__name__)}")
    if counts.shape != (cells + scores,):
        raise ReleaseError(f"counts: expected shape ({cells + scores},), got {counts.shape}")
    lowest, highest = int(counts.min()), int(counts.max())
    if lowest < -COUNT_BOUND or highest > COUNT_BOUND:
        # never the count itself: it may be an exact one, and messages end up in logs
        side = "below -2**40" if lowest < -COUNT_BOUND else "above 2**40"
        raise ReleaseError(f"counts: expected between -2**40 and 2**40, got one {side}")
    if exact and counts[:cells].min(initial=0) < 0:
        raise ReleaseError("counts: an exact release has no negative count, got one")
    copy = counts.copy()
    copy.setflags(write=False)
    return copy
