"""What happens at a client of FedPSD: its rows, its account, its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedsel.errors import SubgroupError
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.entropy import Entropy, SystemEntropy
from fedsel.privacy.events import ComposedEvent, PureSelectionEvent
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.subgroups.fedpsd.account import Account
from fedsel.subgroups.fedpsd.channel import Channel
from fedsel.subgroups.fedpsd.descriptions import Description
from fedsel.subgroups.fedpsd.selecting import SelectionMechanism, select_privately

Columns = Sequence[npt.NDArray[np.generic]]


def pair_plan(epsilon: float) -> NoisePlan:
    """Return the noise of one count pair (size, positives).

    Both counts change by at most one when a record is replaced, and by one when it comes or goes: L1 sensitivity 2
    either way, that of two cells of a table under replacement. So each gets discrete Laplace noise of scale 2 / epsilon
    (manuscript, equation 2, with integers).
    """
    return plan_noise(1, epsilon=epsilon, adjacency="replace-one", mechanism="discrete-laplace")


class FedPsdClient:
    """One client.

    Parameters
    ----------
    name : str
        Its name.
    columns : sequence of ndarray, each of shape (rows,)
        Category codes of its rows by variable.
    positive : ndarray of bool, shape (rows,)
        The outcome.
    epsilon : float
        Its whole budget; replacing one record is what it protects.
    channel : Channel
        The way to the coordinator.
    entropy : Entropy, optional
        Source of noise; the operating system's unless given.

    Notes
    -----
    The number of its rows is public, as the manuscript has it.
    """

    def __init__(
        self,
        name: str,
        columns: Columns,
        positive: npt.NDArray[np.bool_],
        *,
        epsilon: float,
        channel: Channel,
        entropy: Entropy | None = None,
    ) -> None:
        self.name = name
        self.size = len(positive)
        self.account = Account(name, epsilon)
        self._columns, self._positive = columns, positive
        self._channel = channel
        self._entropy = SystemEntropy() if entropy is None else entropy
        self._covers: dict[tuple[int, int], npt.NDArray[np.bool_]] = {}

    def release(self, descriptions: Sequence[Description], epsilon: float) -> list[tuple[int, int]]:
        """Send noisy count pairs of descriptions, of as many as the account allows, in order.

        Parameters
        ----------
        descriptions : sequence of Description
            What is asked.
        epsilon : float
            For each pair.
        """
        number = min(len(descriptions), self.account.affordable(epsilon))
        if number == 0:
            return []
        plan = pair_plan(epsilon)
        entry = self.account.charge(plan, epsilon * number, f"{number} count pairs")
        exact = np.array([self._counts(description) for description in descriptions[:number]], dtype=np.int64)
        noisy = add_noise(exact.ravel(), np.array([exact.size]), plan, entropy=self._entropy).reshape(exact.shape)
        pairs = [(int(size), int(positives)) for size, positives in noisy]
        sent: list[tuple[int, int]] = self._channel.send(self.account, "counts", pairs, entry)
        return sent

    def propose(
        self,
        candidates: Sequence[Description],
        number: int,
        base: float,
        *,
        epsilon: float,
        mechanism: SelectionMechanism,
    ) -> list[Description]:
        """Send the candidates that look best here, chosen privately one after another; none if it cannot be paid.

        The score of a description is u - p0 n, in records: with p0 public, replacing a record moves it by at most 1.

        Parameters
        ----------
        candidates : sequence of Description
            Public ones to choose from.
        number : int
            How many.
        base : float
            p0.
        epsilon : float
            For all of them together.
        mechanism : {'exponential', 'permute-and-flip'}
            How.
        """
        number = min(number, len(candidates))
        if number == 0 or not self.account.fits(epsilon):
            return []
        each = PureSelectionEvent(epsilon / number, mechanism)
        entry = self.account.charge(ComposedEvent((each,) * number), epsilon, "proposals")
        scores = self._scores(candidates, base)
        chosen: list[Description] = []
        left = list(range(len(candidates)))
        for _ in range(number):
            place = select_privately(
                scores[left], epsilon / number, sensitivity=1.0, mechanism=mechanism, entropy=self._entropy
            )
            chosen.append(candidates[left.pop(place)])
        sent: list[Description] = self._channel.send(self.account, "proposal", chosen, entry)
        return sent

    def propose_exactly(self, candidates: Sequence[Description], number: int, base: float) -> list[Description]:
        """Send the candidates that are best here, which is **not private**."""
        order = np.argsort(-self._scores(candidates, base), kind="stable")[:number]
        best = [candidates[place] for place in order]
        sent: list[Description] = self._channel.send(self.account, "exact proposal", best)
        return sent

    def support_exactly(self, descriptions: Sequence[Description]) -> list[int]:
        """Send how many records each covers, which is **not private**."""
        counts = [self._counts(description)[0] for description in descriptions]
        sent: list[int] = self._channel.send(self.account, "exact support", counts)
        return sent

    def report_budget(self) -> float:
        """Send how much is left."""
        left: float = self._channel.send(self.account, "budget left", self.account.left)
        return left

    def _scores(self, candidates: Sequence[Description], base: float) -> npt.NDArray[np.float64]:
        pairs = [self._counts(description) for description in candidates]
        return np.array([positives - base * records for records, positives in pairs])

    def _counts(self, description: Description) -> tuple[int, int]:
        cover = np.ones(self.size, dtype=np.bool_)
        for attribute, code in description:
            cover = cover & self._cover(attribute, code)
        return int(np.count_nonzero(cover)), int(np.count_nonzero(cover & self._positive))

    def _cover(self, attribute: int, code: int) -> npt.NDArray[np.bool_]:
        if (attribute, code) not in self._covers:
            self._covers[attribute, code] = np.asarray(self._columns[attribute]) == code
        return self._covers[attribute, code]


def check_budget(epsilon: float, queries: int, name: str) -> None:
    """Refuse a budget that is too small for one query, before anything is spent.

    Raises
    ------
    SubgroupError
        If a count pair's share of it is below what noise can be calibrated for.
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise SubgroupError(f"client {name!r}: the budget must be a positive number, got {epsilon}")
    try:
        pair_plan(epsilon / queries)
    except ValueError as error:
        raise SubgroupError(
            f"client {name!r}: a budget of epsilon {epsilon:g} does not suit {queries} count pairs: {error}"
        ) from None
