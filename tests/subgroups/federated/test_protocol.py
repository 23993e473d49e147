from __future__ import annotations

import json
from pathlib import Path

import pytest

from discovery_samples import small_schema
from fedsel.errors import FedselError, SubgroupError
from fedsel.schema import Schema, Variable
from fedsel.subgroups.federated import (
    Questions,
    SubgroupProtocol,
    read_protocol,
    read_questions,
    write_protocol,
    write_questions,
)
from fedsel.subgroups.federated.client import asked
from fedsel.subgroups.federated.protocol import small_integers


def test_rounds_and_shares_are_as_asked() -> None:
    protocol = SubgroupProtocol.make(small_schema(), pairs=3, pair_share=0.3, confirm=2, confirm_share=0.2)
    assert protocol.tables == (5, 3, 2)
    cost = [w * n for w, n in zip(protocol.precision, protocol.tables, strict=True)]
    shares = [c / sum(cost) for c in cost]
    assert shares == pytest.approx([0.56, 0.24, 0.2], abs=0.02)
    plan = protocol.plan(1.0)
    assert plan.rounds == (5, 3, 2)
    assert plan.epsilon == 1.0
    assert [plan.part(r).weights[0] for r in (1, 2, 3)] == [
        w * plan.weights[0] // protocol.precision[0] for w in protocol.precision
    ]


def test_more_pairs_than_there_are_are_not_asked() -> None:
    assert SubgroupProtocol.make(small_schema((2, 2, 2))).tables == (4, 3)
    with pytest.raises(SubgroupError, match="pairs must be between 0 and 3, got 4"):
        SubgroupProtocol.make(small_schema((2, 2, 2)), pairs=4)


def test_without_pairs_there_is_one_round() -> None:
    protocol = SubgroupProtocol.make(small_schema(), pairs=0)
    assert protocol.rounds == 1
    assert protocol.plan(0.5).rounds == (5,)
    with pytest.raises(SubgroupError, match="no second round to confirm"):
        SubgroupProtocol.make(small_schema(), pairs=0, confirm=1)


def test_attributes_of_one_category_are_left_out() -> None:
    schema = small_schema((3, 1, 2))
    assert SubgroupProtocol.make(schema).attributes == (0, 2)
    with pytest.raises(SubgroupError, match="covers everything"):
        SubgroupProtocol(schema, 1, (0, 1), (3,), (1,))


def test_the_first_round_asks_for_the_outcome_by_every_attribute() -> None:
    schema = small_schema((3, 2))
    assert SubgroupProtocol.make(schema).first().sets == ((2,), (0, 2), (1, 2))


@pytest.mark.parametrize("wanted", [[1.0, 2.0, 3.0], [0.05, 0.0375], [1.0, 63.7], [3.3, 1.0, 7.7]])
def test_small_integers_keep_the_proportions(wanted: list[float]) -> None:
    got = small_integers(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a / got[0] == pytest.approx(b / wanted[0], rel=0.11)
    assert max(got) / min(got) <= 64 * max(wanted) / min(wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive": "7"}, "positive must be one of 0, 1, got '7'"),
        ({"exclude": ["nobody"]}, "the schema has no variable 'nobody'"),
        ({"exclude": ["x0", "x1", "x2", "x3"]}, "no variable of two or more categories is left"),
        ({"pairs": -1}, "pairs must be between 0 and 6, got -1"),
        ({"pair_share": 0.0}, r"pair_share must be between 0 and 1 \(exclusive\), got 0.0"),
        ({"confirm": 1, "confirm_share": 1.0}, r"confirm_share must be between 0 and 1 \(exclusive\), got 1.0"),
        ({"pair_share": 1e-310}, "precisions differ by at most a factor of 1048576"),
        ({"pair_share": 1 - 1e-12}, "precisions differ by at most a factor of 1048576"),
        (
            {"confirm": 11},
            r"round 3 \(confirm\) must hold at most 10 tables, one per attribute and pair of them, got 11",
        ),
        ({"confirm": -2}, "confirm must not be negative, got -2"),
    ],
)
def test_parameters_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(FedselError, match=message):
        SubgroupProtocol.make(small_schema(), **options)  # type: ignore[arg-type]


def test_a_schema_without_a_target_is_refused() -> None:
    with pytest.raises(SubgroupError, match="subgroups need a target variable, got none"):
        SubgroupProtocol.make(Schema("s", (Variable("x", categories=(0, 1)),)))


