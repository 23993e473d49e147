"""Private federated subgroup discovery from marginals: attributes by outcome, released in rounds.

Conditions on one attribute are disjoint, so a whole table of an attribute, or of a pair of them, by the outcome changes
in one cell when a record comes or goes, however many descriptions can be read off it.
"""

from fedsel.subgroups.federated.choosing import next_questions
from fedsel.subgroups.federated.client import answer
from fedsel.subgroups.federated.discover import discover
from fedsel.subgroups.federated.protocol import SubgroupProtocol, read_protocol, write_protocol
from fedsel.subgroups.federated.questions import Questions, read_questions, write_questions
from fedsel.subgroups.federated.result import FederatedSubgroup, FederatedSubgroups

__all__ = [
    "FederatedSubgroup",
    "FederatedSubgroups",
    "Questions",
    "SubgroupProtocol",
    "answer",
    "discover",
    "next_questions",
    "read_protocol",
    "read_questions",
    "write_protocol",
    "write_questions",
]
