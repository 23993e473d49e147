from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fedsel.errors import SchemaError
from fedsel.schema import Schema, Variable
from strategies import schemas

AGE = Variable("AGEP", bins=(0, 18, 65, 100), missing="drop")
SEX = Variable("SEX", "sensitive", categories=(1, 2), labels=("male", "female"))
WORK = Variable("WORK", categories=("own", "other"), missing="category", missing_values=("?",))
RICH = Variable("RICH", "target", categories=(False, True))
SCHEMA = Schema("people", (AGE, SEX, WORK, RICH), missing_values=("NA",), description="Four\nvariables.")

GOLDEN_JSON = (
    '{"description":"Four\\nvariables.","format":1,"missing_values":["NA"],"name":"people","sizes":"hidden","variables":['
    '{"bins":[0,18,65,100],"missing":"drop","name":"AGEP","role":"feature"},'
    '{"categories":[1,2],"labels":["male","female"],"missing":"error","name":"SEX","role":"sensitive"},'
    '{"categories":["own","other"],"missing":"category","missing_values":["?"],"name":"WORK","role":"feature"},'
    '{"categories":[false,true],"missing":"error","name":"RICH","role":"target"}]}'
)
GOLDEN_FINGERPRINT = "9e54af46a90143654a81f7ba93d49e568d55007cd26842bbe8c145128738f6cc"


# --- what a schema says ----------------------------------------------------------------------------------------------


def test_properties() -> None:
    assert SCHEMA.names == ("AGEP", "SEX", "WORK", "RICH")
    assert SCHEMA.domain == (3, 2, 3, 2)
    assert (SCHEMA.target, SCHEMA.sensitive, SCHEMA.features) == ("RICH", ("SEX",), ("AGEP", "WORK"))
    assert SCHEMA.labels("AGEP") == ("[0, 18)", "[18, 65)", "[65, 100]")
    assert SCHEMA.labels("SEX") == ("male", "female")
    assert SCHEMA.labels("WORK") == ("own", "other", "missing/other")
    assert SCHEMA.labels("RICH") == ("false", "true")
    assert [variable.kind for variable in SCHEMA.variables] == ["bins", "int", "str", "bool"]
    assert SCHEMA.variable("SEX") is SEX


def test_a_schema_may_lack_target_and_sensitive_and_have_one_category() -> None:
    schema = Schema("one", [Variable("x", categories=["only"])])  # type: ignore[arg-type]
    assert (schema.domain, schema.target, schema.sensitive) == ((1,), None, ())


def test_lists_and_numpy_scalars_become_plain_tuples() -> None:
    variable = Variable("x", categories=np.array([1, 2]), labels=["a", "b"])  # type: ignore[arg-type]
    assert variable == Variable("x", categories=(1, 2), labels=("a", "b"))
    assert type(variable.categories[0]) is int  # type: ignore[index]
    assert Variable("x", bins=np.linspace(0, 1, 3)).bins == (0.0, 0.5, 1.0)  # type: ignore[arg-type]
    assert str(Variable("x", bins=(-0.0, 1)).bins) == "(0.0, 1.0)"


def test_booleans_and_integers_are_different_categories() -> None:
    integers, booleans = Variable("x", categories=(0, 1)), Variable("x", categories=(False, True))
    assert integers != booleans
    assert Schema("s", (integers,)) != Schema("s", (booleans,))
    assert Schema("s", (integers,)).fingerprint != Schema("s", (booleans,)).fingerprint


def test_unknown_variable() -> None:
    with pytest.raises(SchemaError, match=r"^the schema has no variable 'AGE'; it has AGEP, SEX, WORK, RICH$"):
        SCHEMA.labels("AGE")


# --- what it refuses -------------------------------------------------------------------------------------------------

