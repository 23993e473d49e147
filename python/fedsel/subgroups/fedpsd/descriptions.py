"""Candidate descriptions: conjunctions of categories, at most one an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Pair = tuple[int, int]
"""An attribute's position and one of its category codes."""

Description = tuple[Pair, ...]
"""Conditions in increasing order of their attributes."""


def singles(attributes: Sequence[int], domain: Sequence[int]) -> list[Description]:
    """Return every description of one condition, in order; attributes of one category have none."""
    return [((a, code),) for a in attributes if domain[a] > 1 for code in range(domain[a])]


def refine(description: Description, condition: Pair) -> Description | None:
    """Add a condition, or return None if the description has one on that attribute."""
    if any(attribute == condition[0] for attribute, _ in description):
        return None
    return tuple(sorted((*description, condition)))


def joins(beam: Sequence[Description], depth: int) -> list[Description]:
    """Return what two descriptions of a beam make together, of exactly `depth` conditions, best pairs first.

    The pair of ranks (i, j), i < j, comes in the order of j, then i: what is made of the best comes first.
    """
    found: dict[Description, None] = {}
    for j in range(len(beam)):
        for i in range(j):
            merged = dict(beam[i])
            if all(merged.setdefault(attribute, code) == code for attribute, code in beam[j]) and len(merged) == depth:
                found.setdefault(tuple(sorted(merged.items())))
    return list(found)


def unique(descriptions: Iterable[Description]) -> list[Description]:
    """Return them without repetitions, in order."""
    return list(dict.fromkeys(descriptions))
