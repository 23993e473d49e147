from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedsel import Schema
from fedsel.cli.main import app
from fedsel.datasets.example import load_example
from fedsel.errors import FedselError
from fedsel.experiments.fidelity import exact_pool, fidelity
from fedsel.experiments.thinning import example_counts, thinned_counts
from reference import made_pool


def test_fidelity_rises_with_the_budget_and_denoising_helps():
    rows = list(
        fidelity(
            exact_pool(*example_counts()),
            sizes=(4,),
            epsilons=(100.0, 0.3),
            methods=("clip", "shrink"),
            federations=100,
            draws=3,
        )
    )
    rho = {(row.epsilon, row.method): row.rho for row in rows}
    assert rho[100.0, "clip"] > 0.999
    assert rho[100.0, "shrink"] > 0.999
    assert rho[0.3, "shrink"] > rho[0.3, "clip"] + 0.02
    best = next(row for row in rows if row.epsilon == 100.0)
    assert best.regret == pytest.approx(0.0, abs=0.02)
    assert best.overlap > 0.7
    assert all(row.draws == 3 and row.seconds > 0 for row in rows)


def test_the_same_seed_gives_the_same_rows():
    truth = made_pool(1, clients=8, domain=[3, 4, 2], low=0)

    def run(seed):
        rows = fidelity(truth, sizes=(2,), epsilons=(1.0,), methods=("none",), federations=20, draws=2, seed=seed)
        return [(row.rho, row.regret) for row in rows]

    assert run(3) == run(3) != run(4)


def test_thinned_counts_are_a_share_of_the_rows(tmp_path):
    rng = np.random.default_rng(0)
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
    lines = [f"{'xy'[i % 2]},{rng.integers(2)},{rng.integers(3)}" for i in range(4000)]
    (tmp_path / "rows.csv").write_text("\n".join(["who,a,b", *lines]), encoding="utf-8")
    paths = tmp_path / "rows.csv", tmp_path / "schema.toml"
    _, workload, clients, whole = thinned_counts(*paths, "who", share=1.0, seed=0)
    assert clients == ("x", "y")
    assert whole.sum(axis=1).tolist() == [2000, 2000]
    _, _, _, part = thinned_counts(*paths, "who", share=0.25, seed=0)
    assert workload.cells == 6
    assert np.all(part <= whole)
    assert np.all(np.abs(part.sum(axis=1) - 500) < 6 * np.sqrt(2000 * 0.25 * 0.75))


def test_the_command_prints_rows(tmp_path):
    arguments = ["experiment", "fidelity", "-k", "3", "--epsilon", "1", "--draws", "2", "--federations", "20"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["method"] for row in rows] == ["none", "clip", "consistent", "shrink"]
    assert all(row["evaluation"] == "non-private" and row["seed"] == 0 for row in rows)
    table = CliRunner().invoke(app, arguments)
    assert "regret" in table.stdout
    assert "non-private evaluation" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--thin", "0.5"], "--thin needs --data"),
        (["--thin", "0"], "--thin must be above 0"),
        (["--data", "rows.csv"], "--data and --schema go together"),
    ],
)
def test_bad_options_are_refused(arguments, message):
    result = CliRunner().invoke(app, ["experiment", "fidelity", *arguments])
    assert isinstance(result.exception, FedselError)
    assert message in str(result.exception)


def test_the_example_is_the_truth():
    schema, workload, clients, counts = example_counts()
    assert (schema, clients) == (load_example().schema, load_example().clients)
    assert counts.shape == (46, workload.cells)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (0,)}, "k = 0 must be between 1 and 5, got 0"),
        ({"sizes": (6,)}, "k = 6 must be between 1 and 5, got 6"),
        ({"sizes": (2,), "epsilons": (float("inf"),)}, "epsilons must be positive and finite"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, message):
    truth = made_pool(1, clients=6, domain=[3, 4, 2], low=0)
    with pytest.raises(FedselError, match=message):
        list(fidelity(truth, **options))
