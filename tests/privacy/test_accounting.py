"""Guarantees of events, each accounting against dp-accounting and against the others."""

import math
import sys

import pytest

from fedsel.errors import MissingExtraError, PrivacyError
from fedsel.privacy.accounting import delta_of, epsilon_of
from fedsel.privacy.calibration import certify, plan_noise
from fedsel.privacy.events import (
    ComposedEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureSelectionEvent,
    SubsampledGaussianEvent,
    event_of,
)
from fedsel.privacy.rounds import plan_rounds

TABLES = event_of(plan_noise(55, epsilon=1.0))
TRAINING = SubsampledGaussianEvent(0.01, 1.1, 1000)
EVENTS = {
    "tables": TABLES,
    "rounds": event_of(plan_rounds([1, 2], scores=[(8, 1.0)], tables_share=0.5, epsilon=0.5)),
    "gaussian": GaussianEvent(3.7),
    "laplace": LaplaceEvent(2.0),
    "discrete laplace": DiscreteLaplaceEvent(10, (1, 2, 2), (1, 1, 3)),
    "training": TRAINING,
    "selection": PureSelectionEvent(0.5),
    "all": ComposedEvent((GaussianEvent(5.0), PureSelectionEvent(0.2), TRAINING, LaplaceEvent(8.0))),
}


@pytest.mark.parametrize("name", EVENTS)
def test_no_bound_is_below_the_privacy_loss_distribution(name):
    pytest.importorskip("dp_accounting")
    event, delta = EVENTS[name], 1e-5
    reference = epsilon_of(event, delta, accounting="pld")
    for accounting in ("auto", "zcdp", "rdp"):
        # the reference is itself an upper bound, good to one per cent
        assert epsilon_of(event, delta, accounting=accounting) >= reference * 0.99
        assert delta_of(event, reference * 0.98, accounting=accounting) >= delta
    assert epsilon_of(event, delta) <= reference * 1.16  # what Renyi accounting loses at most here


@pytest.mark.parametrize("name", ["tables", "rounds", "gaussian"])
def test_exact_is_the_privacy_loss_distribution(name):
    pytest.importorskip("dp_accounting")
    event = EVENTS[name]
    assert epsilon_of(event, 1e-5) == epsilon_of(event, 1e-5, accounting="exact")
    assert epsilon_of(event, 1e-5) == pytest.approx(epsilon_of(event, 1e-5, accounting="pld"), rel=0.01)
    assert delta_of(event, 0.7) == pytest.approx(delta_of(event, 0.7, accounting="pld"), rel=0.012)


@pytest.mark.parametrize("name", ["gaussian", "training"])
def test_renyi_agrees_with_dp_accounting(name):
    dp = pytest.importorskip("dp_accounting")
    theirs = {
        "gaussian": dp.GaussianDpEvent(3.7),
        "training": dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.1)), 1000),
    }[name]
    accountant = dp.rdp.RdpAccountant([1 + x / 10 for x in range(1, 180)] + list(range(19, 500)))
    accountant.compose(theirs)
    for delta in (1e-9, 1e-5, 1e-2):
        found = epsilon_of(EVENTS[name], delta, accounting="rdp")
        assert found == pytest.approx(float(accountant.get_epsilon(delta)), rel=5e-3)


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("accounting", ["auto", "zcdp", "rdp"])
def test_both_ways_agree(name, accounting):
    for delta in (1e-8, 1e-3):
        epsilon = epsilon_of(EVENTS[name], delta, accounting=accounting)
        assert delta_of(EVENTS[name], epsilon * (1 + 1e-9) + 1e-9, accounting=accounting) <= delta


def test_a_plan_costs_what_it_states():
    assert epsilon_of(TABLES, 1e-5) == pytest.approx(1.0, rel=1e-6)
    plan = plan_noise(3, epsilon=0.7, mechanism="discrete-laplace")
    assert epsilon_of(event_of(plan), 0.0) == pytest.approx(0.7, rel=1e-6)
    assert delta_of(event_of(plan), 0.7) == 0.0


def test_releases_compose_exactly():
    """Two plans of 20 tables with half the variance each, one of another numerator, against one joint release."""
    plan = plan_noise(20, epsilon=1.0, weights=[1, 2] * 10)
    once = event_of(plan)
    twice = delta_of(ComposedEvent((once, once)), 2.0, accounting="exact")
    joint = event_of(type(plan)(**{**vars(plan), "weights": plan.weights * 2, "rounds": ()}))
    assert twice == pytest.approx(delta_of(joint, 2.0), rel=1e-9)
    assert delta_of(once, 1.0, accounting="exact") == pytest.approx(certify(plan), rel=1e-12)


def test_gaussians_compose_exactly():
    both = ComposedEvent((GaussianEvent(2.0), GaussianEvent(2.0)))
    assert delta_of(both, 1.0) == pytest.approx(delta_of(GaussianEvent(math.sqrt(2)), 1.0), rel=1e-12)


def test_pure_guarantees_trade_epsilon_for_delta():
    event = LaplaceEvent(2.0)
    assert delta_of(event, 0.5, accounting="pure") == 0.0
    assert delta_of(event, 0.4, accounting="pure") == pytest.approx(1 - math.exp(-0.1))
    assert epsilon_of(event, 1 - math.exp(-0.1), accounting="pure") == pytest.approx(0.4)


def test_infinite_epsilon_and_hopeless_events():
    assert delta_of(GaussianEvent(1.0), math.inf) == 0.0
    assert epsilon_of(GaussianEvent(1e-6), 1e-5) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_of(TABLES, 0.0), "delta must be positive unless the event is pure"),
        (lambda: epsilon_of(TABLES, 1.0), "delta must be at least 0 and below 1, got 1.0"),
        (lambda: delta_of(TABLES, -1.0), "epsilon must be between 0 and 1e\\+06, or infinite, got -1.0"),
        (lambda: delta_of(TABLES, math.nan), "or infinite, got nan"),
        (lambda: delta_of(TRAINING, 1.0, accounting="exact"), "accounting 'exact' covers Gaussian events"),
        (lambda: delta_of(TABLES, 1.0, accounting="pure"), "accounting 'pure' covers events"),
        (lambda: epsilon_of(TABLES, 1e-5, accounting="gdp"), "accounting must be one of auto, exact"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(PrivacyError, match=message):
        call()


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedsel\[accounting\]'"):
        delta_of(TABLES, 1.0, accounting="pld")
