from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from fedsel.cli.main import app
from fedsel.errors import DataError
from fedsel.experiments.subgroup_corpus import load_corpus, made_corpus, tertile_bins
from fedsel.experiments.subgroup_methods import (
    Trial,
    central,
    held_out,
    judge,
    local_only,
    quality,
)
from fedsel.experiments.subgroup_study import METHODS, run_study
from fedsel.experiments.subgroup_table import StudyLine, contrasts, summarise

CORPUS = made_corpus(0, rows=6000, sizes=(3, 4, 2, 2, 3, 2), planted=(((0, 1), (3, 0), 0.35),))


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial.draw(CORPUS, 1)


def test_a_trial_divides_its_sample(trial: Trial) -> None:
    assert len(trial.parts) == 8
    assert sum(trial.sizes) == trial.train.rows == 3999
    assert trial.test.rows == 1001
    again = Trial.draw(CORPUS, 1)
    assert all(np.array_equal(a.columns[0], b.columns[0]) for a, b in zip(trial.parts, again.parts, strict=True))
    assert Trial.draw(CORPUS, 2).sizes != trial.sizes


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize("heterogeneous", [False, True])
def test_the_factors_of_a_division_do_what_they_say(skew: bool, heterogeneous: bool) -> None:
    """Sizes and rates of many divisions, against what sampling alone would give."""
    spreads, rates = [], []
    for seed in range(20):
        trial = Trial.divided(CORPUS, seed, clients=8, skew=skew, heterogeneous=heterogeneous)
        spreads.append(max(trial.sizes) / sum(trial.sizes))
        rates += [trial.outcome(p).mean() for p in trial.parts if p.rows > 100]
    assert (np.mean(spreads) > 0.35) == skew or heterogeneous
    assert (np.std(rates) > 0.1) == heterogeneous


def test_the_exact_search_equals_masks_over_rows(trial: Trial) -> None:
    found = central(trial, trial.train, search="exhaustive", depth=2)
    domain = trial.corpus.schema.domain
    every = [
        quality(trial, tuple(zip(members, codes, strict=True)))
        for size in (1, 2)
        for members in combinations(trial.attributes, size)
        for codes in np.ndindex(*(domain[a] for a in members))
    ]
    assert [quality(trial, d) for d in found] == pytest.approx(sorted(every, reverse=True)[:10], abs=1e-12)
    assert central(trial, trial.train, search="beam", depth=2) == found


def test_local_only_finds_something(trial: Trial) -> None:
    assert 1 <= len(local_only(trial, depth=2)) <= 10


def test_a_short_list_counts_nothing_for_the_rest(trial: Trial) -> None:
    found = central(trial, trial.train, search="exhaustive", depth=2)
    score = judge(trial, found[:2], found)
    assert score.quality == pytest.approx(sum(held_out(trial, d) for d in found[:2]) / 10)
    assert score.jaccard == 0.2
    assert judge(trial, [], found).quality == 0.0


@pytest.mark.parametrize("study", [*METHODS, "factorial"])
def test_every_study_runs_and_states_its_promises(study: str) -> None:
    # noise that is added once needs more tables than CORPUS has to be wide enough at the largest budget
    outcomes = list(run_study(study, made_corpus(0) if study == "marginals" else CORPUS, [0]))
    assert len({o.method for o in outcomes}) == len(outcomes)
    for outcome in outcomes:
        assert outcome.promise.adjacency in ("none", "add-remove", "replace-one")
        assert math.isfinite(outcome.score.quality)
        if outcome.promise.kind == "exact":
            assert math.isinf(outcome.promise.largest)
        else:
            assert 0 < outcome.promise.mean <= outcome.promise.largest * (1 + 1e-9)
    lines = summarise(outcomes)
    assert [line.method for line in lines] == [o.method for o in outcomes]


def test_an_unknown_study_or_corpus_is_refused() -> None:
    with pytest.raises(DataError, match="study must be one of"):
        list(run_study("all", CORPUS, [0]))
    with pytest.raises(DataError, match="corpus must be one of"):
        load_corpus("iris")
    with pytest.raises(DataError, match=r"needs the file adult\.data"):
        load_corpus("adult")


def test_adult_is_read_and_its_second_population_by_the_same_bins(data_dir: Path) -> None:
    adult = load_corpus("adult", adult=data_dir / "adult.data")
    test = load_corpus("adult", adult=data_dir / "adult.test", public=data_dir / "adult.data")
    assert len(adult.codes[0]) == 32_561
    assert len(test.codes[0]) == 16_281
    assert adult.schema.fingerprint == test.schema.fingerprint
    assert float(adult.outcome.mean()) == pytest.approx(0.2408, abs=1e-4)
    assert [n for n, d in zip(adult.schema.names, adult.schema.domain, strict=True) if d == 1] == [
        "capital-gain",
        "capital-loss",
    ]


def test_tertile_bins_that_coincide_are_fewer() -> None:
    assert tertile_bins(np.arange(9.0)) == pytest.approx((0.0, 8 / 3, 16 / 3, 8.0))
    assert tertile_bins(np.array([0.0] * 9 + [5.0])) == (0.0, 5.0)
    assert tertile_bins(np.array([2.0, 2.0])) == (2.0, 3.0)


def test_contrasts_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    values = {name: tuple(rng.normal(0.1 * i, 1, 10)) for i, name in enumerate(("a", "b", "FedPSD"))}
    lines = [StudyLine(name, "", "", 1, 1, own, own, 0, 0, 0, None, 0, 0, 0, 0) for name, own in values.items()]
    found = contrasts(lines, "FedPSD", ("a", "b"), test_share=0.25)
    plain = [stats.wilcoxon(np.subtract(values["FedPSD"], values[name])).pvalue for name in ("a", "b")]
    adjusted = [min(1.0, 2 * min(plain)), max(2 * min(plain), max(plain))]
    for text, p in zip(found, sorted(adjusted, reverse=bool(plain[0] > plain[1])), strict=False):
        assert f"Holm p = {p:.3g};" in text
    friedman = stats.friedmanchisquare(*(values[name] for name in ("FedPSD", "a", "b")))
    assert found[-1] == f"Friedman over these 3: {friedman.statistic:.2f}, p = {friedman.pvalue:.3g}"
    same = [replace(line, values=values["a"]) for line in lines]
    assert (
        "Wilcoxon W = 0, Holm p = 1; corrected for overlapping samples, Holm p = 1"
        in contrasts(same, "FedPSD", ("a",), test_share=0.25)[0]
    )


def test_contrasts_need_two_seeds() -> None:
    assert contrasts([], "FedPSD", ("uniform 4",), test_share=0.25) == []


def test_the_commands_print_tables() -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["experiment", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    said = run("subgroups", "--study", "beta", "--seeds", "2")
    assert "beta 0.25" in said
    assert "non-private evaluation" in said
    lines = run("subgroups", "--study", "beta", "--seeds", "2", "--json").splitlines()
    assert len(lines) == 10
    for check in ("planted", "null", "calibration"):
        assert "means over seeds 0 to 1" in run("subgroup-checks", "--check", check, "--seeds", "2", "--epsilon", "2")
