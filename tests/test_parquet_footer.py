from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsel.errors import ReleaseError
from fedsel.parquet_footer import read_footer
from fedsel.release_file import encode_release, read_release
from release_samples import PAIRS, sample


def footer_of(content: bytes) -> bytes:
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


def test_it_says_what_pyarrow_says() -> None:
    content = encode_release(sample())
    footer, metadata = read_footer(footer_of(content)), pq.read_metadata(io.BytesIO(content))
    assert footer.rows == metadata.num_rows == PAIRS.cells
    assert footer.metadata == metadata.metadata
    (group,) = footer.groups
    assert group.rows == PAIRS.cells
    for place, column in enumerate(group.columns):
        known = metadata.row_group(0).column(place)
        assert column.uncompressed
        assert (column.values, column.decoded_size, column.stored_size) == (
            known.num_values,
            known.total_uncompressed_size,
            known.total_compressed_size,
        )


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4", "brotli"])
def test_compression_shows(codec: str) -> None:
    sink = io.BytesIO()
    columns = {"a": [1, 2, 3], "b": ["x", None, "z"], "c": [[1.5], [], [2.5, 3.5]]}
    pq.write_table(pa.table(columns), sink, compression=codec, row_group_size=2, write_statistics=True)
    footer = read_footer(footer_of(sink.getvalue()))
    assert footer.rows == 3
    assert [group.rows for group in footer.groups] == [2, 1]
    assert not any(column.uncompressed for group in footer.groups for column in group.columns)


def test_a_codec_that_nobody_knows_is_refused_and_ends_no_process(tmp_path: Path) -> None:
    content = encode_release(sample())
    known = b"\x18\x05count\x15\x00"  # path of the column, then field 4: codec 0
    assert content.count(known) == 1
    path = tmp_path / "north.parquet"
    path.write_bytes(content.replace(known, known[:-1] + b"\x7c"))  # codec 62
    with pytest.raises(ReleaseError, match="expected no compression, got compressed or unknown content"):
        read_release(path)


def struct(*fields: bytes) -> bytes:
    return b"".join(fields) + b"\0"


ROWS = b"\x36\x02"  # field 3, i64: 1
NO_GROUPS = b"\x19\x0c"  # field 4, a list of no structs


def test_every_kind_of_value_is_passed_over() -> None:
    others = (
        b"\x51",  # field 9: true
        b"\x12",  # field 10: false
        b"\x13\x05",  # 11: a byte
        b"\x14\x06",  # 12: i16
        b"\x17" + bytes(8),  # 13: double
        b"\x18\x02ab",  # 14: text
        b"\x1b\x00",  # 15: an empty map
        b"\x1b\x01\x85\x01k\x02",  # 16: a map of one text to one i32
        b"\x1d" + bytes(16),  # 17: a UUID
        b"\x1a\x21\x01\x02",  # 18: a set of two booleans
        b"\x05\x50\x02",  # field 40 by its full number: i32
    )
    assert read_footer(struct(ROWS, NO_GROUPS, *others)).rows == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        struct(ROWS),
        struct(NO_GROUPS),
        struct(b"\x38\x01a", NO_GROUPS),  # rows as text
        struct(b"\x36" + b"\xff" * 12, NO_GROUPS),  # an integer without end
        struct(ROWS, b"\x15\x02"),  # groups as an integer
        struct(ROWS, b"\x19\x1c\x00"),  # a group without columns
        struct(ROWS, b"\x19\x15\x02"),  # a group that is an integer
        struct(ROWS, b"\x18\x7fabc"),  # a text longer than the footer
        struct(ROWS, b"\x1e\x00"),  # a kind of value that does not exist
        ROWS + NO_GROUPS,  # no end
    ],
)
def test_damage_is_refused(data: bytes) -> None:
    with pytest.raises(ReleaseError, match="footer: expected that of a Parquet file, got damaged content"):
        read_footer(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x1c" * 5000,  # structs within structs
        b"\x19" + b"\x19" * 5000,  # lists within lists
        struct(ROWS, b"\x19\xf5\xff\xff\xff\x7f" + b"\x02" * 100_000),  # a list of 268 million
    ],
)
def test_depth_and_size_are_bounded(data: bytes) -> None:
    with pytest.raises(ReleaseError, match="got one far too large"):
        read_footer(data)
