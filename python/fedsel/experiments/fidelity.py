"""How well private tables order federations: the order by true loss against the order by released tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import SeededEntropy
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import Accounting, NoisePlan
from fedsel.schema import Schema
from fedsel.selection.arguments import check_numbers
from fedsel.selection.denoising import DenoiseMethod, denoise
from fedsel.selection.loss import FederationLoss
from fedsel.selection.precision import Precision, table_precisions
from fedsel.selection.select import select
from fedsel.tables import Workload

METHODS: tuple[DenoiseMethod, ...] = ("none", "clip", "consistent", "shrink")


@dataclass(frozen=True)
class FidelityRow:
    """One line of the table: means over noise draws, with their standard errors.

    Parameters
    ----------
    k : int
        Members of a federation.
    epsilon : float
        Budget of each client.
    accounting : str
        How the noise was calibrated.
    method : str
        Denoising method.
    rho, rho_error : float
        Spearman correlation of private and true loss over random federations.
    regret, regret_error : float
        True loss of the federation chosen from the private tables, above the best known, in standard deviations of the
        random federations' losses.
    overlap : float
        Share of the best known federation's members that were chosen.
    draws : int
        Noise draws.
    seconds : float
        Wall time of the line.
    """

    k: int
    epsilon: float
    accounting: str
    method: str
    rho: float
    rho_error: float
    regret: float
    regret_error: float
    overlap: float
    draws: int
    seconds: float


def exact_pool(schema: Schema, workload: Workload, clients: Sequence[str], counts: npt.NDArray[np.int64]) -> Pool:
    """Gather exact tables, (clients, cells), as a pool."""
    plan = NoisePlan("none", "add-remove", np.inf, 0.0, 0, (1,) * len(workload.sets), "none")
    return _pool(schema, workload, clients, counts, plan, seeded=False)


def _pool(
    schema: Schema,
    workload: Workload,
    clients: Sequence[str],
    counts: npt.NDArray[np.int64],
    plan: NoisePlan,
    *,
    seeded: bool,
) -> Pool:
    size = len(clients)
    return Pool(
        clients=tuple(clients),
        schema=schema,
        workload=workload,
        counts=counts,
        plans=(plan,),
        plan_index=(0,) * size,
        seeded=(seeded,) * size,
        rounds=(1,) * size,
        rows=(None,) * size,
    )


def fidelity(
    truth: Pool,
    *,
    sizes: Sequence[int] = (5, 10, 15),
    epsilons: Sequence[float] = (3.0, 1.0, 0.3, 0.1, 0.05),
    delta: float = 1e-5,
    accounting: Accounting = "exact",
    precision: Precision = "equal",
    methods: Sequence[DenoiseMethod] = METHODS,
    federations: int = 1000,
    draws: int = 20,
    seed: int = 0,
    threads: int = 1,
) -> Iterator[FidelityRow]:
    """Measure how the order of federations survives the noise.

    Parameters
    ----------
    truth : Pool
        Exact tables.
    sizes, epsilons, methods : sequence
        What is crossed: sizes of federations, budgets, denoising methods.
    delta : float
        Delta of each client.
    accounting : {"exact", "zcdp", "rdp"}
        Calibration of the noise; ``rdp`` is that of PCS (arXiv 2605.20975).
    precision : {"equal", "loss"}
        How the tables share the noise; see `fedsel.selection.precision`.
    federations : int
        Random federations of each size.
    draws : int
        Noise draws of each budget; the same draws for all methods and sizes.
    seed : int
        Seeds federations and noise: results are for experiments only.
    threads : int
        Threads to use.

    Yields
    ------
    FidelityRow
        One per size, budget and method, budgets first.
    """
    from scipy.stats import spearmanr

    check_numbers(**{f"k = {k}": (k, 1, len(truth) - 1) for k in sizes})
    if not all(0 < epsilon < np.inf for epsilon in epsilons):
        raise SelectionError(f"epsilons must be positive and finite, got {list(epsilons)}")
    rng = np.random.default_rng(seed)
    workload = truth.workload
    true_loss = FederationLoss(truth)
    drawn = {k: np.array([rng.choice(len(truth), k, replace=False) for _ in range(federations)]) for k in sizes}
    true = {k: true_loss.losses_of(drawn[k], threads=threads) for k in sizes}
    best = {k: _best_known(truth, k, threads) for k in sizes}
    for epsilon in epsilons:
        plan = plan_noise(
            len(workload.sets),
            epsilon=epsilon,
            delta=delta,
            accounting=accounting,  # type: ignore[arg-type]
            weights=table_precisions(truth.schema, workload, precision=precision),
        )
        for method in methods:
            results: dict[int, list[tuple[float, float, float]]] = {k: [] for k in sizes}
            started = time.perf_counter()
            for draw in range(draws):
                entropy = SeededEntropy(np.random.SeedSequence([seed, draw]))
                noisy = add_noise(truth.counts, workload.sizes, plan, entropy=entropy)
                pool = denoise(_pool(truth.schema, workload, truth.clients, noisy, plan, seeded=True), method=method)
                loss = FederationLoss(pool)
                for k in sizes:
                    rho = float(spearmanr(true[k], loss.losses_of(drawn[k], threads=threads)).statistic)
                    chosen = select(
                        pool, k, denoise_method="none", certificate="none", threads=threads, runner_ups=0
                    ).names
                    optimum, members = best[k]
                    spread = float(true[k].std())
                    regret = (true_loss(chosen) - optimum) / spread if spread else 0.0
                    results[k].append((rho, regret, len(set(chosen) & set(members)) / k))
            seconds = (time.perf_counter() - started) / len(sizes)
            for k in sizes:
                values = np.array(results[k])
                mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(draws)
                yield FidelityRow(
                    k=k,
                    epsilon=epsilon,
                    accounting=plan.accounting,
                    method=method,
                    rho=float(mean[0]),
                    rho_error=float(error[0]),
                    regret=float(mean[1]),
                    regret_error=float(error[1]),
                    overlap=float(mean[2]),
                    draws=draws,
                    seconds=seconds,
                )


def _best_known(truth: Pool, k: int, threads: int) -> tuple[float, tuple[str, ...]]:
    """Optimum of the exact tables where it can be proved, else the best of two searches."""
    found = [select(truth, k, search=search, threads=threads) for search in ("expand", "anneal")]
    best = min(found, key=lambda selection: selection.loss)
    return best.loss, best.names
