"""Two corpora of subgroup discovery, cut into clients: UCI Adult, and breast cancer from scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedsel.encode import Codes, code_dtype, encode
from fedsel.errors import DataError, MissingExtraError
from fedsel.schema import Schema, Variable

CorpusName = Literal["adult", "breast-cancer", "made"]

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
_NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_LEFT_OUT = ("fnlwgt",)  # the census' sampling weight


PLANTED = (((0, 1), (3, 0), 0.35), ((5, 2), (9, 1), 0.3))
"""Descriptions planted in made rows: two conditions (attribute, code), and how much more frequent the outcome is."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Rows of one population and the schema they are read by.

    Parameters
    ----------
    name : str
        What it is called.
    schema : Schema
        Its bins are public by assumption: cut once on the whole corpus, never on a client's rows.
    codes : tuple of ndarray, each of shape (rows,)
        Category codes by variable.
    train, test : int
        Rows drawn for training and for testing in each repetition.
    alpha : float
        Of the label-Dirichlet division into clients.
    """

    name: str
    schema: Schema
    codes: tuple[npt.NDArray[np.generic], ...]
    train: int
    test: int
    alpha: float

    @property
    def outcome(self) -> npt.NDArray[np.int64]:
        """Code of the target of every row."""
        assert self.schema.target is not None
        return self.codes[self.schema.names.index(self.schema.target)].astype(np.int64)

    def split(self, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Draw the rows of one repetition for training and for testing."""
        order = np.random.default_rng([seed, 0]).permutation(len(self.codes[0]))
        return order[: self.train], order[self.train : self.train + self.test]

    def rows(self, chosen: npt.NDArray[np.int64]) -> Codes:
        """Return some rows as codes."""
        columns = tuple(column[chosen] for column in self.codes)
        return Codes(columns, len(chosen), 0, (0,) * len(columns))

    def clients(
        self, chosen: npt.NDArray[np.int64], seed: int, *, clients: int = 8, alpha: float | None = None
    ) -> list[npt.NDArray[np.int64]]:
        """Divide rows between clients: the records of each outcome by a Dirichlet draw of their own.

        A client may get none.
        """
        rng = np.random.default_rng([seed, 1])
        outcome = self.outcome[chosen]
        owner = np.empty(len(chosen), dtype=np.int64)
        for label in np.unique(outcome):
            shares = rng.dirichlet([self.alpha if alpha is None else alpha] * clients)
            mine = outcome == label
            owner[mine] = rng.choice(clients, size=int(mine.sum()), p=shares)
        return [chosen[owner == client] for client in range(clients)]


def load_corpus(name: str, *, adult: Path | None = None, public: Path | None = None) -> Corpus:
    """Load a corpus.

    Parameters
    ----------
    name : {'adult', 'breast-cancer', 'made'}
        Which.
    adult : Path, optional
        The file ``adult.data`` or ``adult.test`` of UCI Adult.
    public : Path, optional
        Another of the two, from which categories and bins are taken; by default the same.

    Raises
    ------
    DataError
        If the name is unknown or the file cannot be read.
    MissingExtraError
        If scikit-learn is missing for breast cancer.
    """
    if name == "adult":
        if adult is None:
            raise DataError("the corpus 'adult' needs the file adult.data of UCI Adult, got none")
        return _adult(adult, public or adult)
    if name == "breast-cancer":
        return _breast_cancer()
    if name == "made":
        return made_corpus(0)
    raise DataError(f"corpus must be one of {', '.join(get_args(CorpusName))}, got {name!r}")


