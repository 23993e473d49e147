"""Noise added once for all clients: each adds a share of it, and only the sum is seen.

Secure aggregation (Bonawitz et al. 2017) shows a server the sum of the clients' vectors and nothing else. Then the
noise of the sum protects every client, and each need only add its share. **What is here is a simulation**: it adds the
vectors up in the open, and so whoever runs it sees what secure aggregation would hide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedsel.errors import PrivacyError, SubgroupError
from fedsel.privacy.adjacency import changed_cells
from fedsel.privacy.client import noise_source
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.schema import Schema
from fedsel.tables import Marginals

EVERYONE = "all clients (sum)"
"""Name that the sum goes by."""

MOST_LOSS = 1e-6
"""Most that epsilon may grow by because a sum of discrete Gaussians is not quite one itself."""


@dataclass(frozen=True)
class SharedNoise:
    """Noise that is added in shares.

    Parameters
    ----------
    share : NoisePlan
        What each client adds. The guarantee it states is that of the sum; a part alone has none worth the name and must
        never be shown.
    total : NoisePlan
        The noise of the sum of all shares, with the guarantee of the honest ones alone.
    """

    share: NoisePlan
    total: NoisePlan


def share_out(plan: NoisePlan, clients: int, *, honest: int | None = None) -> SharedNoise:
    """Divide noise between clients so that the sum has that of `plan`.

    Parameters
    ----------
    plan : NoisePlan
        Of the sum; discrete Gaussian.
    clients : int
        Number of clients.
    honest : int, optional
        How many of them, at least, are sure not to tell the server their noise; all if not given. Their noise alone
        suffices.

    Returns
    -------
    SharedNoise

    Raises
    ------
    PrivacyError
        If the mechanism is another one, `honest` is out of range, or the shares are so narrow that epsilon would grow
        by more than 1e-6.

    Notes
    -----
    At every point, a sum of k discrete Gaussians of variance parameter s^2 differs from one of k s^2 by a factor of at
    most exp(t), t = 10 sum_{j<k} exp(-2 pi^2 s^2 j / (j + 1)) (Kairouz, Liu and Steinke 2021). Only the M cells that a
    record moves count. If the discrete Gaussian keeps (epsilon, delta), then for neighbours P' and Q' of the sum
    P' <= e^{Mt} P <= e^{Mt} (e^epsilon Q + delta) <= e^{epsilon + 2 Mt} Q' + e^{Mt} delta.
    """
    honest = clients if honest is None else honest
    if not 1 <= honest <= clients:
        raise PrivacyError(f"honest must be between 1 and {clients}, got {honest}")
    if plan.mechanism == "none":
        return SharedNoise(plan, plan)
    if plan.mechanism != "discrete-gaussian":
        raise PrivacyError(f"noise can be shared out for the discrete Gaussian only, got {plan.mechanism}")
    share = replace(plan, numerator=math.ceil(plan.numerator / honest))
    variance = share.numerator / max(plan.weights)
    moved = changed_cells(plan.adjacency) * len(plan.weights)
    terms = (math.exp(-2 * math.pi**2 * variance * j / (j + 1)) for j in range(1, honest))
    loss = 2 * moved * 10 * sum(terms)
    if loss > MOST_LOSS:
        raise PrivacyError(
            f"the noise of a share has a variance of {variance:.3g}, too narrow to add up to a discrete Gaussian: "
            f"epsilon would grow by {loss:.2g}, more than {MOST_LOSS:g}"
        )
    # what the others add, honest or not, takes nothing from the guarantee, but whoever reads the sum meets it
    total = replace(
        plan,
        numerator=share.numerator * clients,
        epsilon=plan.epsilon + loss,
        delta=plan.delta * math.exp(loss),
    )
    return SharedNoise(share, total)


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
        As for `share_out`.
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
        As `share_out`.
    """
    if not parts:
        raise SubgroupError("a sum needs at least one client, got none")
    workload = parts[0].workload
    if any(part.workload != workload for part in parts):
        raise SubgroupError("expected the same tables of every client, got different ones")
    noise = share_out(plan, len(parts), honest=honest)
    own = noise.share.part(round)
    blank = Release(
        client=EVERYONE,
        schema=schema,
        workload=workload,
        counts=np.zeros(workload.cells, dtype=np.int64),
        plan=noise.total.part(round),
        round=round,
        seeded=seed is not None and plan.mechanism != "none",
        protocol=noise.total if len(plan.rounds) > 1 else None,
    )
    exact = np.stack([part.counts for part in parts])
    noisy = add_noise(exact, workload.sizes, own, entropy=noise_source(seed, blank))
    return replace(blank, counts=noisy.sum(axis=0))
