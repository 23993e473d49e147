"""Fields of untrusted metadata: their names and types."""

from __future__ import annotations

from typing import Any

from fedsel.errors import ReleaseError


def shown(value: object) -> str:
    """Return untrusted content for a message: one line, at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def check_fields(
    content: dict[str, Any],
    fields: dict[str, type | tuple[type, ...]],
    *,
    where: str,
    optional: dict[str, type | tuple[type, ...]] | None = None,
) -> None:
    """Refuse a JSON object that lacks a field, has an unknown one, or one of the wrong type.

    Raises
    ------
    ReleaseError
        Naming the field; `where` says where it stands.
    """
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
