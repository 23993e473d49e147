from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from fedsel.errors import BudgetError, PrivacyError, SubgroupError
from fedsel.privacy.entropy import SeededEntropy
from fedsel.subgroups.fedpsd import Account, FedPsdSettings, personalised_budgets, uniform_budgets
from fedsel.subgroups.fedpsd.channel import Channel
from fedsel.subgroups.fedpsd.client import pair_plan
from fedsel.subgroups.fedpsd.descriptions import joins, refine, singles
from fedsel.subgroups.fedpsd.selecting import select_privately
from fedsel.subgroups.fedpsd.weights import mixture_weights

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("sizes", [[100, 200, 700], [5, 0, 995], [1, 1, 1, 1], [3000, 10, 10, 20, 900]])
def test_personalised_budgets_have_the_mean_asked_for(sizes: list[int]) -> None:
    budgets = personalised_budgets(sizes)
    assert all(1 <= b <= 16 for b in budgets)
    assert np.dot(sizes, budgets) / sum(sizes) == pytest.approx(4)
    inside = [b / n for b, n in zip(budgets, sizes, strict=True) if 1 < b < 16]
    assert inside == pytest.approx([inside[0]] * len(inside)) if inside else True


def test_budgets_out_of_range_are_refused() -> None:
    with pytest.raises(SubgroupError, match="at least one record"):
        personalised_budgets([0, 0])
    with pytest.raises(SubgroupError, match="the mean budget must be between 1 and 16, got 20"):
        personalised_budgets([1, 2], mean=20)
    assert uniform_budgets(3, 2.0) == [2.0] * 3
    assert personalised_budgets([5, 5], mean=1, least=1, most=1) == [1.0, 1.0]


def test_weights_follow_equation_4() -> None:
    sizes, epsilons = [100, 300, 50], [4.0, 1.0, 8.0]
    squares = [(n * e) ** 2 for n, e in zip(sizes, epsilons, strict=True)]
    expected = np.array(squares) / sum(squares)
    np.testing.assert_allclose(mixture_weights(sizes, epsilons, precision=True), expected)
    shares = np.array(sizes) / sum(sizes)
    for beta in (0.25, 1.0):
        got = mixture_weights(sizes, epsilons, precision=True, beta=beta)
        np.testing.assert_allclose(got, (1 - beta) * expected + beta * shares)
    np.testing.assert_allclose(mixture_weights(sizes, epsilons, precision=False), [1 / 3] * 3)


def test_weights_that_are_all_zero_fall_back_to_the_population() -> None:
    np.testing.assert_allclose(mixture_weights([10, 30], [0.0, 0.0], precision=True), [0.25, 0.75])
    np.testing.assert_allclose(mixture_weights([0, 0], [1.0, 1.0], precision=True), [0.5, 0.5])
    np.testing.assert_allclose(mixture_weights([0, 30], [9.0, 1.0], precision=True), [0.0, 1.0])


def test_an_account_admits_what_fits_and_nothing_more() -> None:
    account = Account("a", 1.0)
    plan = pair_plan(0.3)
    for _ in range(3):
        account.charge(plan, 0.3, "pair")
    assert account.left == pytest.approx(0.1)
    with pytest.raises(BudgetError, match=r"client 'a': pair for epsilon 0\.3 does not fit a budget of 1"):
        account.charge(plan, 0.3, "pair")
    assert len(account.entries) == 3
    assert account.affordable(0.1) == 1
    assert account.affordable(0.05) == 2
    assert account.affordable(0.2) == 0


def test_a_private_channel_refuses_what_is_not_paid_for() -> None:
    account, other = Account("a", 1.0), Account("b", 1.0)
    entry = account.charge(pair_plan(0.5), 0.5, "pair")
    channel = Channel(private=True)
    channel.send(account, "counts", [(1, 2)], entry)
    channel.send(account, "budget left", 0.5)
    with pytest.raises(BudgetError, match="must be charged before it is sent"):
        channel.send(account, "counts", [(3, 4)], entry)  # a charge pays for one message
    for kind in ("counts", "proposal", "exact proposal", "exact support"):
        with pytest.raises(BudgetError, match="must be charged before it is sent"):
            channel.send(account, kind, None)  # type: ignore[arg-type]
        with pytest.raises(BudgetError, match="must be charged before it is sent"):
            channel.send(other, kind, None, entry)  # type: ignore[arg-type]
    assert [message.kind for message in channel.messages] == ["counts", "budget left"]
    open_ = Channel(private=False)
    open_.send(account, "exact proposal", None)
    with pytest.raises(BudgetError):
        open_.send(account, "counts", None)


