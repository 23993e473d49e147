"""What the compiled core does with arguments that the Python layer never passes: an exception, never a crash."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedsel import _core

CODES = np.array([0, 1, 2, 2], dtype=np.uint8)
EFFORT = {"keep": 1, "threads": 1, "time_limit": 1.0, "progress": None}


def model(weights=(1.0, 1.0, 1.0, 1.0)):
    return _core.LossModel(np.arange(20, dtype=np.int32).reshape(5, 4), [(2, 2, 0, 0, 1)], list(weights))


def problem(**changes):
    options = {"fixed": [], "free": [0, 1, 2, 3, 4], "constraints": [], "fallback": []}
    return _core.Problem(model(), 2, **{**options, **changes})


def anneal(**changes):
    options = {
        "temperatures": [1.0],
        "evaluations_per_level": 3,
        "max_evaluations": 9,
        "chains": 1,
        "seed": 0,
        "initial_states": [],
    }
    return _core.anneal(problem(), **{**EFFORT, **options, **changes})


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.count_marginals([], [], []),
        lambda: _core.count_marginals([CODES], [3], [[]]),
        lambda: _core.count_marginals([CODES, CODES], [3, 3], [[1, 0]]),
        lambda: _core.count_marginals([CODES], [3], [[0, 0]]),
        lambda: _core.count_marginals([CODES], [3, 3], [[0, 1]]),
        lambda: _core.count_marginals([CODES], [3], [[7]]),
        lambda: _core.count_marginals([CODES], [0], [[0]]),
        lambda: _core.count_marginals([CODES] * 3, [2**32 - 1] * 3, [[0, 1, 2]]),
        lambda: _core.LossModel(np.zeros((2, 3), np.int32), [(2, 2, 0, 0, 1)], [1.0] * 4),
        lambda: _core.LossModel(np.zeros((2, 4)), [(2, 2, 0, 0, 1)], [1.0] * 4),
        lambda: _core.LossModel(np.zeros((1, 0), np.int32), [(2**31, 2**31, 0, 0, 1)] * 4, [1.0] * 4),
        lambda: model([math.nan] * 4),
        lambda: model([1e300] * 4),
        lambda: model().reweighted([math.inf] * 4),
        lambda: model().components(np.array([[0.5]])),
        lambda: model().components(np.array([[2**32]])),
        lambda: model().components(np.array([[5]], dtype=np.uint32)),
        lambda: model().information([9]),
        lambda: _core.FederationState(None, [0]),
        lambda: _core.FederationState(model(), [0, 0]),
        lambda: _core.Problem(None, 2, fixed=[], free=[0], constraints=[], fallback=[]),
        lambda: problem(free=[0, 0]),
        lambda: problem(constraints=[([1] * 5, 0, 9)]),
        lambda: problem(constraints=[([1] * 4, 0, 9)], fallback=[0, 1]),
        lambda: problem(constraints=[([-1] * 5, 0, 9)], fallback=[0, 1]),
        lambda: _core.enumerate(None, **EFFORT),
        lambda: _core.enumerate(problem(), **{**EFFORT, "keep": 0}),
        lambda: _core.expand(problem(), random_starts=2**64 - 1, seed=0, **EFFORT),
        lambda: _core.descend(problem(), starts=[], random_starts=0, seed=0, **EFFORT),
        lambda: anneal(chains=0),
        lambda: anneal(temperatures=[math.nan]),
        lambda: anneal(initial_states=[[0, 9]]),
        lambda: anneal(initial_states=[[0, 0]]),
    ],
)
def test_misuse_is_an_exception(call):
    with pytest.raises((ValueError, TypeError)):
        call()


def test_more_threads_than_the_system_grants():
    import subprocess
    import sys

    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1500 * 2**20,) * 2)\n"
        "from fedsel.cli.main import app\n"
        "app(['select', '--example', 'acs-income', '-k', '3', '--threads', '1024'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "proof: all 15,180" in done.stdout