def read_adult(path: Path) -> Any:
    """Read ``adult.data`` or ``adult.test`` as a DataFrame.

    Raises
    ------
    DataError
        If it cannot be read or has other columns.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, header=None, names=list(ADULT_COLUMNS), skipinitialspace=True, comment="|")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as UCI Adult: {error}") from None
    if frame["income"].isna().any():
        raise DataError(f"{path}: expected {len(ADULT_COLUMNS)} columns, as UCI Adult has")
    frame["income"] = frame["income"].str.rstrip(".")  # of the test file
    return frame.drop(columns=list(_LEFT_OUT))


def tertile_bins(values: npt.NDArray[Any]) -> tuple[float, ...]:
    """Return edges of bins at the tertiles; fewer bins where they coincide."""
    low, high = float(values.min()), float(values.max())
    inner = sorted({float(cut) for cut in np.quantile(values, [1 / 3, 2 / 3])} - {low, high})
    return (low, *inner, high if high > low else low + 1)


def _adult(path: Path, public: Path) -> Corpus:
    frame, known = read_adult(path), read_adult(public)
    variables = []
    for name in known.columns:
        role: Literal["target", "feature"] = "target" if name == "income" else "feature"
        if name in _NUMBERS:
            edges = tertile_bins(known[name].to_numpy())
            # Open ends: the other file may hold more extreme values.
            wide = (min(edges[0], 0.0), *edges[1:-1], max(edges[-1], 1e6))
            variables.append(Variable(name, role=role, bins=wide))
        else:
            variables.append(Variable(name, role=role, categories=tuple(sorted(known[name].unique().tolist()))))
    schema = Schema("adult", tuple(variables))
    return Corpus("adult", schema, encode(schema, frame).columns, 3999, 1001, alpha=0.2)


def _breast_cancer() -> Corpus:
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise MissingExtraError("breast cancer comes with scikit-learn: pip install 'fedsel[experiments]'") from None
    bunch = load_breast_cancer(as_frame=True)
    frame = bunch.data.assign(diagnosis=np.where(bunch.target == 1, "benign", "malignant"))
    variables = [Variable(name, bins=tertile_bins(frame[name].to_numpy())) for name in bunch.data.columns]
    variables.append(Variable("diagnosis", role="target", categories=("malignant", "benign")))
    schema = Schema("breast-cancer", tuple(variables))
    return Corpus("breast-cancer", schema, encode(schema, frame).columns, 454, 115, alpha=1.6)


def made_corpus(
    seed: int,
    *,
    rows: int = 20_000,
    sizes: Sequence[int] = (3, 4, 5, 2, 8, 3, 6, 2, 16, 4),
    planted: Sequence[tuple[tuple[int, int], tuple[int, int], float]] = PLANTED,
) -> Corpus:
    """Make rows whose outcome is more frequent in planted descriptions of two conditions.

    Parameters
    ----------
    seed : int
        Of the rows.
    rows : int
        How many.
    sizes : sequence of int
        Categories of each attribute.
    planted : sequence of ((attribute, code), (attribute, code), lift)
        Where both conditions hold, the outcome is more probable by this much.
    """
    rng = np.random.default_rng([seed, 2])
    columns = [rng.choice(size, size=rows, p=rng.dirichlet([2.0] * size)) for size in sizes]
    # a hidden class ties neighbouring attributes to one another
    hidden = rng.random(rows) < 0.4
    for place in range(0, len(sizes), 2):
        columns[place] = np.where(hidden & (rng.random(rows) < 0.5), 0, columns[place])
    chance = np.full(rows, 0.2) + 0.1 * hidden
    for (a, code_a), (b, code_b), lift in planted:
        chance += lift * ((columns[a] == code_a) & (columns[b] == code_b))
    outcome = (rng.random(rows) < np.clip(chance, 0, 1)).astype(np.int64)
    variables = [Variable(f"x{place}", categories=tuple(range(size))) for place, size in enumerate(sizes)]
    variables.append(Variable("y", role="target", categories=("no", "yes")))
    codes = tuple(
        column.astype(code_dtype(max(2, size))) for column, size in zip((*columns, outcome), (*sizes, 2), strict=True)
    )
    return Corpus("made", Schema("made", tuple(variables)), codes, 3999, 1001, alpha=0.2)
