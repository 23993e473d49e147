from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import require_extra
from training_samples import made_client, made_data, made_task

require_extra("torch", "train")

from fedsel.encode import Codes  # noqa: E402
from fedsel.errors import TrainingError  # noqa: E402
from fedsel.privacy.calibration import plan_noise  # noqa: E402
from fedsel.training import tuning  # noqa: E402
from fedsel.training.aggregators import AGGREGATORS  # noqa: E402
from fedsel.training.comparison_settings import ComparisonSettings, claim_pairs  # noqa: E402
from fedsel.training.data import FederatedData  # noqa: E402
from fedsel.training.local import LocalSettings  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.repetition import Repetition, TuningRepetition  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.sources import ExampleSource, FileSource  # noqa: E402
from fedsel.training.splitting import set_apart, split  # noqa: E402
from fedsel.training.tuning import EFFORT, Tuned, tune  # noqa: E402


def tuned_by(monkeypatch, outcome, *, name="fedavg", optimiser="sgd", **options):
    """Tune an aggregator whose trainings end as `outcome(rate, value)` says: (loss, |EOD|)."""
    monkeypatch.setattr(tuning, "_train", lambda world, members, name, run, rate, value: outcome(rate, value))
    return tune(lambda: None, ["a"], [name], RunSettings(1), optimiser=optimiser, **options)[name]


def valley(best, best_value=1.0):
    """A loss with its least at a learning rate and a value."""

    def outcome(rate, value):
        off = 0.0 if value is None else np.log(value / best_value) ** 2
        return float(np.log(rate / best) ** 2 + off), 0.1

    return outcome


# --- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGGREGATORS)
@pytest.mark.parametrize("best", [0.1, 1e-4, 50.0])
def test_every_aggregator_spends_the_same_effort(monkeypatch, name, best):
    progress = []
    found = tuned_by(monkeypatch, valley(best), name=name, progress=lambda: progress.append(1))
    assert len(found.trials) == len(progress) == EFFORT
    assert len({(trial.rate, trial.value) for trial in found.trials}) == EFFORT


def test_a_grid_grows_twice_while_the_best_is_at_its_end(monkeypatch):
    low = tuned_by(monkeypatch, valley(0.001))
    assert [trial.rate for trial in low.trials[:7]] == [0.01, 0.03, 0.1, 0.3, 1.0, 0.00333, 0.00111]
    assert low.local.learning_rate == pytest.approx(0.001, rel=0.12)
    high = tuned_by(monkeypatch, valley(3.0))
    assert [trial.rate for trial in high.trials[5:7]] == [3.0, 9.0]
    assert (high.local.learning_rate, high.edges) == (3.0, ())
    beyond = tuned_by(monkeypatch, valley(1e4))
    assert max(trial.rate for trial in beyond.trials) == 9.0
    assert (beyond.local.learning_rate, beyond.edges) == (9.0, ("learning rate",))


def test_what_is_left_goes_into_finer_rates(monkeypatch):
    found = tuned_by(monkeypatch, valley(0.05))
    assert found.local.learning_rate == pytest.approx(0.05, rel=0.2)
    assert all(0.03 <= trial.rate <= 0.1 for trial in found.trials[5:])


def test_a_constant_is_searched_at_the_best_rate_and_kept(monkeypatch):
    found = tuned_by(monkeypatch, valley(0.1, 10.0), name="fedprox")
    assert [trial.value for trial in found.trials if trial.rate == 0.1] == [0.01, 0.001, 0.1, 1.0, 10.0]
    assert (found.option, found.value, found.local.learning_rate) == ("mu", 10.0, 0.1)
    assert found.edges == ("mu",)
    assert found.make().mu == 10.0
    assert [trial.value for trial in found.value_trials] == [0.001, 0.01, 0.1, 1.0, 10.0]


def test_a_constant_for_fairness_is_judged_by_it_near_the_lowest_loss(monkeypatch):
    results = {1.0: (0.500, 0.09), 0.333: (0.499, 0.08), 3.0: (0.503, 0.02), 9.0: (0.60, 0.0)}

    def outcome(rate, value):
        return results[value][0] + abs(np.log(rate / 0.1)), results[value][1]

    common = {"name": "fairfed", "rates": (0.05, 0.1, 0.2)}
    found = tuned_by(monkeypatch, outcome, effort=6, **common)
    assert [trial.value for trial in found.value_trials] == [0.333, 1.0, 3.0, 9.0]
    assert (found.value, found.option) == (3.0, "beta")  # 9 is fairer, and its loss too high
    results[3.0] = (0.503, None)
    assert tuned_by(monkeypatch, outcome, effort=5, **common).value == 0.333


def test_as_much_effort_as_rates_tries_these_alone(monkeypatch):
    found = tuned_by(monkeypatch, valley(1e-9), name="fedprox", rates=(0.2, 0.1), effort=2)
    assert [(trial.rate, trial.value) for trial in found.trials] == [(0.1, 0.01), (0.2, 0.01)]
    assert found.make().mu == 0.01
    with pytest.raises(TrainingError, match="tuning effort must be at least 2, the learning rates to try, got 1"):
        tuned_by(monkeypatch, valley(1.0), rates=(0.2, 0.1), effort=1)


def test_one_rate_has_no_edges():
    trial = tuning.Trial(0.1, None, 0.5, None)
    assert Tuned("fedavg", LocalSettings("sgd", 0.1), None, None, (trial,)).edges == ()


