"""How a comparison is printed."""

from __future__ import annotations

from collections.abc import Sequence

from fedsel.cli.text_table import text_table
from fedsel.cli.training_options import number_text
from fedsel.cli.tuning_output import tuning_text
from fedsel.repetitions import Estimate
from fedsel.training.choices import CHOICES
from fedsel.training.comparison import REFERENCE, Comparison
from fedsel.training.comparison_settings import ComparisonSettings
from fedsel.training.simulation import MEMBERS
from fedsel.training.stamp import EXPLANATION, STAMP
from fedsel.training.summary import HIGHER_IS_BETTER, SHOWN, Line, Test, paired_tests, summarise


def to_text(
    comparison: Comparison, settings: ComparisonSettings, *, source: str, release: str, sensitive: str, seconds: float
) -> str:
    """Return what was done, the tuning, a table per population, and the paired tests.

    Parameters
    ----------
    comparison : Comparison
        What came out.
    settings : ComparisonSettings
        What was compared.
    source, release : str
        Whose rows, and what releases spent, in words.
    sensitive : str
        The active sensitive attribute.
    seconds : float
        Time of the whole comparison.
    """
    lines, tests = summarise(comparison), paired_tests(comparison)
    run = settings.run
    last = settings.first_seed + settings.seeds - 1
    facts = [
        ("federations", f"{settings.k} of {comparison.candidates} candidates ({comparison.clients} clients in all)"),
        ("rows", f"{comparison.thinning} (--rows); {source}"),
        ("split", "60% of each client's rows to train, 15% to validate, 25% to test, drawn once a repetition"),
        ("releases", release),
        ("training", f"{run.rounds} rounds, batch {run.local.batch_size}, epochs {run.local.epochs}"),
        (
            "repetitions",
            f"{settings.seeds} (seeds {settings.first_seed} to {last}): rows, split, candidates, noise and model drawn "
            f"anew; random federations: mean of {settings.draws} each",
        ),
        ("sensitive", sensitive),
        ("time", f"{seconds:.0f} s"),
    ]
    parts = [
        STAMP.upper(),
        "\n".join(f"{label:<11}  {fact}" for label, fact in facts),
        tuning_text(comparison),
        *[_means(lines, population) for population in dict.fromkeys(line.population for line in lines)],
        "mean over repetitions +- half a 95% confidence interval (corrected resampled t-test, Nadeau & Bengio 2003: "
        "repetitions share rows)\n|EOD|, |SPD|: the size of each run's difference; signed EOD: mean of the differences "
        "themselves, whose signs can cancel",
        *[_tests(tests, population) for population in dict.fromkeys(test.population for test in tests)],
        *_caveats(comparison, settings),
        EXPLANATION,
    ]
    return "\n\n".join(parts)


def _means(lines: Sequence[Line], population: str) -> str:
    headers = ("choice", "aggregator", "train rows", *SHOWN.values(), "signed EOD")
    rows = [
        (
            line.choice,
            line.aggregator,
            f"{line.training_rows:,.0f}",
            *(_estimate(line.metrics[name]) for name in SHOWN),
            number_text(line.signed_eod.mean, 3),
        )
        for line in lines
        if line.population == population
    ]
    whose = "the members' own test rows" if population == MEMBERS else "the test rows of all candidates"
    return f"tested on {whose} [{STAMP}]\n\n" + text_table(headers, rows, right=range(2, len(headers)))


def _estimate(estimate: Estimate) -> str:
    if estimate.half_width is None:
        return number_text(estimate.mean, 3)
    return f"{number_text(estimate.mean, 3)} +-{estimate.half_width:.3f}"


def _tests(tests: Sequence[Test], population: str) -> str:
    mine = [test for test in tests if test.population == population]
    metrics = list(dict.fromkeys(test.metric for test in mine))
    rows = []
    for choice, aggregator in dict.fromkeys((test.choice, test.aggregator) for test in mine):
        cells = [choice, aggregator]
        for metric in metrics:
            test = next(t for t in mine if (t.choice, t.aggregator, t.metric) == (choice, aggregator, metric))
            mean = test.difference.mean
            cells += ["undefined" if mean is None else f"{mean:+.3f}", _p(test.difference.p_value), _p(test.adjusted)]
        rows.append(tuple(cells))
    headers = ["choice", "aggregator"]
    for metric in metrics:
        better = "+" if metric in HIGHER_IS_BETTER else "-"
        headers += [f"{SHOWN[metric]} ({better} is better)", "p", "Holm"]
    whose = "members' own" if population == MEMBERS else "all candidates'"
    return f"{' with '.join(REFERENCE)} minus each other, paired, {whose} test rows [{STAMP}]\n\n" + text_table(
        headers, rows, right=range(2, len(headers))
    )


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _repetitions(seeds: int) -> str:
    return f"{seeds} repetitions show" if seeds > 1 else "one repetition shows"


def _caveats(comparison: Comparison, settings: ComparisonSettings) -> list[str]:
    found = []
    if settings.seeds < 5:
        found.append(f"{_repetitions(settings.seeds)} large effects only; use --seeds 10 or more to decide anything")
    if any(tuned.edges for tuned in comparison.tuned.values()):
        found.append("a constant marked (edge) is the smallest or largest tried: a better one may lie beyond")
    diverged = sum(row["round"] is None for row in comparison.results if row["population"] == MEMBERS)
    if diverged:
        found.append(
            f"{diverged} of {len(comparison.results) // 2} trainings diverged; means leave them out, "
            f"which flatters them"
        )
    undefined = sum("is undefined" in note for note in comparison.notes)
    if undefined:
        found.append(
            f"{undefined} metrics of single runs were undefined and are left out of means; see results.parquet"
        )
    constant = sum(row["f1"] == 0 and row["precision"] is None for row in comparison.results)
    if constant:
        found.append(f"in {constant} results the model calls nobody positive: a difference of 0 is no fairness then")
    chosen = {choice for choice, _ in settings.pairs}
    explained = [f"  {name}: {what}" for name, what in CHOICES.items() if name in chosen]
    notes = [f"note: {note}" for note in found]
    return ["\n".join(["choices:", *explained, *notes])]
