import pytest

from fedsel.errors import PrivacyError
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
    basic_events,
    event_of,
)
from fedsel.privacy.plan import NoisePlan


def test_a_plan_is_an_event_of_its_adjacency():
    plan = NoisePlan("discrete-gaussian", "replace-one", 1.0, 1e-5, 900, (9, 16, 4), "exact", scores=(8,))
    assert event_of(plan) == DiscreteGaussianEvent(900, (9, 9, 16, 16, 4), (1, 1, 1, 1, 16))
    laplace = plan_noise(2, epsilon=1.0, mechanism="discrete-laplace")
    assert event_of(laplace) == DiscreteLaplaceEvent(laplace.numerator, laplace.weights, (1, 1))


def test_an_exact_release_is_no_event():
    with pytest.raises(PrivacyError, match="a plan must have noise to be an event"):
        event_of(plan_noise(2, epsilon=float("inf")))


def test_nested_compositions_are_flat():
    one, two, three = GaussianEvent(1.0), LaplaceEvent(2.0), PureSelectionEvent(0.5)
    nested = ComposedEvent((one, ComposedEvent((two, ComposedEvent((three,))))))
    assert list(basic_events(nested)) == [one, two, three]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianEvent(0.0), "noise_multiplier must be a positive number, got 0.0"),
        (lambda: LaplaceEvent(float("nan")), "noise_multiplier must be a positive number, got nan"),
        (lambda: DiscreteGaussianEvent(0, (1,), (1,)), "numerator must be a positive integer, got 0"),
        (lambda: DiscreteLaplaceEvent(1, (1, 2), (1,)), "one of each per coordinate"),
        (lambda: SubsampledGaussianEvent(1.5, 1.0, 1), "probability must be above 0 and at most 1, got 1.5"),
        (lambda: SubsampledGaussianEvent(0.5, 1.0, 0), "steps must be a positive integer, got 0"),
        (lambda: SubsampledGaussianEvent(0.5, 1.0, 2.5), "steps must be a positive integer, got 2.5"),
        (lambda: PureSelectionEvent(-1.0), "epsilon must be a positive number, got -1.0"),
        (lambda: PureSelectionEvent(1.0, "max"), "mechanism must be one of exponential, permute-and-flip, got 'max'"),
        (lambda: ComposedEvent(()), "must hold at least one event"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(PrivacyError, match=message):
        make()
