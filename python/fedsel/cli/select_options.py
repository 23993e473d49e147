"""Options that ``fedsel select`` and ``fedsel pareto`` share, and what they mean to the library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedsel.cli.progress import DelayedProgress
from fedsel.errors import PoolError, SelectionError
from fedsel.pool import Pool
from fedsel.privacy.plan import Adjacency, Mechanism
from fedsel.schema import Schema
from fedsel.score_rule_file import read_rule
from fedsel.selection import ClientAttributes, Constraints, LossWeights, Quota
from fedsel.selection.denoising import DenoiseMethod
from fedsel.selection.precision import Precision, table_precisions
from fedsel.selection.weights import PRESETS

_CANDIDATES = "Candidates"
_LOSS = "Loss"
_RULES = "Constraints"
_EFFORT = "Effort"

Releases = Annotated[
    list[Path] | None,
    typer.Argument(help="Release files of the candidates, or one folder made by 'fedsel pool build'."),
]
Example = Annotated[
    str | None,
    typer.Option(
        help="Use an embedded example instead of releases: acs-income (46 US states).", rich_help_panel=_CANDIDATES
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="Schema the releases must have; they carry their own, so this is a check.",
        rich_help_panel=_CANDIDATES,
    ),
]
RuleFile = Annotated[
    Path | None,
    typer.Option(
        "--rule",
        help="The rule of the scores, where release files hold some (fedsel scores).",
        rich_help_panel=_CANDIDATES,
    ),
]
AllowMixed = Annotated[
    bool,
    typer.Option(
        "--allow-mixed",
        help="Accept releases of different budgets or adjacency, and say so in the result.",
        rich_help_panel=_CANDIDATES,
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        help="Example only: privacy budget of each client, or inf for exact tables. (default: 1)",
        rich_help_panel=_CANDIDATES,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(help="Example only: delta of each client. (default: 1e-5)", rich_help_panel=_CANDIDATES),
]
AdjacencyOption = Annotated[
    Adjacency | None,
    typer.Option(
        "--adjacency",
        help="Example only: neighbouring data sets. (default: add-remove)",
        rich_help_panel=_CANDIDATES,
    ),
]
MechanismOption = Annotated[
    Mechanism | None,
    typer.Option(
        "--mechanism",
        help="Example only: noise of the releases. (default: discrete-gaussian)",
        rich_help_panel=_CANDIDATES,
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="Example only: how tables share the noise; loss gives less to those it weighs most. (default: equal)",
        rich_help_panel=_CANDIDATES,
    ),
]
NoiseSeed = Annotated[
    int | None,
    typer.Option(
        help="Example only: draw the noise from a seeded generator. NOT SECURE, for experiments.",
        min=0,
        rich_help_panel=_CANDIDATES,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help=f"Weights of direct bias, proxy bias, redundancy and signal, or one of {', '.join(PRESETS)}. "
        "(default: 2,0.89,0.11,1.33)",
        rich_help_panel=_LOSS,
    ),
]
SensitiveOption = Annotated[
    str | None,
    typer.Option(
        "--sensitive",
        help="Active sensitive attributes, separated by commas. (default: the schema's first)",
        rich_help_panel=_LOSS,
    ),
]
Prepared = Annotated[
    Path | None,
    typer.Option(
        help="File that 'fedsel pool prepare' made of this pool: mapped into memory, denoised already.",
        rich_help_panel=_CANDIDATES,
    ),
]
Denoise = Annotated[
    DenoiseMethod,
    typer.Option(
        help="What is done to noisy tables first; auto is shrink: consistent tables, pulled towards the pool's; with "
        "scores it is reference.",
        rich_help_panel=_LOSS,
    ),
]
Include = Annotated[
    str | None,
    typer.Option(help="Clients that must be members, separated by commas.", rich_help_panel=_RULES),
]
Exclude = Annotated[
    str | None,
    typer.Option(help="Clients that must not be members, separated by commas.", rich_help_panel=_RULES),
]
MinRecords = Annotated[
    float | None,
    typer.Option(help="Least number of records together, as estimated from the releases.", rich_help_panel=_RULES),
]
Clients = Annotated[
    Path | None,
    typer.Option(
        help="CSV of public facts about clients: a column 'client', and any others for the options below.",
        rich_help_panel=_RULES,
    ),
]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE:N", help="At least N members with this value; may be repeated.", rich_help_panel=_RULES
    ),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE:N", help="At most N members with this value; may be repeated.", rich_help_panel=_RULES
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(help="Largest total cost of the members.", rich_help_panel=_RULES),
]
CostColumn = Annotated[
    str,
    typer.Option(help="Column of --clients that holds the cost.", rich_help_panel=_RULES),
]
Seed = Annotated[int, typer.Option(help="Seed of the search.", rich_help_panel=_EFFORT)]
Threads = Annotated[int | None, typer.Option(help="Threads. (default: all available)", rich_help_panel=_EFFORT)]
TimeLimit = Annotated[
    float,
    typer.Option(help="Seconds in all; the best found so far is returned.", rich_help_panel=_EFFORT),
]

_DEFAULT_EPSILON = 1.0


def gather_pool(
    releases: list[Path] | None,
    *,
    example: str | None,
    schema: Path | None,
    rule: Path | None,
    allow_mixed: bool,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency | None,
    mechanism: Mechanism | None,
    precision: Precision | None,
    noise_seed: int | None,
) -> Pool:
    """Read the releases or a pool folder, or let the embedded example's clients release.

    Raises
    ------
    SelectionError
        If neither or both are given, or privacy parameters come with releases that carry their own.
    PoolError
        If the schema is not that of the releases.
    """
    privacy = {
        "--epsilon": epsilon,
        "--delta": delta,
        "--adjacency": adjacency,
        "--mechanism": mechanism,
        "--precision": precision,
        "--noise-seed": noise_seed,
    }
    if example is not None:
        if rule is not None:
            raise SelectionError("--rule goes with release files, got --example")
        if releases:
            raise SelectionError(f"give either --example or release files, got both: {example} and {releases[0]}")
        pool = _example_pool(example, epsilon, delta, adjacency, mechanism, precision, noise_seed)
    else:
        given = [name for name, value in privacy.items() if value is not None]
        if given:
            raise SelectionError(f"{given[0]} goes with --example only: releases carry their own privacy parameters")
        if not releases:
            raise SelectionError("give release files, a pool folder or --example; got none of them")
        if len(releases) == 1 and releases[0].is_dir():
            if rule is not None:
                raise SelectionError(f"--rule goes with release files: the pool {releases[0]} holds its own")
            pool = Pool.load(releases[0])
        else:
            with DelayedProgress("reading releases") as progress:
                published = None if rule is None else read_rule(rule)
                pool = Pool.open(releases, rule=published, allow_mixed=allow_mixed, progress=progress)
    if schema is not None:
        difference = Schema.from_toml(schema).difference(pool.schema)
        if difference is not None:
            raise PoolError(f"the releases do not have the schema of {schema}: {difference}")
    return pool


def _example_pool(
    name: str,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency | None,
    mechanism: Mechanism | None,
    precision: Precision | None,
    noise_seed: int | None,
) -> Pool:
    from fedsel.datasets.example import load_example
    from fedsel.privacy.calibration import plan_noise

    example = load_example(name)
    plan = plan_noise(
        len(example.workload.sets),
        epsilon=_DEFAULT_EPSILON if epsilon is None else epsilon,
        delta=delta,
        adjacency=adjacency or "add-remove",
        mechanism=mechanism or "discrete-gaussian",
        weights=table_precisions(example.schema, example.workload, precision=precision or "equal"),
    )
    return example.pool(plan, seed=noise_seed)


def parse_constraints(
    *,
    include: str | None,
    exclude: str | None,
    min_records: float | None,
    clients: Path | None,
    at_least: Sequence[str] | None,
    at_most: Sequence[str] | None,
    budget: float | None,
    cost_column: str,
) -> Constraints:
    """Turn the options into constraints.

    Raises
    ------
    SelectionError
        If one cannot be read, or needs --clients and has none.
    """
    quotas = [_parse_quota("--at-least", text) for text in at_least or ()]
    bounds = [_parse_quota("--at-most", text) for text in at_most or ()]
    if clients is None and (quotas or bounds or budget is not None):
        option = "--at-least" if quotas else "--at-most" if bounds else "--budget"
        raise SelectionError(f"{option} needs --clients, a CSV file of public facts about the clients")
    return Constraints(
        include=split_names(include),
        exclude=split_names(exclude),
        min_records=min_records,
        quotas=(
            *(Quota(column, value, at_least=number) for column, value, number in quotas),
            *(Quota(column, value, at_most=number) for column, value, number in bounds),
        ),
        budget=budget,
        cost=cost_column,
        attributes=ClientAttributes.read(clients) if clients is not None else ClientAttributes(),
    )


def _parse_quota(option: str, text: str) -> tuple[str, str, int]:
    column, equals, rest = text.partition("=")
    value, colon, number = rest.rpartition(":")
    if not (equals and colon and column and number.strip().isdecimal()):
        raise SelectionError(f"{option} must have the form COLUMN=VALUE:N, got {text!r}")
    return column.strip(), value.strip(), int(number)


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a list of names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def parse_weights(text: str | None) -> LossWeights | None:
    """Read four numbers or the name of a preset.

    Raises
    ------
    SelectionError
        If the text is neither.
    """
    if text is None:
        return None
    if text in PRESETS:
        return PRESETS[text]
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 4:
        raise SelectionError(
            f"--weights must be four numbers separated by commas, or one of {', '.join(PRESETS)}, got {text!r}"
        )
    return LossWeights(*values)


def parse_size(text: str) -> int | tuple[int, int]:
    """Read a number of members, or a range such as ``3-8``.

    Raises
    ------
    SelectionError
        If the text is neither.
    """
    parts = [part.strip() for part in text.split("-")]
    if not all(part.isdecimal() for part in parts) or len(parts) > 2:
        raise SelectionError(f"-k must be a number of members such as 5, or a range such as 3-8, got {text!r}")
    return int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
