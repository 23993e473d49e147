"""What happens at a client: exact counts and scores in, one private release out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedsel.atomic_file import AtomicFile
from fedsel.errors import BudgetError, ReleaseError
from fedsel.privacy.entropy import Entropy, SeededEntropy, SystemEntropy
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.limits import COUNT_BOUND
from fedsel.privacy.noise import add_noise
from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.release_file import encode_release
from fedsel.schema import Schema
from fedsel.score_rule import ScoreTotals
from fedsel.tables import Marginals, Workload

TABLES, SCORES = "tables", "scores"


def release(
    marginals: Marginals | None,
    schema: Schema,
    plan: NoisePlan,
    *,
    client: str,
    scores: ScoreTotals | None = None,
    ledger: Ledger | Callable[[], Ledger] | None = None,
    seed: int | None = None,
    round: int = 1,
    part: int = 1,
    rows: int | None = None,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    again: bool = False,
    non_private: bool = False,
    purpose: str | None = None,
) -> Release:
    """Charge the ledger, add noise to every cell of every table and to every score, and write the release.

    Everything that can go wrong without looking at the counts is tried first: the parts must fit each other, and the
    output's room on the disk is taken. Then the charge is committed; only after that is noise drawn and the file
    published. A crash in between leaves a charge and no release.

    Parameters
    ----------
    marginals : Marginals or None
        The client's exact counts; None for a release of scores only.
    schema : Schema
        Their meaning.
    plan : NoisePlan
        The noise and its guarantee: the tables of the workload, then the scores, of this round and all others.
    client : str
        Name of the client.
    scores : ScoreTotals, optional
        The client's exact scores.
    ledger : Ledger or callable, optional
        Where to charge, or what opens it: called right before the charge, so that a ledger yet to be made is not made
        for a release that is refused. Without one nothing is recorded, and nothing limits repeated releases. A plan of
        several rounds is charged whole with its first.
    seed : int, optional
        Draw the noise from a seeded generator instead of the operating system: for experiments only. Clients, rounds
        and plans of one seed get independent noise. The release says that it was seeded.
    round : int
        Round of the protocol, from 1.
    part : int
        Which round of the plan this is, from 1.
    rows : int, optional
        The client's number of records, only if the schema declares sizes public and the adjacency is replace-one.
    path : path, optional
        Write the release file.
    overwrite : bool
        Replace a file that exists.
    again : bool
        Charge a round that has been charged before.
    non_private : bool
        Required for a plan without noise when a ledger is given.
    purpose : str, optional
        What the ledger says the charge is for; by default what is released, tables or scores or both.

    Returns
    -------
    Release

    Raises
    ------
    ReleaseError
        If the parts do not fit each other or the file cannot be written.
    PrivacyError
        If the plan has no such part.
    BudgetError
        If the ledger refuses the charge; see `Ledger.spend`.
    """
    if isinstance(ledger, Ledger):
        _check_owner(ledger, client)
    if seed is not None and seed < 0:
        raise ReleaseError(f"seed must not be negative, got {seed}")
    own = plan.part(part)
    workload = Workload(schema.names, schema.domain, ()) if marginals is None else marginals.workload
    counts = [exact.counts for exact in (marginals, scores) if exact is not None]
    blank = Release(
        client=client,
        schema=schema,
        workload=workload,
        counts=np.zeros(sum(map(len, counts)), dtype=np.int64),
        plan=own,
        round=round,
        seeded=seed is not None and plan.mechanism != "none",
        rows=rows,
        scores=None if scores is None else scores.queries,
        protocol=plan if len(plan.rounds) > 1 else None,
    )
    # A rehearsal on zeros, thrown away: what is compiled or tabulated on first use fails here, before the charge.
    queries = len(own.weights)
    add_noise(np.zeros(queries, dtype=np.int64), np.ones(queries, dtype=np.int64), own, entropy=SystemEntropy())
    with ExitStack() as stack:
        output = None
        if path is not None:
            size = len(encode_release(blank))
            output = stack.enter_context(AtomicFile(Path(path), overwrite=overwrite, reserve=size, error=ReleaseError))
        if ledger is not None:
            if not isinstance(ledger, Ledger):
                ledger = ledger()
                _check_owner(ledger, client)
            if purpose is None:
                purpose = TABLES if scores is None else SCORES if marginals is None else f"{TABLES} and {SCORES}"
            charge = ledger.spend(
                plan, purpose, round, part=part, again=again, non_private=non_private, seeded=blank.seeded
            )
            stack.enter_context(charge)
        sizes = np.concatenate([workload.sizes, np.ones(len(blank.score_names), dtype=np.int64)])
        # No bound on rows is known: what would not fit a release is clipped, which moves no neighbours further apart.
        exact = np.clip(np.concatenate(counts), -COUNT_BOUND // 2, COUNT_BOUND // 2)
        noisy = add_noise(exact, sizes, own, entropy=noise_source(seed, blank))
        result = replace(blank, counts=noisy)
        if output is not None:
            output.publish(encode_release(result))
    return result


def _check_owner(ledger: Ledger, client: str) -> None:
    if ledger.client != client:
        raise BudgetError(f"{ledger.path}: expected the ledger of client {client!r}, got that of {ledger.client!r}")


def noise_source(seed: int | None, blank: Release) -> Entropy:
    """Return where the noise of a release comes from.

    Parameters
    ----------
    seed : int or None
        For experiments; the operating system's generator if None.
    blank : Release
        The release, without its counts.
    """
    if seed is None:
        return SystemEntropy()
    # The same seed for all clients must not mean the same noise: it would cancel in differences between clients. Nor
    # for all plans or score rules: noise at two scales from the same words is almost proportional, and two releases
    # give the counts.
    plan = blank.plan
    asked: list[object] = [blank.client, plan.mechanism, int(plan.numerator), [int(weight) for weight in plan.weights]]
    if blank.scores is not None:
        asked.append(blank.scores.rule)
    digest = hashlib.sha256(json.dumps(asked).encode()).digest()
    words = [int.from_bytes(digest[start : start + 4], "little") for start in range(0, 16, 4)]
    return SeededEntropy(np.random.SeedSequence([seed, blank.round, *words]))
