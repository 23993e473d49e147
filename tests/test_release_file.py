from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedsel import Marginals, Workload, count
from fedsel.errors import ReleaseError
from fedsel.privacy.plan import NoisePlan
from fedsel.release import COUNT_BOUND, Release
from fedsel.release_file import MAX_FILE, ReleaseReader, encode_release, read_release, write_release
from fedsel.release_layout import COLUMNS
from fedsel.schema import Schema, Variable
from release_samples import PAIRS, PUBLIC, SCHEMA, exact_plan, gaussian, marginals, noisy, rewritten, sample


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "north.parquet"
    write_release(sample(), path)
    return path


def refusal(path: Path) -> str:
    """Return the message with which a file is refused: one line that names it."""
    with pytest.raises(ReleaseError) as caught:
        read_release(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert len(text) < len(str(path)) + 500
    return text.removeprefix(f"{path}: ")


# What a file holds


def test_round_trip(tmp_path: Path) -> None:
    releases = [
        sample(),
        sample("病院", round=3, seeded=True),
        sample(plan=exact_plan()),
        sample(schema=PUBLIC, plan=gaussian(adjacency="replace-one"), rows=400),
        sample(plan=NoisePlan("discrete-laplace", "add-remove", 1.5, 0.0, 7, (1, 1, 1, 1, 1, 2), "pure")),
        sample(workload=Workload.marginals(SCHEMA, order=3), plan=gaussian(4, weights=(3, 2, 1, 1), accounting="zcdp")),
        sample(workload=Workload.of(SCHEMA, [["ill"]]), plan=gaussian(1, accounting="rdp")),
    ]
    reader = ReleaseReader()
    for number, release in enumerate(releases):
        path = tmp_path / f"{number}.parquet"
        write_release(release, path)
        assert reader.read(path) == release
        assert read_release(path) == release


def test_any_data_frame_tool_can_read_it(good: Path) -> None:
    table = pq.read_table(good)
    assert tuple(table.column_names) == COLUMNS
    assert [str(field.type) for field in table.schema] == ["string"] * 7 + ["int64"]
    rows = table.to_pylist()
    assert rows[0] == {
        "table": "sex x age",
        "variable_1": "sex",
        "variable_2": "age",
        "variable_3": None,
        "category_1": "F",
        "category_2": "[0, 40)",
        "category_3": None,
        "count": int(sample().counts[0]),
    }
    assert len(rows) == PAIRS.cells
    assert {row["category_2"] for row in rows if row["variable_2"] == "ward"} == {
        "Süd",
        "Nord",
        "West",
        "missing/other",
    }


def test_metadata_states_the_noise_exactly(good: Path) -> None:
    found = pq.read_metadata(good).metadata
    assert set(found) == {b"fedsel"}
    content = json.loads(found[b"fedsel"])
    assert content["format"] == 1
    assert content["numerator"] == 84
    assert content["queries"][0] == {"kind": "marginal", "variables": ["sex", "age"], "weight": 1, "scale": 84**0.5}
    assert content["fingerprint"] == SCHEMA.fingerprint
    assert Schema.from_json(content["schema"]) == SCHEMA
    assert (content["epsilon"], content["delta"], content["adjacency"]) == (1.0, 1e-5, "add-remove")
    assert (content["client"], content["round"], content["seeded"]) == ("north", 1, False)
    assert "rows" not in content


def test_exact_release_says_infinity(tmp_path: Path) -> None:
    write_release(sample(plan=exact_plan()), tmp_path / "exact.parquet")
    content = json.loads(pq.read_metadata(tmp_path / "exact.parquet").metadata[b"fedsel"])
    assert content["epsilon"] == "inf"
    assert content["mechanism"] == "none"


def test_a_file_differs_between_data_sets_in_the_counts_only(tmp_path: Path) -> None:
    first, second = sample(), sample(counts=noisy(marginals(rows=9000), gaussian()))
    one, two = encode_release(first), encode_release(second)
    assert len(one) == len(two)
    assert one.replace(first.counts.tobytes(), b"") == two.replace(second.counts.tobytes(), b"")


def test_same_release_same_bytes() -> None:
    assert encode_release(sample()) == encode_release(sample())


def numbers(value: Any) -> list[Any]:
    """All numbers of a JSON value, also those inside texts that are JSON."""
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    if isinstance(value, str):
        try:
            return numbers(json.loads(value))
        except ValueError:
            return []
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def test_neither_the_number_of_rows_nor_an_exact_count_is_in_the_file(tmp_path: Path) -> None:
    # Counts so large and different that no honest part of the file could equal one by chance.
    exact = Marginals(PAIRS, marginals(rows=400).counts * 1_000_003 + np.arange(PAIRS.cells))
    totals = {int(exact.table(t).sum()) for t in range(len(PAIRS.sets))}
    release = sample(counts=noisy(exact, gaussian()))
    secret = totals | {c for c, n in zip(exact.counts.tolist(), release.counts.tolist(), strict=True) if c != n}
    assert len(secret) > PAIRS.cells * 0.8
    path = tmp_path / "north.parquet"
    write_release(release, path)
    content = path.read_bytes()
    assert not secret & set(pq.read_table(path).column("count").to_pylist())
    assert not secret & set(numbers(json.loads(pq.read_metadata(path).metadata[b"fedsel"])))
    for number in secret:
        assert str(number).encode() not in content
        assert number.to_bytes(8, "little") not in content
    group = pq.read_metadata(path).row_group(0)
    assert all(group.column(place).statistics is None for place in range(8))


def test_public_sizes_may_be_stated(tmp_path: Path) -> None:
    release = sample(schema=PUBLIC, plan=gaussian(adjacency="replace-one"), rows=400)
    write_release(release, tmp_path / "north.parquet")
    assert json.loads(pq.read_metadata(tmp_path / "north.parquet").metadata[b"fedsel"])["rows"] == 400


labels = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=5).map(str.strip)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(labels.filter(bool), min_size=1, max_size=4, unique=True))
    variables = []
    for name in names:
        size = draw(st.integers(1, 4))
        kept = draw(st.sampled_from(["error", "category"]))
        edges = tuple(range(size + 1))
        variables.append(Variable(name, bins=edges, missing=kept))
    try:
        return Schema("any", tuple(variables), sizes=draw(st.sampled_from(["hidden", "public"])))
    except ValueError:  # names that look the same
        return Schema("any", (variables[0],))


