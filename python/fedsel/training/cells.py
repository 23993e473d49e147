"""Finished parts of a comparison, kept in a folder: a file each, whole or not there.

A comparison that was stopped, however suddenly, finds them again and works out only what is missing. Numbers go through
JSON, which gives back every float as it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedsel.atomic_file import AtomicFile, make_folder
from fedsel.errors import TrainingError

_FORMAT = 1
_FACTS = "comparison.json"

Cell = Mapping[str, str | int | float | None]
"""What names a part: such as a seed, a choice, an aggregator and a draw."""


class Cells:
    """A folder of finished parts, bound to all that they depend on.

    Parameters
    ----------
    folder : Path or None
        The folder, made if need be; None keeps nothing.
    facts : mapping of str to object
        Settings and fingerprints of data that every part depends on; must be JSON.

    Raises
    ------
    TrainingError
        If the folder cannot be used, or holds parts that depend on other facts; the message names the first.
    """

    def __init__(self, folder: Path | None, facts: Mapping[str, object]) -> None:
        self._folder = folder
        text = json.dumps({"format": _FORMAT, **facts}, indent=2)
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        if folder is None:
            return
        make_folder(folder, error=TrainingError)
        path = folder / _FACTS
        if not path.exists():
            with AtomicFile(path, overwrite=True, error=TrainingError) as file:
                file.publish(text.encode())
        _check_facts(folder, _read(path), json.loads(text))

    def kept(self, cell: Cell, work: Callable[[], Any]) -> Any:
        """Return a part: from its file, or else worked out and stored before it is returned.

        Parameters
        ----------
        cell : Cell
            Names the part.
        work : callable
            Returns it, as JSON.

        Raises
        ------
        TrainingError
            If its file cannot be read, is damaged or belongs to another comparison, or cannot be written.
        """
        if self._folder is None:
            return work()
        path = self._folder / f"{'_'.join(map(str, cell.values()))}.json"
        about = {"comparison": self._digest, "cell": dict(cell)}
        if path.exists():
            found = _read(path)
            if not isinstance(found, dict) or "found" not in found or {k: found.get(k) for k in about} != about:
                raise TrainingError(f"{path}: is no part of this comparison; remove it to work it out again")
            return found["found"]
        # Through text even when new, so that a resumed comparison cannot differ from one that was not stopped.
        text = json.dumps({**about, "found": work()})
        with AtomicFile(path, overwrite=True, error=TrainingError) as file:
            file.publish(text.encode())
        return json.loads(text)["found"]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise TrainingError(f"{path}: is damaged; remove it to work it out again") from None


def _check_facts(folder: Path, found: Any, wanted: dict[str, Any]) -> None:
    if not isinstance(found, dict):
        raise TrainingError(f"{folder / _FACTS}: is no description of a comparison")
    for name in (*wanted, *found):
        if name not in found or name not in wanted or found[name] != wanted[name]:
            raise TrainingError(
                f"{folder}: holds a comparison with {name} {_shown(found, name)}, this one has {_shown(wanted, name)}; "
                f"take another folder"
            )


def _shown(facts: dict[str, Any], name: str) -> str:
    return json.dumps(facts[name])[:80] if name in facts else "(none)"
