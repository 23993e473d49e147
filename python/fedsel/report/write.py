"""A report as a file."""

from __future__ import annotations

import os
from pathlib import Path

from fedsel.atomic_file import AtomicFile
from fedsel.pool import Pool
from fedsel.report.evidence import gather
from fedsel.report.page import render, require_extra
from fedsel.selection.constraints import Constraints
from fedsel.selection.result import Selection


def check_report(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise now what `write_report` would raise after a long search.

    Parameters
    ----------
    path : path
        Where the report shall go.
    overwrite : bool
        Whether a file that exists may be replaced.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    FedselError
        If the file exists already or cannot be written.
    """
    require_extra()
    AtomicFile(Path(path), overwrite=overwrite).discard()


def write_report(
    selection: Selection,
    pool: Pool,
    path: str | os.PathLike[str],
    *,
    constraints: Constraints | None = None,
    command: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write one self-contained HTML page about a selection; see ``docs/report.md`` for what it shows.

    Everything in it is computed from the releases, so it costs no privacy beyond theirs. The file appears whole or not
    at all.

    Parameters
    ----------
    selection : Selection
        What was chosen.
    pool : Pool
        What it was chosen from.
    path : path
        Where the page goes.
    constraints : Constraints or None
        What the selection was made under.
    command : str or None
        The command that made the selection, for the page to show.
    seed : int
        Seed of the random federations and the annealing chains that the page compares with.
    threads : int or None
        Threads to use, by default all that this process may run on.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    SelectionError
        If the selection was not made from this pool under these constraints, or the seed is out of range.
    FedselError
        If the file exists already or cannot be written.
    """
    require_extra()
    with AtomicFile(Path(path), overwrite=overwrite) as file:
        evidence = gather(selection, pool, constraints=constraints, seed=seed, threads=threads)
        file.publish(render(evidence, command=command).encode())
