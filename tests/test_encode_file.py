from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsel.encode import Codes, encode, encode_file
from fedsel.errors import DataError
from fedsel.schema import Schema, Variable

# --- files -----------------------------------------------------------------------------------------------------------

TWO = Schema("s", (Variable("x", categories=(1, 2)), Variable("y", categories=("a", "b", "c, d"))))


def file_codes(path: Path, **options: Any) -> list[list[int]]:
    return [column.tolist() for column in Codes.join(encode_file(TWO, path, **options)).columns]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"x,y\n1,a\n2,b\n", {}),
        (b"y,z,x\na,?,1\nb,,2", {}),
        (b"\xef\xbb\xbfx,y\r\n1,a\r\n\r\n2,b\r\n", {}),
        (b"\n\nx,y\n1,a\n\n2,b\n\n", {}),
        (b" x , y\n1 , a\n 2,b \n", {"delimiter": ","}),
        (b'"x","y"\n"1","a"\n"2","b"\n', {}),
        (b"x;y\n1;a\n2;b\n", {"delimiter": ";"}),
        (b"x,y,,\n1,a,,\n2,b,,\n", {}),
        (b'x,y,"z\nz"\n1,a,"\n"\n2,b,"""\n"\n', {}),
        (b"x,y\n+1.0,a\n2e0,b\n", {}),
    ],
)
def test_csv(tmp_path: Path, content: bytes, options: dict[str, str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert file_codes(path, **options) == [[0, 1], [0, 1]]


def test_other_endings(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("x\ty\n1\ta\n")
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"x,y\n1,a\n"))
    (tmp_path / "rows.data").write_text('x,y\n1,"c, d"\n')
    pq.write_table(pa.table({"x": [1], "y": ["a"]}), tmp_path / "rows")
    assert file_codes(tmp_path / "rows.tsv") == [[0], [0]]
    assert file_codes(tmp_path / "rows.csv.gz") == [[0], [0]]
    assert file_codes(tmp_path / "rows.data") == [[0], [2]]
    assert file_codes(tmp_path / "rows") == [[0], [0]]


def parquet(rows: int = 1, **columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1] * rows, "y": ["a"] * rows, **columns}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n  \n", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.parquet", b"", "is empty"),
        ("a.csv", b"x,y\n", "holds a header but no rows"),
        ("a.csv", b"x,y", "holds a header but no rows"),
        ("a.csv", b"x,z\n1,a\n", "no column y; it has x, z"),
        ("a.csv", b"x;y\n1;a\n", "no column x; it has x;y"),
        ("a.csv", b'x,"\x1b\ny"\n1,a\n', r"no column y; it has x, \x1b\ny"),
        ("a.csv", b"x,y,x\n1,a,1\n", "column x is there 2 times"),
        ("a.csv", b"x,y\n1,a\n\n2\n", "row 2: expected 2 fields, got 1"),
        ("a.csv", b"x,y\n1,a\n2,b,c\n", "row 2: expected 2 fields, got 3"),
        ("a.csv", b"x,y\n1,a\n2,\xe9\n", "is not UTF-8 text (byte 10)"),
        ("a.csv", "x,y\n1,a\n".encode("utf-16"), "is not UTF-8 text (byte 0)"),
        ("a.csv", b'x,y\n1,a\n2,"z', "row 2: y: missing=\"error\" but the value is 'z', not among"),
        ("a.csv", b"x,y\n1,a\n3,b\n", 'row 2: x: missing="error" but the value is 3, not among the categories 1, 2'),
        ("a.csv", b"x,y\n1,a\n,b\n", 'row 2: x: missing="error" but the value is missing'),
        ("a.csv", b'x,y\n1,a\n"",b\n', 'row 2: x: missing="error" but the value is missing'),
        (
            "a.csv",
            b'x,y\n1,"' + b"a\n" * 3_000_000,
            "a row is longer than 1 MiB: is a quote left open, or are there too many columns?",
        ),
        (
            "a.csv",
            b"x,y" + b",more" * 400_000 + b"\n" + b"1,a" + b",more" * 400_000 + b"\n",
            "a row is longer than 1 MiB: is a quote left open, or are there too many columns?",
        ),
        ("a.csv", b"x,y\n" + b"1,a\n" * 300_000 + b"1,\xe9\n", "is not UTF-8 text (line 300002)"),
        ("a.csv.gz", gzip.compress(b"x,y\n1,a\n" * 9)[:-9], "unreadable"),
        ("a.parquet", b"x,y\n1,a\n", "is not a Parquet file"),
        ("a.parquet", parquet()[:-20], "damaged or truncated Parquet file: "),
        ("a.parquet", parquet()[:10], "damaged or truncated Parquet file: "),
        ("a.parquet", parquet(rows=0), "holds a header but no rows"),
        ("a.parquet", b"PAR1" + b"\0" * 90 + parquet(5000)[94:], "damaged or truncated Parquet file: "),
    ],
)
def test_bad_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(encode_file(TWO, path))
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_rows_are_numbered_over_batches_and_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,a\n" * 400_000 + "3,a\n")
    with pytest.raises(DataError, match=r"a\.csv: row 400001: x: "):
        list(encode_file(TWO, path, batch_rows=1000))
    path.write_text("x,y\n" + "1,a\n" * 400_000 + "3\n")
    with pytest.raises(DataError, match=r"a\.csv: row 400001: expected 2 fields, got 1$"):
        list(encode_file(TWO, path))


