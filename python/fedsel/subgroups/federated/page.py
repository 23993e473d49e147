"""One self-contained HTML page about what a private discovery found (extra ``report``)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsel import _core
from fedsel.atomic_file import AtomicFile
from fedsel.errors import SubgroupError
from fedsel.report.page import environment
from fedsel.subgroups.result import p_text

_WIDTH = 100.0  # of a forest plot, in per cent
_MOST_LINES = 60


@dataclass(frozen=True)
class _Mark:
    """A client's rate in a forest plot, all in per cent of the width; None where noise drowns it."""

    client: str
    text: str
    centre: float | None
    low: float
    high: float


def render(result: Mapping[str, Any], *, command: str | None = None) -> str:
    """Return a page about a result, as `FederatedSubgroups.to_dict` gives it, as HTML text.

    Parameters
    ----------
    result : mapping
        The result.
    command : str, optional
        The command that found it.

    Returns
    -------
    str
        One HTML document that refers to nothing outside itself and holds no script.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    SubgroupError
        If it is no such result.
    """
    versions = {"fedsel": _core.__version__, "Python": platform.python_version(), "numpy": np.__version__}
    page = environment().get_template("federated_subgroups.html")
    from jinja2 import TemplateRuntimeError  # of the extra, whose presence `environment` has checked

    try:
        forests = [_forest(subgroup) for subgroup in result["subgroups"]]
        return page.render(
            result=result,
            forests=forests,
            base=round(_WIDTH * float(result["base"]), 2),
            confirmed=any(subgroup["confirmed"] is not None for subgroup in result["subgroups"]),
            p_text=p_text,
            command=command,
            versions=versions,
        )
    except (KeyError, TypeError, ValueError, AttributeError, TemplateRuntimeError) as error:
        raise SubgroupError(
            f"expected the result of a private discovery (JSON), got another content: {error}"
        ) from None


def write_page(
    result: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    command: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page; the file appears whole or not at all.

    Parameters
    ----------
    result, command
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
        If the file exists already or cannot be written, or as `render`.
    """
    environment()
    with AtomicFile(Path(path), overwrite=overwrite) as file:
        file.publish(render(result, command=command).encode())


def _forest(subgroup: Mapping[str, Any]) -> list[_Mark]:
    """Place every client's rate, with two standard errors to either side."""
    marks = []
    for client in subgroup["clients"][:_MOST_LINES]:
        rate, error = client["rate"], client["error"]
        if rate is None:
            text = "not released" if client["records"] is None else "drowned by noise"
            marks.append(_Mark(client["client"], text, None, 0.0, 0.0))
            continue
        low, high = max(0.0, rate - 2 * error), min(1.0, rate + 2 * error)
        text = f"{rate:.2f}, between {low:.2f} and {high:.2f}"
        marks.append(_Mark(client["client"], text, *(round(_WIDTH * x, 2) for x in (rate, low, high))))
    return marks
