"""American Community Survey tasks of folktables, as schemas and as rows.

folktables (extra ``acs``) decides which people a task is about and what its labels are. Schemas and rows here hold the
task's variables that are tabulated, as raw codes; the files come through this module's own download, since that of
folktables stores whatever a server answers.

Source: F. Ding, M. Hardt, J. Miller, L. Schmidt, *Retiring Adult: New Datasets for Fair Machine Learning* (2021).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from fedsel.datasets.download import download, extract, temporary_beside
from fedsel.errors import DataError, MissingExtraError
from fedsel.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["ACSIncome", "ACSPublicCoverage", "ACSMobility", "ACSEmployment", "ACSTravelTime"]
Horizon = Literal["1-Year", "5-Year"]

TASKS: tuple[Task, ...] = get_args(Task)
CENSUS_URL = "https://www2.census.gov/programs-surveys/acs/data/pums"

STATES = {
    "AL": 1, "AK": 2, "AZ": 4, "AR": 5, "CA": 6, "CO": 8, "CT": 9, "DE": 10, "FL": 12, "GA": 13, "HI": 15, "ID": 16,
    "IL": 17, "IN": 18, "IA": 19, "KS": 20, "KY": 21, "LA": 22, "ME": 23, "MD": 24, "MA": 25, "MI": 26, "MN": 27,
    "MS": 28, "MO": 29, "MT": 30, "NE": 31, "NV": 32, "NH": 33, "NJ": 34, "NM": 35, "NY": 36, "NC": 37, "ND": 38,
    "OH": 39, "OK": 40, "OR": 41, "PA": 42, "RI": 44, "SC": 45, "SD": 46, "TN": 47, "TX": 48, "UT": 49, "VT": 50,
    "VA": 51, "WA": 53, "WV": 54, "WI": 55, "WY": 56, "PR": 72,
}  # fmt: skip
"""Postal code and FIPS number of the 50 states and Puerto Rico."""

_SCHEMAS: dict[str, str] = {
    "ACSIncome": "acs_income.toml",
    "ACSPublicCoverage": "acs_public_coverage.toml",
    "ACSMobility": "acs_mobility.toml",
    "ACSEmployment": "acs_employment.toml",
    "ACSTravelTime": "acs_travel_time.toml",
}
_FIRST_YEAR = 2014
_EVERY_FILE = ("SERIALNO", "PWGTP")  # columns that every person file has
_NOTHING = -99_999_999_999_999.0  # stands for a missing value on its way through folktables, which would make it 0


def acs_schema(task: str) -> Schema:
    """Return the schema of a task; folktables is not needed for it.

    Variables are those of the task after binning, with SEX as the sensitive attribute and the outcome named after the
    survey variable that folktables derives it from.

    Parameters
    ----------
    task : {'ACSIncome', 'ACSPublicCoverage', 'ACSMobility', 'ACSEmployment', 'ACSTravelTime'}
        Name of the task.

    Raises
    ------
    DataError
        If there is no such task.
    """
    if task not in _SCHEMAS:
        raise DataError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    return Schema.from_toml(Path(__file__).parent / _SCHEMAS[task])


def load_acs(
    task: str,
    states: Sequence[str] | None = None,
    *,
    year: int = 2018,
    horizon: str = "1-Year",
    folder: str | os.PathLike[str] = "pums",
    base_url: str = CENSUS_URL,
    timeout: float = 60.0,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Load the rows of a task, state by state, downloading the files that are not there yet.

    Parameters
    ----------
    task : {'ACSIncome', 'ACSPublicCoverage', 'ACSMobility', 'ACSEmployment', 'ACSTravelTime'}
        Name of the task. folktables' filter and label apply.
    states : sequence of str, optional
        Postal codes; by default the 50 states and Puerto Rico.
    year : int
        Survey year, from 2014. The tasks with RELP or JWTR end in 2018, when these were recoded.
    horizon : {'1-Year', '5-Year'}
        Which file.
    folder : path
        Where person files are, or go: ``folder/year/horizon``, as folktables has it.
    base_url : str
        Where they come from.
    timeout : float
        Seconds that the server may stay silent.

    Yields
    ------
    tuple of str and DataFrame
        A state and its rows: the columns of the task's schema, raw codes, integers where all are whole; the target is
        boolean.

    Raises
    ------
    MissingExtraError
        If folktables is not installed.
    DataError
        If an argument is out of range, a download fails (the message names the URL and the reason, and no part of a
        file is left), or a file lacks a column of the task.
    """
    schema = acs_schema(task)
    problem = getattr(_folktables(), task)
    chosen = tuple(STATES) if states is None else tuple(states)
    for state in chosen:
        if state not in STATES:
            raise DataError(f"state must be one of {', '.join(STATES)}, got {state!r}")
        if chosen.count(state) > 1:
            raise DataError(f"state {state} is there {chosen.count(state)} times")
    if not chosen:
        raise DataError("at least one state is needed, got none")
    if year < _FIRST_YEAR:
        raise DataError(f"year must be {_FIRST_YEAR} or later, got {year}")
    if horizon not in get_args(Horizon):
        raise DataError(f"horizon must be one of {', '.join(get_args(Horizon))}, got {horizon!r}")
    if not timeout > 0:
        raise DataError(f"timeout must be above 0 seconds, got {timeout:g}")

    def loaded() -> Iterator[tuple[str, pd.DataFrame]]:
        for state in chosen:
            file = person_file(state, year, horizon, folder, base_url=base_url, timeout=timeout)
            yield state, _rows(problem, schema, file, state, year, horizon, folder)

    return loaded()


