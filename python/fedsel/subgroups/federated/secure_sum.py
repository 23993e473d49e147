"""Noise added once for all clients: each adds a share of it, and only the sum is seen.

Secure aggregation (Bonawitz et al. 2017) shows a server the sum of the clients' vectors and nothing else. Then the
noise of the sum protects every client, and each need only add its share. **What is here is a simulation**: it adds the
vectors up in the open, and so whoever runs it sees what secure aggregation would hide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedsel.errors import PrivacyError, SubgroupError
from fedsel.privacy.adjacency import changed_cells
from fedsel.privacy.entropy import SeededEntropy, SystemEntropy
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.schema import Schema
from fedsel.tables import Marginals

EVERYONE = "all clients (sum)"
"""Name that the sum goes by."""

MOST_LOSS = 1e-12
"""Largest loss of privacy, in units of epsilon, from a sum of discrete Gaussians not being one itself."""

_LEAST_SHARE = 4  # variance below which the bound would not be small


def share_plan(plan: NoisePlan, clients: int, *, honest: int | None = None) -> NoisePlan:
    """Return the noise that each client adds so that the sum has that of `plan`.

    The guarantee that the result states is that of the sum; alone it has none worth the name, so a part must never be
    shown.

    Parameters
    ----------
    plan : NoisePlan
        Of the sum; discrete Gaussian.
    clients : int
        Number of clients.
    honest : int, optional
        How many of them are sure not to tell the server their noise, at least; all if not given. Their noise alone
        suffices.

    Raises
    ------
    PrivacyError
        If the mechanism is another one, `honest` is out of range, or the shares are too narrow for the sum to be
        close to a discrete Gaussian.

    Notes
    -----
    A sum of k discrete Gaussians of variance parameter s^2 differs from one of k s^2 by a factor of at most exp(t) at
    every point, t = 10 sum_{j<k} exp(-2 pi^2 s^2 j / (j + 1)) (Kairouz, Liu and Steinke 2021, lemma on convolution).
    Only the cells that a record moves count: with M of them epsilon grows by at most 2 M t, which must be below 1e-12.
    """
    honest = clients if honest is None else honest
    if not 1 <= honest <= clients:
        raise PrivacyError(f"honest must be between 1 and {clients}, got {honest}")
    if plan.mechanism == "none":
        return plan
    if plan.mechanism != "discrete-gaussian":
        raise PrivacyError(f"noise can be shared out for the discrete Gaussian only, got {plan.mechanism}")
    numerator = math.ceil(plan.numerator / honest)
    variance = numerator / max(plan.weights)
    moved = changed_cells(plan.adjacency) * len(plan.weights)
    # j / (j + 1) is at least 1/2
    loss = 2 * moved * 10 * (clients - 1) * math.exp(-(math.pi**2) * variance)
    if clients > 1 and (variance < _LEAST_SHARE or loss > MOST_LOSS):
        raise PrivacyError(
            f"the noise of a share must have a variance of at least {_LEAST_SHARE}, got {variance:.3g}: "
            "the noise of the sum is too narrow to be shared out"
        )
    return replace(plan, numerator=numerator)


def noisy_sum(
    parts: Sequence[Marginals],
    schema: Schema,
    plan: NoisePlan,
    *,
    round: int = 1,
    honest: int | None = None,
    seed: int | None = None,
) -> Release:
    """Add up exact tables, each client's with its share of the noise, as secure aggregation would.

    The ledger of every client is to be charged the whole plan, as for a release of its own.

    Parameters
    ----------
    parts : sequence of Marginals
        The clients' exact tables of a round.
    schema : Schema
        Their meaning.
    plan : NoisePlan
        Of the whole protocol, its noise that of the sum.
    round : int
        Round within the plan, from 1.
    honest : int, optional
        As for `share_plan`.
    seed : int, optional
        Seeded noise, for experiments only.

    Returns
    -------
    Release
        Of the sum, under the name `EVERYONE`.

    Raises
    ------
    SubgroupError
        If there is no client, or their tables differ.
    PrivacyError
        As `share_plan`.
    """
    if not parts:
        raise SubgroupError("a sum needs at least one client, got none")
    workload = parts[0].workload
    if any(part.workload != workload for part in parts):
        raise SubgroupError("expected the same tables of every client, got different ones")
    own = share_plan(plan, len(parts), honest=honest).part(round)
    entropy = SystemEntropy() if seed is None else SeededEntropy(np.random.SeedSequence([seed, round, len(parts)]))
    noisy = add_noise(np.stack([part.counts for part in parts]), workload.sizes, own, entropy=entropy)
    return Release(
        client=EVERYONE,
        schema=schema,
        workload=workload,
        counts=noisy.sum(axis=0),
        plan=plan.part(round),
        round=round,
        seeded=seed is not None and plan.mechanism != "none",
        protocol=plan if len(plan.rounds) > 1 else None,
    )
