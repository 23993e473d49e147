"""Two rounds of every aggregator against numbers computed by hand, with partial participation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conftest import require_extra
from training_samples import same_split

torch = require_extra("torch", "train")

from fedsel import Schema, Variable  # noqa: E402
from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.aggregators import (  # noqa: E402
    AGGREGATORS,
    FairFed,
    FedAdam,
    FedAvg,
    FedProx,
    Scaffold,
    make_aggregator,
)
from fedsel.training.aggregators.round import Round, Setup  # noqa: E402
from fedsel.training.data import ClientData, FederatedData  # noqa: E402
from fedsel.training.local import LocalSettings, Update  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.task import Task  # noqa: E402

DOUBLE = torch.float64


def drive(aggregator, rounds, *, records=(1, 3, 4), size=1, local=None):
    """Feed deltas (one number a participant) through an aggregator; returns the global model after each round."""
    parameters = torch.zeros(size, dtype=DOUBLE)
    aggregator.begin(Setup(np.array(records), parameters, local or LocalSettings("sgd", 0.5), privileged=1))
    seen = []
    for number, (clients, deltas, counts) in enumerate(rounds, start=1):
        round_ = Round(number, parameters, clients, counts=lambda counts=counts: counts, gradients=lambda: iter(()))
        shares = torch.from_numpy(aggregator.shares(round_))
        aggregator.rule(round_)
        delta = torch.tensor(deltas, dtype=DOUBLE)[:, None].expand(-1, size)
        aggregator.receive(round_, Update(list(range(len(clients))), delta, torch.full((len(clients),), 2)))
        parameters = aggregator.step(round_, shares @ delta)
        seen.append(float(parameters[0]))
    return seen


TWO_ROUNDS = [((0, 1), [4.0, 8.0], None), ((1, 2), [1.0, -1.0], None)]


def test_fedavg_by_hand():
    # weights 1/4 and 3/4, then 3/7 and 4/7
    assert drive(FedAvg(), TWO_ROUNDS) == pytest.approx([7.0, 7.0 - 1 / 7])
    assert drive(FedAvg(weighting="uniform"), TWO_ROUNDS) == pytest.approx([6.0, 6.0])


def test_fedadam_by_hand():
    # mean updates 7 and -1/7; m = 0.7, then 0.63 - 1/70; v = 0.99 * 4 + 0.49, then 0.99 * 4.45 + 0.01 / 49
    v1 = 0.99 * 4 + 0.01 * 49
    x1 = 0.5 * 0.7 / (math.sqrt(v1) + 2)
    v2 = 0.99 * v1 + 0.01 / 49
    x2 = x1 + 0.5 * (0.9 * 0.7 - 0.1 / 7) / (math.sqrt(v2) + 2)
    assert drive(FedAdam(server_rate=0.5, tau=2.0), TWO_ROUNDS) == pytest.approx([x1, x2], abs=1e-14)


def test_scaffold_by_hand():
    # Option II, K = 2, eta_l = 0.5: c_i+ = c_i - c - delta. Three clients, of which two take part.
    scaffold = Scaffold()
    seen = drive(scaffold, TWO_ROUNDS)
    # Round 1: c = 0; c_0 = -4, c_1 = -8; c = (-4 - 8) / 3 = -4.  x = (4 + 8) / 2
    # Round 2: c_1+ = -8 + 4 - 1 = -5, c_2+ = 0 + 4 + 1 = 5; c = -4 + (3 + 5) / 3.  x = 6 + 0
    state = scaffold.state()
    assert seen == pytest.approx([6.0, 6.0])
    assert state["variates"][:, 0].tolist() == pytest.approx([-4.0, -5.0, 5.0])
    assert float(state["variate"][0]) == pytest.approx(-4 + 8 / 3)


def counts(positives, found, negatives, right):
    """Counts (groups, 2, 2) from per-group positive rows, those found, negative rows, those recognised."""
    return [[[tn, n - tn], [p - tp, tp]] for p, tp, n, tn in zip(positives, found, negatives, right, strict=True)]


def test_fairfed_by_hand():
    first = np.array([counts((4, 4), (2, 4), (1, 1), (1, 1)), counts((12, 12), (12, 12), (3, 3), (3, 3))])
    second = np.array([counts((12, 12), (6, 12), (3, 3), (3, 3)), counts((0, 8), (0, 4), (0, 2), (0, 1))])
    records = (10, 30, 10)
    # Round 1: F_0 = 2/4 - 1 = -1/2, F_1 = 0, F = 14/16 - 1 = -1/8; gaps 3/8 and 1/8, mean 1/4.
    w0, w1 = 0.2 - 0.4 * (1 / 8), 0.6 + 0.4 * (1 / 8)
    x1 = (w0 * 4 + w1 * 8) / (w0 + w1)
    # Round 2: F_1 = -1/2, F = 6/12 - 16/20 = -3/10, gap 1/5. Client 2 has no unprivileged rows: |5/10 - 29/40| = 9/40.
    mean = (1 / 5 + 9 / 40) / 2
    w1, w2 = w1 - 0.4 * (1 / 5 - mean), 0.2 - 0.4 * (9 / 40 - mean)
    x2 = x1 + (w1 * 1 - w2 * 1) / (w1 + w2)
    fairfed = FairFed(beta=0.4)
    rounds = [((0, 1), [4.0, 8.0], first), ((1, 2), [1.0, -1.0], second)]
    assert drive(fairfed, rounds, records=records) == pytest.approx([x1, x2], abs=1e-14)
    assert any("in 1 of 4 client rounds" in note for note in fairfed.notes())
    assert any("no secure aggregation" in note for note in fairfed.notes())


def test_fairfed_uniform_accuracy_by_hand():
    table = np.array([counts((4, 4), (2, 4), (1, 1), (1, 1)), counts((12, 12), (12, 12), (3, 3), (3, 3))])
    # gaps of EOD 3/8 and 1/8; accuracies 8/10 and 1, together 38/40: gaps 3/20 and 1/20.
    gaps = (0.25 * 3 / 8 + 0.75 * 3 / 20, 0.25 / 8 + 0.75 / 20)
    mean = sum(gaps) / 2
    w0, w1 = 0.25 - (gaps[0] - mean), 0.75 - (gaps[1] - mean)
    x = (w0 * 4 + w1 * 8) / (w0 + w1)
    fairfed = FairFed(beta=1.0, eta=0.25)
    assert drive(fairfed, [((0, 1), [4.0, 8.0], table)], records=(10, 30)) == pytest.approx([x], abs=1e-14)


def test_fairfed_by_spd_by_hand():
    table = np.array([counts((4, 4), (2, 4), (4, 4), (4, 2)), counts((4, 4), (4, 4), (12, 12), (12, 12))])
    # P(Yhat = 1): client 0: 2/8 - 6/8; client 1: 4/16 - 4/16; together 6/24 - 10/24 = -1/6. Gaps 1/3 and 1/6.
    w0, w1 = 1 / 3 - 0.5 * (1 / 3 - 1 / 4), 2 / 3 - 0.5 * (1 / 6 - 1 / 4)
    x = (w0 * 4 + w1 * 8) / (w0 + w1)
    fairfed = FairFed(beta=0.5, metric="spd")
    assert drive(fairfed, [((0, 1), [4.0, 8.0], table)], records=(16, 32)) == pytest.approx([x], abs=1e-14)


def test_fairfed_weights_stay_above_zero():
    table = np.array([counts((4, 4), (2, 4), (1, 1), (1, 1)), counts((12, 12), (12, 12), (3, 3), (3, 3))])
    # beta = 8: w_0 = 1/4 - 1 is set to 0, w_1 = 3/4 + 1; in round 2 the gaps are the same.
    fairfed = FairFed(beta=8.0)
    rounds = [((0, 1), [4.0, 8.0], table)] * 2
    assert drive(fairfed, rounds, records=(10, 30)) == pytest.approx([8.0, 16.0])
    assert fairfed.state()["weights"].tolist() == pytest.approx([0.0, 2.75])


def test_fairfed_falls_back_where_all_weights_vanish():
    fairfed = FairFed(beta=0.0)
    table = np.array([counts((4, 4), (2, 4), (1, 1), (1, 1))] * 2)
    fairfed.begin(Setup(np.array([10, 30]), torch.zeros(1), LocalSettings(), privileged=1))
    fairfed.restore({"weights": torch.zeros(2, dtype=DOUBLE), "gaps": torch.tensor([0, 0])})
    round_ = Round(1, torch.zeros(1), (0, 1), counts=lambda: table, gradients=lambda: iter(()))
    assert fairfed.shares(round_).tolist() == [0.25, 0.75]


def test_fairfed_uses_accuracy_alone_where_a_group_is_nowhere():
    table = np.array([counts((0, 4), (0, 2), (0, 4), (0, 4)), counts((0, 4), (0, 4), (0, 4), (0, 4))])
    # accuracies 6/8 and 1, together 14/16: equal gaps, so the weights stay.
    fairfed = FairFed(beta=1.0)
    assert drive(fairfed, [((0, 1), [4.0, 8.0], table)], records=(8, 8)) == pytest.approx([6.0])
    assert any("in 2 of 2 client rounds" in note for note in fairfed.notes())


# --- whole runs: one weight and one bias that always go together, so that only z = w + b matters ---------------------

RATE, STEPS = 0.5, 2


class FromZero(Mlp):
    """Logistic regression that starts from zero."""

    def initial(self, seed):
        return super().initial(seed) * 0


def scalar_data():
    schema = Schema(
        name="scalar",
        variables=(
            Variable(name="one", categories=(0,)),
            Variable(name="sex", role="sensitive", categories=("m", "f")),
            Variable(name="y", role="target", categories=(False, True)),
        ),
    )
    task = Task.of(schema, sensitive_inputs=False)
    targets = {"a": [1], "b": [1, 0, 0, 0], "c": [1, 0]}
    return FederatedData(
        ClientData(
            name,
            task,
            np.zeros((len(y), 1), dtype=np.uint8),
            np.zeros((len(y), 0), dtype=np.float32),
            np.array(y, dtype=bool),
            np.zeros(len(y), dtype=np.int32),
        )
        for name, y in targets.items()
    )


def run_scalar(aggregator):
    """Two rounds of two of three clients; returns z and who took part."""
    data = scalar_data()
    seen = []
    shares = aggregator.shares
    aggregator.shares = lambda round_: (seen.append(round_.clients), shares(round_))[1]
    simulation = Simulation(same_split(data), FromZero(data.task, (), dtype=DOUBLE))
    local = LocalSettings("sgd", RATE, batch_size=10, epochs=STEPS)
    result = simulation.run(["a", "b", "c"], aggregator, RunSettings(2, local, clients_per_round=2, seed=1))
    assert len(seen) == 2
    assert seen[0] != seen[1]
    return float(result.parameters.sum()), seen


MEANS, ROWS = (1.0, 0.25, 0.5), (1, 4, 2)


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def local_z(z, client, *, mu=0.0, shift=0.0):
    """Two steps of size 0.5 on weight and bias alike: z moves by twice that."""
    start = z
    for _ in range(STEPS):
        z -= 2 * RATE * (sigmoid(z) - MEANS[client] + shift) + RATE * mu * (z - start)
    return z


@pytest.mark.parametrize("mu", [0.0, 0.8])
def test_fedavg_and_fedprox_in_whole_runs(mu):
    found, rounds = run_scalar(FedProx(mu=mu) if mu else FedAvg())
    z = 0.0
    for clients in rounds:
        ends = {client: local_z(z, client, mu=mu) for client in clients}
        z = sum(ROWS[client] * ends[client] for client in clients) / sum(ROWS[client] for client in clients)
    assert found == pytest.approx(z, abs=1e-12)


@pytest.mark.parametrize("option", ["I", "II"])
def test_scaffold_in_whole_runs(option):
    found, rounds = run_scalar(Scaffold(option=option, server_rate=0.9))
    z, c, variates = 0.0, 0.0, [0.0, 0.0, 0.0]
    for clients in rounds:
        ends = {client: local_z(z, client, shift=c - variates[client]) for client in clients}
        new = {
            client: sigmoid(z) - MEANS[client]
            if option == "I"
            else variates[client] - c + (z - ends[client]) / 2 / (STEPS * RATE)
            for client in clients
        }
        z += 0.9 * sum(ends[client] - z for client in clients) / 2
        c += sum(new[client] - variates[client] for client in clients) / 3
        for client in clients:
            variates[client] = new[client]
    assert found == pytest.approx(z, abs=1e-12)


def test_fedadam_in_whole_runs():
    found, rounds = run_scalar(FedAdam(server_rate=0.3, tau=0.05))
    z, m, v = 0.0, 0.0, 0.05**2
    for clients in rounds:
        rows = sum(ROWS[client] for client in clients)
        delta = sum(ROWS[client] * (local_z(z, client) - z) / 2 for client in clients) / rows  # of weight and of bias
        m, v = 0.9 * m + 0.1 * delta, 0.99 * v + 0.01 * delta**2
        z += 2 * 0.3 * m / (math.sqrt(v) + 0.05)
    assert found == pytest.approx(z, abs=1e-12)


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FedProx(mu=-1), "mu must be at least 0 and finite, got -1"),
        (lambda: FedAvg(weighting="size"), "weighting must be records or uniform, got 'size'"),
        (lambda: Scaffold(option="III"), "option must be I or II, got 'III'"),
        (lambda: Scaffold(server_rate=0), "server_rate must be positive"),
        (lambda: FedAdam(beta2=1.0), "beta2 must be at least 0 and below 1, got 1.0"),
        (lambda: FedAdam(tau=0.0), "tau must be positive"),
        (lambda: FairFed(beta=float("nan")), "beta must be at least 0 and finite, got nan"),
        (lambda: FairFed(metric="mad"), "metric must be eod or spd, got 'mad'"),
        (lambda: FairFed(eta=1.5), "eta must be between 0 and 1, got 1.5"),
        (lambda: make_aggregator("fedsgd"), "aggregator must be one of fedavg, fedprox, .*got 'fedsgd'"),
        (lambda: make_aggregator("fedavg", mu=1.0), "fedavg has no option 'mu'; it has weighting"),
    ],
)
def test_impossible_options_are_refused(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


def test_scaffold_needs_plain_gradient_steps():
    with pytest.raises(TrainingError, match="scaffold needs the local optimiser sgd, got adam"):
        drive(Scaffold(), TWO_ROUNDS, local=LocalSettings("adam"))


def test_descriptions_hold_all_options():
    assert make_aggregator("fedprox", mu=0.5).description == "fedprox(weighting=records, mu=0.5)"
    assert FairFed().description == "fairfed(weighting=records, beta=1.0, metric=eod, eta=1.0, secure_sum=plain)"
    assert all(make_aggregator(name).name == name for name in AGGREGATORS)
