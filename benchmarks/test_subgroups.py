"""Subgroup search on made rows of 110 conditions in 13 columns, one thread, beside pysubgroup.

    pytest benchmarks/test_subgroups.py --benchmark-group-by=group --benchmark-sort=min

Every search finds the same ten subgroups as its peer. The peer's beam takes minutes on a million rows of text, which is
how categories mostly come; it is an order of magnitude faster where they are whole numbers. Its exhaustive searches
look at the rows of each condition once, so there the type matters little.
"""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pysubgroup as ps
import pytest

from fedsel import _core
from fedsel.subgroups import SubgroupDiscovery

SIZES = (2, 2, 3, 5, 5, 6, 7, 8, 9, 10, 13, 16, 24)
ROWS = (50_000, 1_000_000)
K, DEPTH, WIDTH = 10, 3, 20

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def made_codes(rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    codes = [rng.choice(size, p=rng.dirichlet(np.full(size, 2.0)), size=rows).astype(np.uint8) for size in SIZES]
    effect = 1.2 * (codes[3] == 1) + 0.9 * (codes[7] == 2) + 0.8 * (codes[0] == 1) - 0.7 * (codes[9] == 3)
    y = rng.random(rows) < 1 / (1 + np.exp(1.2 - effect))
    return {f"v{i:02}": column for i, column in enumerate(codes)}, y


class Rows:
    """One data set, prepared for both."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.columns, self.y = made_codes(rows)
        self.conditions = [(v, [(code, code)]) for v, size in enumerate(SIZES) for code in range(size)]
        self.table = self.build()
        self.quality = _core.SubgroupQuality("standard", exponent=1.0, direction="higher", least_rows=1, most_rows=rows)
        self.limits = dict(depth=DEPTH, keep=K, floor=0.0, threads=1, time_limit=math.inf, progress=None)
        self.frame = pd.DataFrame(self.columns).astype(np.int64)  # the type pandas gives whole numbers

    def text_frame(self):
        """The same categories as text, a shared object each, as pandas reads files."""
        names = np.array([f"c{code}" for code in range(max(SIZES))], dtype=object)
        return pd.DataFrame({name: pd.Series(names[codes], dtype=object) for name, codes in self.columns.items()})

    def build(self):
        return _core.BitTable(list(self.columns.values()), self.conditions, self.y.astype(np.int64), threads=1)

    def beam(self, table=None):
        return _core.subgroup_beam(
            self.table if table is None else table,
            self.quality,
            width=WIDTH,
            diversity="none",
            alpha=0.9,
            **self.limits,
        )["found"]

    def exact(self, table=None):
        return _core.subgroup_exact(self.table if table is None else table, self.quality, **self.limits)["found"]

    def marginals(self):
        starts = np.cumsum([0, *SIZES])
        numbers = [list(range(a, b)) for a, b in pairwise(starts)]
        return _core.subgroup_marginals(
            list(self.columns.values()), numbers, self.y.astype(np.uint8), self.quality, **self.limits
        )["found"]

    def fit(self, search, frame):
        found = SubgroupDiscovery(
            search=search, depth=DEPTH, width=WIDTH, k=K, threads=1, categorical=list(self.columns)
        ).fit(frame, self.y)
        # Sorted text puts c10 before c2: name conditions by column and code.
        starts = dict(zip(self.columns, np.cumsum([0, *SIZES[:-1]]).tolist(), strict=True))

        def number(condition):
            return starts[condition.attribute] + int(condition.text.split(" = ")[1].removeprefix("c"))

        return [(s.quality, sorted(map(number, s.conditions))) for s in found.subgroups_]

    def peer(self, algorithm, frame):
        value = (lambda code: code) if frame is self.frame else (lambda code: f"c{code}")
        selectors = [
            ps.EqualitySelector(name, value(code))
            for name, size in zip(self.columns, SIZES, strict=True)
            for code in range(size)
        ]
        number = {repr(selector): i for i, selector in enumerate(selectors)}
        task = ps.SubgroupDiscoveryTask(
            frame.assign(y=self.y),
            ps.BinaryTarget("y", True),
            selectors,
            ps.WRAccQF(),
            result_set_size=K,
            depth=DEPTH,
            min_quality=0.0,
        )
        return [
            (quality, sorted(number[repr(selector)] for selector in description.selectors))
            for quality, description, _ in algorithm.execute(task).results
        ]


@pytest.fixture(scope="module", params=ROWS, ids=lambda rows: f"{rows}")
def rows(request):
    return Rows(request.param)


@pytest.fixture(scope="module")
def expected(rows):
    return [(quality, numbers) for quality, numbers, _, _ in rows.exact()]


def check(found, expected):
    assert [item[1] for item in found] == [item[1] for item in expected]
    assert [item[0] for item in found] == pytest.approx([item[0] for item in expected], rel=1e-12)


def group(benchmark, rows, name):
    benchmark.group = f"{name}, depth {DEPTH}, {rows.rows:,} rows"


def test_beam(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    check(benchmark(rows.beam), expected)


def test_beam_and_bit_sets(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    check(benchmark(lambda: rows.beam(rows.build())), expected)


def test_beam_from_a_data_frame(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    check(benchmark.pedantic(rows.fit, args=("beam", rows.frame), rounds=5), expected)


def test_beam_from_a_data_frame_of_text(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    check(benchmark.pedantic(rows.fit, args=("beam", rows.text_frame()), rounds=5), expected)


def test_beam_pysubgroup(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    found = benchmark.pedantic(lambda: rows.peer(ps.BeamSearch(WIDTH), rows.frame), rounds=2)
    check(found, expected)


def test_beam_pysubgroup_text(benchmark, rows, expected):
    group(benchmark, rows, "beam of 20")
    frame = rows.text_frame()
    check(benchmark.pedantic(lambda: rows.peer(ps.BeamSearch(WIDTH), frame), rounds=1), expected)


def test_exhaustive(benchmark, rows, expected):
    group(benchmark, rows, "exhaustive")
    check(benchmark(rows.exact), expected)


def test_exhaustive_and_bit_sets(benchmark, rows, expected):
    group(benchmark, rows, "exhaustive")
    check(benchmark(lambda: rows.exact(rows.build())), expected)


def test_exhaustive_by_marginals(benchmark, rows, expected):
    group(benchmark, rows, "exhaustive")
    check(benchmark.pedantic(rows.marginals, rounds=5), expected)


def test_exhaustive_from_a_data_frame(benchmark, rows, expected):
    group(benchmark, rows, "exhaustive")
    check(benchmark.pedantic(rows.fit, args=("exhaustive", rows.frame), rounds=5), expected)


@pytest.mark.parametrize("algorithm", ["DFS", "Apriori", "BestFirstSearch", "GpGrowth"])
def test_exhaustive_pysubgroup(benchmark, rows, expected, algorithm):
    group(benchmark, rows, "exhaustive")
    options = {"use_numba": False} if algorithm == "Apriori" else {}
    if algorithm in ("BestFirstSearch", "GpGrowth") and rows.rows > ROWS[0]:
        pytest.skip("minutes")
    make = getattr(ps, algorithm)
    check(benchmark.pedantic(lambda: rows.peer(make(**options), rows.frame), rounds=2), expected)


PROBE = """
import re, sys
sys.path.insert(0, {folder!r})
from test_subgroups import SubgroupDiscovery, made_codes
import pandas as pd
columns, y = made_codes({rows})
frame = pd.DataFrame(columns).astype("int64")
def fit():
    SubgroupDiscovery(search={search!r}, engine={engine!r}, threads=1, categorical=list(columns)).fit(frame, y)
def peak(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
frame, y, whole = frame[:1000].copy(), y[:1000], (frame, y)
fit()  # loads what a first call loads
frame, y = whole
open("/proc/self/clear_refs", "w").write("5")
before = peak("VmRSS")
fit()
print(peak("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize(("search", "engine"), [("beam", "auto"), ("exhaustive", "auto"), ("exhaustive", "marginals")])
def test_peak_memory(benchmark, search, engine):
    """In MiB above the data, of a million rows; see `extra_info`."""
    code = PROBE.format(folder=str(Path(__file__).parent), rows=ROWS[1], search=search, engine=engine)

    def probe():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout.splitlines()[-1])

    benchmark.group = "memory"
    megabytes = benchmark.pedantic(probe, rounds=1)
    benchmark.extra_info["MiB"] = megabytes
    print(f"\n{search}, {engine}: {megabytes:.0f} MiB above the data")
    assert megabytes < 100 * 1e6 / 2**20
