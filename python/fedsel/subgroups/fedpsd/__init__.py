"""FedPSD: federated subgroup discovery by noisy count pairs of one candidate description after another.

A reproduction of the FedPSD manuscript's protocol, its privacy completed: every statistic that leaves a client is
charged to the client's account first. The variant that the manuscript reports charges neither proposals nor
preprocessing; it is there under settings that label the result as not private.
"""

from fedsel.subgroups.fedpsd.account import Account
from fedsel.subgroups.fedpsd.budgets import personalised_budgets, uniform_budgets
from fedsel.subgroups.fedpsd.client import FedPsdClient
from fedsel.subgroups.fedpsd.coordinator import run_fedpsd
from fedsel.subgroups.fedpsd.result import FedPsdResult, ScoredDescription
from fedsel.subgroups.fedpsd.settings import FedPsdSettings

__all__ = [
    "Account",
    "FedPsdClient",
    "FedPsdResult",
    "FedPsdSettings",
    "ScoredDescription",
    "personalised_budgets",
    "run_fedpsd",
    "uniform_budgets",
]