BAD_VARIABLES: list[tuple[dict[str, Any], str]] = [
    ({"bins": [0, 18, 18]}, "variable x: bins must strictly increase, got [0, 18, 18]"),
    ({"bins": [0.5, 0.25]}, "variable x: bins must strictly increase, got [0.5, 0.25]"),
    ({"bins": [0, -0.0]}, "variable x: bins must strictly increase, got [0, 0]"),
    ({"bins": [1]}, "variable x: bins need at least 2 edges, got [1]"),
    ({"bins": []}, "variable x: bins need at least 2 edges, got []"),
    ({"bins": [0, float("nan")]}, "variable x: bins must be finite, got nan"),
    ({"bins": [0, float("inf")]}, "variable x: bins must be finite, got inf"),
    ({"bins": [0, 10**400]}, "variable x: bins must be finite, got a huge integer"),
    ({"bins": [0, "1"]}, "variable x: bins must be numbers, got '1'"),
    ({"bins": [False, True]}, "variable x: bins must be numbers, got False"),
    ({"bins": "01"}, "variable x: bins must be a list, got str"),
    ({"bins": 3}, "variable x: bins must be a list, got int"),
    ({}, "variable x: exactly one of categories and bins is needed, got neither"),
    ({"categories": [1], "bins": [0, 1]}, "variable x: exactly one of categories and bins is needed, got both"),
    ({"categories": []}, "variable x: at least one category is needed, got none"),
    ({"categories": "ab"}, "variable x: categories must be a list, got str"),
    ({"categories": [1, 2, 1]}, "variable x: the category 1 occurs twice"),
    ({"categories": ["a", "a"]}, "variable x: the category 'a' occurs twice"),
    ({"categories": [True, True]}, "variable x: the category true occurs twice"),
    ({"categories": [1, True]}, "variable x: categories must all be of one type, got 1 and true"),
    ({"categories": [1, "1"]}, "variable x: categories must all be of one type, got 1 and '1'"),
    ({"categories": [True, "1"]}, "variable x: categories must all be of one type, got true and '1'"),
    ({"categories": ["1", "1.0"]}, "variable x: the categories '1' and '1.0' cannot be told apart"),
    ({"categories": ["true", "TRUE"]}, "variable x: the categories 'true' and 'TRUE' cannot be told apart"),
    (
        {"categories": [1.0]},
        "variable x: a category must be an integer, text or true/false, got 1.0; use bins, or text",
    ),
    ({"categories": [None]}, "variable x: a category must be an integer, text or true/false, got None"),
    (
        {"categories": [2**53]},
        "variable x: integer categories must lie within +-(2^53 - 1), got 9007199254740992; write it as text",
    ),
    ({"categories": [""]}, "variable x: a category must not be empty"),
    ({"categories": [" a"]}, "variable x: a category must not begin or end with a blank, got ' a'"),
    ({"categories": ["a\nb"]}, r"variable x: a category must not hold control characters, got 'a\nb'"),
    ({"categories": [1, 2], "labels": ["a"]}, "variable x: expected 2 labels, one per category or bin, got 1"),
    ({"categories": [1, 2], "labels": ["a", "a"]}, "variable x: the label 'a' occurs twice"),
    ({"categories": [1], "labels": [1]}, "variable x: a label must be text, got int"),
    (
        {"categories": [1], "labels": ["missing/other"], "missing": "category"},
        "variable x: the label 'missing/other' clashes with the one that missing='category' adds",
    ),
    (
        {"categories": ["missing/other"], "missing": "category"},
        "variable x: the category 'missing/other' clashes with the one that missing='category' adds",
    ),
    (
        {"categories": [1], "role": "goal"},
        "variable x: role must be one of 'feature', 'target', 'sensitive', got 'goal'",
    ),
    ({"categories": [1], "role": ["x"]}, "variable x: role must be one of 'feature', 'target', 'sensitive', got ['x']"),
    ({"categories": [1], "missing": None}, "variable x: missing must be one of 'error', 'drop', 'category', got None"),
    (
        {"categories": [1], "missing_values": [-9]},
        "variable x: missing_values must be texts, got -9; write it in quotes",
    ),
    ({"categories": [1], "missing_values": ["?", "?"]}, "variable x: the missing value '?' occurs twice"),
    ({"categories": [1, 9], "missing_values": ["9.0"]}, "variable x: 9 is both a category and a missing value"),
    ({"categories": ["NA"], "missing_values": ["NA"]}, "variable x: 'NA' is both a category and a missing value"),
    (
        {"categories": [False, True], "missing_values": ["0"]},
        "variable x: false is both a category and a missing value",
    ),
    (
        {"categories": [False, True], "missing_values": ["TRUE"]},
        "variable x: true is both a category and a missing value",
    ),
]


