from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import require_extra
from fedsel import Schema
from fedsel.cli.main import app
from fedsel.datasets.example import load_example
from fedsel.errors import FedselError
from fedsel.experiments.fidelity import fidelity
from fedsel.experiments.fidelity_table import summary
from fedsel.experiments.population import Population, example_population, read_population
from fedsel.experiments.recipes import RECIPES
from fedsel.tables import count
from score_samples import COLUMNS, NAMES, SCHEMA, WORKLOAD


def small() -> Population:
    counts = np.array([count(columns, WORKLOAD).counts for columns in COLUMNS])
    return Population(SCHEMA, WORKLOAD, NAMES, counts, tuple(map(tuple, COLUMNS)))


def test_fidelity_rises_with_the_budget_and_denoising_helps():
    lines = summary(
        list(
            fidelity(
                example_population(),
                sizes=(4,),
                epsilons=(100.0, 0.3),
                recipes=("clip", "shrink"),
                federations=100,
                draws=3,
            )
        )
    )
    rho = {(line.epsilon, line.recipe): line.rho for line in lines}
    assert rho[100.0, "clip"] > 0.999
    assert rho[100.0, "shrink"] > 0.999
    assert rho[0.3, "shrink"] > rho[0.3, "clip"] + 0.02
    best = next(line for line in lines if line.epsilon == 100.0)
    assert best.regret == pytest.approx(0.0, abs=0.02)
    assert best.overlap > 0.7
    assert all(line.draws == 3 and line.seconds > 0 for line in lines)


def test_every_recipe_runs_where_there_are_rows():
    rows = list(fidelity(small(), sizes=(2,), epsilons=(5.0,), federations=15, draws=2))
    assert [row.recipe for row in rows] == [name for name in RECIPES for _ in range(2)]
    assert all(np.isfinite([row.rho, row.rho_whole, row.regret, row.overlap]).all() for row in rows)
    assert all(row.rho == row.rho_whole for row in rows)


def test_the_same_seed_gives_the_same_rows():
    def run(seed):
        rows = fidelity(small(), sizes=(2,), epsilons=(1.0,), recipes=("scores",), federations=15, draws=2, seed=seed)
        return [(row.rho, row.regret) for row in rows]

    assert run(3) == run(3) != run(4)


def test_the_truth_of_the_whole_is_measured_beside_that_of_a_share():
    whole = small()
    rows = list(
        fidelity(
            whole.thinned(0.05, seed=1),
            whole=whole,
            sizes=(2,),
            epsilons=(50.0,),
            recipes=("clip",),
            federations=15,
            draws=2,
        )
    )
    assert all(row.rho != row.rho_whole for row in rows)


def test_thinning_keeps_a_share_of_the_rows():
    whole = small()
    part = whole.thinned(0.25, seed=0)
    assert part.clients == whole.clients
    assert np.all(part.counts <= whole.counts)
    rows = np.array([len(columns[0]) for columns in part.columns])
    assert np.all(np.abs(rows - 750) < 6 * np.sqrt(3000 * 0.25 * 0.75))


def test_rows_of_all_clients_are_read_from_a_file(tmp_path):
    schema = Schema.from_toml_text(
        "\n".join(
            [
                'format = 1\nname = "made"\nsizes = "hidden"',
                '[[variables]]\nname = "a"\nrole = "sensitive"\ncategories = [0, 1]\nmissing = "error"',
                '[[variables]]\nname = "b"\nrole = "target"\ncategories = [0, 1, 2]\nmissing = "error"',
            ]
        )
    )
    (tmp_path / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    rng = np.random.default_rng(0)
    lines = [f"{'yx'[i % 2]},{rng.integers(2)},{rng.integers(3)}" for i in range(4000)]
    (tmp_path / "rows.csv").write_text("\n".join(["who,a,b", *lines]), encoding="utf-8")
    population = read_population(tmp_path / "rows.csv", tmp_path / "schema.toml", "who")
    assert population.clients == ("x", "y")
    assert population.workload.cells == 6
    assert population.counts.sum(axis=1).tolist() == [2000, 2000]
    assert [len(columns[0]) for columns in population.columns] == [2000, 2000]


def test_the_command_prints_rows(tmp_path):
    arguments = ["experiment", "fidelity", "-k", "3", "--epsilon", "1", "--draws", "2", "--federations", "20"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["recipe"] for row in rows[::2]] == [name for name in RECIPES if name != "scores"]
    assert all(row["evaluation"] == "non-private" and row["seed"] == 0 and row["constants"] for row in rows)
    table = CliRunner().invoke(app, arguments)
    assert "regret" in table.stdout
    assert "non-private evaluation" in table.stdout
    assert "constants: " in table.stdout


def test_the_command_draws_a_plot(tmp_path):
    require_extra("matplotlib", "experiments")
    arguments = ["experiment", "fidelity", "-k", "3", "-k", "4", "--epsilon", "1", "--epsilon", "10", "--draws", "2"]
    path = tmp_path / "fidelity.svg"
    result = CliRunner().invoke(
        app, [*arguments, "--federations", "20", "--recipe", "clip", "--recipe", "shrink", "--plot", str(path)]
    )
    assert result.exit_code == 0, result.output
    assert path.read_text(encoding="utf-8").count("<svg") == 1
    for bad, message in ((tmp_path / "plot.txt", "must end with"), (tmp_path / "no" / "plot.svg", "no such folder")):
        refused = CliRunner().invoke(app, [*arguments, "--plot", str(bad)])
        assert isinstance(refused.exception, FedselError)
        assert message in str(refused.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--thin", "0.5"], "--thin needs rows"),
        (["--thin", "0"], "--thin must be above 0"),
        (["--data", "rows.csv"], "--data and --schema go together"),
        (["--data", "rows.csv", "--schema", "s.toml", "--made", "1"], "give either --data or --made"),
        (["--recipe", "scores"], "recipe scores: scores need rows"),
        (["--recipe", "soup"], "recipe must be one of paper"),
    ],
)
def test_bad_options_are_refused(arguments, message):
    result = CliRunner().invoke(app, ["experiment", "fidelity", *arguments])
    assert isinstance(result.exception, FedselError)
    assert message in str(result.exception)


def test_the_example_is_the_truth():
    population = example_population()
    assert (population.schema, population.clients) == (load_example().schema, load_example().clients)
    assert population.counts.shape == (46, population.workload.cells)
    assert population.columns is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (0,)}, "k = 0 must be between 1 and 5, got 0"),
        ({"sizes": (6,)}, "k = 6 must be between 1 and 5, got 6"),
        ({"sizes": (2,), "epsilons": (float("inf"),)}, "epsilons must be positive and finite"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, message):
    with pytest.raises(FedselError, match=message):
        list(fidelity(small(), **options))
