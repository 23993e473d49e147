"""How clients' rates are mixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def mixture_weights(
    sizes: Sequence[float] | FloatArray, epsilons: Sequence[float], *, precision: bool, beta: float = 0.0
) -> FloatArray:
    """Return weights of the clients' rates, which sum to 1.

    Parameters
    ----------
    sizes : sequence of int
        n_i. A client without records has no rate and weighs nothing.
    epsilons : sequence of float
        Budget of the count pair of each client; 0 for one that did not answer.
    precision : bool
        By (n_i eps_i)^2, which is inverse to the noise variance of a rate (manuscript, equation 4); else equal.
    beta : float
        w_i (1 - beta) + beta n_i / N: a mixture of two estimands, the second that of the population.

    Notes
    -----
    Where all weights are 0, those of the population take their place; where there is no record at all, equal ones.
    """
    n = np.asarray(sizes, dtype=np.float64)
    answered = np.asarray(epsilons, dtype=np.float64) * (n > 0)
    own = (n * answered) ** 2 if precision else (answered > 0).astype(np.float64)
    population = np.where(answered > 0, n, 0.0)
    if population.sum() == 0:
        population = n if n.sum() > 0 else np.ones(len(n))
    shares: FloatArray = population / population.sum()
    if own.sum() == 0:
        return shares
    result: FloatArray = (1 - beta) * own / own.sum() + beta * shares
    return result
