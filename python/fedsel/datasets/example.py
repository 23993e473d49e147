"""The embedded example: exact contingency tables of public-domain census records, and rows that look like them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsel.errors import FedselError
from fedsel.pool import Pool
from fedsel.privacy.client import release
from fedsel.privacy.plan import NoisePlan
from fedsel.schema import Schema
from fedsel.tables import Marginals, Workload

EXAMPLE_FOLDER = Path(__file__).parent
EXAMPLES = {"acs-income": ("acs_income.toml", "acs_income_2018.npz")}


@dataclass(frozen=True, eq=False)
class Example:
    """Exact tables of a pool of clients, standing in for the clients' own rows.

    Parameters
    ----------
    name : str
        Name of the example.
    schema : Schema
        Its schema.
    workload : Workload
        All pairs of variables.
    clients : tuple of str
        Client names.
    counts : ndarray of int64, shape (clients, cells)
        Exact counts.
    """

    name: str
    schema: Schema
    workload: Workload
    clients: tuple[str, ...]
    counts: npt.NDArray[np.int64]

    def marginals(self, client: str) -> Marginals:
        """Return the exact tables of one client."""
        return Marginals(self.workload, self.counts[self.clients.index(client)])

    def records(self, client: str) -> int:
        """Return the number of records of one client."""
        first = self.workload.offsets[1]
        return int(self.counts[self.clients.index(client), :first].sum())

    def pool(self, plan: NoisePlan, *, seed: int | None = None) -> Pool:
        """Let every client release its tables under a plan, and gather the releases.

        Parameters
        ----------
        plan : NoisePlan
            The same for every client.
        seed : int or None
            Seed of the noise, for experiments; by default noise comes from the operating system.

        Returns
        -------
        Pool
        """
        return Pool.from_releases(
            release(self.marginals(client), self.schema, plan, client=client, seed=seed) for client in self.clients
        )


@cache
def load_example(name: str = "acs-income") -> Example:
    """Load an embedded example.

    ``acs-income``: the ACSIncome task on the 2018 1-year American Community Survey, 46 US states as clients (all but
    CA, FL, NY and TX), 11 variables; 1,121,894 records (US Census Bureau, public domain).

    Raises
    ------
    FedselError
        If there is no such example.
    """
    if name not in EXAMPLES:
        raise FedselError(f"example must be one of {', '.join(EXAMPLES)}, got {name!r}")
    schema_file, counts_file = EXAMPLES[name]
    schema = Schema.from_toml(EXAMPLE_FOLDER / schema_file)
    with np.load(EXAMPLE_FOLDER / counts_file, allow_pickle=False) as data:
        clients = tuple(str(client) for client in data["clients"])
        counts = data["counts"].astype(np.int64)
    counts.setflags(write=False)
    return Example(name, schema, Workload.pairs(schema), clients, counts)
