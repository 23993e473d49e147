from __future__ import annotations

import numpy as np
import pytest

from discovery_samples import plain_qualities, small_clients, small_schema
from fedsel.encode import Codes
from fedsel.errors import FedselError, SubgroupError
from fedsel.privacy.entropy import SeededEntropy
from fedsel.subgroups.fedpsd import FedPsdClient, FedPsdResult, FedPsdSettings, run_fedpsd
from fedsel.subgroups.fedpsd.channel import PUBLIC, Channel

SCHEMA = small_schema()
ATTRIBUTES = (0, 1, 2, 3)
CONDITIONS = sum(SCHEMA.domain[:-1])


def run(clients: list[Codes], epsilons: list[float], settings: FedPsdSettings, *, seed: int = 0) -> FedPsdResult:
    channel = Channel(private=settings.private)
    own = [
        FedPsdClient(
            f"c{i}",
            codes.columns,
            codes.columns[-1] == 1,
            epsilon=epsilon,
            channel=channel,
            entropy=SeededEntropy(np.random.SeedSequence([seed, i])),
        )
        for i, (codes, epsilon) in enumerate(zip(clients, epsilons, strict=True))
    ]
    return run_fedpsd(own, channel, settings, attributes=ATTRIBUTES, domain=SCHEMA.domain)


def base_of(clients: list[Codes]) -> float:
    return float(np.concatenate([c.columns[-1] for c in clients]).mean())


@pytest.mark.parametrize("proposal", ["none", "exponential", "permute-and-flip"])
@pytest.mark.parametrize("confirm_share", [0.0, 0.4])
def test_everything_that_crosses_is_charged(proposal: str, confirm_share: float) -> None:
    clients = small_clients(1, SCHEMA)
    settings = FedPsdSettings(
        queries=30,
        base=0.3,
        proposal=proposal,
        confirm_share=confirm_share,
        confirm=4,
        least_clients=2,
        baseline="matching",
    )  # type: ignore[arg-type]
    budgets = [4.0, 1.0, 1.0, 2.0]
    result = run(clients, budgets, settings)
    assert result.private
    assert result.label == "private"
    for message in result.messages:
        assert message.kind in PUBLIC or message.charge is not None
    assert all(spent <= budget for spent, budget in zip(result.spent, budgets, strict=True))
    assert {m.kind for m in result.messages} >= {"counts"} | ({"proposal"} if proposal != "none" else set())
    counts = [m for m in result.messages if m.kind == "counts"]
    assert result.statistics == sum(2 * len(m.content) for m in counts)
    assert all(m.client != "c2" for m in counts)  # no rows


def test_what_is_not_charged_does_not_depend_on_records() -> None:
    """Two populations of the same sizes: messages without a charge are the same."""
    settings = FedPsdSettings(queries=30, base=0.3, confirm_share=0.3, confirm=3)
    free = []
    for seed in (1, 2):
        result = run(small_clients(seed, SCHEMA), [4.0, 1.0, 1.0, 2.0], settings)
        free.append([(m.client, m.kind, m.content) for m in result.messages if m.charge is None])
    assert free[0]
    assert free[0] == free[1]


@pytest.mark.parametrize(
    ("options", "kind"), [({"proposal": "exact"}, "exact proposal"), ({"least_support": 0.01}, "exact support")]
)
def test_the_reported_variant_is_labelled(options: dict[str, object], kind: str) -> None:
    result = run(small_clients(1, SCHEMA), [4.0] * 4, FedPsdSettings(queries=30, base=0.3, **options))  # type: ignore[arg-type]
    assert not result.private
    assert "NOT PRIVATE" in result.label
    assert any(m.kind == kind and m.charge is None for m in result.messages)


def test_with_much_budget_the_population_estimand_is_the_truth() -> None:
    clients = small_clients(3, SCHEMA, (900, 400, 0, 100))
    settings = FedPsdSettings(queries=200, base=base_of(clients), width=20, estimand="population")
    result = run(clients, [1e5] * 4, settings)
    truth = plain_qualities(clients, SCHEMA, positive=1)
    for scored in result.ranked:
        assert scored.quality == pytest.approx(truth[scored.description], abs=1e-3)
    best = sorted(truth, key=lambda d: -truth[d])[:3]
    assert result.top(3) == best


def test_mixture_with_its_own_base_is_a_mean_of_the_clients() -> None:
    clients = small_clients(3, SCHEMA, (900, 400, 200))
    result = run(clients, [1e5] * 3, FedPsdSettings(queries=200, base=0.9, baseline="matching", precision=False))
    for scored in result.ranked[:5]:
        base = np.mean([base_of([c]) for c in clients])
        parts = [plain_qualities([c], SCHEMA, positive=1, base=float(base))[scored.description] for c in clients]
        assert scored.quality == pytest.approx(np.mean(parts), abs=2e-3)
    assert () not in result.top(1000)


