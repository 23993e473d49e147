"""Schemas as files: TOML for people, canonical JSON for fingerprints and release metadata."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsel.errors import SchemaError
from fedsel.schema_rules import number_text

if TYPE_CHECKING:
    from fedsel.schema import Schema, Variable

FORMAT = 1
LINE_LENGTH = 110

_SCHEMA_KEYS = ("format", "name", "sizes", "description", "missing_values", "variables")
_VARIABLE_KEYS = ("name", "role", "categories", "bins", "labels", "missing", "missing_values")


# --- reading ---------------------------------------------------------------------------------------------------------


def from_toml(path: str | os.PathLike[str]) -> Schema:
    """Read a schema file; see `Schema.from_toml`."""
    source = os.fspath(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SchemaError(f"{source}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{source}: not UTF-8 text (byte {error.start})") from None
    except ValueError as error:  # a NUL in the path
        raise SchemaError(f"{source!r}: cannot be read: {error}") from None
    return from_toml_text(text, source=source)


def from_toml_text(text: str, *, source: str) -> Schema:
    """Read a schema from TOML text; `source` opens every error message."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{source}: not valid TOML: {error}") from None
    except RecursionError:
        raise SchemaError(f"{source}: not valid TOML: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits, an impossible date
        raise SchemaError(f"{source}: not valid TOML: {error}") from None
    return _from_document(document, source)


def from_json(text: str, *, source: str) -> Schema:
    """Read a schema from JSON text; see `Schema.from_json`."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise SchemaError(f"{source}: not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise SchemaError(f"{source}: not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise SchemaError(f"{source}: expected a JSON object, got {type(document).__name__}")
    return _from_document(document, source)


def _from_document(document: Mapping[str, Any], source: str) -> Schema:
    from fedsel.schema import Schema  # here, because schema.py imports this module

    try:
        _check_keys(document, _SCHEMA_KEYS, "")
        version = document.get("format")
        if version is None:
            raise SchemaError(f"format is missing; this version reads format = {FORMAT}")
        if isinstance(version, bool) or version != FORMAT:
            raise SchemaError(f"format must be {FORMAT}, got {version!r}; a newer fedsel may read it")
        for key in ("name", "variables"):
            if key not in document:
                raise SchemaError(f"{key} is missing")
        tables = document["variables"]
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise SchemaError("variables must be a list of tables, each opened by [[variables]]")
        variables = tuple(_variable(table, position) for position, table in enumerate(tables, start=1))
        rest = {key: document[key] for key in ("sizes", "description", "missing_values") if key in document}
        return Schema(document["name"], variables, **rest)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None


def _variable(table: Mapping[str, Any], position: int) -> Variable:
    from fedsel.schema import Variable

    name = table.get("name")
    where = f"variable {name}: " if isinstance(name, str) else f"variable {position}: "
    _check_keys(table, _VARIABLE_KEYS, where)
    if name is None:
        raise SchemaError(f"{where}name is missing")
    return Variable(**table)


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise SchemaError(f"{where}unknown key {unknown[0]!r}; known are {', '.join(known)}")


# --- writing ---------------------------------------------------------------------------------------------------------


def to_json(schema: Schema, *, description: bool) -> str:
    """Return the canonical JSON: one line, sorted keys, UTF-8, optional fields left out where they hold the default."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "name": schema.name,
        "sizes": schema.sizes,
        "variables": [_json_variable(variable) for variable in schema.variables],
    }
    if schema.missing_values:
        document["missing_values"] = schema.missing_values
    if description and schema.description:
        document["description"] = schema.description
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _json_variable(variable: Variable) -> dict[str, Any]:
    table: dict[str, Any] = {"name": variable.name, "role": variable.role, "missing": variable.missing}
    if variable.categories is not None:
        table["categories"] = variable.categories
    if variable.bins is not None:
        table["bins"] = [json.loads(number_text(edge)) for edge in variable.bins]
    if variable.labels is not None:
        table["labels"] = variable.labels
    if variable.missing_values:
        table["missing_values"] = variable.missing_values
    return table


def to_toml(schema: Schema) -> str:
    """Return the schema as a TOML document."""
    lines = [f"format = {FORMAT}", f"name = {_toml(schema.name)}", f"sizes = {_toml(schema.sizes)}"]
    if schema.description:
        lines.append(f"description = {_toml(schema.description)}")
    if schema.missing_values:
        lines.append(_toml_array("missing_values", schema.missing_values))
    for variable in schema.variables:
        lines += ["", "[[variables]]", f"name = {_toml(variable.name)}", f"role = {_toml(variable.role)}"]
        if variable.categories is not None:
            lines.append(_toml_array("categories", variable.categories))
        if variable.bins is not None:
            lines.append(_toml_array("bins", variable.bins))
        if variable.labels is not None:
            lines.append(_toml_array("labels", variable.labels))
        lines.append(f"missing = {_toml(variable.missing)}")
        if variable.missing_values:
            lines.append(_toml_array("missing_values", variable.missing_values))
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    assert isinstance(value, str)
    return '"' + "".join(map(_toml_character, value)) + '"'


def _toml_character(character: str) -> str:
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in named:
        return named[character]
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x20 or 0x7F <= code < 0xA0 else character


def _toml_array(key: str, values: Sequence[object]) -> str:
    texts = [_toml(value) for value in values]
    line = f"{key} = [{', '.join(texts)}]"
    if len(line) <= LINE_LENGTH:
        return line
    lines = [f"{key} = ["]
    current = "   "
    for text in texts:
        if len(current) + len(text) + 2 > LINE_LENGTH and current.strip():
            lines.append(current)
            current = "   "
        current += f" {text},"
    return "\n".join([*lines, current, "]"])


# --- comparing -------------------------------------------------------------------------------------------------------


def difference(schema: Schema, other: Schema) -> str | None:
    """Return one line on the first difference, or None where the fingerprints agree."""
    for field in ("name", "sizes", "missing_values"):
        found = _difference(getattr(schema, field), getattr(other, field), field)
        if found:
            return f"schema {found}"
    mine, theirs = schema.names, other.names
    if mine != theirs:
        for name in mine:
            if name not in theirs:
                return f"variable {name}: here, not there"
        for name in theirs:
            if name not in mine:
                return f"variable {name}: there, not here"
        return f"variables differ in order: {_difference(mine, theirs, 'names')}"
    for one, two in zip(schema.variables, other.variables, strict=True):
        if one.kind != two.kind:
            return f"variable {one.name}: {_kind_text(one)} here, {_kind_text(two)} there"
        for field in ("role", "categories", "bins", "labels", "missing", "missing_values"):
            found = _difference(getattr(one, field), getattr(two, field), field)
            if found:
                return f"variable {one.name}: {found}"
    return None


def _kind_text(variable: Variable) -> str:
    return "bins" if variable.kind == "bins" else f"categories of type {variable.kind}"


def _difference(mine: object, theirs: object, field: str) -> str | None:
    if mine == theirs:
        return None
    if not isinstance(mine, tuple) or not isinstance(theirs, tuple):
        return f"{field} is {_shown(mine)} here, {_shown(theirs)} there"
    for position, (a, b) in enumerate(zip(mine, theirs, strict=False), start=1):
        if a != b:
            return f"{field} differ at position {position}: {_shown(a)} here, {_shown(b)} there"
    return f"{field} differ in number: {len(mine)} here, {len(theirs)} there"


def _shown(value: object) -> str:
    if value is None:
        return "absent"
    if isinstance(value, tuple):
        return f"a list of {len(value)}"
    return number_text(value) if isinstance(value, float) else repr(value)
