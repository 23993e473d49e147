"""The questions of a later round: which tables, as the coordinator asks for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fedsel.errors import SubgroupError
from fedsel.subgroups.federated.protocol import SubgroupProtocol
from fedsel.subgroups.federated.public_file import check_fields, check_file, read_json, write_json

_FIELDS: dict[str, type] = {"format": int, "kind": str, "protocol": str, "round": int, "tables": list}


@dataclass(frozen=True)
class Questions:
    """Tables of one round.

    Parameters
    ----------
    protocol : str
        Identity of the protocol.
    round : int
        Round within the protocol, from 2.
    sets : tuple of tuple of int
        Positions, among the schema's variables, of the one or two attributes of each table, which is by the outcome.
    """

    protocol: str
    round: int
    sets: tuple[tuple[int, ...], ...]

    def check(self, protocol: SubgroupProtocol) -> None:
        """Refuse questions that the protocol does not provide for.

        Raises
        ------
        SubgroupError
            If round, number of tables or a table is out of range, or a table is asked for twice.
        """
        if not 2 <= self.round <= protocol.rounds:
            raise SubgroupError(f"round must be between 2 and {protocol.rounds}, got {self.round}")
        expected = protocol.tables[self.round - 1]
        if len(self.sets) != expected:
            raise SubgroupError(f"tables: expected {expected} in round {self.round}, got {len(self.sets)}")
        if len(set(self.sets)) != len(self.sets):
            raise SubgroupError("tables: expected different ones, got one twice")
        for members in self.sets:
            known = all(position in protocol.attributes for position in members)
            if not known or list(members) != sorted(set(members)) or not 1 <= len(members) <= 2:
                raise SubgroupError(f"tables: expected one or two different attributes each, got {list(members)}")


def write_questions(
    questions: Questions, protocol: SubgroupProtocol, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a file of questions (JSON) in one step.

    Raises
    ------
    SubgroupError
        If the file exists or cannot be written.
    """
    names = protocol.schema.names
    content = {
        "format": 1,
        "kind": "subgroup-questions",
        "protocol": questions.protocol,
        "round": questions.round,
        "tables": [[names[position] for position in members] for members in questions.sets],
    }
    write_json(content, Path(path), overwrite=overwrite)


def read_questions(path: str | os.PathLike[str], protocol: SubgroupProtocol) -> Questions:
    """Read and check a file of questions.

    Raises
    ------
    SubgroupError
        If the file cannot be read, is not valid, or is of another protocol.
    """
    names = protocol.schema.names
    with check_file(Path(path)):
        content = read_json(Path(path), "subgroup-questions")
        check_fields(content, _FIELDS)
        if content["protocol"] != protocol.identity:
            raise SubgroupError("the questions are those of another protocol")
        for members in content["tables"]:
            if not isinstance(members, list) or not all(name in names for name in members):
                raise SubgroupError(f"tables: expected lists of variables of the schema, got {members!r:.80}")
        sets = tuple(tuple(names.index(name) for name in members) for members in content["tables"])
        questions = Questions(content["protocol"], content["round"], sets)
        questions.check(protocol)
        return questions
