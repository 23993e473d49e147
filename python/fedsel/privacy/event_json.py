"""Events as JSON values, the form in which a ledger keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from fedsel.errors import PrivacyError
from fedsel.privacy.events import (
    BasicEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
)

_KINDS: dict[str, type[BasicEvent]] = {
    "gaussian": GaussianEvent,
    "laplace": LaplaceEvent,
    "discrete-gaussian": DiscreteGaussianEvent,
    "discrete-laplace": DiscreteLaplaceEvent,
    "subsampled-gaussian": SubsampledGaussianEvent,
    "selection": PureSelectionEvent,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
COMPOSED = "composed"


def event_kind(event: Event) -> str:
    """Return the name of an event's kind."""
    return COMPOSED if isinstance(event, ComposedEvent) else _NAMES[type(event)]


def event_to_json(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object: its kind and its fields."""
    if isinstance(event, ComposedEvent):
        return {"kind": COMPOSED, "events": [event_to_json(part) for part in event.events]}
    content: dict[str, Any] = {"kind": _NAMES[type(event)]}
    for field in fields(event):
        value = getattr(event, field.name)
        content[field.name] = list(value) if isinstance(value, tuple) else value
    return content


def event_from_json(content: Any) -> Event:
    """Return the event that `event_to_json` wrote.

    Raises
    ------
    PrivacyError
        If it is not one.
    """
    if not isinstance(content, dict):
        raise PrivacyError(f"an event must be a JSON object, got {type(content).__name__}")
    given = dict(content)
    kind = given.pop("kind", None)
    try:
        if kind == COMPOSED:
            return ComposedEvent(tuple(event_from_json(part) for part in given["events"]))
        make: Callable[..., Event] = _KINDS[kind]
        return make(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    except (KeyError, TypeError) as error:
        raise PrivacyError(f"an event must have a known kind and its fields, got {kind!r} ({error})") from None
