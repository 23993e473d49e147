"""What is compared: ways from exact data, through noise, to the tables that the coordinator searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedsel.errors import SelectionError
from fedsel.experiments.population import Population
from fedsel.pool import Pool
from fedsel.pool_scores import ClientScores
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import SeededEntropy
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.selection.denoising import DenoiseMethod, denoise
from fedsel.selection.make_rule import make_rule
from fedsel.selection.precision import Precision, table_precisions
from fedsel.selection.score_plan import plan_scores


@dataclass(frozen=True)
class Recipe:
    """One line of a comparison.

    Parameters
    ----------
    name : str
        Short name.
    method : DenoiseMethod
        Denoising.
    accounting : {"exact", "rdp"}
        Calibration of the noise; ``rdp`` is that of PCS (arXiv 2605.20975).
    precision : {"equal", "loss"}
        How tables share the noise.
    scores : bool
        Whether scores follow in a second round, under one joint guarantee.
    """

    name: str
    method: DenoiseMethod
    accounting: Literal["exact", "rdp"] = "exact"
    precision: Precision = "equal"
    scores: bool = False


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("paper", "clip", accounting="rdp"),
        Recipe("as-released", "none"),
        Recipe("clip", "clip"),
        Recipe("consistent", "consistent"),
        Recipe("shrink", "shrink"),
        Recipe("shrink-precision", "shrink", precision="loss"),
        Recipe("reference-precision", "reference", precision="loss"),
        Recipe("scores", "reference", scores=True),
    )
}
"""From the published estimator on, each adds one step to an earlier one: exact calibration, then denoising, then the
precision of tables by their weight in the loss, then another distribution to shrink towards, then a second round of
scores."""


@dataclass(frozen=True, eq=False)
class Noise:
    """A recipe's noise at one budget, calibrated once for all draws.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    plan : NoisePlan
        All rounds.
    """

    recipe: Recipe
    plan: NoisePlan

    @classmethod
    def calibrated(cls, recipe: Recipe, population: Population, *, epsilon: float, delta: float) -> Noise:
        """Calibrate a recipe's noise.

        Raises
        ------
        SelectionError
            If the recipe needs rows and the population has none.
        """
        schema, workload = population.schema, population.workload
        if recipe.scores:
            if population.columns is None:
                raise SelectionError(f"recipe {recipe.name}: scores need rows, the population has tables only")
            return cls(recipe, plan_scores(schema, workload, epsilon=epsilon, delta=delta))
        precisions = table_precisions(schema, workload, precision=recipe.precision)
        plan = plan_noise(
            len(workload.sets), epsilon=epsilon, delta=delta, accounting=recipe.accounting, weights=precisions
        )
        return cls(recipe, plan)

    def pool(self, population: Population, seed: np.random.SeedSequence) -> Pool:
        """Let every client release with seeded noise, and denoise.

        Parameters
        ----------
        population : Population
            Exact data.
        seed : SeedSequence
            Seed of the noise.

        Returns
        -------
        Pool
            Ready for the search.
        """
        first, second = seed.spawn(2)
        sizes = population.workload.sizes
        if not self.recipe.scores:
            noisy = add_noise(population.counts, sizes, self.plan, entropy=SeededEntropy(first))
            return denoise(population.pool_of(noisy, self.plan, seeded=True), method=self.recipe.method)
        tables, scores = self.plan.part(1), self.plan.part(2)
        noisy = add_noise(population.counts, sizes, tables, entropy=SeededEntropy(first))
        pool = population.pool_of(noisy, tables, seeded=True)
        return denoise(_scored(pool, population, scores, second), method=self.recipe.method)


def _scored(pool: Pool, population: Population, plan: NoisePlan, seed: np.random.SeedSequence) -> Pool:
    """Add the second round: a rule made from the first, and every client's noisy scores under it."""
    assert population.columns is not None
    rule = make_rule(pool, plan)
    exact: npt.NDArray[np.int64] = np.array([rule.total(columns).counts for columns in population.columns])
    noisy = add_noise(exact, np.ones(exact.shape[1], dtype=np.int64), plan, entropy=SeededEntropy(seed))
    clients = len(pool)
    return replace(pool, scores=ClientScores(rule, noisy, (plan,), (0,) * clients, (True,) * clients, (2,) * clients))
