"""The metadata of a release file: one JSON object under one key, read as untrusted input."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, cast

from fedsel.errors import FedselError, ReleaseError
from fedsel.privacy.plan import Accounting, Adjacency, Mechanism, NoisePlan
from fedsel.privacy.statement import json_number
from fedsel.release import Release, check_client_name, check_plan, check_round, check_rows, check_workload
from fedsel.schema import Schema
from fedsel.tables import MAX_ORDER, Workload

KEY = b"fedsel"
FORMAT = 1
MAX_METADATA = 8 * 2**20  # bytes; the largest schema and workload that make sense stay far below
MAX_SCHEMA = 2**20  # characters
MAX_TABLES = 50_000  # all triples of 67 variables

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
_QUERY_FIELDS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "variables": list,
    "weight": int,
    "scale": (float, int),
}


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


def write_metadata(release: Release) -> bytes:
    """Return the metadata of a release as canonical JSON (UTF-8).

    Table t of the discrete Gaussian has sigma^2 = numerator / weight, of the discrete Laplace b = numerator / weight,
    exactly; ``scale`` is the same as a float.
    """
    plan, workload = release.plan, release.workload
    content: dict[str, Any] = {
        "format": FORMAT,
        "client": release.client,
        "round": release.round,
        "adjacency": plan.adjacency,
        "mechanism": plan.mechanism,
        "accounting": plan.accounting,
        "epsilon": json_number(float(plan.epsilon)),
        "delta": float(plan.delta),
        "numerator": int(plan.numerator),
        "queries": [
            {
                "kind": "marginal",
                "variables": [workload.names[v] for v in members],
                "weight": int(weight),
                "scale": float(scale),
            }
            for members, weight, scale in zip(workload.sets, plan.weights, plan.scale.tolist(), strict=True)
        ],
        "seeded": release.seeded,
        "fingerprint": release.schema.fingerprint,
        "schema": release.schema.to_json(),
    }
    if release.rows is not None:
        content["rows"] = release.rows
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
        if "format" in content and content["format"] != FORMAT:
            raise ReleaseError(f"metadata: format: expected {FORMAT}, got {shown(content['format'])}")
        _check_fields(content, _FIELDS, optional={"rows": int}, where="metadata")
        schema = self._read_schema(content["schema"], content["fingerprint"])
        sets, weights, scales = _queries(content["queries"], schema)
        workload = self._read_workload(schema, sets)
        check_workload(workload, schema)
        plan = _plan(content, weights)
        check_plan(plan, len(sets))
        for table, (stated, scale) in enumerate(zip(scales, plan.scale.tolist(), strict=True)):
            if not math.isclose(stated, scale, rel_tol=1e-9):
                where = f"queries: table {workload.label(table)!r}"
                raise ReleaseError(
                    f"metadata: {where}: scale: expected {scale!r} from numerator and weight, got {stated!r}"
                )
        check_rows(content.get("rows"), schema, plan)
        return ReleaseHeader(
            client=check_client_name(content["client"]),
            schema=schema,
            workload=workload,
            plan=plan,
            round=check_round(content["round"]),
            seeded=content["seeded"],
            rows=content.get("rows"),
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


def shown(value: object) -> str:
    """Return untrusted content for a message: one line, at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


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


def _check_fields(
    content: dict[str, Any],
    fields: dict[str, type | tuple[type, ...]],
    *,
    where: str,
    optional: dict[str, type | tuple[type, ...]] | None = None,
) -> None:
    allowed = {**fields, **(optional or {})}
    for name in fields:
        if name not in content:
            raise ReleaseError(f"{where}: {name}: expected a value, got none")
    for name, value in content.items():
        if name not in allowed:
            raise ReleaseError(f"{where}: expected only the known fields, got {shown(name)}")
        kinds = allowed[name]
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        # bool is an int to Python but not to JSON
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ReleaseError(f"{where}: {name}: expected {expected}, got {shown(value)}")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**63:
            raise ReleaseError(f"{where}: {name}: expected an integer of 64 bits, got one of {value.bit_length()}")


def _queries(
    queries: list[Any], schema: Schema
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[float, ...]]:
    if not 1 <= len(queries) <= MAX_TABLES:
        raise ReleaseError(f"metadata: queries: expected 1 to {MAX_TABLES}, got {len(queries)}")
    position = {name: place for place, name in enumerate(schema.names)}
    sets, weights, scales = [], [], []
    for number, query in enumerate(queries, start=1):
        where = f"metadata: query {number}"
        if not isinstance(query, dict):
            raise ReleaseError(f"{where}: expected a JSON object, got {shown(query)}")
        _check_fields(query, _QUERY_FIELDS, where=where)
        if query["kind"] != "marginal":
            raise ReleaseError(f"{where}: kind: expected 'marginal', got {shown(query['kind'])}")
        names = query["variables"]
        if not 1 <= len(names) <= MAX_ORDER:
            raise ReleaseError(f"{where}: variables: expected 1 to {MAX_ORDER}, got {len(names)}")
        for name in names:
            if not isinstance(name, str) or name not in position:
                raise ReleaseError(f"{where}: variables: expected variables of the schema, got {shown(name)}")
        sets.append(tuple(position[name] for name in names))
        weights.append(query["weight"])
        scales.append(float(query["scale"]))
    return tuple(sets), tuple(weights), tuple(scales)


def _plan(content: dict[str, Any], weights: tuple[int, ...]) -> NoisePlan:
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
    )