@st.composite
def releases(draw: st.DrawFn) -> Release:
    schema = draw(schemas())
    workload = Workload.marginals(schema, order=draw(st.integers(1, min(3, len(schema.names)))))
    rows = draw(st.integers(0, 50))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    exact = count([rng.integers(0, size, rows).astype(np.uint8) for size in schema.domain], workload)
    tables = len(workload.sets)
    weights = tuple(draw(st.lists(st.integers(1, 9), min_size=tables, max_size=tables)))
    adjacency = draw(st.sampled_from(["add-remove", "replace-one"]))
    epsilon = draw(st.floats(1e-6, 1e6))
    numerator = draw(st.integers(100, 2**32))
    plan = draw(
        st.sampled_from(
            [
                NoisePlan("none", adjacency, float("inf"), 0.0, 0, weights, "none"),
                NoisePlan("discrete-laplace", adjacency, epsilon, 0.0, numerator, weights, "pure"),
                NoisePlan("discrete-gaussian", adjacency, epsilon, 1e-7, numerator, weights, "exact"),
            ]
        )
    )
    public = schema.sizes == "public" and adjacency == "replace-one"
    noise = 0 if plan.mechanism == "none" else rng.integers(-2, 3, workload.cells)
    return Release(
        client=draw(st.sampled_from(["a", "ü b", "\u4e2d/\u6587"])),
        schema=schema,
        workload=workload,
        counts=exact.counts + noise,
        plan=plan,
        round=draw(st.integers(1, 1000)),
        seeded=draw(st.booleans()),
        rows=rows if public and draw(st.booleans()) else None,
    )


@given(releases())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_release_survives_the_round_trip(tmp_path: Path, release: Release) -> None:
    path = tmp_path / "any.parquet"
    write_release(release, path, overwrite=True)
    assert read_release(path) == release


# Writing


