"""The core refuses what Python above it would not send, instead of reading where nothing is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedsel import _core

CODES = np.array([0, 1, 2, 1], dtype=np.uint8)
Y = np.array([0, 1, 0, 1])
CONDITIONS = [(0, [(0, 0)]), (0, [(1, 2)])]
LIMITS = dict(depth=2, keep=5, floor=0.0, threads=1, time_limit=math.inf, progress=None)
BEAM = dict(width=3, diversity="none", alpha=0.9)


def table(columns=(CODES,), conditions=CONDITIONS, outcomes=Y, **options):
    return _core.BitTable(list(columns), conditions, outcomes, **options)


def quality(measure="standard", exponent=1.0, direction="higher", least_rows=1, most_rows=4):
    return _core.SubgroupQuality(
        measure, exponent=exponent, direction=direction, least_rows=least_rows, most_rows=most_rows
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": [CODES.astype(np.int64)]}, "column 0 must be uint8, uint16 or int32, got int64"),
        ({"columns": [CODES, CODES[:2]]}, r"column 1 must have shape \(4,\)"),
        ({"outcomes": Y[:3]}, "one outcome a row"),
        ({"outcomes": np.zeros((4, 1), dtype=np.int64)}, "one outcome a row"),
        ({"outcomes": np.zeros(4, dtype=np.int64)}, "the outcome must differ between rows"),
        ({"outcomes": np.array([-1, 0, 0, 1])}, "outcomes must be at least 0"),
        ({"outcomes": np.array([2**62, 0, 0, 1])}, r"their sum below 2\^61"),
        ({"conditions": [(1, [(0, 0)])]}, "condition 0 names variable 1 of 1"),
        ({"conditions": [(0, [(2, 1)])]}, "range that is empty"),
        ({"level": "sse9"}, "level must be"),
    ],
)
def test_bad_tables(arguments, message):
    with pytest.raises(ValueError, match=message):
        table(**arguments)


def test_bad_searches():
    rows = table()
    for options in ({"depth": 0}, {"keep": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            _core.subgroup_beam(rows, quality(), **BEAM, **(LIMITS | options))
        with pytest.raises(ValueError, match="must be at least 1"):
            _core.subgroup_exact(rows, quality(), **(LIMITS | options))
    for options in ({"width": 0}, {"diversity": "some"}):
        with pytest.raises(ValueError, match="must be"):
            _core.subgroup_beam(rows, quality(), **(BEAM | options), **LIMITS)
    for options in ({"measure": "f1"}, {"direction": "up"}):
        with pytest.raises(ValueError, match="must be"):
            quality(**options)
    for options in ({"exponent": 2.0}, {"exponent": math.nan}, {"least_rows": 0}):
        with pytest.raises(ValueError, match="must be"):
            _core.subgroup_exact(rows, quality(**options), **LIMITS)
    with pytest.raises(ValueError, match="need a yes/no outcome"):
        _core.subgroup_exact(table(outcomes=np.array([0, 5, 1, 2])), quality("lift"), **LIMITS)


def test_bad_descriptions():
    rows = table()
    for description in ([], [2], [1, 0], [0, 0]):
        with pytest.raises(ValueError, match="a description must"):
            _core.subgroup_values(rows, quality(), [description])
    with pytest.raises(ValueError, match="unknown condition"):
        _core.select_diverse(rows, [(1.0, [7], 3)], count=1, diversity="cover", alpha=0.9, threads=1)
    with pytest.raises(ValueError, match="must cover a row"):
        _core.select_diverse(rows, [(1.0, [0], 0)], count=1, diversity="cover", alpha=0.9, threads=1)


def test_bad_marginals():
    y = Y.astype(np.uint8)
    good = ([CODES], [[0, 1, 2]], y, quality())
    assert _core.subgroup_marginals(*good, **LIMITS)["found"]
    for change in ({"depth": 4}, {"depth": 0}):
        with pytest.raises(ValueError, match="depth"):
            _core.subgroup_marginals(*good, **(LIMITS | change))
    for arguments, message in (
        (([CODES], [], y), "conditions for every column"),
        (([], [], y), "at least one column"),
        (([CODES], [[]], y), "at least one category"),
        (([CODES], [[0, 1]], y), "codes of variable 0 must be between 0 and 1, got 2"),
        (([CODES], [[0, 1, 2]], y[:3]), "one outcome a row"),
        (([CODES], [[0, 1, 2]], y + 1), "outcomes must be 0 or 1"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.subgroup_marginals(*arguments, quality(), **LIMITS)
