"""Subgroup discovery on rows held in one place: readable descriptions of where an outcome differs.

Nothing here is private: what is found may be shown to whoever may see the rows.
"""

from fedsel.subgroups.attributes import Attribute, AttributeRules
from fedsel.subgroups.conditions import Condition
from fedsel.subgroups.discovery import SubgroupDiscovery
from fedsel.subgroups.quality import QUALITIES
from fedsel.subgroups.result import Subgroup

__all__ = ["QUALITIES", "Attribute", "AttributeRules", "Condition", "Subgroup", "SubgroupDiscovery"]
