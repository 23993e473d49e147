"""What fits a budget, in both compositions."""

import math

import pytest

from fedsel.errors import BudgetError
from fedsel.privacy.accounting import epsilon_of
from fedsel.privacy.budget import ConcentratedBudget, Price, make_budget
from fedsel.privacy.calibration import plan_noise
from fedsel.privacy.composition import Cost
from fedsel.privacy.events import ComposedEvent, LaplaceEvent, PureSelectionEvent, event_of
from fedsel.privacy.rdp import zcdp_delta

PLAN = plan_noise(55, epsilon=0.5)


def count_fitting(budget, price):
    number = 0
    while budget.fits([price] * (number + 1)):
        number += 1
    return number


def test_rho_of_each_kind_of_charge():
    assert Price.of(PLAN).rho == pytest.approx(55 / (2 * PLAN.scale[0] ** 2))
    laplace = plan_noise(1, epsilon=0.3, mechanism="discrete-laplace")
    assert Price.of(laplace).rho == pytest.approx(0.3**2 / 2, rel=1e-5)
    assert Price(Cost(0.4, 0.0), PureSelectionEvent(0.4)).rho == pytest.approx(0.02)
    assert Price(Cost(0.5, 0.0), LaplaceEvent(2.0)).rho == pytest.approx(0.125)
    assert Price.of(plan_noise(2, epsilon=math.inf)).rho == math.inf


def test_the_concentrated_budget_implies_its_limit():
    budget = ConcentratedBudget(Cost(2.0, 1e-5))
    assert zcdp_delta(2.0, budget.rho) <= 1e-5
    assert zcdp_delta(2.0, budget.rho * (1 + 1e-9)) > 1e-5 * (1 - 1e-12)


def test_many_releases_cost_less_together():
    """A budget of 4 holds eight releases at 0.5 by addition; their joint epsilon is far below."""
    basic, concentrated = make_budget("basic", 4.0, 1e-4), make_budget("zcdp", 4.0, 1e-4)
    price = Price.of(PLAN)
    assert count_fitting(basic, price) == 8
    fitting = count_fitting(concentrated, price)
    assert fitting == 45
    everything = ComposedEvent((event_of(PLAN),) * fitting)
    assert epsilon_of(everything, 1e-4) <= 4.0


def test_what_is_spent_and_left():
    budget = make_budget("zcdp", 2.0, 1e-5)
    price = Price.of(PLAN)
    assert budget.spent([]) == Cost(0.0, 0.0)
    assert budget.remaining([]) == Cost(2.0, 1e-5)
    spent = budget.spent([price, price])
    assert spent.epsilon == pytest.approx(epsilon_of(ComposedEvent((event_of(PLAN),) * 2), 1e-5, accounting="zcdp"))
    assert spent.delta == 1e-5
    assert budget.remaining([price, price]).epsilon == pytest.approx(2.0 - spent.epsilon)
    overdrawn = [price] * 100
    assert not budget.fits(overdrawn)
    assert budget.spent(overdrawn).epsilon > 2.0
    assert budget.remaining(overdrawn).epsilon == 0.0


def test_the_limit_is_exact():
    budget = ConcentratedBudget(Cost(1.0, 1e-5))
    whole = Price(Cost(1.0, 0.0), LaplaceEvent(1 / math.sqrt(2 * budget.rho * (1 - 1e-9))))
    assert budget.fits([whole])
    assert not budget.fits([whole, Price(Cost(1e-4, 0.0), LaplaceEvent(1e4))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("zcdp", 1.0, 0.0), "a budget with composition 'zcdp' needs a delta above 0, got 0.0"),
        (("gdp", 1.0, 1e-5), "composition must be one of basic, zcdp, got 'gdp'"),
        (("basic", 0.0, 1e-5), "the budget's epsilon must be a finite number above 0, got 0.0"),
        (("zcdp", 1.0, 1.0), "the budget's delta must be at least 0 and below 1, got 1.0"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(BudgetError, match=message):
        make_budget(*arguments)