def test_a_method_takes_an_optimiser_that_its_paper_allows(monkeypatch):
    assert tuned_by(monkeypatch, valley(1e-3), optimiser="adam").local.optimiser == "adam"
    assert tuned_by(monkeypatch, valley(0.1), name="scaffold", optimiser="adam").local.optimiser == "sgd"


# --- trainings -------------------------------------------------------------------------------------------------------


def test_a_rate_that_diverges_loses():
    task = made_task(numeric=1)
    data = made_data([40, 40], task=task)
    world = Simulation(split(data, seed=0), Mlp(task, (4, 4)))
    common = {"optimiser": "sgd", "rates": (0.1, 1e38), "effort": 2}
    tuned = tune(lambda: world, ["c0", "c1"], ["fedavg"], RunSettings(3, LocalSettings(batch_size=2)), **common)
    assert tuned["fedavg"].local.learning_rate == 0.1
    assert tuned["fedavg"].trials[1].loss is None
    with pytest.raises(TrainingError, match=r"fedavg: no learning rate among 1e\+38 trains"):
        tune(lambda: world, ["c0"], ["fedavg"], RunSettings(3), optimiser="sgd", rates=(1e38,), effort=1)
    lonely = Simulation(split(made_data([1, 40]), seed=0), Mlp(made_task(), ()))
    with pytest.raises(TrainingError, match="chosen on validation rows, and the members have none"):
        tune(lambda: lonely, ["c0"], ["fedavg"], RunSettings(1), optimiser="sgd")


@pytest.mark.parametrize("patience", [None, 2])
def test_the_model_that_would_be_kept_is_judged(patience):
    data = made_data([300, 300])
    world = Simulation(split(data, seed=0), Mlp(data.task, (8, 8)))
    run = RunSettings(12, LocalSettings("sgd", 20.0, batch_size=8), patience=patience)
    tuned = tune(lambda: world, ["c0", "c1"], ["fairfed"], run, optimiser="sgd", rates=(20.0,), effort=1)["fairfed"]
    result = world.run(["c0", "c1"], tuned.make(), replace(run, local=tuned.local))
    kept = [r for r in result.history if r["part"] == "validation" and r["round"] == result.round]
    assert tuned.trials[0].loss == kept[0]["loss"]
    assert tuned.trials[0].eod == abs(kept[0]["eod"])


# --- rows apart ------------------------------------------------------------------------------------------------------


def numbered(sizes):
    """Clients whose rows carry a number of their own as an input."""
    task = made_task(numeric=1)
    clients, first = [], 0
    for number, rows in enumerate(sizes):
        client = made_client(f"c{number}", rows, task=task)
        own = np.arange(first, first + rows, dtype=np.float32)[:, None]
        clients.append(replace(client, numeric=own))
        first += rows
    return clients


def numbers(*parts):
    return [n for data in parts for client in data.clients for n in client.numeric[:, 0].tolist()]


def test_a_fifth_of_every_clients_rows_is_set_apart_whatever_the_order():
    clients = numbered([50, 4, 0])
    tuning_rows, rest = set_apart(FederatedData(clients))
    assert tuning_rows.rows.tolist() == [10, 0, 0]
    assert sorted(numbers(tuning_rows, rest)) == list(range(54))
    again, _ = set_apart(FederatedData(reversed(clients)))
    assert numbers(again) == numbers(tuning_rows)


class NumberedSource(FileSource):
    """Rows in memory."""

    def __init__(self, sizes):
        clients = numbered(sizes)
        pieces = [
            (
                c.name,
                Codes((*c.codes.T, c.target.astype(int)), c.rows, 0, (0,) * 4),
                c.numeric.astype(float) * 2,
            )
            for c in clients
        ]
        super().__init__(clients[0].task, pieces, description="numbered rows")


def settings(**changes):
    return ComparisonSettings(**{"k": 2, "pairs": claim_pairs(("random",), ("fedavg",)), "rows": None, **changes})


@pytest.mark.parametrize("rows", [None, 150])
def test_no_repetition_sees_a_row_that_tuning_saw(rows):
    source = NumberedSource([100, 120, 80, 90])
    chosen = settings(rows=rows)
    plan = plan_noise(6, epsilon=1.0)
    apart = TuningRepetition(source, plan, chosen, 4, 77)
    seen = set(numbers(apart.split.train, apart.split.validation))
    assert len(seen) == (78 if rows is None else pytest.approx(78, abs=4))
    assert not apart.split.test.rows.any()
    tested = set()
    for seed in range(5):
        world = Repetition(source, plan, chosen, 4, seed)
        used = numbers(world.split.train, world.split.validation, world.split.test)
        assert not seen & set(used)
        tested |= set(numbers(world.split.test))
    assert len(tested) > 100  # repetitions do test on different rows


def test_tuning_trains_on_as_many_rows_as_a_repetition_if_there_are_so_many():
    source, chosen = ExampleSource(), settings(rows=20_000)
    plan = plan_noise(55, epsilon=1.0)
    apart, world = (kind(source, plan, chosen, 20, 3) for kind in (TuningRepetition, Repetition))
    assert apart.candidates == world.candidates
    assert int(apart.split.train.rows.sum()) == pytest.approx(int(world.split.train.rows.sum()), rel=0.02)


def test_tuning_takes_members_that_have_rows_apart():
    source = NumberedSource([100, 3, 80, 2])
    plan = plan_noise(6, epsilon=1.0)
    assert TuningRepetition(source, plan, settings(), 4, 1).members() == ("c0", "c2")
    with pytest.raises(TrainingError, match=r"tuning needs 3 candidates with rows set apart for it.*; 2 have some"):
        TuningRepetition(source, plan, settings(k=3), 4, 1).members()