def test_an_existing_file_is_kept_unless_told_otherwise(good: Path) -> None:
    before = good.read_bytes()
    with pytest.raises(ReleaseError, match="the file exists already"):
        write_release(sample("south"), good)
    assert good.read_bytes() == before
    write_release(sample("south"), good, overwrite=True)
    assert read_release(good).client == "south"
    assert os.listdir(good.parent) == [good.name]


@pytest.mark.parametrize("path", ["missing/north.parquet", "."])
def test_places_that_cannot_be_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(ReleaseError, match=r"cannot be written: No such file|expected a file to write, got a folder"):
        write_release(sample(), tmp_path / path)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ReleaseError, match=r"north\.parquet: cannot be written: No space left on device"):
        write_release(sample(), tmp_path / "north.parquet")
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_links_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "north.parquet"
    write_release(sample(), path)
    assert read_release(path) == sample()
    with pytest.raises(ReleaseError, match="exists already"):
        write_release(sample(), path)


# Files that are not what they claim


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.parquet") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "expected a file, got something else"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "expected a file, got something else"


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1PAR1PAR", b"client,count\nnorth,5\n", b"\x89PNG\r\n\x1a\n" * 9]
)
def test_files_that_are_not_parquet(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "north.parquet").write_bytes(content)
    assert "expected a Parquet file, got" in refusal(tmp_path / "north.parquet")


def test_truncation_at_every_length(good: Path, tmp_path: Path) -> None:
    content = good.read_bytes()
    cut = tmp_path / "cut.parquet"
    for length in [*range(0, len(content), 97), len(content) - 1]:
        cut.write_bytes(content[:length])
        assert "Parquet" in refusal(cut)


def test_a_lost_beginning_is_noticed(good: Path) -> None:
    good.write_bytes(b"PAR1" + good.read_bytes()[2000:])
    refusal(good)


def test_a_two_gigabyte_file_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "big.parquet", "wb") as stream:
        stream.truncate(2**31)  # sparse: takes no room
    assert refusal(tmp_path / "big.parquet") == f"size: expected at most {MAX_FILE} bytes, got {2**31}"


def test_footer_lengths_that_lie(good: Path) -> None:
    content = good.read_bytes()
    good.write_bytes(content[:-8] + (2**31).to_bytes(4, "little") + b"PAR1")
    assert refusal(good).startswith("footer: expected at most")
    padded = b"PAR1" + bytes(12 * 2**20)
    good.write_bytes(padded + (10 * 2**20).to_bytes(4, "little") + b"PAR1")
    assert "footer: expected at most 9437184 bytes, got 10485760" in refusal(good)


def test_no_damage_goes_further_than_a_refusal(good: Path, tmp_path: Path) -> None:
    content, damaged = good.read_bytes(), tmp_path / "damaged.parquet"
    rng = np.random.default_rng(5)
    for _ in range(300):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        damaged.write_bytes(changed)
        with contextlib.suppress(ReleaseError):  # a flipped count within the noise is a valid release
            read_release(damaged)


def test_any_other_parquet_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "other.parquet")
    assert refusal(tmp_path / "other.parquet") == "metadata: expected the key 'fedsel', got none: not a release file"


def test_metadata_under_another_key(good: Path) -> None:
    assert "expected the key 'fedsel'" in refusal(rewritten(good, good, key="fedsel2"))


# Files that would expand


def test_compressed_columns_are_refused_unread(good: Path) -> None:
    assert (
        refusal(rewritten(good, good, compression="zstd"))
        == "columns: expected no compression, got compressed or unknown content"
    )


def test_millions_of_rows_in_few_bytes(good: Path, tmp_path: Path) -> None:
    def grown(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table] * 20_000)

    bomb = rewritten(good, tmp_path / "bomb.parquet", table=grown, use_dictionary=True)
    assert bomb.stat().st_size < 3 * 20_000 * PAIRS.cells
    assert (
        refusal(bomb)
        == f"rows of the file: expected {PAIRS.cells}, one per cell of the workload, got {20_000 * PAIRS.cells}"
    )


