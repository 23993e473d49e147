"""The metadata of a release file: one JSON object under one key, read as untrusted input."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, cast

from fedsel.errors import FedselError, PrivacyError, ReleaseError
from fedsel.privacy.plan import Accounting, Adjacency, Mechanism, NoisePlan
from fedsel.privacy.statement import json_number
from fedsel.release import (
    Release,
    check_client_name,
    check_plan,
    check_protocol,
    check_round,
    check_rows,
    check_workload,
)
from fedsel.release_fields import check_fields, shown
from fedsel.release_queries import Queries, describe_queries, read_queries
from fedsel.schema import Schema
from fedsel.score_rule import ScoreQueries
from fedsel.tables import Workload

KEY = b"fedsel"
FORMAT = 1
"""Format of a release of tables in one round; 2 adds scores and protocols of several rounds."""

FORMATS = (1, 2)
MAX_METADATA = 8 * 2**20  # bytes; the largest schema and workload that make sense stay far below
MAX_SCHEMA = 2**20  # characters

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "client": str,
    "round": int,
    "adjacency": str,
    "mechanism": str,
    "accounting": str,
    "epsilon": (float, int, str),
    "delta": (float, int),
    "numerator": int,
    "queries": list,
    "seeded": bool,
    "fingerprint": str,
    "schema": str,
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"rows": int}
_OPTIONAL_2: dict[str, type | tuple[type, ...]] = {**_OPTIONAL, "rule": str, "protocol": dict}
_PROTOCOL_FIELDS: dict[str, type | tuple[type, ...]] = {"weights": list, "scores": list, "rounds": list}


@dataclass(frozen=True)
class ReleaseHeader:
    """Everything a release file states besides its counts; fields as in `Release`."""

    client: str
    schema: Schema
    workload: Workload
    plan: NoisePlan
    round: int
    seeded: bool
    rows: int | None
    scores: ScoreQueries | None
    protocol: NoisePlan | None

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores, none if there are none."""
        return () if self.scores is None else self.scores.names

    @property
    def cells(self) -> int:
        """Number of counts: cells of all tables, and scores."""
        return self.workload.cells + len(self.score_names)


def write_metadata(release: Release) -> bytes:
    """Return the metadata of a release as canonical JSON (UTF-8).

    Query t of the discrete Gaussian has sigma^2 = numerator / weight, of the discrete Laplace b = numerator / weight,
    exactly; ``scale`` is the same as a float.
    """
    plan = release.plan
    content: dict[str, Any] = {
        "format": FORMAT if release.scores is None and release.protocol is None else 2,
        "client": release.client,
        "round": release.round,
        "adjacency": plan.adjacency,
        "mechanism": plan.mechanism,
        "accounting": plan.accounting,
        "epsilon": json_number(float(plan.epsilon)),
        "delta": float(plan.delta),
        "numerator": int(plan.numerator),
        "queries": describe_queries(release.workload, release.scores, plan),
        "seeded": release.seeded,
        "fingerprint": release.schema.fingerprint,
        "schema": release.schema.to_json(),
    }
    if release.rows is not None:
        content["rows"] = release.rows
    if release.scores is not None:
        content["rule"] = release.scores.rule
    if release.protocol is not None:
        whole = release.protocol
        content["protocol"] = {
            field: [int(number) for number in getattr(whole, field)] for field in ("weights", "scores", "rounds")
        }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


