"""Plain versions of subgroup search: boolean masks, one description after another."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np


def quality_of(name, covered, y, direction="higher"):
    """The quality of a cover (a boolean mask) for an outcome, by its formula; None if it covers no row."""
    if direction == "both":
        higher = quality_of(name, covered, y)
        return higher if higher is None else max(higher, quality_of(name, covered, y, "lower"))
    y = np.asarray(y, dtype=float)
    if direction == "lower":
        y = y.max() + y.min() - y
    n, total = int(covered.sum()), len(y)
    if n == 0:
        return None
    p, p0 = y[covered].mean(), y.mean()
    if name == "lift":
        return p / p0
    if name == "piatetsky-shapiro":
        return n * (p - p0)
    if name == "chi2":
        if n == total:
            return 0.0
        observed = np.array([[y[covered].sum(), n - y[covered].sum()], [y[~covered].sum(), (1 - y[~covered]).sum()]])
        expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / total
        return float(((observed - expected) ** 2 / expected).sum()) * (1 if p >= p0 else -1)
    exponent = {"wracc": 1.0, "binomial": 0.5, "gain": 0.0}.get(name, name)
    return (n / total) ** exponent * (p - p0)


def all_subgroups(masks, y, name, *, depth, direction="higher", least=1, most=math.inf, floor=0.0):
    """(quality, condition numbers, rows) of all descriptions above the floor, best first by the tie rule."""
    found = []
    for size in range(1, depth + 1):
        for numbers in combinations(range(len(masks)), size):
            covered = np.logical_and.reduce([masks[number] for number in numbers])
            if not max(least, 1) <= covered.sum() <= most:
                continue
            quality = quality_of(name, covered, y, direction)
            if quality > floor:
                found.append((quality, list(numbers), int(covered.sum())))
    return sorted(found, key=lambda item: (-item[0], len(item[1]), item[1]))


def beam(masks, y, name, *, depth, width, k, floor=0.0):
    """The same for a beam search: the `width` best of any quality are kept, new ones refined round by round."""
    seen, held, parents = {}, [], [()]
    for round_ in range(1, depth + 1):
        for parent in parents:
            for number in range(len(masks)):
                description = tuple(sorted({*parent, number}))
                if number in parent or description in seen:
                    continue
                covered = np.logical_and.reduce([masks[c] for c in description])
                if covered.any():
                    seen[description] = (quality_of(name, covered, y), list(description), int(covered.sum()))
        held = sorted(seen.values(), key=lambda item: (-item[0], len(item[1]), item[1]))[:width]
        parents = [tuple(numbers) for _, numbers, _ in held if len(numbers) == round_]
    ranked = sorted(seen.values(), key=lambda item: (-item[0], len(item[1]), item[1]))
    return [item for item in ranked if item[0] > floor][:k]


def made_rows(seed, rows, sizes=(2, 3, 4, 5), *, numbers=False):
    """Columns of category codes, and an outcome that depends on the first two."""
    rng = np.random.default_rng(seed)
    columns = {f"v{i}": rng.integers(0, size, rows) for i, size in enumerate(sizes)}
    signal = 0.6 * (columns["v0"] == 1) + 0.8 * (columns["v1"] == 2)
    y = np.round(10 * signal + rng.normal(0, 4, rows), 3) if numbers else rng.random(rows) < 0.2 + 0.4 * signal
    return columns, y
