from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsel import Workload
from fedsel.errors import DataError, FedselError, RuleError
from fedsel.score_rule import RECORDS, ScoreQueries, ScoreRule, sum_over_tables
from fedsel.score_rule_file import read_rule, write_rule
from reference import made_schema

DOMAIN = [3, 4, 2, 2]


def made_rule(seed=0, **changes):
    rng = np.random.default_rng(seed)
    schema = made_schema(DOMAIN)
    workload = Workload.pairs(schema)
    proportions = rng.dirichlet(np.ones(workload.cells))
    fields = {
        "schema": schema,
        "workload": workload,
        "names": ("loss", "signal"),
        "coefficients": rng.normal(0, 1, (2, len(workload.sets))),
        "information": rng.normal(0, 1, workload.cells),
        "proportions": proportions,
        "centres": (0.25, -0.5),
        "bounds": (2.0, 0.75),
        "resolution": 64,
    }
    return ScoreRule(**{**fields, **changes})


def made_rows(rows, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, rows).astype(np.uint8) for size in DOMAIN]


def plain_total(rule, columns):
    """The definition, a row at a time, in floats."""
    total = np.zeros(len(rule.names) + 1, dtype=int)
    for row in range(len(columns[0])):
        for j in range(len(rule.names)):
            score = 0.0
            for t, members in enumerate(rule.workload.sets):
                cell = np.ravel_multi_index([int(columns[v][row]) for v in members], rule.workload.shapes[t])
                score += rule.coefficients[j, t] * rule.information[rule.workload.offsets[t] + cell]
            share = np.clip((score - rule.centres[j]) / rule.bounds[j], -1, 1)
            total[j] += round(share * rule.resolution)
        total[-1] += rule.resolution
    return total


def test_the_total_is_the_definition():
    rule, columns = made_rule(), made_rows(300)
    found = rule.total(columns)
    assert found.queries.names == ("loss", "signal", RECORDS)
    # a row's sum is kept to 2^-16 of a count: now and then a half is rounded the other way
    assert np.abs(found.counts - plain_total(rule, columns)).max() <= 1
    assert found.counts[-1] == 300 * 64


@given(seed=st.integers(0, 2**32), resolution=st.sampled_from([1, 3, 256]), scale=st.sampled_from([1e-6, 1.0, 1e8]))
def test_one_row_moves_no_score_by_more_than_the_resolution(seed, resolution, scale):
    """The sensitivity that is charged for: exact, whatever the rule says and whatever rows surround it."""
    rule = made_rule(seed, resolution=resolution, information=np.random.default_rng(seed).normal(0, scale, 44))
    columns = made_rows(40, seed)
    whole = rule.total(columns).counts
    for row in range(0, 40, 7):
        without = [np.delete(column, row) for column in columns]
        alone = rule.total([column[row : row + 1] for column in columns]).counts
        assert np.abs(alone).max() <= resolution
        np.testing.assert_array_equal(whole - rule.total(without).counts, alone)


def test_blocks_do_not_matter(monkeypatch):
    rule, columns = made_rule(), made_rows(1000)
    whole = rule.total(columns).counts
    monkeypatch.setattr("fedsel.score_rule._BLOCK", 7)
    np.testing.assert_array_equal(rule.total(columns).counts, whole)


def test_scores_of_parts_add_up_and_no_row_is_nothing():
    rule, columns = made_rule(), made_rows(100)
    parts = [rule.total([column[part] for column in columns]) for part in (slice(0, 30), slice(30, 100))]
    np.testing.assert_array_equal((parts[0] + parts[1]).counts, rule.total(columns).counts)
    assert rule.total([column[:0] for column in columns]).counts.tolist() == [0, 0, 0]
    with pytest.raises(DataError, match="different rules"):
        parts[0] + made_rule(5).total(columns)


def test_sums_over_tables_are_those_of_a_loop():
    rule, columns = made_rule(), made_rows(50)
    numbers = np.random.default_rng(2).normal(0, 1, (3, rule.workload.cells))
    expected = np.zeros((3, 50))
    for t, members in enumerate(rule.workload.sets):
        cells = np.ravel_multi_index([columns[v].astype(int) for v in members], rule.workload.shapes[t])
        expected += numbers[:, rule.workload.offsets[t] + cells]
    np.testing.assert_allclose(sum_over_tables(columns, rule.workload, numbers), expected)