def test_a_pair_has_the_noise_of_its_sensitivity() -> None:
    for epsilon in (0.01, 0.5, 3.0):
        plan = pair_plan(epsilon)
        assert plan.scale[0] == pytest.approx(2 / epsilon, rel=1e-5)
        assert plan.scale[0] >= 2 / epsilon * (1 - 1e-12)


def _exponential(scores: np.ndarray, epsilon: float) -> np.ndarray:
    weight = np.exp(epsilon * scores / 2)
    return weight / weight.sum()


def _permute_and_flip(scores: np.ndarray, epsilon: float) -> np.ndarray:
    """By enumeration of all orders (McKenna and Sheldon 2020, algorithm 1)."""
    chance = np.exp(epsilon * (scores - scores.max()) / 2)
    result = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        left = 1.0
        for place in order:
            result[place] += left * chance[place]
            left *= 1 - chance[place]
    return result / math.factorial(len(scores))


@pytest.mark.parametrize(
    ("mechanism", "expected"), [("exponential", _exponential), ("permute-and-flip", _permute_and_flip)]
)
def test_selections_have_their_distribution(mechanism, expected) -> None:  # type: ignore[no-untyped-def]
    """Chi-square, false-alarm rate 1e-6."""
    scores, epsilon, draws = np.array([3.0, 0.0, 2.5, 3.0]), 1.5, 20_000
    entropy = SeededEntropy(5)
    chosen = [
        select_privately(scores, epsilon, sensitivity=1.0, mechanism=mechanism, entropy=entropy) for _ in range(draws)
    ]
    counts = np.bincount(chosen, minlength=4)
    assert stats.chisquare(counts, draws * expected(scores, epsilon)).pvalue > FALSE_ALARM


def test_selections_are_private() -> None:
    """Ratios of probabilities between neighbours stay within exp(epsilon), by the exact distributions."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.normal(0, 3, 4)
        moved = scores + rng.uniform(-1, 1, 4)
        for distribution in (_exponential, _permute_and_flip):
            assert np.abs(np.log(distribution(scores, 0.8) / distribution(moved, 0.8))).max() <= 0.8 + 1e-9


def test_a_selection_needs_candidates_and_positive_parameters() -> None:
    entropy = SeededEntropy(0)
    with pytest.raises(PrivacyError, match="at least one candidate"):
        select_privately(np.array([]), 1.0, sensitivity=1.0, mechanism="exponential", entropy=entropy)
    with pytest.raises(PrivacyError, match="must be positive"):
        select_privately(np.array([1.0]), 0.0, sensitivity=1.0, mechanism="exponential", entropy=entropy)


def test_joins_are_all_that_two_of_the_beam_make() -> None:
    beam = [((0, 1),), ((1, 0),), ((0, 2),), ((3, 1),)]
    got = joins(beam, 2)
    expected = {tuple(sorted((*a, *b))) for a, b in combinations(beam, 2) if a[0][0] != b[0][0]}
    assert set(got) == expected
    assert len(got) == len(expected)
    assert got[0] == ((0, 1), (1, 0))
    deeper = joins([((0, 1), (1, 0)), ((1, 0), (2, 2)), ((0, 2), (1, 0))], 3)
    assert set(deeper) == {((0, 1), (1, 0), (2, 2)), ((0, 2), (1, 0), (2, 2))}


def test_conditions_on_attributes_of_one_category_are_left_out() -> None:
    assert singles([0, 1, 2], [2, 1, 3]) == [((0, 0),), ((0, 1),), ((2, 0),), ((2, 1),), ((2, 2),)]
    assert refine(((0, 1),), (0, 0)) is None
    assert refine(((2, 1),), (0, 0)) == ((0, 0), (2, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth must be a whole number of at least 1, got 0"),
        ({"width": 0}, "width must be a whole number of at least 1, got 0"),
        ({"queries": 1.5}, "queries must be a whole number"),
        ({"base": 1.2}, "base must be between 0 and 1, got 1.2"),
        ({"beta": -0.1}, "beta must be between 0 and 1, got -0.1"),
        ({"estimand": "all"}, "estimand must be one of mixture, population, got 'all'"),
        ({"proposal": "best"}, "proposal must be one of"),
        ({"proposal": "exponential", "proposal_share": 0.0}, "proposal_share must be above 0"),
        ({"proposal": "exponential", "proposal_share": 0.5, "confirm_share": 0.5}, "leave something for the counts"),
        ({"confirm_share": 1.0}, "confirm_share must be at least 0 and below 1, got 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SubgroupError, match=message):
        FedPsdSettings(**{"queries": 10, "base": 0.3, **options})  # type: ignore[arg-type]
