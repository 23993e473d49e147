"""One self-contained HTML page about what was found (extra ``report``)."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedsel import _core
from fedsel.atomic_file import AtomicFile
from fedsel.report.page import environment
from fedsel.subgroups.discovery import SubgroupDiscovery
from fedsel.subgroups.quality import quality_function
from fedsel.subgroups.result import Subgroup, p_text

_MOST_OVERLAPS = 20


@dataclass(frozen=True)
class _Line:
    """A subgroup as the page shows it; `length` of its bar in per cent of half the width."""

    rank: int
    subgroup: Subgroup
    length: float


def render(found: SubgroupDiscovery, *, target: str, command: str | None = None) -> str:
    """Return a page about fitted subgroups as HTML text.

    Parameters
    ----------
    found : SubgroupDiscovery
        Fitted.
    target : str
        What the outcome is called.
    command : str or None
        The command that found them.

    Returns
    -------
    str
        One HTML document that refers to nothing outside itself and holds no script.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    """
    largest = max((abs(subgroup.effect) for subgroup in found.subgroups_), default=0.0)
    lines = [
        _Line(rank, subgroup, round(50.0 * abs(subgroup.effect) / largest, 2) if largest else 0.0)
        for rank, subgroup in enumerate(found.subgroups_, start=1)
    ]
    count = min(len(lines), _MOST_OVERLAPS)
    versions = {"fedsel": _core.__version__, "Python": platform.python_version(), "numpy": np.__version__}
    return (
        environment()
        .get_template("subgroups.html")
        .render(
            found=found,
            target=target,
            lines=lines,
            overlaps=found.overlaps()[:count, :count].tolist(),
            p_text=p_text,
            formula=quality_function(found.quality).formula,
            tested=found.significance != "none",
            command=command,
            versions=versions,
        )
    )


def write_page(
    found: SubgroupDiscovery,
    path: str | os.PathLike[str],
    *,
    target: str,
    command: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page; the file appears whole or not at all.

    Parameters
    ----------
    found, target, command
        As `render`.
    path : path
        Where the page goes.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    FedselError
        If the file exists already or cannot be written.
    """
    environment()
    with AtomicFile(Path(path), overwrite=overwrite) as file:
        file.publish(render(found, target=target, command=command).encode())
