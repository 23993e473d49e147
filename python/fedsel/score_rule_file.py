"""Score rules as files: JSON that the coordinator publishes and clients read as untrusted input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from fedsel.atomic_file import AtomicFile
from fedsel.errors import FedselError, RuleError
from fedsel.release import check_workload
from fedsel.schema import Schema
from fedsel.score_rule import ScoreRule
from fedsel.tables import Workload

MAX_FILE = 64 * 2**20
"""Largest rule file that is read, in bytes."""

_FIELDS: dict[str, type] = {
    "format": int,
    "kind": str,
    "schema": str,
    "sets": list,
    "names": list,
    "coefficients": list,
    "information": list,
    "proportions": list,
    "centres": list,
    "bounds": list,
    "resolution": int,
}


def write_rule(rule: ScoreRule, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a rule file in one step.

    Raises
    ------
    RuleError
        If the file exists or cannot be written.
    """
    with AtomicFile(Path(path), overwrite=overwrite, error=RuleError) as output:
        output.publish(rule.to_json().encode())


def read_rule(path: str | os.PathLike[str]) -> ScoreRule:
    """Read and check a rule file.

    Raises
    ------
    RuleError
        If the file cannot be read or is not a valid rule; one line that names file, field, expected and got.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise RuleError("expected a file, got none" if not file.exists() else "expected a file, got something else")
        if file.stat().st_size > MAX_FILE:
            raise RuleError(f"expected at most {MAX_FILE} bytes, got {file.stat().st_size}")
        return _rule(_content(file.read_bytes()))
    except OSError as error:
        raise RuleError(f"{file}: cannot be read: {error.strerror or error}") from None
    except FedselError as error:
        raise RuleError(f"{file}: {error}") from None


def _content(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise RuleError("expected a score rule (JSON), got something that does not parse") from None
    if not isinstance(content, dict) or content.get("kind") != "score-rule":
        raise RuleError("expected a score rule (JSON), got another content")
    if content.get("format") != 1:
        raise RuleError(f"format: expected 1, got {content.get('format')!r:.80}")
    for name, kind in _FIELDS.items():
        if name not in content:
            raise RuleError(f"{name}: expected a value, got none")
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise RuleError(f"{name}: expected {kind.__name__}, got {type(content[name]).__name__}")
    return content


def _rule(content: dict[str, Any]) -> ScoreRule:
    schema = Schema.from_json(content["schema"])
    sets = tuple(tuple(_numbers("sets", members, int)) for members in content["sets"])
    workload = Workload(schema.names, schema.domain, sets)
    check_workload(workload, schema)
    names = tuple(content["names"])
    coefficients = [_numbers("coefficients", row, float) for row in content["coefficients"]]
    if any(len(row) != len(sets) for row in coefficients):
        raise RuleError(f"coefficients: expected {len(sets)} a score, one per table")
    return ScoreRule(
        schema=schema,
        workload=workload,
        names=names,
        coefficients=np.array(coefficients, dtype=np.float64).reshape(len(coefficients), len(sets)),
        information=np.array(_numbers("information", content["information"], float), dtype=np.float64),
        proportions=np.array(_numbers("proportions", content["proportions"], float), dtype=np.float64),
        centres=tuple(_numbers("centres", content["centres"], float)),
        bounds=tuple(_numbers("bounds", content["bounds"], float)),
        resolution=content["resolution"],
    )


def _numbers(field: str, values: object, kind: type) -> list[Any]:
    """Return a list of integers or of numbers, or refuse it."""
    accepted = (int,) if kind is int else (int, float)
    if not isinstance(values, list) or not all(isinstance(v, accepted) and not isinstance(v, bool) for v in values):
        raise RuleError(f"{field}: expected a list of {'integers' if kind is int else 'numbers'}")
    if any(abs(value) > 2**63 for value in values):
        raise RuleError(f"{field}: expected numbers of magnitude at most 2**63")
    return [kind(value) for value in values]
