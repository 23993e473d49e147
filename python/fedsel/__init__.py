"""Choose which clients should form a federated-learning federation, from differentially private statistics alone."""

from fedsel._core import __version__
from fedsel.tables import Marginals, Workload, count

__all__ = ["Marginals", "Workload", "__version__", "count"]
