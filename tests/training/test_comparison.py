from __future__ import annotations

import json
from dataclasses import astuple

import pyarrow.parquet as pq
import pytest

from conftest import require_extra

require_extra("torch", "train")

from fedsel.errors import TrainingError  # noqa: E402
from fedsel.privacy.calibration import plan_noise  # noqa: E402
from fedsel.repetitions import corrected_mean, holm  # noqa: E402
from fedsel.training.comparison import Comparison, compare, split_ratio  # noqa: E402
from fedsel.training.comparison_settings import ComparisonSettings, all_pairs, claim_pairs  # noqa: E402
from fedsel.training.metric_tables import write_metrics  # noqa: E402
from fedsel.training.simulation import RunSettings  # noqa: E402
from fedsel.training.sources import ExampleSource  # noqa: E402
from fedsel.training.summary import paired_tests, summarise  # noqa: E402

PAIRS = (("fedsel", "fedavg"), ("random", "fedavg"), ("all", "scaffold"))


def settings(**changes):
    fields = {
        "k": 3,
        "pairs": PAIRS,
        "seeds": 2,
        "draws": 2,
        "candidates": 0.2,
        "rows": 6_000,
        "run": RunSettings(2),
        "rates": (0.01, 0.1),
        "effort": 2,
        "hidden": (4,),
    }
    return ComparisonSettings(**{**fields, **changes})


@pytest.fixture(scope="module")
def comparison():
    done = []
    found = compare(
        ExampleSource(), plan_noise(55, epsilon=1.0), settings(), progress=lambda *counts: done.append(counts)
    )
    assert done == [(i, 12) for i in range(1, 13)]  # 2 aggregators x 2 rates, 2 seeds x (1 + 2 + 1) trainings
    return found


def test_every_pair_is_tested_on_both_populations(comparison):
    seen = [(r["seed"], r["choice"], r["draw"], r["aggregator"], r["population"]) for r in comparison.results]
    expected = [
        (seed, choice, draw, aggregator, population)
        for seed in (0, 1)
        for choice, aggregator in PAIRS
        for draw in range(2 if choice == "random" else 1)
        for population in ("members", "all clients")
    ]
    assert seen == expected
    assert comparison.candidates == 9
    assert comparison.clients == 46
    assert comparison.thinning.endswith("of 1,121,894 rows, 0.5% of each client's")
    for row in comparison.results:
        assert len(row["members"]) == (9 if row["choice"] == "all" else 3)


def test_within_a_repetition_everything_but_the_members_is_shared(comparison):
    for seed in (0, 1):
        rows = {r["test_rows"] for r in comparison.results if r["seed"] == seed and r["population"] == "all clients"}
        assert len(rows) == 1
    candidates = [
        set(r["members"]) for r in comparison.results if r["choice"] == "all" and r["population"] == "members"
    ]
    assert candidates[0] != candidates[1]
    for row in comparison.results:
        assert set(row["members"]) <= candidates[row["seed"]]


def test_a_comparison_repeats(comparison):
    again = compare(ExampleSource(), plan_noise(55, epsilon=1.0), settings(seeds=1))
    kept = [{k: v for k, v in r.items() if k != "seconds"} for r in comparison.results if r["seed"] == 0]
    assert [{k: v for k, v in r.items() if k != "seconds"} for r in again.results] == kept