def test_a_workload_of_absurd_size_is_refused_by_its_metadata(good: Path) -> None:
    bins = tuple(range(3001))
    large = Schema("large", tuple(Variable(name, bins=bins) for name in "abc"))

    def grow(content: dict[str, Any]) -> None:
        content.update(schema=large.to_json(), fingerprint=large.fingerprint)
        content["queries"] = [{"kind": "marginal", "variables": ["a", "b", "c"], "weight": 1, "scale": 84**0.5}]

    assert "a release holds at most 2000000 cells, got 27000000000" in refusal(rewritten(good, good, metadata=grow))


def test_absurd_metadata(good: Path) -> None:
    assert "expected at most" in refusal(rewritten(good, good, raw=b" " * (9 * 2**20)))


def test_several_row_groups(good: Path) -> None:
    assert refusal(rewritten(good, good, row_group_size=10)) == f"row groups: expected 1 of {PAIRS.cells} rows, got 5"


# Metadata edited by hand


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\xff\xfe", "expected a JSON object, got text that does not parse"),
        (b"{", "expected a JSON object, got text that does not parse"),
        (b"[1]", "expected a JSON object, got list"),
        (b"[" * 100_000, "expected a JSON object, got one nested too deeply"),
        (b'{"format": 1, "format": 1}', "a field occurs twice"),
        (b'{"format": NaN}', "expected finite numbers, got NaN"),
        (b'{"format": 1}', "client: expected a value, got none"),
        (b'{"format": ' + b"9" * 5000 + b"}", "expected a JSON object, got text that does not parse"),
    ],
)
def test_metadata_that_is_no_object_of_ours(good: Path, raw: bytes, message: str) -> None:
    assert refusal(rewritten(good, good, raw=raw)).startswith(f"metadata: {message}")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 3, "metadata: format: expected 1 or 2, got 3"),
        ("format", "1", "metadata: format: expected 1 or 2, got '1'"),
        ("client", 7, "metadata: client: expected str, got 7"),
        ("client", " a", "client: a name must be printable"),
        ("client", "a\x1b[2J", "client: a name must be printable"),
        ("round", 0, "round: expected an integer between 1 and"),
        ("round", True, "metadata: round: expected int, got True"),
        ("round", 1.5, "metadata: round: expected int, got 1.5"),
        ("adjacency", "none", "adjacency: expected one of add-remove, replace-one, got 'none'"),
        ("mechanism", "gaussian", "mechanism: expected one of"),
        ("accounting", "", "accounting: expected one of"),
        ("epsilon", 0, "epsilon: expected a number above 0, got 0.0"),
        ("epsilon", -2.5, "epsilon: expected a number above 0, got -2.5"),
        ("epsilon", "inf", "epsilon: inf does not go with mechanism 'discrete-gaussian'"),
        ("epsilon", "one", "metadata: epsilon: expected a number or 'inf', got 'one'"),
        ("epsilon", None, "metadata: epsilon: expected float or int or str, got None"),
        ("delta", 1, "delta: expected a number of [0, 1), got 1.0"),
        ("delta", -1e-5, "delta: expected a number of [0, 1)"),
        ("delta", "1e-5", "metadata: delta: expected float or int, got '1e-5'"),
        ("numerator", 0, "numerator must be a positive integer, got 0"),
        ("numerator", 85, "metadata: queries: table 'sex x age': scale: expected 9.21954"),
        ("numerator", 10**400, "metadata: numerator: expected an integer of 64 bits, got one of"),
        ("seeded", 0, "metadata: seeded: expected bool, got 0"),
        ("fingerprint", "00", "metadata: fingerprint: expected " + SCHEMA.fingerprint),
        ("schema", "{}", "metadata: schema"),
        ("schema", "[" * 100_000, "metadata: schema"),
        ("schema", " " * 2**21, "metadata: schema: expected at most 1048576 characters, got 2097152"),
        ("schema", {}, "metadata: schema: expected str, got {}"),
        ("queries", [], "metadata: queries: expected 1 to 50100, got 0"),
        ("queries", [1], "metadata: query 1: expected a JSON object, got 1"),
        ("queries", {}, "metadata: queries: expected list, got {}"),
        ("rows", 400, "rows: the schema does not declare sizes public"),
        ("rows", "400", "metadata: rows: expected int, got '400'"),
        ("n", 400, "metadata: expected only the known fields, got 'n'"),
    ],
)
def test_metadata_fields(good: Path, field: str, value: Any, message: str) -> None:
    assert refusal(rewritten(good, good, metadata=lambda content: content.update({field: value}))).startswith(message)