def test_a_protocol_file_reads_back(tmp_path: Path) -> None:
    schema = small_schema(outcomes=3)
    protocol = SubgroupProtocol.make(schema, positive="1", exclude=["x1"], pairs=2, confirm=1)
    write_protocol(protocol, tmp_path / "p.json")
    assert read_protocol(tmp_path / "p.json", schema) == protocol
    with pytest.raises(SubgroupError, match="exists already"):
        write_protocol(protocol, tmp_path / "p.json")
    with pytest.raises(SubgroupError, match="schema: expected"):
        read_protocol(tmp_path / "p.json", small_schema((2, 2)))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("attributes", ["x9"], "attributes: expected variables of the schema, got 'x9'"),
        ("attributes", [["x0"]], "attributes: expected variables"),
        ("attributes", ["x1", "x0"], "increasing positions"),
        ("tables", [5, 10**12], "tables: expected whole numbers"),
        ("tables", [True, 2], "tables: expected whole numbers"),
        ("tables", [4, 3], "round 1 must hold 5 tables"),
        ("tables", [5, 7], "round 2 must hold at most 6 tables"),
        ("precision", [0, 1], "precisions positive"),
        ("positive", 2, "positive must be between 0 and 1, got 2"),
        ("positive", None, "positive: expected int, got NoneType"),
        ("format", 9, "format: expected 1, got 9"),
        ("kind", "score-rule", "got another content"),
    ],
)
def test_hostile_protocol_files_are_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    schema = small_schema()
    content = SubgroupProtocol.make(schema, pairs=3).to_dict() | {field: value}
    (tmp_path / "p.json").write_text(json.dumps(content))
    with pytest.raises(SubgroupError, match=message):
        read_protocol(tmp_path / "p.json", schema)


@pytest.mark.parametrize("text", ["", "[1]", "{", "\ud800".encode("utf-16", "surrogatepass")])
def test_files_that_are_no_protocol_are_refused(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "p.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SubgroupError, match="expected a subgroup-protocol"):
        read_protocol(tmp_path / "p.json", small_schema())
    with pytest.raises(SubgroupError, match="expected a file, got none"):
        read_protocol(tmp_path / "nothing.json", small_schema())


def test_questions_read_back_and_are_bound_to_their_protocol(tmp_path: Path) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=2)
    questions = Questions(protocol.identity, 2, ((0, 1), (1, 3)))
    write_questions(questions, protocol, tmp_path / "q.json")
    assert read_questions(tmp_path / "q.json", protocol) == questions
    assert asked(protocol, questions)[0].sets == ((0, 1, 4), (1, 3, 4))
    other = SubgroupProtocol.make(schema, pairs=2, pair_share=0.6)
    with pytest.raises(SubgroupError, match="those of another protocol"):
        read_questions(tmp_path / "q.json", other)
    with pytest.raises(SubgroupError, match="those of another protocol"):
        asked(other, questions)


@pytest.mark.parametrize(
    ("round_", "sets", "message"),
    [
        (1, ((0, 1), (0, 2)), "round must be between 2 and 2, got 1"),
        (3, ((0, 1), (0, 2)), "round must be between 2 and 2, got 3"),
        (2, ((0, 1),), "tables: expected 2 in round 2, got 1"),
        (2, ((0, 1), (0, 1)), "got one twice"),
        (2, ((0, 4), (0, 1)), "one or two different attributes"),
        (2, ((1, 0), (0, 2)), "one or two different attributes"),
        (2, ((0, 1, 2), (0, 2)), "one or two different attributes"),
        (2, ((), (0, 2)), "one or two different attributes"),
    ],
)
def test_questions_that_the_protocol_does_not_provide_for_are_refused(
    round_: int, sets: tuple[tuple[int, ...], ...], message: str
) -> None:
    protocol = SubgroupProtocol.make(small_schema(), pairs=2)
    with pytest.raises(SubgroupError, match=message):
        asked(protocol, Questions(protocol.identity, round_, sets))


def test_the_most_uneven_protocol_reads_back(tmp_path: Path) -> None:
    schema = small_schema()
    protocol = SubgroupProtocol.make(schema, pairs=1, pair_share=1 - 1e-5, confirm=1, confirm_share=1e-5)
    write_protocol(protocol, tmp_path / "p.json")
    assert read_protocol(tmp_path / "p.json", schema) == protocol
    assert protocol.plan(1.0).rounds == protocol.tables


def test_attributes_whose_pairs_no_memory_holds_are_refused() -> None:
    """Before anything is asked: sixty attributes are no matter, sixty of a thousand categories are."""
    assert len(SubgroupProtocol.make(small_schema((10,) * 60)).attributes) == 60
    with pytest.raises(
        SubgroupError, match="at most 67108864 cells in all pairs of attributes together, got 1770000000"
    ):
        SubgroupProtocol.make(small_schema((1000,) * 60))
