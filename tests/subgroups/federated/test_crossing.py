"""Everything that leaves a client, intercepted: a release, charged before it appears."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fedsel.privacy.client as at_client
from discovery_samples import small_clients, small_schema
from fedsel.errors import BudgetError, PrivacyError, SubgroupError
from fedsel.pool import Pool
from fedsel.privacy.ledger import Ledger
from fedsel.subgroups.federated import SubgroupProtocol, answer, discover, next_questions


def test_nothing_crosses_that_no_ledger_was_charged_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2, confirm=2)
    plan = protocol.plan(1.0)
    clients = small_clients(1, schema)
    ledgers = [tmp_path / f"c{i}.ledger" for i in range(len(clients))]
    crossed = []
    noise = at_client.add_noise

    def watched(counts, sizes, own, *, entropy):  # type: ignore[no-untyped-def]
        # Noise is drawn for what is about to be published. The rehearsal before the charge is on zeros.
        if np.any(counts):
            path = ledgers[watched.client]
            with Ledger(path) as ledger:
                charge = ledger.charges[-1]
                assert charge.plan == plan
                begun = 1 + len(charge.covered)
                assert begun >= watched.part
                crossed.append((watched.client, watched.part))
        return noise(counts, sizes, own, entropy=entropy)

    watched.client, watched.part = 0, 1  # type: ignore[attr-defined]
    monkeypatch.setattr(at_client, "add_noise", watched)
    rounds, questions = [], None
    for part in (1, 2, 3):
        releases = []
        for place, codes in enumerate(clients):
            watched.client, watched.part = place, part  # type: ignore[attr-defined]

            def ledger(place: int = place) -> Ledger:
                return Ledger.open_or_create(ledgers[place], client=f"c{place}", epsilon=1.0, delta=1e-5)

            releases.append(answer(protocol, codes, plan, client=f"c{place}", questions=questions, ledger=ledger))
        rounds.append(Pool.from_releases(releases))
        if part < 3:
            questions = next_questions(protocol, rounds)
    discover(protocol, rounds)
    with_rows = [place for place, codes in enumerate(clients) if codes.rows]
    assert crossed == [(place, part) for part in (1, 2, 3) for place in with_rows]
    for place in range(len(clients)):
        with Ledger(ledgers[place]) as ledger_:
            assert len(ledger_.charges) == 1
            assert ledger_.spent.epsilon == 1.0
    # a second answer to the same round is refused
    with pytest.raises(BudgetError):
        answer(protocol, clients[0], plan, client="c0", questions=questions, ledger=Ledger(ledgers[0]))


def test_questions_and_results_depend_on_releases_only() -> None:
    """The coordinator's functions take pools; the same pools give the same answers whatever the rows were."""
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    releases = [
        answer(protocol, codes, protocol.plan(1.0), client=f"c{i}", seed=3)
        for i, codes in enumerate(small_clients(1, schema))
    ]
    pool = Pool.from_releases(releases)
    assert next_questions(protocol, [pool]) == next_questions(protocol, [pool])


def test_a_budget_too_small_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    with pytest.raises(PrivacyError, match="epsilon"):
        protocol.plan(1e-12)
    ledger = Ledger.open_or_create(tmp_path / "c.ledger", client="c0", epsilon=0.5, delta=1e-5)
    with ledger, pytest.raises(BudgetError):
        answer(protocol, small_clients(1, schema)[0], protocol.plan(1.0), client="c0", ledger=ledger)
    assert not (tmp_path / "c.ledger").exists() or not Ledger(tmp_path / "c.ledger").charges


def test_a_plan_of_other_rounds_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    other = SubgroupProtocol.make(schema, pairs=3)
    with pytest.raises(SubgroupError, match="plan: expected rounds"):
        answer(
            protocol,
            small_clients(1, schema)[0],
            other.plan(1.0),
            client="c0",
            ledger=lambda: pytest.fail("the ledger was opened"),
        )