@pytest.mark.parametrize("field", ["format", "client", "round", "epsilon", "delta", "queries", "schema", "seeded"])
def test_metadata_fields_that_are_missing(good: Path, field: str) -> None:
    def drop(content: dict[str, Any]) -> None:
        del content[field]

    assert refusal(rewritten(good, good, metadata=drop)) == f"metadata: {field}: expected a value, got none"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "score"}, "metadata: query 2: kind: expected 'marginal', got 'score'"),
        ({"variables": ["sex", "race"]}, "metadata: query 2: variables: expected variables of the schema, got 'race'"),
        ({"variables": []}, "metadata: query 2: variables: expected 1 to 3, got 0"),
        (
            {"variables": ["sex", ["age"]]},
            "metadata: query 2: variables: expected variables of the schema, got ['age']",
        ),
        ({"variables": ["ward", "sex"]}, "workload: positions in a set must increase, got (2, 0)"),
        ({"variables": ["sex", "age"]}, "workload: a variable set occurs twice"),
        ({"weight": 0}, "weights must be positive integers"),
        ({"weight": 1.5}, "metadata: query 2: weight: expected int, got 1.5"),
        ({"scale": 1.0}, "metadata: queries: table 'sex x ward': scale: expected 9.165"),
        ({"sigma": 1.0}, "metadata: query 2: expected only the known fields, got 'sigma'"),
    ],
)
def test_queries(good: Path, change: dict[str, Any], message: str) -> None:
    assert refusal(rewritten(good, good, metadata=lambda c: c["queries"][1].update(change))).startswith(message)


def test_another_schema_does_not_pass_for_this_one(good: Path) -> None:
    other = Schema("clinic", (Variable("sex", role="sensitive", categories=("M", "F")), *SCHEMA.variables[1:]))

    def swap(content: dict[str, Any]) -> None:
        content.update(schema=other.to_json())

    def swap_both(content: dict[str, Any]) -> None:
        content.update(schema=other.to_json(), fingerprint=other.fingerprint)

    target = good.with_name("swapped.parquet")
    assert "fingerprint: expected " + other.fingerprint in refusal(rewritten(good, target, metadata=swap))
    assert refusal(rewritten(good, target, metadata=swap_both)) == "column category_1: row 1: expected 'M', got 'F'"


def test_a_dropped_table_does_not_pass(good: Path) -> None:
    def drop(content: dict[str, Any]) -> None:
        del content["queries"][-1]

    assert "rows of the file: expected 36, one per cell of the workload, got 44" in refusal(
        rewritten(good, good, metadata=drop)
    )


# Columns edited by hand


def replaced(name: str, values: Callable[[list[Any]], list[Any]], kind: Any = None) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        column = values(table.column(name).to_pylist())
        return table.set_column(place, name, pa.array(column, kind or table.schema.field(name).type))

    return change


def put(row: int, value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:row], value, *values[row + 1 :]]


@pytest.mark.parametrize(
    ("name", "row", "value", "message"),
    [
        ("table", 0, "sex x ill", "column table: row 1: expected 'sex x age', got 'sex x ill'"),
        ("variable_1", 7, "age", "column variable_1: row 8: expected 'sex', got 'age'"),
        ("variable_2", 7, None, "column variable_2: row 8: expected 'ward', got None"),
        ("variable_3", 2, "ill", "column variable_3: row 3: expected None, got 'ill'"),
        ("category_1", 3, "F", "column category_1: row 4: expected 'M', got 'F'"),
        ("category_1", 3, "X" * 300, "column category_1: row 4: expected 'M', got 'XXXX"),
        ("category_2", 0, "[0, 41)", "column category_2: row 1: expected '[0, 40)', got '[0, 41)'"),
        ("category_3", 43, "0", "column category_3: row 44: expected None, got '0'"),
        ("count", 4, None, "column count: expected no nulls, got 1"),
        ("count", 4, COUNT_BOUND + 1, "column count: row 5: expected between -2**40 and 2**40, got 1099511627777"),
        ("count", 43, -(2**63), "column count: row 44: expected between -2**40 and 2**40, got -9223372036854775808"),
    ],
)
def test_single_cells(good: Path, name: str, row: int, value: Any, message: str) -> None:
    assert refusal(rewritten(good, good, table=replaced(name, put(row, value)))).startswith(message)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count", pa.float64()),
        ("count", pa.int32()),
        ("count", pa.uint64()),
        ("count", pa.string()),
        ("count", pa.bool_()),
    ],
)
def test_counts_of_another_type(good: Path, name: str, kind: Any) -> None:
    def change(values: list[Any]) -> list[Any]:
        return [str(v) if kind == pa.string() else v > 5 if kind == pa.bool_() else kind and abs(v) for v in values]

    assert f"column {name}: expected int64, got '{kind}'" in refusal(
        rewritten(good, good, table=replaced(name, change, kind))
    )


