"""``fedsel subgroups discover`` and ``fedsel subgroups report``: at the coordinator, from releases alone."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsel import __version__
from fedsel.cli.release_command import check_paths
from fedsel.cli.text_table import text_table
from fedsel.errors import SubgroupError
from fedsel.subgroups.federated.ranking import Direction
from fedsel.subgroups.result import p_text

if TYPE_CHECKING:
    from fedsel.subgroups.federated.coverage import Coverage
    from fedsel.subgroups.federated.protocol import SubgroupProtocol
    from fedsel.subgroups.federated.result import FederatedSubgroups

_OUTPUT = "Output"
_LONGEST_FILE = 256 * 2**20


def discover_command(
    *,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="The clients' releases, of all rounds so far.")
    ],
    protocol: Annotated[Path, typer.Option(help="What was agreed (fedsel subgroups plan).", show_default=False)],
    k: Annotated[int, typer.Option("-k", help="Number of subgroups.")] = 10,
    depth: Annotated[int, typer.Option(help="Most conditions of a description: 1 or 2.")] = 2,
    direction: Annotated[Direction, typer.Option(help="Which deviations of the outcome count.")] = "higher",
    base: Annotated[
        float | None,
        typer.Option(help="A public share of positives to compare with. (default: that of the releases)"),
    ] = None,
    measured_only: Annotated[
        bool, typer.Option("--measured-only", help="Leave out what is predicted and not released.")
    ] = False,
    level: Annotated[float, typer.Option(help="Level of the intervals of a confirmation round.")] = 0.95,
    following: Annotated[
        Path | None,
        typer.Option(
            "--next", metavar="FILE", help="Write the questions of the next round (JSON).", rich_help_panel=_OUTPUT
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_OUTPUT)] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML page. Needs the extra 'report'.", rich_help_panel=_OUTPUT),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Rank subgroups by what clients released, and ask for the next round.

    [bold]fedsel subgroups discover *.1.parquet --protocol protocol.json --next questions.2.json[/]

    [bold]fedsel subgroups discover *.1.parquet *.2.parquet --protocol protocol.json --report page.html[/]

    Costs no privacy: only what was released goes in.
    """
    from fedsel.release_file import ReleaseReader
    from fedsel.subgroups.federated.choosing import next_questions
    from fedsel.subgroups.federated.discover import discover
    from fedsel.subgroups.federated.gathering import gather_rounds
    from fedsel.subgroups.federated.protocol import read_protocol
    from fedsel.subgroups.federated.questions import write_questions

    if report is not None:
        from fedsel.report import check_report

        check_report(report, overwrite=force)
    for output in (following, report):
        if output is not None:
            check_paths(files[0], output, kept=(*files[1:], protocol), force=force)
    reader = ReleaseReader()
    releases = [reader.read(file) for file in files]
    agreed = read_protocol(protocol, releases[0].schema)
    rounds = gather_rounds(agreed, releases)
    result = discover(
        agreed,
        rounds,
        k=k,
        depth=depth,
        direction=direction,
        base=base,
        measured_only=measured_only,
        level=level,
    )
    command = shlex.join(["fedsel", *sys.argv[1:]])
    fields = {"command": command, "version": __version__, **result.to_dict()}
    if following is not None:
        questions = next_questions(agreed, rounds, direction=direction, base=base)
        write_questions(questions, agreed, following, overwrite=force)
    if report is not None:
        from fedsel.subgroups.federated.page import write_page

        write_page(fields, report, command=command, overwrite=force)
    if as_json:
        typer.echo(json.dumps(fields, ensure_ascii=False, indent=2, allow_nan=False))
        return
    typer.echo(_to_text(result))
    if following is not None:
        typer.echo(f"wrote      {following}: {_tables(agreed, questions.sets)}")


def report_command(
    *,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What 'fedsel subgroups discover --json' printed.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="HTML page to write.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace a page that exists.")] = False,
) -> None:
    """Write an HTML page about a private discovery. Needs the extra 'report'.

    [bold]fedsel subgroups report found.json -o page.html[/]
    """
    from fedsel.report import check_report
    from fedsel.subgroups.federated.page import write_page

    check_report(out, overwrite=force)
    fields = _read_result(result)
    write_page(fields, out, command=fields.get("command"), overwrite=force)
    typer.echo(f"wrote      {out}")


def _read_result(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LONGEST_FILE:
            raise SubgroupError(f"{file}: expected at most {_LONGEST_FILE} bytes, got {file.stat().st_size}")
        fields = json.loads(file.read_bytes().decode())
    except OSError as error:
        raise SubgroupError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise SubgroupError(f"{file}: expected a result (JSON), got something that does not parse") from None
    if not isinstance(fields, dict):
        raise SubgroupError(f"{file}: expected a result (JSON), got another content")
    return fields


def _tables(protocol: SubgroupProtocol, sets: tuple[tuple[int, ...], ...]) -> str:
    names = protocol.schema.names
    return ", ".join(" x ".join(names[position] for position in members) for members in sets)


def _coverage(coverage: Coverage) -> str:
    by_budget = "" if coverage.by_budget is None else f" ({coverage.by_budget:.1%} with records weighted by epsilon)"
    return (
        f"a subgroup covers {coverage.records:.1%} of the records{by_budget} and stands out in {coverage.clients:.0%} "
        "of the clients, on average"
    )


def _to_text(result: FederatedSubgroups) -> str:
    confirmed = any(subgroup.confirmed is not None for subgroup in result.subgroups)
    fresh_headers = ("confirmed", "adjusted p") if confirmed else ()
    headers = ("description", "quality", "sd", "share", "rate", "table", *fresh_headers)
    lines = []
    for subgroup in result.subgroups:
        fresh = subgroup.confirmed
        interval = "" if fresh is None else f"{fresh.estimate:.4f} [{fresh.low:.4f}, {fresh.high:.4f}]"
        lines.append(
            (
                subgroup.description,
                f"{subgroup.quality:.4f}",
                f"{subgroup.error:.4f}",
                f"{subgroup.coverage:.1%}",
                f"{subgroup.rate:.3f}",
                "released" if subgroup.measured else "predicted",
                *((interval, "" if fresh is None else p_text(fresh.adjusted_p_value)) if confirmed else ()),
            )
        )
    error = f"standard error {result.base_error:.4f}" if result.base_error else "exact"
    facts = [
        (
            "records",
            f"{result.records:,.0f}, standard error {result.records_error:,.0f}, of {len(result.clients)} clients",
        ),
        ("base", f"{result.base:.4f} are {result.target} = {result.positive}, {error}"),
        ("rounds", f"{result.rounds} of {result.planned}"),
        ("quality", f"{result.estimand}, shrunk as its noise asks for"),
        *([("coverage", _coverage(result.coverage))] if result.coverage is not None else []),
        ("privacy", result.private.sentence),
        *[("note", note) for note in result.notes],
    ]
    return "\n".join(
        [
            text_table(headers, lines, right=range(1, 5)) if lines else "nothing stands out from the noise",
            "",
            *[f"{label.ljust(8)}  {fact}" for label, fact in facts],
        ]
    )
