"""Every command of the tutorial and of the README's console session is run, and shows what they show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import console
from conftest import ROOT
from fedsel.datasets.hospitals import HOSPITALS, write_hospitals
from fedsel.errors import DataError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the documents speak to a POSIX shell")

FACTS = """client,region,cost
CT,north,30
MA,north,40
MD,south,35
RI,north,25
VA,south,45
WY,west,20
"""


DOCUMENTS = [("docs/tutorial.md", 25), ("README.md", 8), ("docs/subgroups.md", 5), ("docs/private_subgroups.md", 9)]


@pytest.mark.parametrize(("document", "least"), DOCUMENTS)
def test_the_commands_of_a_document(tmp_path: Path, document: str, least: int) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert len(console.steps(text)) >= least
    console.run(text, tmp_path, {"facts.csv": FACTS})


def test_the_rule_for_shown_output(tmp_path: Path) -> None:
    text = "```console\n$ echo a; \\\n  echo b\na\nb\n$ echo c\n```\n```sh\n$ no\n```\n"
    assert console.steps(text) == [console.Step("echo a; \\\n  echo b", "a\nb"), console.Step("echo c", "")]
    assert console.pattern("one ... three\n...\nfive").search("zero\none two three\nfour\nfive\nsix\n")
    assert console.pattern("...\nfive").search("five\n")
    assert not console.pattern("one\nthree").search("one\ntwo\nthree\n")
    assert not console.pattern("one").search("no one\n")
    with pytest.raises(AssertionError, match="got, status 0"):
        console.run("```console\n$ echo fine\nerror: it is not\n```\n", tmp_path)


def test_made_hospitals(tmp_path: Path) -> None:
    paths = write_hospitals(tmp_path / "one")
    assert [path.name for path in paths] == ["codebook.csv", "harbour.csv", "hill.csv", "lake.csv", "north.csv"]
    for path, hospital in zip(paths[1:], HOSPITALS, strict=True):
        assert len(path.read_text().splitlines()) == hospital.records + 1
    with pytest.raises(DataError, match=r"codebook\.csv: the file exists already"):
        write_hospitals(tmp_path / "one")
    again = write_hospitals(tmp_path / "two", seed=0)
    other = write_hospitals(tmp_path / "three", seed=1)
    assert [a.read_bytes() for a in paths] == [b.read_bytes() for b in again]
    assert paths[1].read_bytes() != other[1].read_bytes()
