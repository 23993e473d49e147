"""What a process has loaded is part of the contract: a light import, and a coordinator without data-frame libraries."""

from __future__ import annotations

import json
import subprocess
import sys

import fedsel

HEAVY = ("torch", "numba", "matplotlib", "pandas", "scipy", "pyarrow.parquet", "sklearn", "folktables")


def loaded_after(code, *watch):
    script = f"{code}\nimport json, sys\nprint(json.dumps([m for m in {watch!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_fedsel_is_light():
    assert loaded_after("import fedsel", *HEAVY) == []


def test_selecting_loads_no_pandas():
    arguments = ["select", "--example", "acs-income", "-k", "2"]
    code = f"from fedsel.cli.main import app\napp({arguments}, standalone_mode=False)"
    assert loaded_after(code, "pandas", "torch", "matplotlib") == []


def test_only_training_itself_loads_torch():
    light = "data, fairness, splitting, choices, sources, task"
    assert loaded_after(f"from fedsel.training import {light}\nimport fedsel.cli.main", "torch", "matplotlib") == []


def test_public_names_exist_and_are_documented():
    for name in fedsel.__all__:
        assert getattr(fedsel, name).__doc__, name
