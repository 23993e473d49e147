"""What clients and coordinator agree on before any row is read: which tables, in how many rounds, how precise."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsel.errors import SubgroupError
from fedsel.privacy.calibration import AccountingChoice
from fedsel.privacy.plan import Adjacency, Mechanism, NoisePlan
from fedsel.privacy.rounds import plan_rounds
from fedsel.schema import Schema
from fedsel.subgroups.federated.public_file import check_fields, check_file, read_json, write_json
from fedsel.tables import Workload

MOST_TABLES = 2_000
"""Most tables of one round."""

DEFAULT_PAIRS = 8
"""Pairs of attributes asked for in the second round when nothing is said."""

PAIR_SHARE = 0.3
"""Share of the cost of the first two rounds that goes to the pairs of attributes."""

MOST_CELLS = 2**26
"""Most cells of all pairs of attributes: an estimate of every one is held at once, in 32 bytes."""

MOST_UNEVEN = 2**20
"""Most that the precision of a table may be times that of another."""

_MOST_WEIGHT = 64
_FIELDS: dict[str, type] = {
    "format": int,
    "kind": str,
    "schema": str,
    "positive": int,
    "attributes": list,
    "tables": list,
    "precision": list,
}


@dataclass(frozen=True)
class SubgroupProtocol:
    """The public agreement of one discovery.

    Round 1 asks for the outcome alone and by every attribute. Round 2, if there is one, asks for ``tables[1]`` pairs of
    attributes by the outcome, chosen by what round 1 released. Round 3, if there is one, measures ``tables[2]`` tables
    afresh, in which the best subgroups lie, so that what is said of them does not suffer from their having been chosen.

    Parameters
    ----------
    schema : Schema
        Its target is the outcome.
    positive : int
        Code of the target's category that counts as positive; all others are negative.
    attributes : tuple of int
        Positions of the variables that conditions speak of, in schema order, each of at least two categories.
    tables : tuple of int
        Number of tables of each round, 1 to 3 rounds.
    precision : tuple of int
        Weight of every table of a round: sigma^2 is inversely proportional to it.

    Raises
    ------
    SubgroupError
        If the parts do not fit each other.
    """

    schema: Schema
    positive: int
    attributes: tuple[int, ...]
    tables: tuple[int, ...]
    precision: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise SubgroupError(f"schema {self.schema.name}: subgroups need a target variable, got none")
        if not 0 <= self.positive < self.schema.domain[self.target]:
            raise SubgroupError(
                f"positive must be between 0 and {self.schema.domain[self.target] - 1}, got {self.positive}"
            )
        if not self.attributes or list(self.attributes) != sorted(set(self.attributes)):
            raise SubgroupError(f"attributes must be increasing positions, at least one, got {list(self.attributes)}")
        for position in self.attributes:
            if not 0 <= position < len(self.schema.names) or position == self.target:
                raise SubgroupError(f"attributes must be variables other than the target, got position {position}")
            if self.schema.domain[position] < 2:
                raise SubgroupError(
                    f"attribute {self.schema.names[position]}: expected at least 2 categories, got 1: a condition on "
                    "it covers everything"
                )
        sizes = [self.schema.domain[position] for position in self.attributes]
        cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        if cells > MOST_CELLS:
            raise SubgroupError(
                f"attributes: expected at most {MOST_CELLS} cells in all pairs of attributes together, got {cells}: "
                "leave attributes out, or give them fewer categories"
            )
        if not 1 <= len(self.tables) <= 3 or len(self.precision) != len(self.tables):
            raise SubgroupError(f"tables and precision: expected 1 to 3 rounds, got {self.tables} and {self.precision}")
        if min(self.precision) < 1 or min(self.tables) < 1 or max(self.tables) > MOST_TABLES:
            raise SubgroupError(
                f"tables must be between 1 and {MOST_TABLES} a round and precisions positive, got {self.tables} and "
                f"{self.precision}"
            )
        if self.tables[0] != len(self.attributes) + 1:
            raise SubgroupError(
                f"round 1 must hold {len(self.attributes) + 1} tables, one per attribute and the outcome alone, got "
                f"{self.tables[0]}"
            )
        if len(self.tables) > 1 and self.tables[1] > math.comb(len(self.attributes), 2):
            raise SubgroupError(
                f"round 2 must hold at most {math.comb(len(self.attributes), 2)} tables, one per pair of attributes, "
                f"got {self.tables[1]}"
            )

        possible = len(self.attributes) + math.comb(len(self.attributes), 2)
        if len(self.tables) > 2 and self.tables[2] > possible:
            raise SubgroupError(
                f"round 3 (confirm) must hold at most {possible} tables, one per attribute and pair of them, got "
                f"{self.tables[2]}"
            )

    @classmethod
    def make(
        cls,
        schema: Schema,
        *,
        positive: str | None = None,
        exclude: Sequence[str] = (),
        pairs: int | None = None,
        pair_share: float = PAIR_SHARE,
        confirm: int = 0,
        confirm_share: float = 0.2,
    ) -> SubgroupProtocol:
        """Make a protocol for a schema.

        Variables of one category are left out: a condition on them covers everything.

        Parameters
        ----------
        schema : Schema
            With a target.
        positive : str, optional
            Shown text of the target's category that counts as positive; its last one if not given.
        exclude : sequence of str
            Variables that no condition shall speak of.
        pairs : int, optional
            Pairs of attributes in round 2; 8, or all if there are fewer, if not given. With 0, descriptions of two
            conditions are predicted from one-way tables only.
        pair_share : float
            Share of round 2 in the cost of rounds 1 and 2, between 0 and 1 (exclusive).
        confirm : int
            Tables measured afresh in round 3; 0 for no such round.
        confirm_share : float
            Share of round 3 in the whole cost, between 0 and 1 (exclusive).

        Raises
        ------
        SubgroupError
            If a name is unknown or a number is out of range.
        """
        if schema.target is None:
            raise SubgroupError(f"schema {schema.name}: subgroups need a target variable, got none")
        shown = schema.labels(schema.target)
        if positive is not None and positive not in shown:
            raise SubgroupError(f"positive must be one of {', '.join(shown)}, got {positive!r}")
        for name in exclude:
            schema.variable(name)
        attributes = tuple(
            position
            for position, (name, size) in enumerate(zip(schema.names, schema.domain, strict=True))
            if name != schema.target and name not in exclude and size > 1
        )
        if not attributes:
            raise SubgroupError(f"schema {schema.name}: no variable of two or more categories is left for conditions")
        possible = math.comb(len(attributes), 2)
        pairs = min(DEFAULT_PAIRS, possible) if pairs is None else pairs
        if not 0 <= pairs <= possible:
            raise SubgroupError(f"pairs must be between 0 and {possible}, got {pairs}")
        if confirm < 0:
            raise SubgroupError(f"confirm must not be negative, got {confirm}")
        for name, share in (("pair_share", pair_share), ("confirm_share", confirm_share)):
            if not 0 < share < 1:
                raise SubgroupError(f"{name} must be between 0 and 1 (exclusive), got {share}")
        tables, shares = [len(attributes) + 1], [1.0]
        if pairs:
            tables, shares = [*tables, pairs], [1 - pair_share, pair_share]
        elif confirm:
            raise SubgroupError("confirm needs pairs of at least 1, got 0: there is no second round to confirm")
        if confirm:
            tables.append(confirm)
            shares = [*(share * (1 - confirm_share) for share in shares), confirm_share]
        wanted = [share / number for share, number in zip(shares, tables, strict=True)]
        if max(wanted) > MOST_UNEVEN * min(wanted):
            raise SubgroupError(
                f"pair_share and confirm_share: expected tables whose precisions differ by at most a factor of "
                f"{MOST_UNEVEN}, got shares of the cost of {', '.join(f'{share:.3g}' for share in shares)} for "
                f"{', '.join(map(str, tables))} tables"
            )
        return cls(
            schema,
            len(shown) - 1 if positive is None else shown.index(positive),
            attributes,
            tuple(tables),
            small_integers(wanted),
        )

    @cached_property
    def target(self) -> int:
        """Position of the outcome among the schema's variables."""
        assert self.schema.target is not None
        return self.schema.names.index(self.schema.target)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.tables)

    @property
    def negatives(self) -> int:
        """Number of the target's categories that are not positive."""
        return self.schema.domain[self.target] - 1

    def first(self) -> Workload:
        """Return the tables of round 1: the outcome, then every attribute by the outcome."""
        return self.workload([(), *((position,) for position in self.attributes)])

    def workload(self, sets: Sequence[tuple[int, ...]]) -> Workload:
        """Return tables of the given attributes by the outcome, in their order."""
        whole = tuple(tuple(sorted((*members, self.target))) for members in sets)
        return Workload(self.schema.names, self.schema.domain, whole)

    def plan(
        self,
        epsilon: float,
        *,
        delta: float | None = None,
        adjacency: Adjacency = "add-remove",
        mechanism: Mechanism = "discrete-gaussian",
        accounting: AccountingChoice = "auto",
    ) -> NoisePlan:
        """Return the noise of one client, whose budget may be its own; parameters as for `plan_noise`.

        Raises
        ------
        PrivacyError
            If a parameter is out of range.
        """
        weights = [w for w, number in zip(self.precision, self.tables, strict=True) for _ in range(number)]
        return plan_rounds(
            weights,
            scores=(),
            rounds=self.tables,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
            mechanism="none" if math.isinf(epsilon) else mechanism,
            accounting=accounting,
        )

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the protocol, 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol as JSON values."""
        return {
            "format": 1,
            "kind": "subgroup-protocol",
            "schema": self.schema.fingerprint,
            "positive": self.positive,
            "attributes": [self.schema.names[position] for position in self.attributes],
            "tables": list(self.tables),
            "precision": list(self.precision),
        }


def write_protocol(protocol: SubgroupProtocol, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a protocol file (JSON) in one step.

    Raises
    ------
    SubgroupError
        If the file exists or cannot be written.
    """
    write_json(protocol.to_dict(), Path(path), overwrite=overwrite)


