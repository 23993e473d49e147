import json

import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.event_json import event_from_json, event_kind, event_to_json
from fedsel.privacy.events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
)

EVENTS = [
    GaussianEvent(1.5),
    LaplaceEvent(2.0),
    DiscreteGaussianEvent(2**61, (3, 2**60), (1, 256)),
    DiscreteLaplaceEvent(7, (1,), (2,)),
    SubsampledGaussianEvent(0.01, 1.1, 1000),
    PureSelectionEvent(0.5, "permute-and-flip"),
]


@pytest.mark.parametrize("event", [*EVENTS, ComposedEvent((*EVENTS, ComposedEvent((EVENTS[0],))))])
def test_events_survive_text(event):
    content = event_to_json(event)
    assert content["kind"] == event_kind(event)
    assert event_from_json(json.loads(json.dumps(content, allow_nan=False))) == event


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"kind": "noise"},
        {"kind": ["gaussian"]},
        {"kind": "gaussian"},
        {"kind": "gaussian", "noise_multiplier": -1.0},
        {"kind": "gaussian", "noise_multiplier": "wide"},
        {"kind": "gaussian", "noise_multiplier": 1.0, "sigma": 2.0},
        {"kind": "composed", "events": []},
        {"kind": "composed", "events": 3},
        {"kind": "discrete-gaussian", "numerator": 1, "weights": 1, "shifts": 1},
    ],
)
def test_what_is_no_event(content):
    with pytest.raises(PrivacyError):
        event_from_json(content)