def person_file(
    state: str,
    year: int,
    horizon: str,
    folder: str | os.PathLike[str],
    *,
    base_url: str = CENSUS_URL,
    timeout: float = 60.0,
) -> Path:
    """Return the person file of a state where folktables looks for it, downloading it if it is not there.

    Parameters
    ----------
    state, year, horizon, folder, base_url, timeout
        As in `load_acs`, and checked there.

    Raises
    ------
    DataError
        If the download fails; no part of a file is left.
    """
    number = STATES[state]
    name = f"psam_p{number:02d}.csv" if year >= 2017 else f"ss{year % 100:02d}p{state.lower()}.csv"
    place = Path(folder) / str(year) / horizon
    path = place / name
    if path.is_file():
        return path
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{place}: the folder cannot be made: {error.strerror or error}") from None
    url = f"{base_url.rstrip('/')}/{year}/{horizon}/csv_p{state.lower()}.zip"
    with temporary_beside(path) as archive, temporary_beside(path) as unchecked:
        download(url, archive, timeout=timeout)
        extract(archive, name, unchecked, source=url)
        lacking = [column for column in _EVERY_FILE if column not in _header(unchecked)]
        if lacking:
            raise DataError(f"{url}: {name} in it is not a person file: it has no column {lacking[0]}")
        os.replace(unchecked, path)
    return path


def _rows(
    problem: Any, schema: Schema, file: Path, state: str, year: int, horizon: str, folder: str | os.PathLike[str]
) -> pd.DataFrame:
    import pandas as pd

    needed = dict.fromkeys([*problem.features, problem.target, problem.group, *_EVERY_FILE])
    header = _header(file)
    lacking = [column for column in needed if column not in header]
    if lacking:
        hint = "; the survey recoded it after 2018" if {"RELP", "JWTR"} & set(lacking) and year > 2018 else ""
        raise DataError(f"{file}: no column {', '.join(lacking)}{hint}")
    source = _folktables().ACSDataSource(str(year), horizon, "person", root_dir=os.fspath(folder))
    try:
        with warnings.catch_warnings():
            # Columns of mixed type are none of a task's.
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            everybody = source.get_data(states=[state], download=False)
        gaps = {column: {float("nan"): _NOTHING} for column in problem.features if everybody[column].isna().any()}
        variables, outcome, _ = problem.df_to_pandas(everybody, categories=gaps or None)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file}: folktables cannot read it: {' '.join(str(error).split())[:200]}") from None
    columns = {}
    for name in schema.names:
        if name == schema.target:
            columns[name] = outcome[problem.target].astype(bool)
        else:
            values = variables[name].astype(float)
            columns[name] = _whole(values.mask(values == _NOTHING))
    return pd.DataFrame(columns)


def _whole(values: pd.Series) -> pd.Series:
    """Return numbers as integers if all are whole, with gaps where some are missing."""
    present = values.dropna()
    if not (present == present.round()).all():
        return values
    return values.astype("int64" if len(present) == len(values) else "Int64")


def _header(path: Path) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [name.strip().strip('"') for name in file.readline(1 << 20).split(",")]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _folktables() -> Any:
    try:
        import folktables
    except ImportError as error:
        raise MissingExtraError(f"this needs folktables: pip install 'fedsel[acs]' ({error})") from None
    return folktables
