"""Laying out a large pool in a file once, so that searches can map it."""

from __future__ import annotations

import os
from pathlib import Path

from fedsel.pool import Pool
from fedsel.selection.denoising import DenoiseMethod, denoise, resolve_method
from fedsel.selection.loss_tables import LossTables, Sensitive
from fedsel.selection.prepared_file import PreparedFile, write_prepared


def prepare(
    pool: Pool,
    path: str | os.PathLike[str],
    *,
    sensitive: Sensitive = None,
    denoise_method: DenoiseMethod = "auto",
    overwrite: bool = False,
) -> PreparedFile:
    """Denoise a pool and lay it out in a file for `FederationLoss.prepared` and ``select(..., prepared=path)``.

    A search then starts without denoising, and needs memory for what it looks at only: the file is mapped. Denoising
    itself holds the pool in memory; with ``denoise_method="none"``, or exact pools, the counts are read a block of
    clients at a time.

    Parameters
    ----------
    pool : Pool
        The clients' releases; its counts may be memory-mapped (`Pool.load`).
    path : path
        File to write: about 4 bytes a client and cell.
    sensitive, denoise_method
        As of `select`, which must be given the same.
    overwrite : bool
        Replace a file that exists.

    Returns
    -------
    PreparedFile

    Raises
    ------
    SelectionError
        If an argument is out of range, or the file exists already or cannot be written.
    """
    tables = LossTables.of(pool, sensitive)
    ready = denoise(pool, method=denoise_method)
    method = resolve_method(pool, denoise_method)
    return write_prepared(Path(path), pool, ready, tables, denoise=method, overwrite=overwrite)
