"""The Python of docs/private_subgroups.md runs."""

from __future__ import annotations

import re

from conftest import ROOT


def test_the_code_of_the_document(capsys) -> None:  # type: ignore[no-untyped-def]
    text = (ROOT / "docs" / "private_subgroups.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(code, "docs/private_subgroups.md", "exec"), {})
    assert capsys.readouterr().out.startswith("private weighted mixture")
