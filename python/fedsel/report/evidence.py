"""Everything a report shows beyond the selection itself, as numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.report.comparison import Comparison, compare
from fedsel.report.contributions import Contributions, contributions
from fedsel.report.frame import Frame, frame
from fedsel.report.information import Information, information
from fedsel.report.near_optimal import NearOptimal, near_optimal
from fedsel.selection.constraints import Constraints
from fedsel.selection.result import Selection


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for a selection, and against it.

    Parameters
    ----------
    frame : Frame
        The selection in its pool.
    contributions : Contributions
        What each member brings.
    comparison : Comparison
        Other federations of the size.
    information : Information
        Mutual information of every pair of variables.
    near_optimal : NearOptimal
        Federations almost as good.
    digest : str
        SHA-256 of client names and released counts, 64 hexadecimal digits: two reports of one digest speak of the same
        releases.
    seed : int
        Seed of everything drawn for the report.
    """

    frame: Frame
    contributions: Contributions
    comparison: Comparison
    information: Information
    near_optimal: NearOptimal
    digest: str
    seed: int


def gather(
    selection: Selection,
    pool: Pool,
    *,
    constraints: Constraints | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Evidence:
    """Compute what a report shows. The same arguments give the same numbers for any number of threads.

    Parameters
    ----------
    selection : Selection
        What was chosen.
    pool : Pool
        What it was chosen from.
    constraints : Constraints or None
        What it was chosen under.
    seed : int
        Seed of the random federations and the annealing chains, 0 to 2^64 - 1.
    threads : int or None
        Threads to use, by default all that this process may run on.

    Returns
    -------
    Evidence

    Raises
    ------
    SelectionError
        If the selection was not made from this pool or not under these constraints, or the seed is out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise SelectionError(f"seed must be between 0 and {2**64 - 1}, got {seed}")
    framed = frame(selection, pool, constraints=constraints, threads=threads)
    exchanges = contributions(framed, seed=seed)
    comparison = compare(framed, seed=seed)
    return Evidence(
        frame=framed,
        contributions=exchanges,
        comparison=comparison,
        information=information(framed),
        near_optimal=near_optimal(framed, exchanges, comparison, seed=seed),
        digest=_digest(pool),
        seed=seed,
    )


def _digest(pool: Pool) -> str:
    digest = hashlib.sha256()
    for name, row in zip(pool.clients, pool.counts, strict=True):
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
        digest.update(row.astype("<i8").tobytes())
    return digest.hexdigest()