def read_protocol(path: str | os.PathLike[str], schema: Schema) -> SubgroupProtocol:
    """Read and check a protocol file, which refers to its schema by fingerprint.

    Raises
    ------
    SubgroupError
        If the file cannot be read, is not a valid protocol, or is that of another schema.
    """
    with check_file(Path(path)):
        content = read_json(Path(path), "subgroup-protocol")
        check_fields(content, _FIELDS)
        if content["schema"] != schema.fingerprint:
            raise SubgroupError(f"schema: expected {schema.fingerprint[:12]}, got {content['schema'][:12]!r}")
        unknown = [name for name in content["attributes"] if name not in schema.names]
        if unknown:
            raise SubgroupError(f"attributes: expected variables of the schema, got {unknown[0]!r:.80}")
        for field in ("tables", "precision"):
            if not all(type(number) is int and number < 2**31 for number in content[field]):
                raise SubgroupError(f"{field}: expected whole numbers, got {content[field]!r:.80}")
        return SubgroupProtocol(
            schema,
            content["positive"],
            tuple(schema.names.index(name) for name in content["attributes"]),
            tuple(content["tables"]),
            tuple(content["precision"]),
        )


def small_integers(wanted: Sequence[float]) -> tuple[int, ...]:
    """Return small positive integers nearly in proportion to positive numbers, the least of which may not be far off.

    Small, since the exact accounting works on a lattice whose step is their common divisor. Each is off by at most
    one in twenty, where 64 times the least suffices.
    """
    least = min(wanted)
    best: tuple[int, ...] = ()
    for multiplier in range(1, _MOST_WEIGHT + 1):
        best = tuple(max(1, round(multiplier * number / least)) for number in wanted)
        exact = [multiplier * number / least for number in wanted]
        if all(abs(b - e) <= e / 20 for b, e in zip(best, exact, strict=True)):
            break
    return tuple(number // math.gcd(*best) for number in best)
