"""From release files of several rounds to one pool a round."""

from __future__ import annotations

from collections.abc import Iterable

from fedsel.errors import SubgroupError
from fedsel.pool import Pool
from fedsel.release import Release
from fedsel.subgroups.federated.protocol import SubgroupProtocol


def gather_rounds(protocol: SubgroupProtocol, releases: Iterable[Release]) -> list[Pool]:
    """Sort releases by round within the protocol and gather each round into a pool.

    A client's first release is that of round 1, whatever number its ledger gave it; later ones count from there.
    Clients may differ in budget. A client without a later round drops out of that round.

    Parameters
    ----------
    protocol : SubgroupProtocol
        What was agreed.
    releases : iterable of Release
        Of all clients and rounds so far, in any order.

    Returns
    -------
    list of Pool
        Clients in alphabetical order.

    Raises
    ------
    SubgroupError
        If a client's rounds are not one protocol's.
    PoolError
        If releases of one round do not go together.
    """
    by_client: dict[str, list[Release]] = {}
    for release in releases:
        by_client.setdefault(release.client, []).append(release)
    if not by_client:
        raise SubgroupError("subgroups need at least one release, got none")
    rounds: list[list[Release]] = [[] for _ in range(protocol.rounds)]
    for client in sorted(by_client):
        own = sorted(by_client[client], key=lambda release: release.round)
        whole = {release.protocol for release in own}
        if len(whole) > 1:
            raise SubgroupError(f"client {client!r}: its releases are of different plans")
        for release in own:
            part = release.round - own[0].round
            if part >= protocol.rounds or (rounds[part] and rounds[part][-1].client == client):
                raise SubgroupError(
                    f"client {client!r}: expected one release for each of {protocol.rounds} rounds that follow one "
                    f"another, got round {release.round} after {own[0].round}"
                )
            plan = release.protocol or release.plan
            if plan.rounds != protocol.tables or plan.part(part + 1) != release.plan:
                raise SubgroupError(
                    f"client {client!r}: expected {protocol.tables[part]} tables of round {part + 1} of a plan of "
                    f"{protocol.tables}, got {len(release.workload.sets)} tables of a plan of {plan.rounds}"
                )
            rounds[part].append(release)
    while not rounds[-1]:
        rounds.pop()
    if [] in rounds:
        raise SubgroupError(
            f"round {rounds.index([]) + 1}: expected a release of at least one client before those of round "
            f"{len(rounds)}, got none"
        )
    return [Pool.from_releases(part, allow_mixed=True) for part in rounds]
