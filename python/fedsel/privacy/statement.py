"""What a pool of releases promises, in figures and in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedsel.privacy.plan import NoisePlan

MIXED = "mixed"

PROTECTS_ANY = {
    "add-remove": "adding or removing one of its records",
    "replace-one": "replacing one of its records",
    MIXED: "a change of one of its records (adjacency differs between clients)",
}
_MECHANISM = {
    "discrete-gaussian": "discrete Gaussian noise",
    "discrete-laplace": "discrete Laplace noise",
    MIXED: "noise of different kinds",
}


@dataclass(frozen=True)
class PrivacyStatement:
    """The promise of a set of releases, each about its own client's records.

    Parameters
    ----------
    adjacency, mechanism, accounting : str
        As in `NoisePlan`, or ``"mixed"``.
    epsilon_min, epsilon_max : float
        Range over the clients; infinite where a client released exact counts.
    delta : float
        Largest over the clients.
    exact : int
        Number of clients whose release is exact, that is: not private.
    seeded : int
        Number of clients whose noise came from a seeded generator.
    clients : int
        Number of clients.
    sentence : str
        The same in plain English.
    """

    adjacency: str
    epsilon_min: float
    epsilon_max: float
    delta: float
    mechanism: str
    accounting: str
    exact: int
    seeded: int
    clients: int
    sentence: str

    @property
    def private(self) -> bool:
        """Whether every release carries noise that nobody can reproduce."""
        return self.exact == 0 and self.seeded == 0

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON values; an infinite epsilon is the text ``"inf"``."""
        return {
            "adjacency": self.adjacency,
            "epsilon_min": json_number(self.epsilon_min),
            "epsilon_max": json_number(self.epsilon_max),
            "delta": self.delta,
            "mechanism": self.mechanism,
            "accounting": self.accounting,
            "exact": self.exact,
            "seeded": self.seeded,
            "clients": self.clients,
            "private": self.private,
            "sentence": self.sentence,
        }


def json_number(value: float) -> float | str:
    """Return a float as JSON can hold it: ``"inf"`` for infinity, which JSON lacks."""
    return "inf" if value == float("inf") else value


def state(plans: Sequence[NoisePlan], *, seeded: Sequence[bool], rounds: int = 1) -> PrivacyStatement:
    """State what releases with these plans promise.

    Parameters
    ----------
    plans : sequence of NoisePlan
        One per client, at least one.
    seeded : sequence of bool
        One per client.
    rounds : int
        Releases of each client that the plans speak of together.

    Returns
    -------
    PrivacyStatement
    """
    noisy = [plan for plan in plans if plan.mechanism != "none"]
    exact, clients, from_seed = len(plans) - len(noisy), len(plans), sum(map(bool, seeded))
    described = noisy or plans
    adjacency = _common([plan.adjacency for plan in described])
    mechanism = _common([plan.mechanism for plan in plans])
    accounting = _common([plan.accounting for plan in plans])
    parts = []
    if noisy:
        low, high = min(plan.epsilon for plan in noisy), max(plan.epsilon for plan in noisy)
        delta = max(plan.delta for plan in noisy)
        epsilon = f"epsilon = {low:g}" if low == high else f"epsilon between {low:g} and {high:g}"
        promise = f"({epsilon}, delta = {delta:g})" if delta else f"({epsilon})"
        kind = _MECHANISM[_common([plan.mechanism for plan in noisy])]
        proof = _common([plan.accounting for plan in noisy])
        verb = "is" if rounds == 1 else "together are"
        noun = "release" if rounds == 1 else f"{rounds} releases"
        subject = f"each client's {noun}" if not exact else f"the {noun} of {clients - exact} of {clients} clients"
        parts.append(
            f"{subject} {verb} {promise}-differentially private for {PROTECTS_ANY[adjacency]} "
            f"({kind}, {proof} accounting)"
        )
    if exact:
        subject = "all releases hold" if exact == clients else f"the releases of {exact} of {clients} clients hold"
        parts.append(f"NOT PRIVATE: {subject} exact counts (epsilon = inf)")
    if from_seed:
        whose = "" if from_seed == clients else f" of {from_seed} of {clients} clients"
        parts.append(
            f"EXPERIMENT ONLY: the noise{whose} came from a seeded generator, and whoever knows the seed can remove it"
        )
    sentence = ". ".join(part[0].upper() + part[1:] for part in parts) + "."
    return PrivacyStatement(
        adjacency=adjacency,
        epsilon_min=min(plan.epsilon for plan in plans),
        epsilon_max=max(plan.epsilon for plan in plans),
        delta=max(plan.delta for plan in plans),
        mechanism=mechanism,
        accounting=accounting,
        exact=exact,
        seeded=from_seed,
        clients=clients,
        sentence=sentence,
    )


def _common(values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else MIXED
