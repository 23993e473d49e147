from __future__ import annotations

import errno
import os

import pytest

from conftest import require_extra
from training_samples import made_data

torch = require_extra("torch", "train")

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.training.aggregators import AGGREGATORS, FedAvg, FedProx, make_aggregator  # noqa: E402
from fedsel.training.local import LocalSettings  # noqa: E402
from fedsel.training.models import Mlp  # noqa: E402
from fedsel.training.simulation import RunSettings, Simulation  # noqa: E402
from fedsel.training.splitting import split  # noqa: E402


class KilledError(Exception):
    """Stands for a process that ends."""


@pytest.fixture(scope="module")
def world():
    data = made_data([30, 50, 20, 40])
    return Simulation(split(data, seed=0), Mlp(data.task, (4,)))


def run(world, aggregator, *, rounds=6, kill_after=None, local=None, **options):
    def progress(done, rounds):
        if done == kill_after:
            raise KilledError

    local = local or LocalSettings(aggregator.optimisers[0], 0.05, batch_size=8)
    settings = RunSettings(rounds, local, clients_per_round=3, patience=20, seed=2)
    return world.run(["c0", "c1", "c2", "c3"], aggregator, settings, progress=progress, **options)


@pytest.mark.parametrize("name", AGGREGATORS)
@pytest.mark.parametrize("kill_after", [3, 4])
def test_a_killed_run_goes_on_to_the_same_numbers(world, tmp_path, name, kill_after):
    path = tmp_path / "run.ckpt"
    whole = run(world, make_aggregator(name))
    with pytest.raises(KilledError):
        run(world, make_aggregator(name), kill_after=kill_after, checkpoint=path, checkpoint_every=3)
    resumed = run(world, make_aggregator(name), checkpoint=path, checkpoint_every=3)
    assert torch.equal(resumed.parameters, whole.parameters)
    assert resumed.history == whole.history
    assert resumed.round == whole.round
    assert resumed.notes == whole.notes


def test_a_finished_run_trains_no_further_and_may_be_extended(world, tmp_path):
    path = tmp_path / "run.ckpt"
    first = run(world, FedAvg(), rounds=4, checkpoint=path)
    rounds = []
    again = world.run(
        ["c0", "c1", "c2", "c3"],
        FedAvg(),
        RunSettings(4, LocalSettings("adam", 0.05, batch_size=8), clients_per_round=3, patience=20, seed=2),
        checkpoint=path,
        progress=lambda done, _: rounds.append(done),
    )
    assert rounds == []
    assert torch.equal(first.parameters, again.parameters)
    longer = run(world, FedAvg(), rounds=6, checkpoint=path)
    assert torch.equal(longer.parameters, run(world, FedAvg(), rounds=6).parameters)


@pytest.mark.parametrize("failing", ["write", "replace", "fsync"])
def test_an_interrupted_write_leaves_the_older_file(world, tmp_path, monkeypatch, failing):
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(world, FedAvg(), kill_after=2, checkpoint=path, checkpoint_every=2)
    before = path.read_bytes()

    def broken(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, broken)
        with pytest.raises(TrainingError, match=r"run\.ckpt: cannot be written: No space left"):
            run(world, FedAvg(), checkpoint=path, checkpoint_every=2)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.ckpt"]
    assert torch.equal(run(world, FedAvg(), checkpoint=path).parameters, run(world, FedAvg()).parameters)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"text\n" * 50])
def test_a_damaged_checkpoint_is_refused(world, tmp_path, damage):
    path = tmp_path / "run.ckpt"
    run(world, FedAvg(), rounds=1, checkpoint=path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TrainingError, match=r"run\.ckpt: is no checkpoint, or damaged"):
        run(world, FedAvg(), checkpoint=path)


def test_a_checkpoint_that_lacks_parts_is_refused(world, tmp_path):
    path = tmp_path / "run.ckpt"
    run(world, FedAvg(), rounds=1, checkpoint=path)
    fields = torch.load(path, weights_only=True)
    torch.save({**fields, "format": 9}, path)
    with pytest.raises(TrainingError, match="checkpoint has format 9, expected 1"):
        run(world, FedAvg(), checkpoint=path)
    torch.save({name: value for name, value in fields.items() if name != "round"}, path)
    with pytest.raises(TrainingError, match="is no checkpoint, or damaged"):
        run(world, FedAvg(), checkpoint=path)


def test_a_checkpoint_of_another_run_is_refused(world, tmp_path):
    path = tmp_path / "run.ckpt"
    run(world, FedProx(mu=0.1), checkpoint=path)
    others = [
        lambda: run(world, FedAvg(), checkpoint=path),
        lambda: run(world, FedProx(mu=0.2), checkpoint=path),
        lambda: run(world, FedProx(mu=0.1), local=LocalSettings("adam", 0.04, batch_size=8), checkpoint=path),
        lambda: run(
            Simulation(split(made_data([30, 50, 20, 41]), seed=0), world.model), FedProx(mu=0.1), checkpoint=path
        ),
    ]
    for other in others:
        with pytest.raises(TrainingError, match="belongs to a run with other data, members or settings"):
            other()


def test_a_folder_is_no_checkpoint(world, tmp_path):
    with pytest.raises(TrainingError, match="cannot be read"):
        run(world, FedAvg(), checkpoint=tmp_path)