def test_a_file_brings_the_same_rule_back(tmp_path):
    rule = made_rule()
    write_rule(rule, tmp_path / "rule.json")
    back = read_rule(tmp_path / "rule.json")
    assert back.identity == rule.identity
    assert back.queries == rule.queries
    np.testing.assert_array_equal(back.total(made_rows(200)).counts, rule.total(made_rows(200)).counts)
    with pytest.raises(RuleError, match="exists already"):
        write_rule(rule, tmp_path / "rule.json")
    write_rule(made_rule(3), tmp_path / "rule.json", overwrite=True)
    assert read_rule(tmp_path / "rule.json").identity != rule.identity


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("loss", "loss")}, "names must differ"),
        ({"names": ("loss", RECORDS)}, "names must differ"),
        ({"names": ("loss", "a\n")}, "names must be printable"),
        ({"coefficients": np.zeros((2, 5))}, r"coefficients: expected float64 of shape \(2, 6\)"),
        ({"information": np.zeros(3)}, r"information: expected float64 of shape"),
        ({"information": np.full(44, np.nan)}, "information: expected numbers of magnitude"),
        ({"proportions": np.zeros(44)}, "proportions: expected positive numbers"),
        ({"centres": (0.0, np.inf)}, "centres: expected 2 numbers between"),
        ({"bounds": (1.0, 0.0)}, "bounds: expected 2 numbers between"),
        ({"bounds": (1.0, 1e-9)}, "bounds: expected 2 numbers between"),
        ({"names": tuple(f"s{i}" for i in range(99)), "coefficients": np.zeros((99, 6))}, "centres: expected 99"),
        ({"resolution": 0}, "resolution must be an integer between 1 and 1048576, got 0"),
        ({"resolution": True}, "resolution must be an integer"),
    ],
)
def test_bad_rules_are_refused(changes, message):
    with pytest.raises(RuleError, match=message):
        made_rule(**changes)


def test_rules_of_other_variables_and_bad_columns_are_refused():
    with pytest.raises(RuleError, match="not over the variables of the schema"):
        made_rule(schema=made_schema([3, 4, 2]))
    rule, columns = made_rule(), made_rows(5)
    for bad, message in (
        (columns[:3], "expected 4 columns, one per variable, got 3"),
        ([columns[0][:4], *columns[1:]], "column v1: expected as many rows as the first"),
        ([*columns[:3], np.full(5, 2, dtype=np.uint8)], "column v3: expected codes between 0 and 1"),
        ([*columns[:3], np.full(5, 0.5)], "column v3: expected integer codes, got float64"),
    ):
        with pytest.raises(DataError, match=message):
            rule.total(bad)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff", "does not parse"),
        (b"[1]", "another content"),
        (b'{"kind": "score-rule", "format": 9}', "format: expected 1, got 9"),
        (b'{"kind": "score-rule", "format": 1}', "schema: expected a value, got none"),
    ],
)
def test_files_that_hold_no_rule_are_refused(tmp_path, text, message):
    path = tmp_path / "rule.json"
    path.write_bytes(text)
    with pytest.raises(RuleError, match=message) as caught:
        read_rule(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("names", "loss", "names: expected list"),
        ("names", [1, 2], "names must be printable"),
        ("sets", [[0, 9]], "positions must be between"),
        ("sets", [0], "sets: expected a list of integers"),
        ("coefficients", [[1.0]], "coefficients: expected 6 a score"),
        ("information", [1, "x"], "information: expected a list of numbers"),
        ("information", [1e308 * 10], "information: expected numbers of magnitude"),
        ("bounds", [1.0], "bounds: expected 2"),
        ("resolution", True, "resolution: expected int, got bool"),
        ("schema", "{}", "schema"),
    ],
)
def test_damaged_fields_are_refused(tmp_path, field, value, message):
    import json

    content = json.loads(made_rule().to_json())
    content[field] = value
    (tmp_path / "rule.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RuleError, match=message):
        read_rule(tmp_path / "rule.json")


def test_missing_files_are_refused(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(RuleError, match="expected a file"):
            read_rule(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": (1.0,)}, "units: expected 3 positive finite numbers"),
        ({"units": (1.0, 0.0, 1.0)}, "units: expected 3 positive finite numbers"),
        ({"rule": "abc"}, "rule: expected 64 hexadecimal digits"),
        ({"names": (RECORDS,)}, "expected 2 to 100 names, got 1"),
    ],
)
def test_bad_queries_are_refused(changes, message):
    with pytest.raises(FedselError, match=message):
        replace(made_rule().queries, **changes)
    assert isinstance(made_rule().queries, ScoreQueries)