def test_bad_paths(tmp_path: Path) -> None:

    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "none.csv", "cannot be read: No such file or directory"),
        (tmp_path, "is a directory; expected a CSV or Parquet file"),
        (tmp_path / "pipe", "is not a regular file; expected a CSV or Parquet file"),
    ):
        with pytest.raises(DataError) as caught:
            list(encode_file(TWO, path))
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(DataError, match="cannot be read: embedded null byte"):
        list(encode_file(TWO, "a\0b"))
    with pytest.raises(DataError, match="delimiter must be one ASCII character"):
        list(encode_file(TWO, __file__, delimiter=";;"))
    with pytest.raises(DataError, match="batch_rows must be at least 1, got 0"):
        encode_file(TWO, __file__, batch_rows=0)


# --- what is loaded, and how much memory -----------------------------------------------------------------------------


def run_python(code: str, *arguments: str) -> str:
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_encoding_loads_neither_pandas_nor_more_of_pyarrow_than_it_needs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "a.parquet").write_bytes(parquet(3, z=pa.array([None, 1.5, 2]).dictionary_encode()[:1].take([0, 0, 0])))
    out = run_python(
        """
import sys
from pathlib import Path
import numpy as np
from fedsel.encode import encode, encode_file
from fedsel.schema import Schema, Variable
def loaded():
    return [name for name in ("pandas", "pyarrow", "pyarrow.parquet", "scipy", "numba") if name in sys.modules]
folder = Path(sys.argv[1])
schema = Schema("s", (
    Variable("x", categories=(1, 2)), Variable("y", categories=("a", "b")),
))
print(loaded())
encode(schema, {"x": [1, 2.0], "y": np.array(["a", "b"])})
print(loaded())
list(encode_file(schema, folder / "a.csv"))
print(loaded())
list(encode_file(schema, folder / "a.parquet"))
print("pandas" in sys.modules)
bins = Schema("s", (Variable("x", bins=(0, 1, 2)), Variable("y", categories=(True, False), missing="drop")))
list(encode_file(bins, folder / "a.parquet"))
list(encode_file(bins, folder / "a.csv"))
import pyarrow.parquet
table = pyarrow.parquet.ParquetFile(folder / "a.parquet").read()
encode(bins, table)
try:
    encode(Schema("s", (Variable("z", bins=(0, 1)),)), table)
except ValueError as error:
    print(error)
print("pandas" in sys.modules)
""",
        str(tmp_path),
    )
    assert out.splitlines() == [
        "[]",
        "[]",
        "['pyarrow']",
        "False",
        'data: row 1: z: missing="error" but the value is missing',
        "False",
    ]


MEMORY = """
import resource, sys
from fedsel.encode import encode_file
from fedsel.schema import Schema, Variable
schema = Schema("s", (Variable("x", bins=(0, 0.5, 1)), Variable("y", categories=("a", "b"))))
rows = sum(codes.rows for codes in encode_file(schema, sys.argv[1]))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(1)
    rows = 400_000
    block = pa.table({"x": rng.random(rows), "y": ["a", "b"] * (rows // 2), "unused": rng.random(rows)})
    peaks = []
    for name, times in (("small", 2), ("large", 8)):
        path = tmp_path / f"{name}.{ending}"
        table = pa.concat_tables([block] * times)
        if ending == "csv":
            import pyarrow.csv as pacsv

            pacsv.write_csv(table, path)
        else:  # one row group, nothing to compress
            pq.write_table(table, path, row_group_size=len(table), use_dictionary=False, compression="none")
        read, peak = run_python(MEMORY, str(path)).split()
        assert int(read) == rows * times
        peaks.append((path.stat().st_size / 1024, int(peak)))
    (small, low), (large, high) = peaks
    # In KiB. Both files are larger than what the readers hold, so the rest of the difference is all the file.
    assert high - low < (large - small) / 4


# --- real data -------------------------------------------------------------------------------------------------------


def test_acs_income(data_dir: Path) -> None:
    import fedsel.datasets

    schema = Schema.from_toml(Path(fedsel.datasets.__file__).parent / "acs_income.toml")
    assert schema.domain == (5, 9, 6, 5, 10, 8, 18, 8, 2, 9, 2)
    assert (schema.target, schema.sensitive) == ("PINCP", ("SEX",))
    path = data_dir / "acs_income_2018_46_states.parquet"
    whole = Codes.join(encode_file(schema, path))
    assert (whole.rows, whole.dropped) == (1_121_894, 0)
    table = pq.read_table(path)
    frame = table.slice(0, 50_000).to_pandas()
    for column, name in zip(encode(schema, frame).columns, schema.names, strict=True):
        assert (column == whole.columns[schema.names.index(name)][:50_000]).all()
    ages = pd.cut(frame["AGEP"], [0, 18, 30, 45, 65, 101], right=False).cat.codes.to_numpy()
    assert (whole.columns[0][:50_000] == ages).all()
    assert whole.columns[-1].sum() == np.asarray(table["PINCP"]).sum()
