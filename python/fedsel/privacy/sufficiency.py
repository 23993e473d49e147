"""How many records a client needs for its counts to say something through the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fedsel.privacy.plan import NoisePlan
    from fedsel.tables import Workload

_ENOUGH = 10  # times the records at which the average count of a table equals the noise


def noise_bounds(workload: Workload, plan: NoisePlan) -> tuple[float, float]:
    """Return how many records a client needs for its counts not to drown in a plan's noise, and not to be blurred.

    At the first number the average count of the middle table (by cells times noise scale) equals the scale: noise alone
    makes two independent variables of one client look as if they shared 0.2 to 0.3 bits. That falls with the square of
    the records, to 0.004 bits at the second number, ten times the first, and with the size of the federation.
    """
    drowned = float(np.median(workload.sizes * plan.scale[: plan.tables]))
    return drowned, _ENOUGH * drowned
