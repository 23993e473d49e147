"""Drafts of schemas from codebooks.

A codebook is a CSV file with one line per category or bin::

    variable,role,value,label,low,high
    sex,sensitive,1,male,,
    sex,,2,female,,
    age,feature,,young,0,18
    age,,,grown,18,100

`variable` names the variable; `role` is feature (the default), target or sensitive, on any of its lines; a category
has a `value`, a bin `low` and `high`. Only `variable` is needed, and either `value` or `low` and `high`.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedsel.draft import WARNING, Draft, policy, roles_of, schema_name
from fedsel.errors import SchemaError
from fedsel.schema import Category, Missing, Role, Schema, Variable
from fedsel.schema_rules import BLANKS, one_line, parse_number

COLUMNS = ("variable", "role", "value", "label", "low", "high")
_ROLES: dict[str, Role] = {"feature": "feature", "target": "target", "sensitive": "sensitive"}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # written plainly: codes such as 01 stay text


@dataclass
class _Entry:
    """The lines of one variable."""

    first_line: int
    role: Role | None = None
    values: list[str] = field(default_factory=list)
    ranges: list[tuple[float, float]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def draft_from_codebook(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    sensitive: Sequence[str] = (),
    name: str | None = None,
    missing: Missing | None = None,
    delimiter: str = ",",
) -> Draft:
    """Draft a schema from a codebook.

    Values that are all integers become integer categories, all true/false booleans, anything else text. Ranges must
    adjoin: either each begins where the one before ends (``0..18, 18..30``: half-open), or one above it (``0..17,
    18..29``: whole numbers, both ends included).

    Parameters
    ----------
    path : path
        The codebook, a CSV file in UTF-8 with the header described above.
    target, sensitive : str, sequence of str, optional
        Roles of variables, over those in the file.
    name : str, optional
        Name of the schema; by default the file's, without its ending.
    missing : {'error', 'drop', 'category'}, optional
        Policy of every variable but the target, whose rows are dropped unless it is ``'error'``, the default.
    delimiter : str
        Separates fields.

    Returns
    -------
    Draft

    Raises
    ------
    SchemaError
        If the file cannot be read or its content is no valid schema; the message names file, line and variable.
    """
    source = os.fspath(path)
    entries = _read(source, delimiter)
    roles = roles_of(target, sensitive)
    for variable in roles:
        if variable not in entries:
            raise SchemaError(f"{source}: no variable {variable}; it has {', '.join(entries)}")
    try:
        variables = tuple(
            _variable(variable, entry, roles.get(variable, entry.role or "feature"), missing or "error")
            for variable, entry in entries.items()
        )
        schema = Schema(schema_name(name, path), variables)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    return Draft(schema, (f"Drafted from the codebook {one_line(Path(path).name)}.", *WARNING))


def _read(source: str, delimiter: str) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    try:
        with open(source, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, delimiter=delimiter, strict=True)
            header = _header(next((line for line in lines if any(line)), []), source)
            for fields in lines:
                if not any(field.strip(BLANKS) for field in fields):
                    continue
                where = f"{source}: line {lines.line_num}"
                if len(fields) != len(header):
                    raise SchemaError(f"{where}: expected {len(header)} fields, got {len(fields)}")
                row = dict.fromkeys(COLUMNS, "") | {
                    column: value.strip(BLANKS) for column, value in zip(header, fields, strict=True)
                }
                _add(entries, row, where, lines.line_num)
    except OSError as error:
        raise SchemaError(f"{source}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{source}: is not UTF-8 text (byte {error.start})") from None
    except csv.Error as error:
        raise SchemaError(f"{source}: unreadable CSV file: {error}") from None
    if not entries:
        raise SchemaError(f"{source}: holds a header but no variables")
    return entries


def _header(fields: Sequence[str], source: str) -> list[str]:
    header = [field.strip(BLANKS).lower() for field in fields]
    if not header:
        raise SchemaError(f"{source}: is empty")
    for column in header:
        if column not in COLUMNS:
            raise SchemaError(f"{source}: unknown column {column!r}; known are {', '.join(COLUMNS)}")
        if header.count(column) > 1:
            raise SchemaError(f"{source}: column {column} is there {header.count(column)} times")
    if "variable" not in header or not ("value" in header or {"low", "high"} <= set(header)):
        raise SchemaError(f"{source}: columns variable, and value or low and high, are needed; got {', '.join(header)}")
    return header


def _add(entries: dict[str, _Entry], row: dict[str, str], where: str, line: int) -> None:
    name = row["variable"]
    if not name:
        raise SchemaError(f"{where}: the variable is not named")
    where = f"{where}: variable {name}"
    entry = entries.setdefault(name, _Entry(line))
    if row["role"]:
        role = _ROLES.get(row["role"].lower())
        if role is None:
            raise SchemaError(f"{where}: role must be feature, target or sensitive, got {row['role']!r}")
        if entry.role not in (None, role):
            raise SchemaError(f"{where}: the role is {role} here, {entry.role} before")
        entry.role = role
    if bool(row["value"]) == bool(row["low"] or row["high"]):
        raise SchemaError(f"{where}: either a value or low and high is needed")
    if row["value"]:
        entry.values.append(row["value"])
    else:
        low, high = parse_number(row["low"]), parse_number(row["high"])
        if low is None or high is None:
            raise SchemaError(f"{where}: low and high must be numbers, got {row['low']!r} and {row['high']!r}")
        entry.ranges.append((low, high))
    if entry.values and entry.ranges:
        raise SchemaError(f"{where}: has values and ranges; a variable has either")
    entry.labels.append(row["label"])


def _variable(name: str, entry: _Entry, role: Role, missing: Missing) -> Variable:
    missing = policy(role, missing)
    labels = None
    if any(entry.labels):
        shown = entry.values or [f"{low:g} to {high:g}" for low, high in entry.ranges]
        labels = tuple(label or text for label, text in zip(entry.labels, shown, strict=True))
    if entry.values:
        return Variable(name, role, categories=_categories(entry.values), labels=labels, missing=missing)
    return Variable(name, role, bins=_edges(name, entry.ranges), labels=labels, missing=missing)


def _categories(values: Sequence[str]) -> tuple[Category, ...]:
    if all(value.lower() in ("true", "false") for value in values):
        return tuple(value.lower() == "true" for value in values)
    if all(_INTEGER.fullmatch(value) for value in values):
        return tuple(int(value) for value in values)
    return tuple(values)


def _edges(name: str, ranges: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    lows = [low for low, _ in ranges]
    highs = [high for _, high in ranges]
    whole = all(edge.is_integer() for edge in (*lows, *highs))
    # Whole numbers with both ends included, as the first two ranges, or a range of one number, show.
    included = whole and (lows[1] == highs[0] + 1 if len(ranges) > 1 else lows[0] == highs[0])
    for high, low in zip(highs, lows[1:], strict=False):
        if low != high + included:
            raise SchemaError(
                f"variable {name}: ranges must adjoin, got one that ends at {high:g} and one from {low:g}"
            )
    if included and highs[-1] == lows[-1]:
        return (*lows, highs[-1] + 0.5)  # the last bin is closed; half a step keeps it from being empty
    return (*lows, highs[-1])
