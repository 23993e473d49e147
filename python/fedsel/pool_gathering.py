"""From releases of tables, of scores or of both to the fields of a pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fedsel.errors import PoolError
from fedsel.pool_builder import PoolBuilder
from fedsel.pool_scores import ScoreBuilder
from fedsel.release import Release
from fedsel.score_rule import ScoreRule


def gather(
    releases: Iterable[tuple[Release, str]], *, most: int, rule: ScoreRule | None, allow_mixed: bool
) -> dict[str, Any]:
    """Gather releases into the fields of a `Pool`.

    Parameters
    ----------
    releases : iterable of (Release, str)
        Releases and what names them in messages.
    most : int
        How many there are at most.
    rule : ScoreRule or None
        The rule of the scores, required if a release holds scores.
    allow_mixed : bool
        As for `Pool.from_releases`.

    Raises
    ------
    PoolError
        If they do not go together.
    """
    tables, scores = PoolBuilder(most, allow_mixed=allow_mixed), ScoreBuilder(rule)
    for release, source in releases:
        if release.workload.sets:
            tables.add(release, source=source)
        if release.scores is not None:
            scores.add(release, source=source)
    if scores.used and not tables.protocols:
        raise PoolError("the releases hold scores only; a pool needs the clients' tables too")
    fields = tables.finish(partial=True)
    if scores.used:
        fields["scores"] = scores.finish(tables.protocols, allow_mixed=allow_mixed)
    elif rule is not None:
        raise PoolError("a score rule was given, but no release holds scores")
    return fields
