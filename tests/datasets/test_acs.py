from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from census_server import CensusServer, census_server, person_csv, zipped
from conftest import require_extra
from fedsel.cli.main import app
from fedsel.datasets.acs import STATES, TASKS, acs_schema, load_acs
from fedsel.datasets.example import load_example
from fedsel.encode import encode, encode_file
from fedsel.errors import DataError, MissingExtraError
from fedsel.schema import Schema

folktables = require_extra("folktables", "acs")

ZIP = "/2018/1-Year/csv_pwy.zip"
ROWS = 4000


@pytest.fixture(scope="module")
def good_zip() -> bytes:
    return zipped("psam_p56.csv", person_csv(ROWS))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def census() -> Iterator[CensusServer]:
    with census_server() as server:
        yield server


@pytest.fixture(scope="module")
def person_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the file of WY is there already."""
    folder = tmp_path_factory.mktemp("pums")
    (folder / "2018" / "1-Year").mkdir(parents=True)
    (folder / "2018" / "1-Year" / "psam_p56.csv").write_text(person_csv(ROWS))
    return folder


# --- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "domain"),
    [
        ("ACSIncome", (5, 9, 6, 5, 10, 8, 18, 8, 2, 9, 2)),
        ("ACSEmployment", (5, 7, 5, 18, 2, 5, 5, 2, 2, 9, 2)),
        ("ACSPublicCoverage", (5, 7, 5, 2, 5, 5, 2, 8, 2, 9, 2)),
        ("ACSTravelTime", (5, 6, 5, 18, 2, 5, 10, 12, 2, 9, 2)),
        ("ACSMobility", (5, 6, 5, 18, 2, 5, 10, 8, 2, 9, 2)),
    ],
)
def test_schemas(task: str, domain: tuple[int, ...]) -> None:
    schema = acs_schema(task)
    problem = getattr(folktables, task)
    assert schema.domain == domain
    assert schema.target == problem.target
    assert schema.sensitive == ("SEX",)
    assert set(schema.features) <= set(problem.features)


def test_the_income_schema_is_that_of_the_example() -> None:
    assert acs_schema("ACSIncome").fingerprint == load_example().schema.fingerprint


def test_states_are_those_of_folktables() -> None:
    module = importlib.import_module("folktables.load_acs")
    assert {state: f"{number:02d}" for state, number in STATES.items()} == module._STATE_CODES


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_rows_are_those_of_folktables_and_encode(task: str, person_folder: Path) -> None:
    [(state, frame)] = load_acs(task, ["WY"], folder=person_folder, base_url="http://127.0.0.1:9")
    assert state == "WY"
    schema, problem = acs_schema(task), getattr(folktables, task)
    everybody = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=str(person_folder)).get_data(["WY"])
    variables, outcome, _ = problem.df_to_pandas(everybody)
    assert list(frame.columns) == list(schema.names)
    assert 100 < len(frame) == len(variables)
    assert np.array_equal(frame[problem.target], outcome[problem.target])
    assert 0.05 < frame[problem.target].mean() < 0.95
    for name in (*schema.features, *schema.sensitive):
        assert np.array_equal(frame[name].fillna(0).astype(float), variables[name])  # folktables makes gaps 0
        assert str(frame[name].dtype) in ("int64", "Int64")
    codes = encode(schema, frame)
    assert (codes.rows, codes.dropped) == (len(frame), 0)
    for variable, column, unmatched in zip(schema.variables, codes.columns, codes.unmatched, strict=True):
        assert unmatched == int(frame[variable.name].isna().sum())
        if variable.name == "COW" and task == "ACSMobility":
            assert int((column == variable.size - 1).sum()) == unmatched > 0


def test_the_first_row_by_hand(tmp_path: Path) -> None:
    place = tmp_path / "2018" / "1-Year"
    place.mkdir(parents=True)
    text = person_csv(1)
    names = text.split("\n")[0].split(",")
    person = dict.fromkeys(names, "1") | {
        "AGEP": "30", "COW": "", "SCHL": "21", "MAR": "5", "RELP": "0", "DIS": "2", "CIT": "4", "WKHP": "", "MIG": "3",
        "SEX": "2", "RAC1P": "6",
    }  # fmt: skip
    (place / "psam_p56.csv").write_text("\n".join([",".join(names), ",".join(person.values())]) + "\n")
    [(_, frame)] = load_acs("ACSMobility", ["WY"], folder=tmp_path)
    codes = encode(acs_schema("ACSMobility"), frame)
    assert [int(column[0]) for column in codes.columns] == [4, 3, 4, 0, 1, 3, 9, 7, 1, 5, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "Income"}, "task must be one of ACSIncome, .*, got 'Income'"),
        ({"states": ["XX"]}, "state must be one of AL, .*, got 'XX'"),
        ({"states": ["WY", "WY"]}, "state WY is there 2 times"),
        ({"states": []}, "at least one state is needed"),
        ({"year": 2013}, "year must be 2014 or later, got 2013"),
        ({"horizon": "3-Year"}, "horizon must be one of 1-Year, 5-Year, got '3-Year'"),
        ({"timeout": 0.0}, "timeout must be above 0 seconds, got 0"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_acs(**{"task": "ACSIncome", "states": ["WY"], "folder": tmp_path / "pums"} | arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "pums").exists()


def test_without_folktables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "folktables", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedsel\[acs\]'"):
        load_acs("ACSIncome", ["WY"])
    assert acs_schema("ACSIncome").target == "PINCP"


def test_a_file_without_a_column_of_the_task(tmp_path: Path) -> None:
    place = tmp_path / "2019" / "1-Year"
    place.mkdir(parents=True)
    (place / "psam_p56.csv").write_text(person_csv(5).replace("RELP", "RELSHIPP", 1))
    with pytest.raises(DataError, match=r"psam_p56\.csv: no column RELP; the survey recoded it after 2018"):
        list(load_acs("ACSIncome", ["WY"], year=2019, folder=tmp_path))
    assert len(list(load_acs("ACSPublicCoverage", ["WY"], year=2019, folder=tmp_path))) == 1


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    place = tmp_path / "2018" / "1-Year"
    place.mkdir(parents=True)
    (place / "psam_p56.csv").write_text(
        person_csv(1).split("\n")[0] + "\n" + "a,b\n" * 3 + "x" * 200 + ",1" * 99 + "\n"
    )
    with pytest.raises(DataError, match=r"psam_p56\.csv: folktables cannot read it"):
        list(load_acs("ACSIncome", ["WY"], folder=tmp_path))


# --- downloads -------------------------------------------------------------------------------------------------------


def test_a_download_is_kept(tmp_path: Path, census: CensusServer, good_zip: bytes) -> None:
    census.offer(ZIP, good_zip)
    for _ in range(2):
        [(state, frame)] = load_acs("ACSIncome", ["WY"], folder=tmp_path, base_url=census.url + "/")
        assert state == "WY"
        assert len(frame) > 100
    assert census.asked == [ZIP]
    assert os.listdir(tmp_path / "2018" / "1-Year") == ["psam_p56.csv"]


def test_older_files_have_other_names(tmp_path: Path, census: CensusServer) -> None:
    census.offer("/2014/5-Year/csv_pwy.zip", zipped("ss14pwy.csv", person_csv(50)))
    options = {"year": 2014, "horizon": "5-Year", "folder": tmp_path, "base_url": census.url}
    assert len(list(load_acs("ACSEmployment", ["WY"], **options))) == 1  # type: ignore[arg-type]
    assert os.listdir(tmp_path / "2014" / "5-Year") == ["ss14pwy.csv"]


def broken(content: bytes) -> bytes:
    """Return a ZIP archive whose directory is whole but whose data are not."""
    middle = content.index(b"psam_p56.csv") + 2000
    return content[:middle] + bytes(byte ^ 0x55 for byte in content[middle : middle + 8]) + content[middle + 8 :]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("forbidden", "the server answered 403 Forbidden"),
        ("missing", "the server answered 404 Not Found"),
        ("html", "expected a ZIP archive, got what begins with b'<html>Access denied</html>'"),
        ("cut", "the download was cut: 3,000 of [0-9,]+ bytes came"),
        ("cut and shortened", "damaged or unreadable ZIP archive: File is not a zip file"),
        ("flipped", r"damaged (or unreadable )?ZIP archive"),
        ("empty", "the server sent nothing"),
        ("hang", "the server was silent for 0.3 seconds"),
        ("hang within", "the server was silent for 0.3 seconds"),
        ("other state", r"expected psam_p56\.csv in the archive, got ACS2018_PUMS_README\.pdf, psam_p44\.csv"),
        ("household file", r"psam_p56\.csv in it is not a person file: it has no column PWGTP"),
    ],
)
def test_a_failed_download_is_one_error_and_leaves_nothing(
    tmp_path: Path, census: CensusServer, good_zip: bytes, trouble: str, message: str
) -> None:
    match trouble:
        case "forbidden":
            census.offer(ZIP, b"<html>Access denied</html>", status=403)
        case "html":
            census.offer(ZIP, b"<html>Access denied</html>")
        case "cut":
            census.offer(ZIP, good_zip[:3000], length=len(good_zip))
        case "cut and shortened":
            census.offer(ZIP, good_zip[:3000])
        case "flipped":
            census.offer(ZIP, broken(good_zip))
        case "empty":
            census.offer(ZIP, b"")
        case "hang":
            census.offer(ZIP, b"", hold=True)
        case "hang within":
            census.offer(ZIP, good_zip[:3000], length=len(good_zip), hold=True)
        case "other state":
            census.offer(ZIP, zipped("psam_p44.csv", person_csv(3)))
        case "household file":
            census.offer(ZIP, zipped("psam_p56.csv", "RT,SERIALNO,NP\nH,1,2\n"))
    with pytest.raises(DataError, match=message) as caught:
        list(load_acs("ACSIncome", ["WY"], folder=tmp_path, base_url=census.url, timeout=0.3))
    assert str(caught.value).startswith(f"{census.url}{ZIP}: ")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path / "2018" / "1-Year") == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"http://127\.0\.0\.1:9/2018/1-Year/csv_pwy\.zip: failed: Connection refused"):
        list(load_acs("ACSIncome", ["WY"], folder=tmp_path, base_url="http://127.0.0.1:9"))
    with pytest.raises(DataError, match="expected an address that begins with http"):
        list(load_acs("ACSIncome", ["WY"], folder=tmp_path, base_url="file:///etc"))


# --- fedsel acs ------------------------------------------------------------------------------------------------------


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["acs", *map(str, arguments)])
    if isinstance(result.exception, ValueError):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_command(tmp_path: Path, census: CensusServer, good_zip: bytes) -> None:
    census.offer(ZIP, good_zip)
    options = ("ACSMobility", "--states", "wy", "--base-url", census.url, "-o", tmp_path / "out")
    assert "schema.toml and 1 CSV files" in command(*options)
    assert sorted(os.listdir(tmp_path / "out")) == ["WY.csv", "pums", "schema.toml"]
    schema = Schema.from_toml(tmp_path / "out" / "schema.toml")
    assert schema.fingerprint == acs_schema("ACSMobility").fingerprint
    [(_, frame)] = load_acs("ACSMobility", ["WY"], folder=tmp_path / "out" / "pums")
    [stored] = encode_file(schema, tmp_path / "out" / "WY.csv")
    for one, two in zip(stored.columns, encode(schema, frame).columns, strict=True):
        assert np.array_equal(one, two)
    with pytest.raises(DataError, match="exists; use --force to replace it"):
        command(*options)
    command(*options, "--force")
    assert census.asked == [ZIP]


def test_command_writes_nothing_half(tmp_path: Path, census: CensusServer) -> None:
    census.offer(ZIP, b"no", status=403)
    with pytest.raises(DataError, match="403 Forbidden"):
        command("ACSIncome", "--states", "WY", "--base-url", census.url, "-o", tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.csv"))
    with pytest.raises(DataError, match="task must be one of"):
        command("Income", "-o", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_mixed_columns_raise_no_warning(tmp_path: Path) -> None:
    place = tmp_path / "2018" / "1-Year"
    place.mkdir(parents=True)
    lines = person_csv(3000).splitlines()
    extra = ["MIXED", *(["1"] * 1500), *(["x"] * 1500)]
    (place / "psam_p56.csv").write_text("\n".join(f"{a},{b}" for a, b in zip(lines, extra, strict=True)) + "\n")
    [(_, frame)] = load_acs("ACSEmployment", ["WY"], folder=tmp_path)
    assert len(frame) == 3000
