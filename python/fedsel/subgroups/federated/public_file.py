"""Small public JSON files of a discovery, read as untrusted input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedsel.atomic_file import AtomicFile
from fedsel.errors import FedselError, SubgroupError

MAX_FILE = 2**22
"""Largest file that is read, in bytes."""


def write_json(content: Mapping[str, Any], path: Path, *, overwrite: bool) -> None:
    """Write a file in one step.

    Raises
    ------
    SubgroupError
        If it exists or cannot be written.
    """
    with AtomicFile(path, overwrite=overwrite, error=SubgroupError) as output:
        output.publish((json.dumps(content, indent=1) + "\n").encode())


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """Return the object in a file that says it is of this kind and of format 1.

    Raises
    ------
    SubgroupError
        If it does not, or cannot be read.
    """
    if not path.is_file():
        raise SubgroupError("expected a file, got none" if not path.exists() else "expected a file, got something else")
    if path.stat().st_size > MAX_FILE:
        raise SubgroupError(f"expected at most {MAX_FILE} bytes, got {path.stat().st_size}")
    try:
        content = json.loads(path.read_bytes().decode())
    except (ValueError, RecursionError):
        raise SubgroupError(f"expected a {kind} (JSON), got something that does not parse") from None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise SubgroupError(f"expected a {kind} (JSON), got another content")
    if content.get("format") != 1:
        raise SubgroupError(f"format: expected 1, got {content.get('format')!r:.80}")
    return content


def check_fields(content: Mapping[str, Any], fields: Mapping[str, type]) -> None:
    """Refuse an object that lacks a field or has it of another type.

    Raises
    ------
    SubgroupError
        For the first field that does not fit.
    """
    for name, kind in fields.items():
        if name not in content:
            raise SubgroupError(f"{name}: expected a value, got none")
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise SubgroupError(f"{name}: expected {kind.__name__}, got {type(content[name]).__name__}")


@contextmanager
def check_file(path: Path) -> Iterator[None]:
    """Open every error message from within with the file's name."""
    try:
        yield
    except OSError as error:
        raise SubgroupError(f"{path}: cannot be read: {error.strerror or error}") from None
    except FedselError as error:
        raise SubgroupError(f"{path}: {error}") from None