def test_pairs():
    assert claim_pairs(("fedsel", "random"), ("fedavg", "fairfed")) == (
        ("fedsel", "fedavg"),
        ("random", "fedavg"),
        ("random", "fairfed"),
    )
    assert len(all_pairs(("a", "b"), ("c", "d"))) == 4
    assert split_ratio() == pytest.approx(0.25 / 0.6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": (("best", "fedavg"),)}, r"choice must be one of fedsel, .*got 'best'"),
        ({"pairs": (("fedsel", "fedsgd"),)}, r"aggregator must be one of fedavg, .*got 'fedsgd'"),
        ({"pairs": ()}, "at least one choice"),
        ({"effort": 1}, "tuning effort must be at least 2, the learning rates to try, got 1"),
        ({"rates": (), "effort": 4}, "tuning effort must be at least 5, the learning rates to try, got 4"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"candidates": 1.5}, "share of candidates must be above 0 and at most 1, got 1.5"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(TrainingError, match=message):
        settings(**changes)


def test_k_must_not_exceed_the_candidates():
    with pytest.raises(TrainingError, match="k must be between 1 and 9, the candidates of a repetition, got 10"):
        compare(ExampleSource(), plan_noise(55, epsilon=1.0), settings(k=10))


# --- tables ----------------------------------------------------------------------------------------------------------


def result(seed, choice, value, *, draw=0, aggregator="fedavg", population="members"):
    names = ("balanced_accuracy", "accuracy", "loss", "f1", "eod", "spd", "mad")
    about = {"seed": seed, "choice": choice, "draw": draw, "aggregator": aggregator, "population": population}
    return {**about, "training_rows": 100 * seed, **dict.fromkeys(names, value)}


def made(results):
    return Comparison(results, [], {}, (), 0, "", 1, 1, ())


def test_draws_are_averaged_within_a_repetition_by_size():
    found = made(
        [
            result(1, "random", 0.2, draw=0),
            result(1, "random", -0.4, draw=1),
            result(2, "random", 0.6, draw=0),
            result(2, "random", None, draw=1),
        ]
    )
    (line,) = summarise(found)
    expected = corrected_mean([0.3, 0.6], test_share=split_ratio())
    assert astuple(line.metrics["eod"]) == pytest.approx(astuple(expected))
    assert line.signed_eod.mean == pytest.approx((-0.1 + 0.6) / 2)
    assert line.training_rows == 150


def test_tests_are_paired_by_repetition():
    fedsel = [result(seed, "fedsel", value) for seed, value in enumerate((0.9, 0.8, 0.7))]
    other = [result(seed, "random", value) for seed, value in enumerate((0.8, 0.75, 0.6))]
    third = [result(seed, "all", value) for seed, value in enumerate((0.9, 0.8, None))]
    tests = paired_tests(made([*fedsel, *other, *third]), metrics=("f1",))
    assert [test.choice for test in tests] == ["random", "all"]
    expected = corrected_mean([0.1, 0.05, 0.1], test_share=split_ratio())
    assert astuple(tests[0].difference) == pytest.approx(astuple(expected))
    assert tests[0].adjusted == pytest.approx(2 * tests[0].difference.p_value)
    assert tests[1].difference.count == 2
    assert tests[1].adjusted == 1.0


def test_p_values_are_adjusted_for_every_metric_and_choice_of_a_population():
    values = {"fedsel": (0.9, 0.85, 0.7), "random": (0.8, 0.76, 0.62), "all": (0.85, 0.81, 0.68)}
    rows = [
        result(seed, choice, value, population=population)
        for population in ("members", "all clients")
        for choice, found in values.items()
        for seed, value in enumerate(found)
    ]
    tests = paired_tests(made(rows), metrics=("f1", "accuracy"))
    mine = [test for test in tests if test.population == "members"]
    assert [test.adjusted for test in mine] == pytest.approx(holm([test.difference.p_value for test in mine]))
    least = min(mine, key=lambda test: test.difference.p_value)
    assert least.adjusted == pytest.approx(4 * least.difference.p_value)  # two metrics of two choices


def test_the_loss_is_that_of_the_model_tested(comparison):
    for row in comparison.results:
        same = [
            h["loss"]
            for h in comparison.history
            if h["part"] == "test"
            and all(h[key] == row[key] for key in ("seed", "choice", "draw", "aggregator", "population", "round"))
        ]
        assert same == [row["loss"]]


def test_without_the_reference_nothing_is_tested():
    assert paired_tests(made([result(0, "random", 0.5)])) == []


def test_metrics_become_a_parquet_file_that_says_what_it_is(comparison, tmp_path):
    path = tmp_path / "results.parquet"
    rows = [dict(comparison.results[0]), {**comparison.results[1], "eod": None}]
    write_metrics(path, rows, metadata={"seed": 3})
    table = pq.read_table(path)
    assert table.to_pylist() == rows
    assert json.loads(table.schema.metadata[b"fedsel"]) == {"evaluation": "non-private evaluation", "seed": 3}
    with pytest.raises(TrainingError, match=r"results\.parquet: the file exists already"):
        write_metrics(path, rows, metadata={})
    write_metrics(path, rows[:1], metadata={}, overwrite=True)
    assert pq.read_table(path).num_rows == 1


def test_curves_hold_every_line_and_the_stamp(comparison):
    require_extra("matplotlib", "train")
    from fedsel.training.plots import curves

    image = curves(comparison.history).decode()
    assert image.startswith("<?xml")
    for text in ("non-private evaluation", "fedsel, fedavg", "random, fedavg", "all, scaffold", "|EOD|, all clients"):
        assert text in image  # in a comment beside its outlines
