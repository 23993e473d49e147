"""The commands of docs/training.md are run, and show what they show."""

from __future__ import annotations

import os
import re

import pytest

import console
from conftest import ROOT, require_extra

require_extra("torch", "train")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the document speaks to a POSIX shell")


def test_the_commands_of_the_document(tmp_path):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert len(console.steps(text)) == 4
    console.run(text, tmp_path)


def test_the_python_of_the_document(capsys):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/training.md", "exec"), {})
    assert capsys.readouterr().out.strip().endswith("()")