def test_labels_of_another_type(good: Path) -> None:
    changed = replaced("category_1", lambda values: list(range(len(values))), pa.int64())
    assert refusal(rewritten(good, good, table=changed)) == "column category_1: expected string, got 'int64'"


def test_columns_of_lists(good: Path) -> None:
    changed = replaced("count", lambda values: [[v] for v in values], pa.list_(pa.int64()))
    assert refusal(rewritten(good, good, table=changed)).startswith("column count: expected int64, got 'list<")


@pytest.mark.parametrize("name", COLUMNS)
def test_missing_columns(good: Path, name: str) -> None:
    text = refusal(rewritten(good, good, table=lambda table: table.drop_columns([name])))
    assert text.startswith(f"column {name}: expected, got none")


def test_renamed_extra_and_reordered_columns(good: Path, tmp_path: Path) -> None:
    target = tmp_path / "changed.parquet"
    names = ["n" if name == "count" else name for name in COLUMNS]
    assert "column count: expected, got none" in refusal(
        rewritten(good, target, table=lambda t: t.rename_columns(names))
    )
    text = refusal(rewritten(good, target, table=lambda t: t.append_column("n", t.column("count"))))
    assert text == "columns: expected the 8 of a release, got 9"
    text = refusal(rewritten(good, target, table=lambda t: t.select([*COLUMNS[1:], COLUMNS[0]])))
    assert text.startswith("columns: expected the order table, variable_1")


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (lambda rows: [1, 0, *rows[2:]], "column category_2: row 1: expected '[0, 40)', got '[40, 60)'"),
        (
            lambda rows: [*rows[6:14], *rows[:6], *rows[14:]],
            "column table: row 1: expected 'sex x age', got 'sex x ward'",
        ),
        (lambda rows: rows[:-1], f"rows of the file: expected {PAIRS.cells}"),
        (lambda rows: [*rows, rows[-1]], f"rows of the file: expected {PAIRS.cells}"),
        (lambda rows: [0, *rows[:-1]], "column category_2: row 2: expected '[40, 60)', got '[0, 40)'"),
        (lambda rows: [], f"rows of the file: expected {PAIRS.cells}"),
    ],
)
def test_cells_out_of_order_missing_or_doubled(
    good: Path, order: Callable[[list[int]], list[int]], message: str
) -> None:
    changed = rewritten(
        good, good, table=lambda table: table.take(pa.array(order(list(range(PAIRS.cells))), pa.int64()))
    )
    assert refusal(changed).startswith(message)


def test_another_form_of_the_same_file_is_accepted(good: Path, tmp_path: Path) -> None:
    plain = rewritten(good, tmp_path / "plain.parquet", use_dictionary=False, write_statistics=True, store_schema=True)
    assert read_release(plain) == sample()


# Tables that contradict each other


def edited(release: Release, cell: int, change: int) -> Release:
    counts = release.counts.copy()
    counts[cell] += change
    return sample(counts=counts, plan=release.plan)


def test_an_edited_count_contradicts_the_other_tables(tmp_path: Path) -> None:
    write_release(edited(sample(), 0, 500), tmp_path / "edited.parquet")
    text = refusal(tmp_path / "edited.parquet")
    assert text.startswith("count: tables 'sex x age' and ")
    assert " disagree on the number of records" in text
    assert ", expected at most " in text


