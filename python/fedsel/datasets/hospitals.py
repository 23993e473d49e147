"""Made records of four hospitals, and the codebook they agreed on: what the tutorial works with.

``python -m fedsel.datasets.hospitals FOLDER`` writes ``codebook.csv`` and one CSV file a hospital. No record is a
person; the figures are drawn from a small model of heart disease with a fixed seed.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedsel.errors import DataError, FedselError

CODEBOOK = """variable,role,value,label,low,high
age,,,under 45,18,45
age,,,45 to 54,45,55
age,,,55 to 64,55,65
age,,,65 and over,65,111
sex,,F,female,,
sex,,M,male,,
chest_pain,,1,typical angina,,
chest_pain,,2,atypical angina,,
chest_pain,,3,non-anginal pain,,
chest_pain,,4,no pain,,
blood_pressure,,,normal,60,120
blood_pressure,,,elevated,120,140
blood_pressure,,,high,140,300
cholesterol,,,desirable,80,200
cholesterol,,,borderline,200,240
cholesterol,,,high,240,700
smoker,,no,,,
smoker,,yes,,,
disease,target,0,no,,
disease,target,1,yes,,
"""

COLUMNS = ("age", "sex", "chest_pain", "blood_pressure", "cholesterol", "smoker", "disease")


@dataclass(frozen=True)
class Hospital:
    """What makes one hospital's patients differ from another's.

    Parameters
    ----------
    name : str
        Name.
    records : int
        Number of records.
    age : float
        Mean age in years.
    men : float
        Share of men.
    base, sex_gap : float
        Log-odds of disease, and how much higher they are for men.
    pain : tuple of float
        Shares of the kinds of chest pain among the healthy.
    missing : tuple of float
        Shares of records without blood pressure, cholesterol, smoking status and outcome.
    gap_mark : str
        What stands for a missing value.
    sexes : tuple of str
        How women and men are written.
    """

    name: str
    records: int
    age: float
    men: float
    base: float
    sex_gap: float
    pain: tuple[float, float, float, float]
    missing: tuple[float, float, float, float]
    gap_mark: str = ""
    sexes: tuple[str, str] = ("F", "M")


HOSPITALS = (
    Hospital("harbour", 8200, 55, 0.55, -0.6, 0.5, (0.10, 0.30, 0.35, 0.25), (0.02, 0.04, 0.05, 0.01)),
    Hospital("hill", 6400, 58, 0.52, -0.4, 0.3, (0.12, 0.28, 0.32, 0.28), (0.05, 0.10, 0.10, 0.01), "", ("2", "1")),
    Hospital("lake", 5100, 49, 0.72, -1.1, 1.6, (0.05, 0.35, 0.40, 0.20), (0.03, 0.06, 0.08, 0.02), "?"),
    Hospital("north", 7300, 62, 0.63, 0.1, 0.9, (0.08, 0.12, 0.20, 0.60), (0.10, 0.45, 0.20, 0.03)),
)


def make_hospital(hospital: Hospital, *, seed: int = 0) -> dict[str, list[str]]:
    """Draw the records of one hospital.

    Parameters
    ----------
    hospital : Hospital
        Its patients.
    seed : int
        Seed of the draw.

    Returns
    -------
    dict of str to list of str
        One column of texts per variable, ``hospital.records`` long.
    """
    rng = np.random.default_rng([seed, *hospital.name.encode()])
    n = hospital.records
    age = np.clip(np.rint(rng.normal(hospital.age, 11, n)), 18, 95).astype(int)
    man = rng.random(n) < hospital.men
    smoker = rng.random(n) < 0.18 + 0.08 * man
    pressure = np.clip(np.rint(rng.normal(108 + 0.42 * age, 15, n)), 80, 220).astype(int)
    cholesterol = np.clip(np.rint(rng.normal(185 + 0.5 * age - 6 * man, 38, n)), 95, 480).astype(int)
    odds = hospital.base + hospital.sex_gap * (man - 0.5) + 0.05 * (age - 55) + 0.9 * smoker
    odds = odds + 0.015 * (pressure - 130) + 0.008 * (cholesterol - 210)
    disease = rng.random(n) < 1 / (1 + np.exp(-odds))
    ill = np.array(hospital.pain) * np.array([1.6, 0.5, 0.7, 2.0])  # the ill more often have typical pain, or none
    pain = np.where(disease, _draw(rng, ill / ill.sum(), n), _draw(rng, np.array(hospital.pain), n)) + 1
    columns = {
        "age": age.astype(str),
        "sex": np.where(man, hospital.sexes[1], hospital.sexes[0]),
        "chest_pain": pain.astype(str),
        "blood_pressure": pressure.astype(str),
        "cholesterol": cholesterol.astype(str),
        "smoker": np.where(smoker, "yes", "no"),
        "disease": disease.astype(int).astype(str),
    }
    result = {name: values.tolist() for name, values in columns.items()}
    for name, share in zip(("blood_pressure", "cholesterol", "smoker", "disease"), hospital.missing, strict=True):
        for row in np.flatnonzero(rng.random(n) < share):
            result[name][row] = hospital.gap_mark
    return result


def write_hospitals(folder: Path, *, seed: int = 0) -> list[Path]:
    """Write the codebook and one CSV file per hospital.

    Parameters
    ----------
    folder : Path
        Where to; made if it does not exist.
    seed : int
        Seed of the records.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    DataError
        If one of the files exists already.
    """
    paths = [folder / "codebook.csv", *(folder / f"{hospital.name}.csv" for hospital in HOSPITALS)]
    for path in paths:
        if path.exists():
            raise DataError(f"{path}: the file exists already")
    folder.mkdir(parents=True, exist_ok=True)
    paths[0].write_text(CODEBOOK, encoding="utf-8")
    for path, hospital in zip(paths[1:], HOSPITALS, strict=True):
        records = make_hospital(hospital, seed=seed)
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(zip(*(records[name] for name in COLUMNS), strict=True))
    return paths


def _draw(rng: np.random.Generator, shares: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.int64]:
    codes: npt.NDArray[np.int64] = (rng.random(n)[:, None] >= np.cumsum(shares)[:-1]).sum(axis=1)
    return codes


def main() -> None:
    """Write the files to the folder named on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m fedsel.datasets.hospitals FOLDER")
    try:
        paths = write_hospitals(Path(sys.argv[1]))
    except (FedselError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    for path in paths:
        print(path)


if __name__ == "__main__":
    main()