class MetadataReader:
    """Reads the metadata of many files, parsing equal schemas and workloads once."""

    def __init__(self) -> None:
        self._schema_text = ""
        self._schema: Schema | None = None
        self._workload: Workload | None = None

    def read(self, text: bytes) -> ReleaseHeader:
        """Parse and check metadata.

        Raises
        ------
        ReleaseError
            If anything is missing, unknown, of the wrong type, out of range or contradictory.
        """
        content = _parse(text)
        if "format" in content and content["format"] not in FORMATS:
            raise ReleaseError(
                f"metadata: format: expected {' or '.join(map(str, FORMATS))}, got {shown(content['format'])}"
            )
        optional = _OPTIONAL if content.get("format") == FORMAT else _OPTIONAL_2
        check_fields(content, _FIELDS, optional=optional, where="metadata")
        schema = self._read_schema(content["schema"], content["fingerprint"])
        queries = read_queries(content["queries"], schema, content.get("rule"))
        workload = self._read_workload(schema, queries.sets)
        check_workload(workload, schema)
        plan = _plan(content, queries.weights, queries.sensitivities)
        check_plan(plan, len(queries.sets), queries.scores)
        _check_scales(queries, plan, workload)
        protocol = _protocol(content)
        check_protocol(protocol, plan, check_round(content["round"]))
        check_rows(content.get("rows"), schema, plan)
        return ReleaseHeader(
            client=check_client_name(content["client"]),
            schema=schema,
            workload=workload,
            plan=plan,
            round=check_round(content["round"]),
            seeded=content["seeded"],
            rows=content.get("rows"),
            scores=queries.scores,
            protocol=protocol,
        )

    def _read_schema(self, text: str, fingerprint: str) -> Schema:
        if len(text) > MAX_SCHEMA:
            raise ReleaseError(f"metadata: schema: expected at most {MAX_SCHEMA} characters, got {len(text)}")
        if self._schema is None or text != self._schema_text:
            try:
                self._schema = Schema.from_json(text)
            except FedselError as error:
                raise ReleaseError(f"metadata: {error}") from None
            self._schema_text = text
        if fingerprint != self._schema.fingerprint:
            expected = f"expected {self._schema.fingerprint}, that of the schema"
            raise ReleaseError(f"metadata: fingerprint: {expected}, got {shown(fingerprint)}")
        return self._schema

    def _read_workload(self, schema: Schema, sets: tuple[tuple[int, ...], ...]) -> Workload:
        if (
            self._workload is None
            or (self._workload.names, self._workload.sets) != (schema.names, sets)
            or (self._workload.domain != schema.domain)
        ):
            self._workload = Workload(schema.names, schema.domain, sets)
        return self._workload


def _parse(text: bytes) -> dict[str, Any]:
    if len(text) > MAX_METADATA:
        raise ReleaseError(f"metadata: expected at most {MAX_METADATA} bytes, got {len(text)}")
    try:
        content = json.loads(text.decode(), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except RecursionError:
        raise ReleaseError("metadata: expected a JSON object, got one nested too deeply") from None
    except ReleaseError:
        raise
    except ValueError as error:
        raise ReleaseError(f"metadata: expected a JSON object, got text that does not parse: {error}") from None
    if not isinstance(content, dict):
        raise ReleaseError(f"metadata: expected a JSON object, got {type(content).__name__}")
    return content


def _no_constant(name: str) -> Any:
    raise ReleaseError(f"metadata: expected finite numbers, got {name}")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ReleaseError("metadata: a field occurs twice")
    return content


def _check_scales(queries: Queries, plan: NoisePlan, workload: Workload) -> None:
    for index, (stated, scale) in enumerate(zip(queries.scales, plan.scale.tolist(), strict=True)):
        if not math.isclose(stated, scale, rel_tol=1e-9):
            if index < len(queries.sets):
                where = f"table {workload.label(index)!r}"
            else:
                where = f"score {queries.names[index - len(queries.sets)]!r}"
            raise ReleaseError(
                f"metadata: queries: {where}: scale: expected {scale!r} from numerator and weight, got {stated!r}"
            )


def _protocol(content: dict[str, Any]) -> NoisePlan | None:
    stated = content.get("protocol")
    if stated is None:
        return None
    check_fields(stated, _PROTOCOL_FIELDS, where="metadata: protocol")
    for field, numbers in stated.items():
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 < n <= 2**63 for n in numbers):
            raise ReleaseError(f"metadata: protocol: {field}: expected positive integers of 64 bits")
    try:
        return _plan(content, tuple(stated["weights"]), tuple(stated["scores"]), tuple(stated["rounds"]))
    except PrivacyError as error:
        raise ReleaseError(f"metadata: protocol: {error}") from None


def _plan(
    content: dict[str, Any], weights: tuple[int, ...], scores: tuple[int, ...] = (), rounds: tuple[int, ...] = ()
) -> NoisePlan:
    epsilon = content["epsilon"]
    if isinstance(epsilon, str):
        if epsilon != "inf":
            raise ReleaseError(f"metadata: epsilon: expected a number or 'inf', got {shown(epsilon)}")
        epsilon = math.inf
    return NoisePlan(
        mechanism=cast(Mechanism, content["mechanism"]),
        adjacency=cast(Adjacency, content["adjacency"]),
        epsilon=float(epsilon),
        delta=float(content["delta"]),
        numerator=content["numerator"],
        weights=weights,
        accounting=cast(Accounting, content["accounting"]),
        scores=scores,
        rounds=rounds,
    )
