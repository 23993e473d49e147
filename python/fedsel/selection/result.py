"""What a search returns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from fedsel.privacy.statement import PrivacyStatement
from fedsel.selection.weights import Components, LossWeights

StopReason = Literal["completed", "time limit", "interrupted"]
CertificateKind = Literal["proof", "model", "swap-optimal", "none"]


@dataclass(frozen=True)
class Certificate:
    """What is known about the best federation, as seen through the pool's (noisy) tables.

    Parameters
    ----------
    kind : {"proof", "model", "swap-optimal", "none"}
        ``proof``: every federation of the size was evaluated, or proved by bounds not to have a lower loss. ``model``:
        every federation was enumerated or bounded under the second-order model, and those inside its error band
        evaluated; the band is measured, not proved. ``swap-optimal``: no exchange of one member for one outsider lowers
        the loss. ``none``: nothing of this is known.
    statement : str
        The same in plain English.
    evaluations : int
        Federations evaluated for the certificate alone.
    gap : float or None
        Bits by which the best federation of the size is better at most, by proved bounds: 0 for a proof; None where
        nothing of this is known.
    """

    kind: CertificateKind
    statement: str
    evaluations: int
    gap: float | None = None


@dataclass(frozen=True)
class Member:
    """A chosen client.

    Parameters
    ----------
    name : str
        Client name.
    records : float
        Estimated number of records.
    standard_error : float
        Its standard error, in records; 0 where the number is public or exact.
    """

    name: str
    records: float
    standard_error: float


@dataclass(frozen=True)
class RunnerUp:
    """Another good federation: names of its members and its loss in bits."""

    members: tuple[str, ...]
    loss: float


@dataclass(frozen=True)
class SizeResult:
    """The best federation found of one size.

    Parameters
    ----------
    k : int
        Number of members.
    loss : float
        In bits.
    members : tuple of str
        Their names.
    certificate : {"proof", "model", "swap-optimal", "none"}
        What is known about it; see `Certificate`.
    """

    k: int
    loss: float
    members: tuple[str, ...]
    certificate: CertificateKind


@dataclass(frozen=True)
class ChainResult:
    """One annealing chain.

    Parameters
    ----------
    members : tuple of str
        Best federation of the chain.
    loss : float
        Its loss in bits.
    evaluations : int
        Evaluations of the chain.
    trace : tuple of float
        Loss of the current federation at the end of each level, in bits.
    """

    members: tuple[str, ...]
    loss: float
    evaluations: int
    trace: tuple[float, ...]


@dataclass(frozen=True)
class Selection:
    """The federation a search chose, and everything needed to judge and repeat the choice.

    Parameters
    ----------
    members : tuple of Member
        In pool order.
    loss : float
        Federation loss in bits.
    components : Components
        Its four sums in bits.
    weights : LossWeights
        Weights of the loss.
    sensitive : tuple of str
        The active sensitive attributes.
    k : int
        Number of members.
    pool_size : int
        Number of candidates.
    search : str
        Search method that ran.
    seed : int
        Seed of the search.
    evaluations : int
        Federations evaluated by the search, the certificate apart.
    search_seconds, certificate_seconds, wall_seconds : float
        Time of the search, of the certificate, and of the whole call.
    stop_reason : {"completed", "time limit", "interrupted"}
        Why the search or the certificate ended.
    certificate : Certificate
        What is known about optimality.
    runner_ups : tuple of RunnerUp
        Next best federations seen, in order of loss.
    chains : tuple of ChainResult
        Annealing chains; empty for other searches.
    constraints : tuple of str
        The rules the federation had to keep, in words.
    sizes : tuple of SizeResult
        The best federation of every size, where a range of sizes was asked for; else empty.
    smallest : SizeResult or None
        Among `sizes`, the smallest federation whose loss is within the stated tolerance of the best.
    denoise : str
        Denoising method applied to the pool.
    notes : tuple of str
        What a reader of the result must know, such as mixed budgets.
    privacy : PrivacyStatement
        What the releases of the pool promise.
    """

    members: tuple[Member, ...]
    loss: float
    components: Components
    weights: LossWeights
    sensitive: tuple[str, ...]
    k: int
    pool_size: int
    search: str
    seed: int
    evaluations: int
    search_seconds: float
    certificate_seconds: float
    wall_seconds: float
    stop_reason: StopReason
    certificate: Certificate
    runner_ups: tuple[RunnerUp, ...]
    chains: tuple[ChainResult, ...]
    constraints: tuple[str, ...]
    sizes: tuple[SizeResult, ...]
    smallest: SizeResult | None
    denoise: str
    notes: tuple[str, ...]
    privacy: PrivacyStatement

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members."""
        return tuple(member.name for member in self.members)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values; traces of chains are left out."""
        fields = dataclasses.asdict(self)
        fields["privacy"] = self.privacy.to_dict()
        for chain in fields["chains"]:
            del chain["trace"]
        return fields
