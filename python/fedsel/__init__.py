"""Choose which clients should form a federated-learning federation, from differentially private statistics alone.

At a client: `Schema` and `encode` turn rows into category codes, `count` into the tables of a `Workload`, and
`fedsel.privacy.client.release` adds noise, charges the ledger and writes a `Release`. At the coordinator: `Pool`
gathers releases and `select` searches for the best federation.
"""

from fedsel._core import __version__
from fedsel.encode import Codes, encode, encode_file
from fedsel.errors import FedselError
from fedsel.pool import Pool
from fedsel.release import Release
from fedsel.schema import Schema, Variable
from fedsel.selection import FederationLoss, GeometricSchedule, LogarithmicSchedule, LossWeights, Selection, select
from fedsel.tables import Marginals, Workload, count

__all__ = [
    "Codes",
    "FederationLoss",
    "FedselError",
    "GeometricSchedule",
    "LogarithmicSchedule",
    "LossWeights",
    "Marginals",
    "Pool",
    "Release",
    "Schema",
    "Selection",
    "Variable",
    "Workload",
    "__version__",
    "count",
    "encode",
    "encode_file",
    "select",
]
