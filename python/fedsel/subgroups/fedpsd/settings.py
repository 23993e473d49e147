"""What a run of FedPSD is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from fedsel.errors import SubgroupError

Estimand = Literal["mixture", "population"]
Baseline = Literal["public", "matching"]
Proposal = Literal["none", "exponential", "permute-and-flip", "exact"]


@dataclass(frozen=True)
class FedPsdSettings:
    """Parameters of the protocol, all public.

    Parameters
    ----------
    queries : int
        Count pairs that every client's budget is divided among, pre-registered: a client answers no more than these.
    base : float
        p0, public: the share of positives that rates are compared with.
    depth : int
        Most conditions of a description.
    width : int
        Descriptions whose joins and refinements are the next round's candidates.
    estimand : {'mixture', 'population'}
        What candidates are ranked by: a weighted mixture of the clients' rates, or the totals of all.
    baseline : {'public', 'matching'}
        What rates are compared with: p0, or the share of positives in the same mixture, for which one count pair of all
        records is asked.
    precision : bool
        Mixture weights by the precision of a client's rate, (n_i eps_i)^2; else every client the same.
    beta : float
        Interpolates mixture weights towards the clients' shares of the records: 0 not at all, 1 fully.
    proposal : {'none', 'exponential', 'permute-and-flip', 'exact'}
        How clients propose candidates: not at all (public candidates only), by a private selection that is charged, or
        by their exact best, which is **not private**.
    proposers : int
        Clients that propose, those of the largest budgets.
    proposals : int
        Descriptions that each proposes a round.
    proposal_share : float
        Share of a proposer's budget for private selections.
    confirm_share : float
        Share of the budget kept for confirming the best candidates afresh; 0 for no confirmation.
    confirm : int
        Candidates that are confirmed.
    least_clients : int
        Fewest clients that a confirmation is asked of: those of the largest budgets left.
    least_support : float
        Leave out conditions that fewer than this share of all records meet. Looking at the exact records for it is
        **not private**; 0 leaves out nothing.

    Raises
    ------
    SubgroupError
        If a parameter is out of range.
    """

    queries: int
    base: float
    depth: int = 2
    width: int = 8
    estimand: Estimand = "mixture"
    baseline: Baseline = "public"
    precision: bool = True
    beta: float = 0.0
    proposal: Proposal = "none"
    proposers: int = 3
    proposals: int = 2
    proposal_share: float = 0.2
    confirm_share: float = 0.0
    confirm: int = 10
    least_clients: int = 1
    least_support: float = 0.0

    def __post_init__(self) -> None:
        for name in ("queries", "depth", "width", "proposers", "proposals", "confirm", "least_clients"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SubgroupError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("base", "beta", "least_support"):
            if not 0 <= getattr(self, name) <= 1:
                raise SubgroupError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        for name in ("proposal_share", "confirm_share"):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value < 1):
                raise SubgroupError(f"{name} must be at least 0 and below 1, got {value}")
        for name, options in (("estimand", Estimand), ("baseline", Baseline), ("proposal", Proposal)):
            if getattr(self, name) not in get_args(options):
                raise SubgroupError(
                    f"{name} must be one of {', '.join(get_args(options))}, got {getattr(self, name)!r}"
                )
        if self.selects and not self.proposal_share > 0:
            raise SubgroupError(f"proposal_share must be above 0 for private proposals, got {self.proposal_share}")
        if self.count_share <= 0:
            raise SubgroupError("proposal_share and confirm_share must leave something for the counts")

    @property
    def selects(self) -> bool:
        """Whether clients propose by a private selection."""
        return self.proposal in ("exponential", "permute-and-flip")

    @property
    def private(self) -> bool:
        """Whether everything that leaves a client is charged."""
        return self.proposal != "exact" and self.least_support == 0

    @property
    def count_share(self) -> float:
        """Share of the budget for the candidates' count pairs."""
        return 1 - self.confirm_share - (self.proposal_share if self.selects else 0.0)
