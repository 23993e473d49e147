"""``fedsel subgroups central``."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli.progress import DelayedProgress
from fedsel.cli.text_table import text_table
from fedsel.errors import DataError
from fedsel.subgroups.attributes import Intervals, MissingValues
from fedsel.subgroups.bins import Binning
from fedsel.subgroups.discovery import SubgroupDiscovery
from fedsel.subgroups.files import read_rows
from fedsel.subgroups.quality import QUALITIES, Direction
from fedsel.subgroups.result import p_text
from fedsel.subgroups.search import Diversity, Engine, Search
from fedsel.subgroups.significance import Significance

NOT_PRIVATE = "computed from exact rows: not private"

_SEARCH = "Search"
_COLUMNS = "Columns"
_CHOICE = "Which subgroups"
_TEST = "Significance"
_OUTPUT = "Output"
_LONGEST = 100


def central_command(
    *,
    data: Annotated[Path, typer.Argument(help="Rows: a CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="Column of the outcome.")],
    positive: Annotated[
        str | None, typer.Option(help="Value of the outcome that counts as yes; needed where it is text.")
    ] = None,
    quality: Annotated[
        str, typer.Option(help=f"{', '.join(QUALITIES)}, or an exponent a from 0 to 1.", rich_help_panel=_SEARCH)
    ] = "wracc",
    direction: Annotated[
        Direction, typer.Option(help="Which deviations of the outcome count.", rich_help_panel=_SEARCH)
    ] = "higher",
    search: Annotated[
        Search, typer.Option(help="Beam search, or the proved best of all.", rich_help_panel=_SEARCH)
    ] = "beam",
    depth: Annotated[int, typer.Option(help="Most conditions of a description.", rich_help_panel=_SEARCH)] = 3,
    width: Annotated[int, typer.Option(help="Descriptions a beam holds.", rich_help_panel=_SEARCH)] = 20,
    engine: Annotated[
        Engine, typer.Option(help="What counts for an exhaustive search; same result.", rich_help_panel=_SEARCH)
    ] = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads. (default: all)", rich_help_panel=_SEARCH)] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds, then the best so far.", rich_help_panel=_SEARCH)
    ] = math.inf,
    k: Annotated[int, typer.Option("-k", help="Number of subgroups.", rich_help_panel=_CHOICE)] = 10,
    min_support: Annotated[
        float, typer.Option(help="Least rows, or share of the rows if below 1.", rich_help_panel=_CHOICE)
    ] = 1,
    max_support: Annotated[
        float, typer.Option(help="Most rows, or share of the rows if at most 1.", rich_help_panel=_CHOICE)
    ] = 1.0,
    min_quality: Annotated[
        float | None,
        typer.Option(help="Quality to exceed. (default: that of a subgroup like all rows)", rich_help_panel=_CHOICE),
    ] = None,
    min_improvement: Annotated[
        float | None,
        typer.Option(help="Least gain over the same without one condition.", rich_help_panel=_CHOICE),
    ] = None,
    max_overlap: Annotated[
        float, typer.Option(help="Largest overlap with a better subgroup (Jaccard).", rich_help_panel=_CHOICE)
    ] = 1.0,
    diversity: Annotated[
        Diversity, typer.Option(help="Choose beam and result for diversity.", rich_help_panel=_CHOICE)
    ] = "none",
    diversity_weight: Annotated[
        float,
        typer.Option(help="By cover: weight of a row per time it is covered already.", rich_help_panel=_CHOICE),
    ] = 0.9,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Column to leave out; may be repeated.", rich_help_panel=_COLUMNS)
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Numeric column to take by value; may be repeated.", rich_help_panel=_COLUMNS),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of numeric columns.", rich_help_panel=_COLUMNS)] = 5,
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=A,B,...", help="Cut points of a numeric column; may be repeated.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    binning: Annotated[Binning, typer.Option(help="How bins are cut.", rich_help_panel=_COLUMNS)] = "quantile",
    intervals: Annotated[
        Intervals, typer.Option(help="Conditions on numeric columns.", rich_help_panel=_COLUMNS)
    ] = "bins",
    set_size: Annotated[
        int, typer.Option(help="Largest number of categories joined by 'or'.", rich_help_panel=_COLUMNS)
    ] = 1,
    missing: Annotated[
        MissingValues, typer.Option(help="What a missing value is.", rich_help_panel=_COLUMNS)
    ] = "exclude",
    missing_value: Annotated[
        list[str] | None,
        typer.Option(help="Text that stands for a missing value; may be repeated.", rich_help_panel=_COLUMNS),
    ] = None,
    max_categories: Annotated[
        int, typer.Option(help="Most distinct values of a text column.", rich_help_panel=_COLUMNS)
    ] = 1000,
    delimiter: Annotated[
        str | None, typer.Option(help="Separates CSV fields. (default: a comma)", rich_help_panel=_COLUMNS)
    ] = None,
    significance: Annotated[
        Significance,
        typer.Option(help="Test, adjusted for all descriptions or by shuffling.", rich_help_panel=_TEST),
    ] = "none",
    permutations: Annotated[int, typer.Option(help="Number of shuffles.", rich_help_panel=_TEST)] = 1000,
    max_p_value: Annotated[float, typer.Option(help="Largest adjusted p-value reported.", rich_help_panel=_TEST)] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the shuffles.", rich_help_panel=_TEST)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_OUTPUT)] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML page. Needs the extra 'report'.", rich_help_panel=_OUTPUT),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw SVG, PNG or PDF. Needs the extra 'experiments'.", rich_help_panel=_OUTPUT
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a report that exists.", rich_help_panel=_OUTPUT)
    ] = False,
) -> None:
    """Describe the rows of a file whose outcome differs most from that of all rows. Nothing here is private.

    [bold]fedsel subgroups central adult.csv --target income --positive '>50K'[/]

    [bold]fedsel subgroups central trial.parquet --target days --direction lower --search exhaustive[/]

    Equal qualities are listed with fewer conditions first, then in the order of columns and categories. Ctrl-C
    returns the best so far.
    """
    if report is not None:
        from fedsel.report import check_report

        check_report(report, overwrite=force)
    if plot is not None:
        from fedsel.plot_file import check_plotting

        check_plotting(plot)
    discovery = SubgroupDiscovery(
        quality=_quality(quality),
        direction=direction,
        search=search,
        depth=depth,
        width=width,
        k=k,
        min_support=_support(min_support, share=min_support < 1),
        max_support=_support(max_support, share=max_support <= 1),
        min_quality=min_quality,
        positive=positive,
        exclude=exclude or (),
        bins=bins,
        cuts=_cuts(cuts or ()),
        binning=binning,
        intervals=intervals,
        set_size=set_size,
        missing=missing,
        max_categories=max_categories,
        categorical=categorical or (),
        min_improvement=min_improvement,
        max_overlap=max_overlap,
        diversity=diversity,
        diversity_weight=diversity_weight,
        significance=significance,
        permutations=permutations,
        max_p_value=max_p_value,
        seed=seed,
        engine=engine,
        threads=threads,
        time_limit=time_limit,
    )
    rows = read_rows(data, missing_values=missing_value or (), delimiter=delimiter)
    with DelayedProgress("looking at descriptions") as progress:
        discovery.fit(rows, target, progress=progress)
    command = shlex.join(["fedsel", *sys.argv[1:]])
    outcome = target if positive is None else f"{target} = {positive}"
    if report is not None:
        from fedsel.subgroups.page import write_page

        write_page(discovery, report, target=outcome, command=command, overwrite=force)
    if plot is not None:
        from fedsel.subgroups.plot import draw

        draw(discovery, plot)
    typer.echo(_to_json(discovery, outcome, command) if as_json else _to_text(discovery, outcome))


def _quality(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _support(value: float, *, share: bool) -> float:
    return value if share or not value.is_integer() else int(value)


def _cuts(texts: Sequence[str]) -> dict[str, list[float]]:
    result = {}
    for text in texts:
        name, _, points = text.rpartition("=")
        try:
            result[name] = [float(point) for point in points.split(",")]
        except ValueError:
            raise DataError(f"--cuts must be COLUMN=A,B,... with numbers, got {text!r}") from None
    return result


def _to_json(found: SubgroupDiscovery, outcome: str, command: str) -> str:
    fields = {
        "command": command,
        "version": __version__,
        "privacy": NOT_PRIVATE,
        "outcome": outcome,
        "rows": found.rows_,
        "base": found.base_,
        "parameters": {name: _plain(value) for name, value in found.get_params().items()},
        "conditions": len(found.conditions_),
        "descriptions": found.descriptions_,
        "evaluations": found.evaluations_,
        "engine": found.engine_,
        "stop_reason": found.stop_reason_,
        "permutations": found.permutations_,
        "seconds": found.seconds_,
        "subgroups": [subgroup.to_dict() for subgroup in found.subgroups_],
    }
    return json.dumps(fields, ensure_ascii=False, indent=2, allow_nan=False)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_text(found: SubgroupDiscovery, outcome: str) -> str:
    tested = found.significance != "none"
    headers = ("description", "quality", "rows", "share", "mean", "effect", *(("adjusted p",) if tested else ()))
    lines = [
        (
            _cut(subgroup.description),
            f"{subgroup.quality:.4g}",
            f"{subgroup.rows:,}",
            f"{subgroup.share:.1%}",
            f"{subgroup.mean:.4g}",
            f"{subgroup.effect:+.4g}",
            *((p_text(subgroup.adjusted_p_value),) if subgroup.adjusted_p_value is not None else ()),
        )
        for subgroup in found.subgroups_
    ]
    facts = [
        (
            "search",
            f"{found.search}: {found.evaluations_:,} evaluations, {found.descriptions_:,} descriptions in all, "
            f"{found.seconds_:.3f} s, {found.stop_reason_}",
        ),
        *[("shuffles", f"{found.permutations_:,}") for _ in range(found.significance == "permutation")],
        ("privacy", NOT_PRIVATE),
    ]
    return "\n".join(
        [
            f"subgroups of {found.rows_:,} rows by {outcome}, {found.base_:.4g} over all, {found.quality} "
            f"({found.direction})",
            "",
            text_table(headers, lines, right=range(1, len(headers))) if lines else "nothing deviates as asked",
            "",
            *[f"{label.ljust(8)}  {fact}" for label, fact in facts],
        ]
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
