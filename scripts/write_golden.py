"""Write the golden release files that every later version must still read.

Run once per format version; files that exist are never touched, since they stand for what users already hold.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedsel.privacy.plan import NoisePlan
from fedsel.release import Release
from fedsel.release_file import write_release
from fedsel.schema import Schema, Variable
from fedsel.tables import Workload

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


def golden_releases() -> dict[str, Release]:
    """Return the releases by file name; all counts are written down, none is drawn."""
    variables = (
        Variable("sex", role="sensitive", categories=("F", "M")),
        Variable("age", bins=(0, 40, 60, 120)),
        Variable("Straße", categories=("Süd", "Nord"), missing="category"),
        Variable("ill", role="target", categories=(False, True), labels=("no", "yes")),
    )
    hidden = Schema("clinic", variables, description="Made for a test.")
    public = Schema("clinic", variables, sizes="public")
    pairs = Workload.pairs(hidden)
    steps = np.arange(pairs.cells, dtype=np.int64)
    gaussian = NoisePlan("discrete-gaussian", "add-remove", 1.0, 1e-5, 84, (1, 1, 1, 1, 1, 1), "exact")
    mixed = Workload.of(public, [["sex"], ["age", "ill"], ["sex", "age", "Straße"]])
    laplace = NoisePlan("discrete-laplace", "replace-one", 2.5, 0.0, 24, (2, 1, 3), "pure")
    exact = NoisePlan("none", "add-remove", float("inf"), 0.0, 0, (1, 1, 1, 1, 1, 1), "none")
    return {
        "north.v1.parquet": Release("north", hidden, pairs, 40 - 3 * (steps % 7) - 60 * (steps % 13 == 5), gaussian),
        "unicode.v1.parquet": Release("病院 2", hidden, pairs, 35 + (steps * 17) % 11, gaussian),
        "public.v1.parquet": Release(
            "west",
            public,
            mixed,
            np.array([201, 188, 70, 61, 58, 66, 71, 60, *range(14, 32)], dtype=np.int64),
            laplace,
            round=3,
            seeded=True,
            rows=400,
        ),
        "exact.v1.parquet": Release("east", hidden, pairs, 36 // np.repeat(pairs.sizes, pairs.sizes) * 2, exact),
    }


def main() -> None:
    for name, release in golden_releases().items():
        path = GOLDEN / name
        if not path.exists():
            write_release(release, path)
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
