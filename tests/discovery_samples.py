"""Small federations with an outcome, and the plain versions of what is found in them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedsel.encode import Codes, code_dtype
from fedsel.pool import Pool
from fedsel.privacy.plan import NoisePlan
from fedsel.schema import Schema, Variable
from fedsel.subgroups.federated import SubgroupProtocol, answer, next_questions

SIZES = (3, 2, 4, 5)


def small_schema(sizes: tuple[int, ...] = SIZES, outcomes: int = 2) -> Schema:
    features = [Variable(f"x{i}", categories=tuple(range(size))) for i, size in enumerate(sizes)]
    target = Variable("y", role="target", categories=tuple(range(outcomes)))
    return Schema("small", (*features, target))


def small_clients(
    seed: int, schema: Schema, rows: tuple[int, ...] = (300, 120, 0, 40), *, strength: float = 0.4
) -> list[Codes]:
    """Rows whose outcome depends on the first two attributes, more often negative than not."""
    rng = np.random.default_rng(seed)
    clients = []
    for number in rows:
        columns = [rng.integers(0, size, number) for size in schema.domain[:-1]]
        chance = 0.2 + strength * ((columns[0] == 1) & (columns[1] == 0)) + 0.1 * (columns[0] == 2)
        outcome = np.where(rng.random(number) < chance, schema.domain[-1] - 1, 0)
        every = zip((*columns, outcome), schema.domain, strict=True)
        codes = tuple(column.astype(code_dtype(size)) for column, size in every)
        clients.append(Codes(codes, number, 0, (0,) * len(codes)))
    return clients


def run_rounds(
    protocol: SubgroupProtocol, clients: list[Codes], plans: list[NoisePlan], *, seed: int = 0
) -> list[Pool]:
    """All rounds of a protocol with seeded noise."""
    rounds: list[Pool] = []
    questions = None
    for number in range(protocol.rounds):
        releases = [
            answer(protocol, codes, plan, client=f"c{place}", questions=questions, seed=seed)
            for place, (codes, plan) in enumerate(zip(clients, plans, strict=True))
        ]
        rounds.append(Pool.from_releases(releases, allow_mixed=True))
        if number + 1 < protocol.rounds:
            questions = next_questions(protocol, rounds)
    return rounds


def plain_qualities(
    clients: list[Codes], schema: Schema, *, positive: int, depth: int = 2, base: float | None = None
) -> dict[tuple[tuple[int, int], ...], float]:
    """n/N (p - p0) of every description, by masks over all rows."""
    columns: list[npt.NDArray[np.int64]] = [
        np.concatenate([codes.columns[v].astype(np.int64) for codes in clients]) for v in range(len(schema.names))
    ]
    target = schema.names.index(schema.target or "")
    outcome = columns[target] == positive
    p0 = float(outcome.mean()) if base is None else base
    found = {}
    attributes = [v for v in range(len(schema.names)) if v != target]
    for size in range(1, depth + 1):
        for members in combinations(attributes, size):
            for codes in np.ndindex(*(schema.domain[v] for v in members)):
                cover = np.ones(len(outcome), dtype=bool)
                for v, code in zip(members, codes, strict=True):
                    cover &= columns[v] == code
                description = tuple((v, int(code)) for v, code in zip(members, codes, strict=True))
                found[description] = float((outcome[cover].sum() - p0 * cover.sum()) / len(outcome))
    return found