def test_the_noise_of_answers_is_that_of_the_budget() -> None:
    """Variance of all answers of one client, against 2 b^2 = 8 / epsilon^2, within six standard errors."""
    clients = small_clients(1, SCHEMA, (300,))
    settings = FedPsdSettings(queries=CONDITIONS, base=0.3, depth=1)
    each = 2.0 / CONDITIONS
    exact = {
        ((v, code),): (int((clients[0].columns[v] == code).sum()),)
        for v in ATTRIBUTES
        for code in range(SCHEMA.domain[v])
    }
    noise = []
    for seed in range(200):
        result = run(clients, [2.0], settings, seed=seed)
        pairs = next(m for m in result.messages if m.kind == "counts").content
        noise += [pair[0] - n[0] for pair, n in zip(pairs, exact.values(), strict=True)]
    got, expected = np.var(noise), 8 / each**2
    # a Laplace's fourth moment is 6 times the square of its variance
    assert abs(got - expected) < 6 * expected * np.sqrt(5 / len(noise))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depth_is_the_most_conditions(depth: int) -> None:
    result = run(small_clients(1, SCHEMA, (3000,)), [1e4], FedPsdSettings(queries=300, base=0.3, depth=depth, width=12))
    assert max(len(d) for d in result.top(1000)) == depth


@pytest.mark.parametrize("width", [1, 2, 5])
def test_width_bounds_the_candidates_of_later_rounds(width: int) -> None:
    result = run(small_clients(1, SCHEMA, (3000,)), [1e4], FedPsdSettings(queries=300, base=0.3, width=width))
    assert len(result.ranked) <= CONDITIONS + width * (width - 1) // 2
    assert len(result.ranked) >= CONDITIONS


def test_queries_bound_what_is_asked() -> None:
    for queries in (5, CONDITIONS, 20):
        result = run(small_clients(1, SCHEMA, (300,)), [4.0], FedPsdSettings(queries=queries, base=0.3))
        assert len(result.ranked) <= queries


def test_routing_asks_those_with_budget_left_and_no_fewer_than_asked() -> None:
    clients = small_clients(1, SCHEMA, (500, 400, 300, 200))
    for least in (1, 3, 4):
        settings = FedPsdSettings(queries=30, base=0.3, confirm_share=0.5, confirm=3, least_clients=least)
        result = run(clients, [16.0, 4.0, 2.0, 1.0], settings)
        last = [m.client for m in result.messages if m.kind == "counts"][-least:]
        assert sorted(last) == [f"c{i}" for i in range(least)]
        assert sum(s.confirmed is not None for s in result.ranked) == 3


def test_proposals_come_from_those_of_the_largest_budgets() -> None:
    clients = small_clients(1, SCHEMA, (500, 400, 300, 200))
    settings = FedPsdSettings(queries=40, base=0.3, proposal="exponential", proposers=2)
    result = run(clients, [1.0, 8.0, 2.0, 16.0], settings)
    assert sorted(m.client for m in result.messages if m.kind == "proposal") == ["c1", "c3"]


def test_no_records_or_no_positives_is_no_crash() -> None:
    nobody = small_clients(0, SCHEMA, (0, 0))
    assert run(nobody, [1.0, 1.0], FedPsdSettings(queries=20, base=0.3)).ranked == ()
    clients = small_clients(0, SCHEMA, (50,), strength=0.0)
    zero = Codes((*clients[0].columns[:-1], np.zeros(50, dtype=np.uint8)), 50, 0, (0,) * 5)
    assert run([zero], [1.0], FedPsdSettings(queries=20, base=0.0)).ranked


def test_a_budget_too_small_for_one_query_is_refused_before_anything_is_spent() -> None:
    channel = Channel(private=True)
    codes = small_clients(1, SCHEMA, (50, 50))
    own = [
        FedPsdClient(f"c{i}", c.columns, c.columns[-1] == 1, epsilon=epsilon, channel=channel)
        for i, (c, epsilon) in enumerate(zip(codes, (1.0, 1e-9), strict=True))
    ]
    with pytest.raises(SubgroupError, match="client 'c1': a budget of epsilon 1e-09 does not suit 30 count pairs"):
        run_fedpsd(own, channel, FedPsdSettings(queries=30, base=0.3), attributes=ATTRIBUTES, domain=SCHEMA.domain)
    confirming = FedPsdSettings(queries=30, base=0.3, confirm_share=1e-9)
    with pytest.raises(SubgroupError, match="client 'c0': a budget of epsilon 1e-09 does not suit 10 count pairs"):
        run_fedpsd(own[:1], channel, confirming, attributes=ATTRIBUTES, domain=SCHEMA.domain)
    assert channel.messages == []
    assert own[0].account.entries == ()


def test_without_candidates_there_is_nothing_to_confirm() -> None:
    """The only query goes to the share of positives."""
    settings = FedPsdSettings(queries=1, base=0.3, baseline="matching", confirm_share=0.2)
    result = run(small_clients(1, SCHEMA, (50,)), [1.0], settings)
    assert result.ranked == ()
    assert result.spent[0] == pytest.approx(0.8)


def test_nothing_to_look_at_is_refused() -> None:
    channel = Channel(private=True)
    with pytest.raises(FedselError, match="at least one client"):
        run_fedpsd([], channel, FedPsdSettings(queries=3, base=0.3), attributes=(0,), domain=(2, 2))
    codes = small_clients(1, SCHEMA, (50,))[0]
    client = FedPsdClient("c", codes.columns, codes.columns[-1] == 1, epsilon=1.0, channel=channel)
    with pytest.raises(FedselError, match="at least one condition"):
        run_fedpsd([client], channel, FedPsdSettings(queries=3, base=0.3), attributes=(0,), domain=(1, 2))