@pytest.mark.parametrize(("fields", "message"), BAD_VARIABLES, ids=[message for _, message in BAD_VARIABLES])
def test_bad_variable(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Variable("x", **fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "variable name must not be empty"),
        (3, "variable name must be text, got int"),
        ("a\tb", r"variable name must not hold control characters, got 'a\tb'"),
        ("a\x85", r"variable name must not hold control characters, got 'a\x85'"),
        ("a\u2028b", r"variable name must not hold control characters, got 'a\u2028b'"),
        (" a", "variable name must not begin or end with a blank, got ' a'"),
        ("\ud800", r"variable name is not valid Unicode: '\ud800'"),
    ],
)
def test_bad_name(name: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Variable(name, categories=(1,))
    assert str(caught.value) == message


BAD_SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"variables": ()}, "a schema needs at least one variable, got none"),
    ({"variables": SEX}, "variables must be a sequence of Variable, got Variable"),
    ({"variables": ("SEX",)}, "variables must be a sequence of Variable, got str in it"),
    ({"variables": (SEX, SEX)}, "variable SEX: the name occurs twice"),
    (
        {"variables": (SEX, Variable("SEX", "target", categories=(1,)))},
        "variable SEX: one variable cannot be both target and sensitive",
    ),
    (
        {"variables": (Variable("\u00e9", categories=(1,)), Variable("e\u0301", categories=(1,)))},
        "variable e\u0301: the name occurs twice",
    ),
    (
        {"variables": (RICH, Variable("y", "target", categories=(1,)))},
        "at most one variable may be the target, got 2: RICH, y",
    ),
    ({"variables": (SEX,), "name": ""}, "schema name must not be empty"),
    ({"variables": (SEX,), "sizes": "open"}, "sizes must be one of 'hidden', 'public', got 'open'"),
    ({"variables": (SEX,), "description": 3}, "description must be text, got int"),
    ({"variables": (SEX,), "missing_values": "?"}, "schema: missing_values must be a list, got str"),
    ({"variables": (SEX,), "missing_values": ["2"]}, "variable SEX: 2 is both a category and a missing value"),
]


@pytest.mark.parametrize(("fields", "message"), BAD_SCHEMAS, ids=[message for _, message in BAD_SCHEMAS])
def test_bad_schema(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema(**{"name": "s", **fields})
    assert str(caught.value) == message


# --- files -----------------------------------------------------------------------------------------------------------


def test_golden() -> None:
    assert SCHEMA.to_json() == GOLDEN_JSON
    assert SCHEMA.fingerprint == GOLDEN_FINGERPRINT


def test_fingerprint_ignores_the_description_and_nothing_else() -> None:
    other = Schema("people", SCHEMA.variables, missing_values=("NA",))
    assert other.fingerprint == SCHEMA.fingerprint
    assert other.difference(SCHEMA) is None
    assert Schema("people", SCHEMA.variables).fingerprint != SCHEMA.fingerprint


def test_fingerprint_is_the_same_in_another_process() -> None:
    code = "import sys; from fedsel.schema import Schema; print(Schema.from_json(sys.argv[1]).fingerprint)"
    run = subprocess.run([sys.executable, "-c", code, GOLDEN_JSON], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == GOLDEN_FINGERPRINT


@given(schemas())
def test_round_trips(schema: Schema) -> None:
    for again in (Schema.from_toml_text(schema.to_toml()), Schema.from_json(schema.to_json())):
        assert again == schema
        assert again.fingerprint == schema.fingerprint
        assert again.to_json() == schema.to_json()
        assert schema.difference(again) is None
    assert all(len(variable.shown) == variable.size for variable in schema.variables)


@given(schemas(), schemas())
def test_a_difference_is_found_exactly_where_fingerprints_differ(one: Schema, two: Schema) -> None:
    line = one.difference(two)
    assert (line is None) == (one.fingerprint == two.fingerprint)
    assert line is None or "\n" not in line


def test_file_round_trip_with_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "schéma.toml"
    path.write_text(SCHEMA.to_toml(), encoding="utf-8-sig")
    assert Schema.from_toml(path) == SCHEMA
    assert Schema.from_toml(str(path)) == SCHEMA


def test_long_lists_are_wrapped() -> None:
    schema = Schema("s", (Variable("x", categories=tuple(range(1000, 1200))),))
    assert max(map(len, schema.to_toml().splitlines())) <= 110
    assert Schema.from_toml_text(schema.to_toml()) == schema


def _changed(**fields: Any) -> Schema:
    variable = Variable(
        **{"name": "SEX", "role": "sensitive", "categories": (1, 2), "labels": ("male", "female"), **fields}
    )
    return Schema("people", (AGE, variable, WORK, RICH), missing_values=("NA",))


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (Schema("folk", SCHEMA.variables), "schema name is 'people' here, 'folk' there"),
        (Schema("people", SCHEMA.variables, "public"), "schema sizes is 'hidden' here, 'public' there"),
        (Schema("people", SCHEMA.variables), "schema missing_values differ in number: 1 here, 0 there"),
        (Schema("people", (AGE, SEX), missing_values=("NA",)), "variable WORK: here, not there"),
        (
            Schema("people", (*SCHEMA.variables, Variable("z", categories=(1,))), missing_values=("NA",)),
            "variable z: there, not here",
        ),
        (
            Schema("people", (SEX, AGE, WORK, RICH), missing_values=("NA",)),
            "variables differ in order: names differ at position 1: 'AGEP' here, 'SEX' there",
        ),
        (_changed(role="feature"), "variable SEX: role is 'sensitive' here, 'feature' there"),
        (_changed(categories=(1, 3)), "variable SEX: categories differ at position 2: 2 here, 3 there"),
        (
            _changed(categories=(False, True)),
            "variable SEX: categories of type int here, categories of type bool there",
        ),
        (_changed(categories=None, bins=(0, 1, 2)), "variable SEX: categories of type int here, bins there"),
        (_changed(labels=None), "variable SEX: labels is a list of 2 here, absent there"),
        (_changed(missing="drop"), "variable SEX: missing is 'error' here, 'drop' there"),
        (_changed(missing_values=("?",)), "variable SEX: missing_values differ in number: 0 here, 1 there"),
    ],
)
def test_difference(other: Schema, line: str) -> None:
    assert SCHEMA.difference(other) == line
    assert other.difference(SCHEMA) is not None


