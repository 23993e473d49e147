"""The coordinator's side of FedPSD: rounds of candidates, estimates, routing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fedsel.errors import SubgroupError
from fedsel.subgroups.fedpsd.channel import Channel
from fedsel.subgroups.fedpsd.client import FedPsdClient, check_budget
from fedsel.subgroups.fedpsd.descriptions import Description, joins, refine, singles, unique
from fedsel.subgroups.fedpsd.result import FedPsdResult, ScoredDescription
from fedsel.subgroups.fedpsd.selecting import SelectionMechanism
from fedsel.subgroups.fedpsd.settings import FedPsdSettings
from fedsel.subgroups.fedpsd.weights import FloatArray, mixture_weights

EVERYBODY: Description = ()

ESTIMANDS = {
    "mixture": "weighted mixture of the clients' n_i(S)/n_i (p_i(S) - p0): not that of the pooled records",
    "population": "n/N (p - p0) of all records together",
}


@dataclass
class _Answers:
    """Count pairs of one candidate by client position, with the epsilon that each cost."""

    pairs: dict[int, tuple[int, int]] = field(default_factory=dict)
    epsilons: dict[int, float] = field(default_factory=dict)


def run_fedpsd(
    clients: Sequence[FedPsdClient],
    channel: Channel,
    settings: FedPsdSettings,
    *,
    attributes: Sequence[int],
    domain: Sequence[int],
) -> FedPsdResult:
    """Run the protocol.

    Round 1 asks for every condition; each later round for joins of the best candidates so far and for what clients
    propose, as long as pre-registered queries last. A last round may confirm the best afresh, at the clients with most
    budget left.

    Parameters
    ----------
    clients : sequence of FedPsdClient
        All of them, with their budgets.
    channel : Channel
        The one they send through.
    settings : FedPsdSettings
        Public parameters.
    attributes : sequence of int
        Positions of the variables that conditions speak of.
    domain : sequence of int
        Categories of every variable.

    Returns
    -------
    FedPsdResult

    Raises
    ------
    SubgroupError
        If there is no client or no condition, or a budget is too small for one query; nothing is spent then.
    """
    if not clients:
        raise SubgroupError("FedPSD needs at least one client, got none")
    for client in clients:
        check_budget(client.account.epsilon * settings.count_share, settings.queries, client.name)
        if settings.confirm_share > 0:
            check_budget(client.account.epsilon * settings.confirm_share, settings.confirm, client.name)
    run = _Run(clients, settings)
    universe = run.supported(singles(attributes, domain))
    if not universe:
        raise SubgroupError("FedPSD needs at least one condition, got none: every attribute has one category")
    # the description without conditions, which covers everybody, says what share of positives to compare with
    everybody = [EVERYBODY] if settings.baseline == "matching" else []
    run.ask([*everybody, *universe][: settings.queries])
    for depth in range(2, settings.depth + 1):
        beam = [scored.description for scored in run.ranked()[: settings.width]]
        left = settings.queries - len(run.answers)
        if left <= 0:
            break
        public = joins(beam, depth)
        proposed = run.proposals(beam, universe, depth)
        run.ask([d for d in unique([*proposed, *public]) if d not in run.answers][:left])
    if settings.confirm_share > 0:
        run.confirm([scored.description for scored in run.ranked()[: settings.confirm]])
    return FedPsdResult(
        ranked=tuple(run.ranked()),
        estimand=ESTIMANDS[settings.estimand],
        private=settings.private,
        budgets=tuple(client.account.epsilon for client in clients),
        spent=tuple(client.account.spent for client in clients),
        statistics=sum(2 * len(message.content) for message in channel.messages if message.kind == "counts"),
        messages=tuple(channel.messages),
        exhausted=tuple(sorted(run.exhausted)),
    )


class _Run:
    def __init__(self, clients: Sequence[FedPsdClient], settings: FedPsdSettings) -> None:
        self.clients, self.settings = clients, settings
        self.answers: dict[Description, _Answers] = {}
        self.confirmations: dict[Description, _Answers] = {}
        self.exhausted: set[str] = set()
        self._sizes = [client.size for client in clients]

    def supported(self, universe: list[Description]) -> list[Description]:
        """Leave out rare conditions, by exact counts: not private, and only if the settings ask for it."""
        least = self.settings.least_support
        if least == 0:
            return universe
        counts = np.sum([client.support_exactly(universe) for client in self.clients], axis=0)
        return [d for d, count in zip(universe, counts, strict=True) if count >= least * sum(self._sizes)]

    def ask(self, candidates: Sequence[Description]) -> None:
        """Ask every client with records for every candidate."""
        for place, client in enumerate(self.clients):
            # a hair less, so that all of them fit whatever the rounding of a sum
            share = self.settings.count_share / self.settings.queries * (1 - 1e-12)
            if client.size > 0:
                self._answer(self.answers, place, candidates, client.account.epsilon * share)

    def proposals(self, beam: Sequence[Description], universe: Sequence[Description], depth: int) -> list[Description]:
        """Ask the clients of the largest budgets for refinements of the beam that look good there."""
        settings = self.settings
        if settings.proposal == "none":
            return []
        refined = (refine(parent, single[0]) for parent in beam for single in universe)
        candidates = unique(d for d in refined if d is not None and len(d) == depth)
        order = sorted(range(len(self.clients)), key=lambda place: -self.clients[place].account.epsilon)
        found: list[Description] = []
        for place in [p for p in order if self.clients[p].size > 0][: settings.proposers]:
            client = self.clients[place]
            if settings.proposal == "exact":
                found += client.propose_exactly(candidates, settings.proposals, settings.base)
                continue
            share = client.account.epsilon * settings.proposal_share / max(1, settings.depth - 1)
            mechanism: SelectionMechanism = settings.proposal
            sent = client.propose(candidates, settings.proposals, settings.base, epsilon=share, mechanism=mechanism)
            if not sent:
                self.exhausted.add(client.name)
            found += sent
        return found

    def confirm(self, candidates: Sequence[Description]) -> None:
        """Ask again, of the clients with most budget left, but of at least as many as the settings say.

        Every one spends all it has left, in equal parts: the more it has, the more its answers tell.
        """
        if not candidates:  # the only query was the share of positives
            return
        left = [client.report_budget() if client.size > 0 else 0.0 for client in self.clients]
        order = sorted(range(len(left)), key=lambda place: -left[place])
        able = [place for place in order if left[place] > 0]
        half = max(left, default=0.0) / 2
        chosen = [place for rank, place in enumerate(able) if rank < self.settings.least_clients or left[place] >= half]
        for place in chosen:
            self._answer(self.confirmations, place, candidates, left[place] / len(candidates) * (1 - 1e-12))

    def _answer(
        self, into: dict[Description, _Answers], place: int, candidates: Sequence[Description], epsilon: float
    ) -> None:
        pairs = self.clients[place].release(candidates, epsilon)
        if len(pairs) < len(candidates):
            self.exhausted.add(self.clients[place].name)
        for description, pair in zip(candidates, pairs, strict=False):
            answers = into.setdefault(description, _Answers())
            answers.pairs[place], answers.epsilons[place] = pair, epsilon

    def ranked(self) -> list[ScoredDescription]:
        """Rank all candidates; ties in the order they were asked for."""
        scored = []
        for description, answers in self.answers.items():
            if description == EVERYBODY:
                continue
            fresh = self.confirmations.get(description)
            confirmed = None if fresh is None else self._estimate(fresh)
            quality, error = self._estimate(answers)
            if confirmed is not None:
                quality, error = _combine((quality, error), confirmed)
            fresh_quality = None if confirmed is None else confirmed[0]
            scored.append(ScoredDescription(description, quality, error, len(answers.pairs), fresh_quality))
        return sorted(scored, key=lambda one: -one.quality)

    def _estimate(self, answers: _Answers) -> tuple[float, float]:
        """Return the estimand and the standard deviation of its noise.

        A discrete Laplace of scale b has nearly the variance 2 b^2; u - p0 n then has (1 + p0^2) 2 b^2.
        """
        settings, places = self.settings, sorted(answers.pairs)
        sizes = np.array([self._sizes[place] for place in places], dtype=np.float64)
        epsilons = [answers.epsilons[place] for place in places]
        if settings.estimand == "population":
            # totals of those that answered: all of them in a round of candidates
            weights = sizes / max(1.0, sizes.sum())
        else:
            weights = mixture_weights(sizes, epsilons, precision=settings.precision, beta=settings.beta)
        base = self._base(places, weights, sizes)
        values = np.array([u - base * n for n, u in (answers.pairs[place] for place in places)])
        deviation = np.sqrt(2 * (1 + base**2)) * 2 / np.array(epsilons)
        rates = weights / sizes
        return float(rates @ values), float(np.sqrt(((rates * deviation) ** 2).sum()))

    def _base(self, places: Sequence[int], weights: FloatArray, sizes: FloatArray) -> float:
        """Return p0: the public one, or that of the same mixture, as released."""
        everybody = self.answers.get(EVERYBODY)
        if everybody is None:
            return self.settings.base
        # a client that did not answer is taken to have the public rate
        rates = [
            everybody.pairs[place][1] / size if place in everybody.pairs else self.settings.base
            for place, size in zip(places, sizes, strict=True)
        ]
        return float(np.clip(weights @ np.array(rates), 0.0, 1.0))


def _combine(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Average two estimates by inverse variance."""
    weights = np.array([first[1] ** -2, second[1] ** -2])
    values = np.array([first[0], second[0]])
    return float(weights @ values / weights.sum()), float(weights.sum() ** -0.5)
