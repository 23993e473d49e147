"""A report as HTML text."""

from __future__ import annotations

import platform
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedsel import _core
from fedsel.errors import MissingExtraError
from fedsel.report import wording
from fedsel.report.evidence import Evidence
from fedsel.report.views import views

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def require_extra() -> None:
    """Raise unless what reports need is installed.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing; the message names the extra.
    """
    try:
        found = find_spec("jinja2")
    except ValueError:  # a module that was loaded without a specification
        found = None
    if found is None:
        raise MissingExtraError("a report needs jinja2, which is not installed: pip install 'fedsel[report]'")


def environment() -> Environment:
    """Return the templates, with everything that is put into them escaped.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    """
    require_extra()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Names of clients, variables and schemas come from strangers: everything is escaped.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bits=wording.number, change=wording.difference, percent=wording.percent, duration=wording.seconds
    )
    return environment


def render(evidence: Evidence, *, command: str | None = None) -> str:
    """Render a report.

    Parameters
    ----------
    evidence : Evidence
        What to show.
    command : str or None
        The command that made the selection.

    Returns
    -------
    str
        One HTML document that refers to nothing outside itself and holds no script.

    Raises
    ------
    MissingExtraError
        If jinja2 is missing.
    """
    versions = {
        "fedsel": _core.__version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
    }
    return environment().get_template("page.html").render(command=command, versions=versions, **views(evidence))
