"""Made clients in two rounds, tables and then scores: small, and the same every time."""

from __future__ import annotations

import numpy as np

from fedsel import Pool, Workload, count
from fedsel.privacy.client import release
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.score_rule import ScoreRule
from fedsel.selection.make_rule import make_rule
from fedsel.selection.score_plan import plan_scores
from reference import made_schema

SCHEMA = made_schema([3, 4, 2, 2])
WORKLOAD = Workload.pairs(SCHEMA)
NAMES = tuple(f"c{i}" for i in range(6))


def made_columns(client: int, rows: int = 3000) -> list[np.ndarray]:
    """Rows whose target depends on a feature the more, the higher the client's number."""
    rng = np.random.default_rng(100 + client)
    first = rng.integers(0, 3, rows)
    second = (first + (rng.random(rows) < 0.3) * rng.integers(0, 4, rows)) % 4
    third = rng.integers(0, 2, rows)
    target = np.where(rng.random(rows) < 0.15 * client, second % 2, rng.integers(0, 2, rows))
    return [column.astype(np.uint8) for column in (first, second, third, target)]


COLUMNS = [made_columns(client) for client in range(len(NAMES))]


def made_plan(epsilon: float = 4.0, **options) -> NoisePlan:
    return plan_scores(SCHEMA, WORKLOAD, epsilon=epsilon, **options)


def first_round(plan: NoisePlan, seed: int = 0) -> list[Release]:
    return [
        release(count(columns, WORKLOAD), SCHEMA, plan, client=name, seed=seed)
        for name, columns in zip(NAMES, COLUMNS, strict=True)
    ]


def second_round(plan: NoisePlan, rule: ScoreRule, seed: int = 0) -> list[Release]:
    return [
        release(None, SCHEMA, plan, client=name, scores=rule.total(columns), seed=seed, round=2, part=2)
        for name, columns in zip(NAMES, COLUMNS, strict=True)
    ]


def both_rounds(epsilon: float = 4.0, seed: int = 0) -> tuple[ScoreRule, list[Release]]:
    plan = made_plan(epsilon)
    tables = first_round(plan, seed)
    rule = make_rule(Pool.from_releases(tables), plan.part(2))
    return rule, tables + second_round(plan, rule, seed)


def exact_pool() -> Pool:
    plan = NoisePlan("none", "add-remove", np.inf, 0.0, 0, (1,) * len(WORKLOAD.sets), "none")
    exact = [
        Release(name, SCHEMA, WORKLOAD, count(c, WORKLOAD).counts, plan) for name, c in zip(NAMES, COLUMNS, strict=True)
    ]
    return Pool.from_releases(exact)
