"""What happens at a client: its rows counted into the tables of a round, and one private release out."""

from __future__ import annotations

from typing import Any

from fedsel.encode import Codes
from fedsel.errors import SubgroupError
from fedsel.privacy.client import release
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.questions import Questions
from fedsel.tables import Marginals, Workload, count

PURPOSE = "subgroups"
"""What a ledger says the charge is for."""


def asked(protocol: SubgroupProtocol, questions: Questions | None = None) -> tuple[Workload, int]:
    """Return the tables of a round and its number: round 1 unless there are questions.

    Raises
    ------
    SubgroupError
        If the questions are not of this protocol.
    """
    if questions is None:
        return protocol.first(), 1
    if questions.protocol != protocol.identity:
        raise SubgroupError("the questions are those of another protocol")
    questions.check(protocol)
    return protocol.workload(questions.sets), questions.round


def answer(
    protocol: SubgroupProtocol,
    codes: Codes,
    plan: NoisePlan,
    *,
    client: str,
    questions: Questions | None = None,
    first_round: int = 1,
    **options: Any,
) -> Release:
    """Count a client's rows into the tables of a round and release them with noise.

    Parameters
    ----------
    protocol : SubgroupProtocol
        What was agreed.
    codes : Codes
        The client's rows; there may be none.
    plan : NoisePlan
        Of this client for the whole protocol, from `SubgroupProtocol.plan`; the same in every round.
    client : str
        Name of the client.
    questions : Questions, optional
        Of the round; round 1 needs none.
    first_round : int
        Number of the protocol's first round in the client's ledger, where earlier rounds may be charged.
    **options
        ``ledger``, ``seed``, ``path``, ``overwrite``, ``again``, ``non_private``, as for
        `fedsel.privacy.client.release`.

    Returns
    -------
    Release

    Raises
    ------
    SubgroupError
        If plan, questions and protocol do not go together; nothing is charged then.
    ReleaseError, BudgetError
        As `fedsel.privacy.client.release`.
    """
    workload, part = asked(protocol, questions)
    if plan.rounds != protocol.tables:
        raise SubgroupError(f"plan: expected rounds of {protocol.tables} tables, got {plan.rounds}")
    return release_tables(count(codes.columns, workload), protocol, plan, part, client, first_round, **options)


def release_tables(
    marginals: Marginals,
    protocol: SubgroupProtocol,
    plan: NoisePlan,
    part: int,
    client: str,
    first_round: int,
    **options: Any,
) -> Release:
    """Release exact tables of one round; as `answer`."""
    return release(
        marginals,
        protocol.schema,
        plan,
        client=client,
        round=first_round + part - 1,
        part=part,
        purpose=PURPOSE,
        **options,
    )
