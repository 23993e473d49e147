"""Build the embedded example: exact ACSIncome contingency tables of 46 states.

    python scripts/build_acs_example.py --parquet acs_income_2018_46_states.parquet
    python scripts/build_acs_example.py --folktables DOWNLOAD_FOLDER

The first form reads person records that already passed the ACSIncome filter, with a column ``ST`` of state codes. The
second downloads the 2018 1-year person files and lets folktables (extra ``acs``) apply the same filter: AGEP > 16,
WKHP >= 1, PINCP > 100, label PINCP > 50,000. Both leave out CA, FL, NY and TX. The records are in the public domain
(US Census Bureau).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from fedsel import Schema, Workload, count
from fedsel.datasets.acs import STATES, load_acs
from fedsel.encode import encode

EXAMPLE_FOLDER = Path(__file__).parent.parent / "python" / "fedsel" / "datasets"
LEFT_OUT = {"CA", "FL", "NY", "TX"}


def from_parquet(path: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    frame = pd.read_parquet(path)
    for state, rows in frame.groupby("ST", observed=True):
        yield str(state), rows


def from_folktables(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    return load_acs("ACSIncome", sorted(set(STATES) - LEFT_OUT - {"PR"}), year=2018, folder=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--parquet", type=Path)
    group.add_argument("--folktables", type=Path)
    parser.add_argument("--output", type=Path, default=EXAMPLE_FOLDER / "acs_income_2018.npz")
    arguments = parser.parse_args()

    schema = Schema.from_toml(EXAMPLE_FOLDER / "acs_income.toml")
    workload = Workload.pairs(schema)
    states = from_parquet(arguments.parquet) if arguments.parquet else from_folktables(arguments.folktables)
    clients, counts = [], []
    for state, rows in states:
        clients.append(state)
        counts.append(count(encode(schema, rows).columns, workload).counts.astype(np.int32))
        print(f"{state}: {len(rows)} rows")
    order = np.argsort(clients)
    np.savez_compressed(
        arguments.output, clients=np.array(clients)[order].astype("U"), counts=np.array(counts, dtype=np.int32)[order]
    )
    size = arguments.output.stat().st_size
    print(f"{arguments.output}: {len(clients)} clients, {workload.cells} cells, {size} bytes")


if __name__ == "__main__":
    main()
