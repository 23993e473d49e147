"""What a federation costs whom: private tables for every candidate, training for members only."""

from __future__ import annotations

from dataclasses import dataclass

from fedsel.errors import PrivacyError
from fedsel.privacy.composition import Cost, SequentialComposition
from fedsel.privacy.plan import Adjacency, NoisePlan
from fedsel.privacy.statement import PROTECTS_ANY


@dataclass(frozen=True)
class ThreePhases:
    """The cost of selection and training, per record of one client.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}
        Of both costs.
    tables : Cost
        Phase 1, once for every candidate: also the whole cost of a client that is not chosen.
    training : Cost
        Phase 3, for members only.
    member : Cost
        Phases 1 and 3 together, by sequential composition. Phase 2, the choice of members, is post-processing.
    sentence : str
        The same in plain English.
    """

    adjacency: Adjacency
    tables: Cost
    training: Cost
    member: Cost
    sentence: str


def three_phases(*, tables: NoisePlan, training: Cost) -> ThreePhases:
    """State what choosing a federation from private tables and then training it costs.

    Parameters
    ----------
    tables : NoisePlan
        The plan of every candidate's releases, all rounds.
    training : Cost
        Guarantee of the whole training for a record of a member, under the plan's adjacency; see
        `fedsel.privacy.accounting.epsilon_of`. Secure aggregation alone gives none: it hides single updates, not what
        their sum says.

    Returns
    -------
    ThreePhases

    Raises
    ------
    PrivacyError
        If the plan has no noise, or the training's epsilon is infinite.

    References
    ----------
    Proactive client selection (arXiv 2605.20975): private statistics, selection, private training; sequential
    composition.
    """
    if tables.mechanism == "none":
        raise PrivacyError("the plan of the tables must have noise, got an exact release (epsilon = inf)")
    if training.epsilon == float("inf"):
        raise PrivacyError("the training's epsilon must be finite, got inf")
    first = Cost(tables.epsilon, tables.delta)
    member = SequentialComposition().total([first, training])
    sentence = (
        f"For {PROTECTS_ANY[tables.adjacency]}: phase 1 (tables) costs {_text(first)} once at every candidate; phase 2 "
        f"(selection) is post-processing and costs nothing; phase 3 (training) costs {_text(training)} at members "
        f"only; together {_text(member)} at a member and {_text(first)} at a client that was not chosen."
    )
    return ThreePhases(tables.adjacency, first, training, member, sentence)


def _text(cost: Cost) -> str:
    return f"(epsilon = {cost.epsilon:g}, delta = {cost.delta:g})"
