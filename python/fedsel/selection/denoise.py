"""What the coordinator does to noisy tables before it searches; post-processing, so free of privacy cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from fedsel.errors import SelectionError
from fedsel.pool import Pool

DenoiseMethod = Literal["none", "clip"]


def denoise(pool: Pool, *, method: DenoiseMethod = "none") -> Pool:
    """Return the pool with denoised counts.

    Parameters
    ----------
    pool : Pool
        Noisy tables.
    method : {"none", "clip"}
        ``none``: as released. ``clip``: each client's negative cells become 0 before anything is summed, as in PCS
        (arXiv 2605.20975); this adds a positive bias to every rare cell.

    Returns
    -------
    Pool

    Raises
    ------
    SelectionError
        If the method is unknown.
    """
    if method not in get_args(DenoiseMethod):
        raise SelectionError(f"denoise must be one of {', '.join(get_args(DenoiseMethod))}, got {method!r}")
    return pool if method == "none" else replace(pool, counts=np.maximum(pool.counts, 0))
