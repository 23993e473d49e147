"""From files of rows to exact marginals and scores, one client a file or many, in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedsel.encode import Codes, encode_file
from fedsel.encode_clients import encode_clients
from fedsel.errors import DataError
from fedsel.schema import Schema
from fedsel.score_rule import ScoreRule, ScoreTotals
from fedsel.tables import Marginals, Workload, count

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class ClientCount:
    """What one client's rows came to. As private as the rows: it never leaves the client.

    Parameters
    ----------
    marginals : Marginals
        Exact counts.
    rows : int
        Number of rows counted.
    dropped : int
        Number of rows that the schema's missing policies dropped.
    scores : ScoreTotals or None
        Exact scores, if a rule was given.
    """

    marginals: Marginals
    rows: int
    dropped: int
    scores: ScoreTotals | None = None


def count_file(
    schema: Schema, workload: Workload, path: Path, *, rule: ScoreRule | None = None, delimiter: str | None = None
) -> ClientCount:
    """Count a file that holds the rows of one client.

    Parameters
    ----------
    schema : Schema
        How rows are encoded.
    workload : Workload
        What is counted, over the schema's variables.
    path : path
        CSV or Parquet file, as in `encode_file`.
    rule : ScoreRule, optional
        Score the rows too.
    delimiter : str, optional
        Separates CSV fields.

    Returns
    -------
    ClientCount

    Raises
    ------
    DataError
        As `encode_file`, and if every row was dropped.
    """
    sums = _Sums(workload, rule)
    for codes in encode_file(schema, path, delimiter=delimiter):
        sums.add(codes)
    return sums.finish(os.fspath(path))


def count_clients(
    schema: Schema,
    workload: Workload,
    paths: Iterable[Path],
    client_column: str,
    *,
    client: str | None = None,
    rule: ScoreRule | None = None,
    delimiter: str | None = None,
) -> dict[str, ClientCount]:
    """Count files whose rows belong to several clients, in one pass over each.

    The memory needed grows with clients times cells, not with rows. A client's rows may be spread over the files.

    Parameters
    ----------
    schema, workload, rule, delimiter
        As in `count_file`.
    paths : iterable of path
        CSV or Parquet files, all with the client's column.
    client_column : str
        Column with the client's name; see `encode_clients`.
    client : str, optional
        Count only this client's rows, which must be in each file.

    Returns
    -------
    dict of str to ClientCount
        One entry per client, in alphabetical order.

    Raises
    ------
    DataError
        As `encode_clients`, if there is no file, and if every row of a client was dropped; the message names it.
    """
    sums: dict[str, _Sums] = {}
    files = [os.fspath(path) for path in paths]
    if not files:
        raise DataError("at least one data file is needed, got none")
    for file in files:
        for name, codes in encode_clients(schema, file, client_column, client=client, delimiter=delimiter):
            if name not in sums:
                sums[name] = _Sums(workload, rule)
            sums[name].add(codes)
    where = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return {name: sums[name].finish(f"{where}: client {name!r}") for name in sorted(sums)}


class _Sums:
    """Counts of one client, added up in place."""

    def __init__(self, workload: Workload, rule: ScoreRule | None) -> None:
        self._workload = workload
        self._rule = rule
        self._counts = np.zeros(workload.cells, dtype=np.int64)
        self._scores: ScoreTotals | None = None
        self._rows = 0
        self._dropped = 0

    def add(self, codes: Codes) -> None:
        self._counts += count(codes.columns, self._workload).counts
        if self._rule is not None:
            own = self._rule.total(codes.columns)
            self._scores = own if self._scores is None else self._scores + own
        self._rows += codes.rows
        self._dropped += codes.dropped

    def finish(self, where: str) -> ClientCount:
        if not self._rows:
            raise DataError(f"{where}: no row is left once those with missing values are dropped, as the schema says")
        return ClientCount(Marginals(self._workload, self._counts), self._rows, self._dropped, self._scores)
