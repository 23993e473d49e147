"""How well private releases order federations: the order by true loss against the order by what was released."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.experiments.population import Population
from fedsel.experiments.recipes import RECIPES, Noise
from fedsel.selection.arguments import check_numbers
from fedsel.selection.loss import FederationLoss
from fedsel.selection.select import select

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FidelityRow:
    """One recipe on one noise draw.

    Parameters
    ----------
    recipe : str
        Name of the recipe.
    epsilon : float
        Budget of each client.
    k : int
        Members of a federation.
    draw : int
        Number of the noise draw.
    rho : float
        Spearman correlation, over random federations, of the loss by the release with the true loss of the same data.
    rho_whole : float
        The same with the true loss of the whole data, where the data are a share of them.
    regret : float
        True loss of the federation chosen from the release, above the best known, in standard deviations of the random
        federations' losses.
    overlap : float
        Share of the best known federation's members that were chosen.
    seconds : float
        Wall time of the draw, over the number of sizes.
    """

    recipe: str
    epsilon: float
    k: int
    draw: int
    rho: float
    rho_whole: float
    regret: float
    overlap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class _Truth:
    """True losses of random federations of one size, and the best known federation."""

    federations: npt.NDArray[np.int64]
    losses: Array
    whole: Array
    best_loss: float
    best: frozenset[str]


def fidelity(
    population: Population,
    *,
    whole: Population | None = None,
    recipes: Sequence[str] = tuple(RECIPES),
    sizes: Sequence[int] = (5, 10, 15),
    epsilons: Sequence[float] = (3.0, 1.0, 0.3, 0.1, 0.05, 0.02, 0.01),
    delta: float = 1e-5,
    federations: int = 1000,
    draws: int = 20,
    seed: int = 0,
    threads: int = 1,
) -> Iterator[FidelityRow]:
    """Measure how the order of federations survives the noise.

    Parameters
    ----------
    population : Population
        Exact data.
    whole : Population, optional
        The data that `population` is a share of, by default the same.
    recipes : sequence of str
        Names of `RECIPES`.
    sizes, epsilons : sequence
        Sizes of federations, and budgets.
    delta : float
        Delta of each client.
    federations : int
        Random federations of each size.
    draws : int
        Noise draws of each recipe and budget; the random federations are the same for all.
    seed : int
        Seeds federations and noise: results are for experiments only.
    threads : int
        Threads to use.

    Yields
    ------
    FidelityRow
        One per budget, recipe, draw and size.

    Raises
    ------
    SelectionError
        If a size, budget or recipe is out of range, or a recipe needs rows and there are none.
    """
    check_numbers(**{f"k = {k}": (k, 1, len(population.clients) - 1) for k in sizes})
    if not all(0 < epsilon < np.inf for epsilon in epsilons):
        raise SelectionError(f"epsilons must be positive and finite, got {list(epsilons)}")
    for name in recipes:
        if name not in RECIPES:
            raise SelectionError(f"recipe must be one of {', '.join(RECIPES)}, got {name!r}")
    truths = _truths(population, whole or population, sizes, federations, seed, threads)
    true_loss = FederationLoss(population.pool())
    for epsilon in epsilons:
        for name in recipes:
            noise = Noise.calibrated(RECIPES[name], population, epsilon=epsilon, delta=delta)
            for draw in range(draws):
                started = time.perf_counter()
                pool = noise.pool(population, np.random.SeedSequence([seed, draw]))
                loss = FederationLoss(pool)
                measured = []
                for k, truth in truths.items():
                    estimated = loss.losses_of(truth.federations, threads=threads)
                    chosen = select(
                        pool, k, denoise_method="none", certificate="none", threads=threads, runner_ups=0
                    ).names
                    spread = float(truth.losses.std())
                    measured.append(
                        (
                            k,
                            _spearman(truth.losses, estimated),
                            _spearman(truth.whole, estimated),
                            (true_loss(chosen) - truth.best_loss) / spread if spread else 0.0,
                            len(truth.best & set(chosen)) / k,
                        )
                    )
                seconds = (time.perf_counter() - started) / len(truths)
                for k, rho, rho_whole, regret, overlap in measured:
                    yield FidelityRow(name, epsilon, k, draw, rho, rho_whole, regret, overlap, seconds)


def _spearman(first: Array, second: Array) -> float:
    """Rank correlation; 0 where one of the two does not tell federations apart."""
    from scipy.stats import spearmanr

    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(spearmanr(first, second).statistic)


def _truths(
    population: Population, whole: Population, sizes: Sequence[int], federations: int, seed: int, threads: int
) -> dict[int, _Truth]:
    rng = np.random.default_rng(seed)
    own, all_rows = FederationLoss(population.pool()), FederationLoss(whole.pool())
    truths = {}
    for k in sizes:
        drawn = np.array([rng.choice(len(population.clients), k, replace=False) for _ in range(federations)])
        # The optimum where it can be proved, else the best of two searches.
        found = [select(population.pool(), k, search=search, threads=threads) for search in ("expand", "anneal")]
        best = min(found, key=lambda selection: selection.loss)
        truths[k] = _Truth(
            drawn,
            own.losses_of(drawn, threads=threads),
            all_rows.losses_of(drawn, threads=threads),
            best.loss,
            frozenset(best.names),
        )
    return truths
