"""Fixtures shared by all tests, and the rule for tests that need an optional dependency."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# Shared and slow machines make deadlines flaky. Runs repeat; `--hypothesis-profile explore` looks for new cases.
settings.register_profile("fedsel", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("fedsel")

ROOT = Path(__file__).resolve().parent.parent


def require_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra, or skip; where FEDSEL_REQUIRE_ALL=1, fail.

    Call it at the head of a test module (``from conftest import require_extra``) or inside a test.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        reason = f"needs {module}: pip install 'fedsel[{extra}]' ({error})"
    if os.environ.get("FEDSEL_REQUIRE_ALL") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data files: $FEDSEL_DATA, or else ../shared/data beside the project."""
    given = os.environ.get("FEDSEL_DATA")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data not found in {folder}; FEDSEL_DATA names its folder")
    return folder
