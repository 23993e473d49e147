"""Checkpoints: a run's state after a round, in a file that is whole or not there."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedsel.atomic_file import AtomicFile
from fedsel.errors import TrainingError
from fedsel.training.data import FederatedData

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run needs to go on; random numbers depend on seed and round only, so none is stored.

    Parameters
    ----------
    key : str
        Fingerprint of everything that the numbers depend on; see `run_key`.
    round : int
        Rounds done.
    parameters : Tensor, shape (size,)
        The global model.
    best : Tensor, shape (size,)
        The model of the best round so far.
    aggregator : dict of str to Tensor
        The aggregator's state.
    history : list of dict
        Metrics so far.
    """

    key: str
    round: int
    parameters: Tensor
    best: Tensor
    aggregator: dict[str, Tensor]
    history: list[dict[str, Any]]

    def save(self, path: Path) -> None:
        """Write the file; it takes the place of an older one only when it is complete.

        Raises
        ------
        TrainingError
            If it cannot be written; an older file is then as it was.
        """
        fields = {**vars(self), "history": json.dumps(self.history), "format": _FORMAT}
        buffer = io.BytesIO()
        torch.save(fields, buffer)
        with AtomicFile(path, overwrite=True, error=TrainingError) as file:
            file.publish(buffer.getvalue())

    @classmethod
    def load(cls, path: Path, *, key: str, device: torch.device) -> Checkpoint:
        """Read a file.

        Parameters
        ----------
        path : Path
            The file.
        key : str
            Of the run that shall go on.
        device : torch.device
            Where tensors shall be.

        Raises
        ------
        TrainingError
            If it cannot be read, is damaged, or belongs to another run.
        """
        try:
            fields = torch.load(path, map_location=device, weights_only=True)
            found = int(fields.pop("format"))
            if found != _FORMAT:
                raise TrainingError(f"{path}: checkpoint has format {found}, expected {_FORMAT}")
            checkpoint = cls(**{**fields, "history": json.loads(fields["history"])})
        except OSError as error:
            raise TrainingError(f"{path}: cannot be read: {error.strerror or error}") from None
        except TrainingError:
            raise
        except Exception as error:  # whatever bytes that are no checkpoint make of the reader
            raise TrainingError(f"{path}: is no checkpoint, or damaged: {_first_line(error)}") from None
        if checkpoint.key != key:
            raise TrainingError(f"{path}: belongs to a run with other data, members or settings")
        return checkpoint


def run_key(data: FederatedData, initial: Tensor, *settings: object) -> str:
    """Return a fingerprint of a run: training rows, first model, and settings as text."""
    digest = hashlib.sha256(repr(settings).encode())
    digest.update(data.fingerprint.encode())
    digest.update(initial.cpu().numpy().tobytes())
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
