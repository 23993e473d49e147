"""The trade between utility and fairness: federations that no other beats in both."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from fedsel.pool import Pool
from fedsel.privacy.statement import PrivacyStatement
from fedsel.selection import methods
from fedsel.selection.arguments import check_effort, check_numbers
from fedsel.selection.constraints import Constraints, resolve
from fedsel.selection.denoising import DenoiseMethod, denoise
from fedsel.selection.loss import FederationLoss
from fedsel.selection.loss_tables import Sensitive
from fedsel.selection.methods import Effort, Progress, Task, available_threads
from fedsel.selection.weights import SMALLEST, Components, LossWeights


@dataclass(frozen=True)
class ParetoPoint:
    """A federation that no other found has both less bias and more utility than.

    Parameters
    ----------
    members : tuple of str
        Their names.
    unfairness : float
        sensitive_target I(S;T) + sensitive_feature sum I(S;N), weighted, in bits: lower is fairer.
    utility : float
        feature_target sum I(N;T) - feature_feature sum I(N;N'), weighted, in bits: higher is better.
    components : Components
        The four sums.
    """

    members: tuple[str, ...]
    unfairness: float
    utility: float
    components: Components


@dataclass(frozen=True)
class ParetoFront:
    """Points of the front in order of rising unfairness, hence of rising utility.

    Parameters
    ----------
    points : tuple of ParetoPoint
        At least one.
    k : int
        Number of members.
    weights : LossWeights
        The weights within the two halves.
    sensitive : tuple of str
        The active sensitive attributes.
    evaluations : int
        Federations evaluated.
    seconds : float
        Wall time.
    privacy : PrivacyStatement
        What the releases of the pool promise.
    """

    points: tuple[ParetoPoint, ...]
    k: int
    weights: LossWeights
    sensitive: tuple[str, ...]
    evaluations: int
    seconds: float
    privacy: PrivacyStatement


def pareto_front(
    pool: Pool,
    k: int,
    *,
    weights: LossWeights | None = None,
    sensitive: Sensitive = None,
    constraints: Constraints | None = None,
    denoise_method: DenoiseMethod = "auto",
    steps: int = 21,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float = math.inf,
    progress: Progress | None = None,
) -> ParetoFront:
    """Find federations that trade bias against utility.

    The loss is unfairness - utility. Expansion search runs on (1 - x) unfairness - x utility for `steps` values of x
    from 0 to 1; everything it saw near its optima is compared, and what another federation beats in both is dropped.
    A sweep of weights finds the convex part of the front; federations seen on the way fill in some of the rest. The
    front is that of the federations found: it is not proved complete.

    Parameters
    ----------
    pool, k, weights, sensitive, constraints, denoise_method, seed, threads, time_limit, progress
        As in `select`.
    steps : int
        Number of trade-offs tried, at least 2.

    Returns
    -------
    ParetoFront

    Raises
    ------
    SelectionError
        If an argument is out of range, or no federation satisfies the constraints.
    """
    started = time.perf_counter()
    check_numbers(steps=(steps, 2, 1000))
    check_effort(seed, threads, time_limit)
    methods.check_size(k, pool)
    base = FederationLoss(denoise(pool, method=denoise_method), weights=weights, sensitive=sensitive)
    ruleset = resolve(constraints or Constraints(), pool)
    w = base.weights
    seen: set[tuple[int, ...]] = set()
    evaluations = 0
    for x in np.linspace(0.0, 1.0, steps):
        fair, useful = 1.0 - float(x), float(x)
        parts = (
            fair * w.sensitive_target,
            fair * w.sensitive_feature,
            useful * w.feature_feature,
            useful * w.feature_target,
        )
        mixed = [part if part >= SMALLEST else 0.0 for part in parts]
        left = time_limit - (time.perf_counter() - started)
        if not any(mixed) or (seen and left <= 0):
            continue
        task = Task.of(base.reweighted(LossWeights(*mixed)), k, ruleset)
        effort = Effort(
            seed=seed, threads=available_threads(threads), time_limit=max(left, 0.0), keep=50, progress=progress
        )
        found = methods.expand(task, effort)
        evaluations += found.evaluations
        seen.update(rows for _, rows in found.best)
        if found.stop_reason == "interrupted":
            break
    rows = sorted(seen)
    sums = base.components_of(rows) * base.weights.signed
    points = [
        (float(bias[:2].sum()), -float(bias[2:].sum()), members) for bias, members in zip(sums, rows, strict=True)
    ]
    front: list[ParetoPoint] = []
    for unfairness, utility, members in sorted(points, key=lambda point: (point[0], -point[1], point[2])):
        if not front or utility > front[-1].utility:
            names = tuple(base.clients[row] for row in members)
            front.append(ParetoPoint(names, unfairness, utility, base.components(members)))
    return ParetoFront(
        points=tuple(front),
        k=k,
        weights=w,
        sensitive=base.sensitive,
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        privacy=pool.private,
    )
