"""Made clients whose rows come from latent classes: data to choose constants on, away from any data of interest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedsel.schema import Schema, Variable

DOMAIN = (5, 9, 6, 5, 10, 8, 18, 8, 2, 9, 2)
"""Categories of each variable."""

SENSITIVE, TARGET = 8, 10


def latent_schema() -> Schema:
    """Return the schema of the made rows: eleven variables."""
    roles = {SENSITIVE: "sensitive", TARGET: "target"}
    return Schema(
        name="latent-classes",
        variables=tuple(
            Variable(name=f"v{i}", role=roles.get(i, "feature"), categories=tuple(range(size)))  # type: ignore[arg-type]
            for i, size in enumerate(DOMAIN)
        ),
    )


def latent_rows(
    seed: int,
    *,
    clients: int = 46,
    classes: int = 20,
    heterogeneity: float = 0.25,
    concentration: float = 0.2,
    median_rows: float = 20_000,
) -> Iterator[tuple[str, tuple[npt.NDArray[np.uint8], ...]]]:
    """Draw the rows of clients, one client after another.

    Every row belongs to a latent class, and its variables are independent within the class; clients differ in how
    common the classes are, and in their number of rows, which is log-normal with a standard deviation of 1.

    Parameters
    ----------
    seed : int
        Seed of everything.
    clients : int
        Number of clients.
    classes : int
        Number of latent classes.
    heterogeneity : float
        How much clients differ: 2 / (classes * heterogeneity) is the concentration of their Dirichlet distribution.
    concentration : float
        How evenly a class spreads over the categories of a variable.
    median_rows : float
        Median of a client's number of rows, which stays between an eighth and ten times this.

    Yields
    ------
    client : str
        Name.
    columns : tuple of ndarray of uint8, each of shape (rows,)
        Category codes, one column per variable.
    """
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(classes, 2.0))
    mixes = rng.dirichlet(common * classes / (2.0 * heterogeneity), clients)
    profiles = [_profiles(rng, size, classes, concentration) for size in DOMAIN]
    sizes = np.clip(np.exp(rng.normal(np.log(median_rows), 1.0, clients)), median_rows / 8, median_rows * 10)
    for client, (mix, rows) in enumerate(zip(mixes, sizes.astype(int), strict=True)):
        latent = rng.choice(classes, rows, p=mix)
        yield f"m{client:03}", tuple(_draw(rng, steps, latent) for steps in profiles)


def _profiles(rng: np.random.Generator, size: int, classes: int, concentration: float) -> npt.NDArray[np.float64]:
    """Cumulative probabilities of a variable's categories within each class, (classes, size)."""
    skew = rng.dirichlet(np.full(size, 0.6))
    return np.cumsum([rng.dirichlet(3.0 * concentration * size * skew + 0.02) for _ in range(classes)], axis=1)


def _draw(
    rng: np.random.Generator, steps: npt.NDArray[np.float64], latent: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    codes = np.zeros(len(latent), dtype=np.uint8)
    uniform = rng.random(len(latent))
    for category in range(steps.shape[1] - 1):  # the last step is 1: nothing lies beyond it
        codes += uniform >= steps[latent, category]
    return codes
