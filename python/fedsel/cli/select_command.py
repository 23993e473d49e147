"""``fedsel select``."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from fedsel import __version__
from fedsel.cli.progress import SearchProgress
from fedsel.cli.select_output import to_json, to_text
from fedsel.errors import PoolError, SelectionError
from fedsel.pool import Pool
from fedsel.privacy.plan import Adjacency, Mechanism
from fedsel.schema import Schema
from fedsel.selection.denoise import DenoiseMethod
from fedsel.selection.select import CertificateMode, SearchMethod, select
from fedsel.selection.weights import LossWeights

_DEFAULT_EPSILON = 1.0


def select_command(
    releases: Annotated[
        list[Path] | None,
        typer.Argument(help="Release files of the candidates, or one folder made by 'fedsel pool build'."),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Number of members.")] = ...,  # type: ignore[assignment]
    example: Annotated[
        str | None, typer.Option(help="Use an embedded example instead of releases: acs-income (46 US states).")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Schema the releases must have; they carry their own, so this is a check.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Example only: privacy budget of each client, or inf for exact tables. [1]")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Example only: delta of each client. [1e-5]")] = None,
    adjacency: Annotated[
        Adjacency | None, typer.Option(help="Example only: neighbouring data sets. [add-remove]")
    ] = None,
    mechanism: Annotated[
        Mechanism | None, typer.Option(help="Example only: noise of the releases. [discrete-gaussian]")
    ] = None,
    noise_seed: Annotated[
        int | None,
        typer.Option(help="Example only: draw the noise from a seeded generator. NOT SECURE, for experiments.", min=0),
    ] = None,
    search: Annotated[SearchMethod, typer.Option(help="Search method; auto is expand.")] = "auto",
    certificate: Annotated[
        CertificateMode,
        typer.Option(help="Prove the optimum by evaluating every federation; auto does where that takes seconds."),
    ] = "auto",
    weights: Annotated[
        str | None,
        typer.Option(help="Weights of direct bias, proxy bias, redundancy and signal. [2,0.89,0.11,1.33]"),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Active sensitive attribute; by default the schema's first.")
    ] = None,
    denoise: Annotated[DenoiseMethod, typer.Option(help="clip sets each client's negative cells to 0 first.")] = "none",
    chains: Annotated[int, typer.Option(help="Annealing: independent chains.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads; by default all available.")] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds for search and certificate; the best so far is returned.")
    ] = float("inf"),
    allow_mixed: Annotated[
        bool, typer.Option("--allow-mixed", help="Accept releases of different budgets or adjacency, and say so.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Choose the k clients whose union has the lowest federation loss.

    [bold]fedsel select --example acs-income -k 5 --epsilon 1[/]

    [bold]fedsel select releases/*.parquet -k 10 --schema schema.toml[/]

    The result says which certificate it carries: [bold]proof[/] (every federation was evaluated), [bold]swap-optimal[/]
    (no single exchange improves it) or [bold]none[/]. Ctrl-C returns the best federation so far.
    """
    started = time.perf_counter()
    example_options = {
        "--epsilon": epsilon,
        "--delta": delta,
        "--adjacency": adjacency,
        "--mechanism": mechanism,
        "--noise-seed": noise_seed,
    }
    if example is not None:
        if releases:
            raise SelectionError(f"give either --example or release files, got both: {example} and {releases[0]}")
        pool = _example_pool(example, epsilon, delta, adjacency, mechanism, noise_seed)
    else:
        given = [name for name, value in example_options.items() if value is not None]
        if given:
            raise SelectionError(f"{given[0]} goes with --example only: releases carry their own privacy parameters")
        if not releases:
            raise SelectionError("give release files, a pool folder or --example; got none of them")
        pool = _open_pool(releases, allow_mixed)
    if schema is not None:
        difference = Schema.from_toml(schema).difference(pool.schema)
        if difference is not None:
            raise PoolError(f"the releases do not have the schema of {schema}: {difference}")
    with SearchProgress() as progress:
        selection = select(
            pool,
            k,
            search=search,
            weights=_parse_weights(weights),
            sensitive=sensitive,
            denoise_method=denoise,
            certificate=certificate,
            chains=chains,
            seed=seed,
            threads=threads,
            time_limit=time_limit,
            progress=progress,
        )
    if as_json:
        command = shlex.join(["fedsel", *sys.argv[1:]])
        elapsed = time.perf_counter() - started
        typer.echo(to_json(selection, command=command, version=__version__, wall_seconds=elapsed))
    else:
        typer.echo(to_text(selection))


def _example_pool(
    name: str,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency | None,
    mechanism: Mechanism | None,
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
    )
    return example.pool(plan, seed=noise_seed)


def _open_pool(paths: list[Path], allow_mixed: bool) -> Pool:
    if len(paths) == 1 and paths[0].is_dir():
        return Pool.load(paths[0])
    return Pool.open(paths, allow_mixed=allow_mixed)


def _parse_weights(text: str | None) -> LossWeights | None:
    if text is None:
        return None
    parts = text.split(",")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) != 4:
        raise SelectionError(f"--weights must be four numbers separated by commas, got {text!r}")
    return LossWeights(*values)
