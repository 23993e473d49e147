"""Checkpoints of long proofs: how far the work has come, in a file that is whole or not there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsel.atomic_file import AtomicFile
from fedsel.errors import SelectionError
from fedsel.pool import Pool
from fedsel.selection.constraints import Ruleset
from fedsel.selection.loss import FederationLoss

INTERVAL = 2.0
"""Seconds of work between two writes, about."""

_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A file, and what the work that it belongs to depends on.

    Parameters
    ----------
    path : Path
        The file; it may not exist yet.
    key : str
        Digest of pool and settings; see `work_key`.
    """

    path: Path
    key: str

    def load(self, work: str, **settings: object) -> dict[str, Any] | None:
        """Read how far the work has come; None if there is no file.

        Parameters
        ----------
        work : str
            What is done.
        **settings
            What it depends on besides the pool.

        Raises
        ------
        SelectionError
            If the file cannot be read, is damaged, or belongs to another pool, other settings or other work.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SelectionError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        try:
            fields = json.loads(text)
            body, digest = json.dumps(fields["body"], sort_keys=True), fields["digest"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise SelectionError(f"{self.path}: is no checkpoint of a selection, or damaged") from None
        if hashlib.sha256(body.encode()).hexdigest() != digest:
            raise SelectionError(f"{self.path}: is damaged: its content does not have the digest it states")
        found = fields["body"]
        if found["format"] != _FORMAT:
            raise SelectionError(f"{self.path}: checkpoint has format {found['format']}, expected {_FORMAT}")
        if found["work"] != work or found["key"] != self._key(work, settings):
            raise SelectionError(f"{self.path}: belongs to another pool, or to a selection with other settings")
        state: dict[str, Any] = found["state"]
        return state

    def save(self, state: dict[str, Any], work: str, **settings: object) -> None:
        """Write how far the work has come, in place of what was there.

        Raises
        ------
        SelectionError
            If that fails; an older file is then as it was.
        """
        body = {"format": _FORMAT, "work": work, "key": self._key(work, settings), "state": state}
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        with AtomicFile(self.path, overwrite=True, error=SelectionError) as file:
            file.publish(json.dumps({"body": body, "digest": digest}).encode())

    def _key(self, work: str, settings: dict[str, object]) -> str:
        return hashlib.sha256(repr((self.key, work, sorted(settings.items()))).encode()).hexdigest()


def work_key(pool: Pool, loss: FederationLoss, ruleset: Ruleset, k: int, keep: int) -> str:
    """Return a digest of everything that enumeration depends on.

    Parameters
    ----------
    pool : Pool
        Denoised.
    loss : FederationLoss
        Of that pool.
    ruleset : Ruleset
        Constraints.
    k, keep : int
        Number of members, and of the best federations that are kept.
    """
    rules = [(rule.lower, rule.upper, rule.amounts.tolist()) for rule in ruleset.rules]
    settings = (pool.clients, pool.schema.fingerprint, pool.workload.sets, pool.unit, loss.weights.signed.tolist())
    digest = hashlib.sha256(repr((*settings, loss.sensitive, ruleset.fixed, ruleset.excluded, rules, k, keep)).encode())
    for row in pool.counts:  # a row at a time: the pool may be memory-mapped
        digest.update(np.ascontiguousarray(row, dtype="<i8").tobytes())
    return digest.hexdigest()
