"""How the search for constants before a comparison is printed."""

from __future__ import annotations

from fedsel.cli.text_table import text_table
from fedsel.cli.training_options import number_text
from fedsel.training.aggregators import AGGREGATORS
from fedsel.training.comparison import Comparison
from fedsel.training.stamp import STAMP
from fedsel.training.tuning import EXTENSIONS, TOLERANCE, Trial, Tuned

Row = tuple[str, str, str, str, str]


def tuning_text(comparison: Comparison) -> str:
    """Return what was tried for every aggregator, on which rows, and what was taken."""
    tuned = comparison.tuned.values()
    efforts = "/".join(map(str, sorted({len(found.trials) for found in tuned})))
    heading = (
        f"tuning: {efforts} trainings each, on one random federation ({', '.join(comparison.tuned_on)}; "
        f"{comparison.tuning_rows:,} training rows; no repetition trains or tests on rows used here) [{STAMP}]"
    )
    table = text_table(
        ("aggregator", "local", "constant", "tried: validation loss (nats)", "taken"),
        [row for found in tuned for row in _rows(found)],
    )
    notes = [
        f"learning rate first, then the method's own constant, then finer learning rates until the trainings are "
        f"spent; a grid grows up to {EXTENSIONS} times while the best is at its end"
    ]
    notes += [
        f"{found.aggregator}'s {found.option}: least |EOD| on validation rows among losses within {TOLERANCE:.0%} of "
        f"the lowest, since it trades one for the other"
        for found in tuned
        if _for_fairness(found)
    ]
    return f"{heading}\n\n{table}\n\n" + "\n".join(notes)


def _for_fairness(tuned: Tuned) -> bool:
    tunable = AGGREGATORS[tuned.aggregator].tunable
    return tunable is not None and tunable.fairness


def _rows(tuned: Tuned) -> list[Row]:
    losses: dict[float, list[float]] = {}
    for trial in tuned.trials:
        losses.setdefault(trial.rate, []).extend([] if trial.loss is None else [trial.loss])
    rates = [f"{rate:g}: {number_text(min(found)) if found else 'diverged'}" for rate, found in sorted(losses.items())]
    taken = f"{tuned.local.learning_rate:g}{_edge(tuned, 'learning rate')}"
    rows: list[Row] = [(tuned.aggregator, tuned.local.optimiser, "learning rate", ", ".join(rates), taken)]
    if tuned.option is not None and tuned.value is not None:
        values = [f"{trial.value:g}: {_result(trial, tuned)}" for trial in tuned.value_trials]
        rows.append(("", "", tuned.option, ", ".join(values), f"{tuned.value:g}{_edge(tuned, tuned.option)}"))
    return rows


def _result(trial: Trial, tuned: Tuned) -> str:
    if trial.loss is None:
        return "diverged"
    return number_text(trial.loss) + (f" (|EOD| {number_text(trial.eod, 3)})" if _for_fairness(tuned) else "")


def _edge(tuned: Tuned, name: str) -> str:
    return " (edge)" if name in tuned.edges else ""