def test_exact_tables_must_agree_exactly(tmp_path: Path) -> None:
    path = tmp_path / "edited.parquet"
    write_release(edited(sample(plan=exact_plan()), 0, 1), path)
    assert "disagree on the number of records" in refusal(path)
    # moving a record within a table keeps its total but not its margins
    counts = sample(plan=exact_plan()).counts.copy()
    counts[[0, 1]] += [-1, 1]
    write_release(sample(counts=counts, plan=exact_plan()), path, overwrite=True)
    assert "with age = '[0, 40)'" in refusal(path)


def test_two_way_margins_of_three_way_tables_are_compared(tmp_path: Path) -> None:
    workload = Workload.of(SCHEMA, [["sex", "age", "ill"], ["sex", "age", "ward"]])
    exact = sample(workload=workload, plan=exact_plan(2))
    counts = exact.counts.copy()
    cells = exact.table(0)
    assert cells.shape == (2, 3, 2)
    # both records move so that total and one-way margins stay
    counts[[0, 3 * 2 + 2]] += 1
    counts[[2, 3 * 2]] -= 1
    write_release(sample(workload=workload, plan=exact_plan(2), counts=counts), tmp_path / "edited.parquet")
    assert "with sex = 'F' and age = '[0, 40)'" in refusal(tmp_path / "edited.parquet")


def test_public_rows_must_agree_with_the_tables(tmp_path: Path) -> None:
    plan = gaussian(adjacency="replace-one")
    write_release(sample(schema=PUBLIC, plan=plan, rows=4000), tmp_path / "edited.parquet")
    assert refusal(tmp_path / "edited.parquet").startswith(
        "rows: 4000 records are stated, but table 'sex x age' counts"
    )


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_honest_noise_is_never_refused(mechanism: Any) -> None:
    from fedsel.privacy.entropy import SeededEntropy
    from fedsel.privacy.noise import add_noise
    from fedsel.release_consistency import ConsistencyCheck

    gauss = mechanism == "discrete-gaussian"
    plan = gaussian(
        mechanism=mechanism,
        delta=1e-5 if gauss else 0.0,
        accounting="exact" if gauss else "pure",
        weights=(1, 2, 3, 4, 5, 6),
    )
    check, exact = ConsistencyCheck(SCHEMA, PAIRS), marginals()
    draws = add_noise(np.tile(exact.counts, (500, 1)), PAIRS.sizes, plan, entropy=SeededEntropy(3))
    for counts in draws:
        check.check(counts, plan)


def test_bounds_are_those_stated() -> None:
    from fedsel.privacy.noise_tail import deviation_bound

    # 2 exp(-z^2 / 2) = 1e-9 has z = 6.54...
    log_inverse = float(np.log(2e9))
    assert deviation_bound("discrete-gaussian", 100.0, 10.0, log_inverse) == pytest.approx(65.45, abs=0.01)
    assert deviation_bound("none", 0.0, 0.0, log_inverse) == 0
    # one discrete Laplace of scale b exceeds t with probability below exp(-t / b)
    assert deviation_bound("discrete-laplace", 100.0, 10.0, log_inverse) > 10 * log_inverse
    # many: nearly normal with variance 2 b^2, and a bound of the same order
    many = deviation_bound("discrete-laplace", 100.0 * 10_000, 10.0, log_inverse)
    assert 1 < many / (np.sqrt(2 * 100.0 * 10_000) * 6.545) < 1.3


def test_reading_and_writing_do_not_import_pandas(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "import fedsel, fedsel.release, fedsel.pool, fedsel.privacy.client, fedsel.release_file\n"
        "assert not {'pyarrow.parquet', 'pandas', 'numba', 'scipy'} & set(sys.modules), 'loaded on import'\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from release_samples import sample\n"
        "from fedsel.pool import Pool\n"
        "from fedsel.release_file import read_release, write_release\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "write_release(sample(), folder / 'a.parquet')\n"
        "assert read_release(folder / 'a.parquet') == sample()\n"
        "Pool.open([folder / 'a.parquet']).save(folder / 'pool')\n"
        "Pool.load(folder / 'pool').totals()\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