HEAD = 'format = 1\nname = "s"\n'
BAD_FILES = [
    ("", "format is missing; this version reads format = 1"),
    ("format = 2", "format must be 1, got 2; a newer fedsel may read it"),
    ("format = true", "format must be 1, got True; a newer fedsel may read it"),
    ("format = 1", "name is missing"),
    (HEAD, "variables is missing"),
    (HEAD + "variables = 3", "variables must be a list of tables, each opened by [[variables]]"),
    (HEAD + "variables = []", "a schema needs at least one variable, got none"),
    (
        HEAD + "colour = 3",
        "unknown key 'colour'; known are format, name, sizes, description, missing_values, variables",
    ),
    (
        HEAD + '[[variables]]\nname = "x"\nbin = [1]',
        "variable x: unknown key 'bin'; known are name, role, categories, bins, labels, missing, missing_values",
    ),
    (HEAD + "[[variables]]\nbins = [0, 1]", "variable 1: name is missing"),
    (
        HEAD + '[[variables]]\nname = "x"\nbins = [0, 18, 18]',
        "variable x: bins must strictly increase, got [0, 18, 18]",
    ),
    (HEAD + '[[variables]]\nname = "x"\nbins = [0, nan]', "variable x: bins must be finite, got nan"),
    (HEAD + '[[variables]]\nname = "x"\nlabels = 1\nbins = [0, 1]', "variable x: labels must be a list, got int"),
    ("format = 1\nname = \n", "not valid TOML: Invalid value (at line 2, column 8)"),
    ("format = 1\nformat = 1\n", "not valid TOML: Cannot overwrite a value (at line 2, column 11)"),
    ("x = " + "[" * 100_000, "not valid TOML: nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_bad_toml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(path)
    assert str(caught.value) == f"{path}: {message}"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"none\.toml: cannot be read: No such file or directory$"):
        Schema.from_toml(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match=r": cannot be read: Is a directory$"):
        Schema.from_toml(tmp_path)
    with pytest.raises(SchemaError, match=r"cannot be read: embedded null byte$"):
        Schema.from_toml("a\0b")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(SchemaError, match=r"latin\.toml: not UTF-8 text \(byte 8\)$"):
        Schema.from_toml(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nul",
        '{"format": 1}',
        "[" * 100_000,
        '{"format":1,"name":"s","variables":[{"name":"x","bins":[0,NaN]}]}',
        '{"format":1,"name":"s","variables":[{"name":"x","bins":[0,1e999]}]}',
        '{"format":1,"name":"s","variables":[{"name":"x","bins":[0,' + "1" * 5000 + "]}]}",
        '{"format":1,"name":"s","variables":[{"name":"x","categories":[{}]}]}',
        '{"format":1,"name":"s","variables":[{"name":"x","categories":{"a":1},"role":{}}]}',
        '{"format":1,"name":"\\ud800","variables":[]}',
        '{"format":1,"name":null,"variables":[{"name":"x","bins":[0,1]}]}',
    ],
)
def test_bad_json_is_one_line(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_json(text, source="release.parquet: schema")
    assert str(caught.value).startswith("release.parquet: schema: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4), st.lists, max_leaves=5)
)
def test_any_value_in_any_field_is_accepted_or_refused(value: Any) -> None:
    for key in ("name", "role", "categories", "bins", "labels", "missing", "missing_values"):
        table = {"name": "x", "categories": [1, 2], key: value}
        if key == "bins":
            del table["categories"]
        document = {"format": 1, "name": "s", "variables": [table]}
        try:
            schema = Schema.from_json(json.dumps(document))
        except SchemaError:
            continue
        assert Schema.from_json(schema.to_json()) == schema
