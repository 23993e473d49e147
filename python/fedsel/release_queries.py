"""The list of queries in a release's metadata: tables first, then scores, each with its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedsel.errors import ReleaseError, RuleError
from fedsel.privacy.plan import NoisePlan
from fedsel.release_fields import check_fields, shown
from fedsel.schema import Schema
from fedsel.score_rule import MAX_SCORES, ScoreQueries
from fedsel.tables import MAX_ORDER, Workload

MAX_TABLES = 50_000  # all triples of 67 variables

_TABLE_FIELDS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "variables": list,
    "weight": int,
    "scale": (float, int),
}
_SCORE_FIELDS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "name": str,
    "resolution": int,
    "unit": (float, int),
    "weight": int,
    "scale": (float, int),
}


@dataclass(frozen=True)
class Queries:
    """What a release's metadata say it holds.

    Parameters
    ----------
    sets : tuple of tuple of int
        Variables of each table.
    scores : ScoreQueries or None
        The scores.
    weights : tuple of int
        Of every query.
    scales : tuple of float
        Of every query, as stated.
    """

    sets: tuple[tuple[int, ...], ...]
    scores: ScoreQueries | None
    weights: tuple[int, ...]
    scales: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return () if self.scores is None else self.scores.names

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """D of each score."""
        return () if self.scores is None else (self.scores.resolution,) * len(self.scores.names)


def describe_queries(workload: Workload, scores: ScoreQueries | None, plan: NoisePlan) -> list[dict[str, Any]]:
    """Return the queries of a release as JSON values."""
    described: list[dict[str, Any]] = [
        {"kind": "marginal", "variables": [workload.names[v] for v in members]} for members in workload.sets
    ]
    if scores is not None:
        described += [
            {"kind": "score", "name": name, "resolution": scores.resolution, "unit": float(unit)}
            for name, unit in zip(scores.names, scores.units, strict=True)
        ]
    for query, weight, scale in zip(described, plan.weights, plan.scale.tolist(), strict=True):
        query["weight"], query["scale"] = int(weight), float(scale)
    return described


def read_queries(queries: list[Any], schema: Schema, rule: str | None) -> Queries:
    """Read what `describe_queries` wrote, as untrusted input.

    Parameters
    ----------
    queries : list
        JSON values.
    schema : Schema
        Names the variables.
    rule : str or None
        Identity of the score rule, required with scores and refused without.

    Raises
    ------
    ReleaseError
        If a query is malformed, unknown or out of order.
    """
    if not 1 <= len(queries) <= MAX_TABLES + MAX_SCORES:
        raise ReleaseError(f"metadata: queries: expected 1 to {MAX_TABLES + MAX_SCORES}, got {len(queries)}")
    position = {name: place for place, name in enumerate(schema.names)}
    sets: list[tuple[int, ...]] = []
    scores: list[dict[str, Any]] = []
    for number, query in enumerate(queries, start=1):
        where = f"metadata: query {number}"
        if not isinstance(query, dict):
            raise ReleaseError(f"{where}: expected a JSON object, got {shown(query)}")
        if rule is not None and query.get("kind") == "score":
            check_fields(query, _SCORE_FIELDS, where=where)
            scores.append(query)
            continue
        check_fields(query, _TABLE_FIELDS, where=where)
        if query["kind"] != "marginal":
            raise ReleaseError(f"{where}: kind: expected 'marginal', got {shown(query['kind'])}")
        if scores:
            raise ReleaseError(f"{where}: expected tables before scores, got a table after one")
        names = query["variables"]
        if not 1 <= len(names) <= MAX_ORDER:
            raise ReleaseError(f"{where}: variables: expected 1 to {MAX_ORDER}, got {len(names)}")
        for name in names:
            if not isinstance(name, str) or name not in position:
                raise ReleaseError(f"{where}: variables: expected variables of the schema, got {shown(name)}")
        sets.append(tuple(position[name] for name in names))
    return Queries(
        tuple(sets),
        None if rule is None else _scores(scores, rule),
        tuple(query["weight"] for query in queries),
        tuple(float(query["scale"]) for query in queries),
    )


def _scores(scores: list[dict[str, Any]], rule: str) -> ScoreQueries:
    if len({score["resolution"] for score in scores}) > 1:
        raise ReleaseError("metadata: queries: expected one resolution for all scores, got several")
    try:
        return ScoreQueries(
            tuple(score["name"] for score in scores),
            scores[0]["resolution"] if scores else 1,
            tuple(float(score["unit"]) for score in scores),
            rule,
        )
    except RuleError as error:
        raise ReleaseError(f"metadata: queries: {error}") from None
