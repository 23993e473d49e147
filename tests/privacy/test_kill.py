"""A process that releases in a loop and is killed at random: no release without its charge, and a sound ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fedsel.privacy.ledger import Ledger
from fedsel.release_file import read_release

TESTS = Path(__file__).parent.parent

# Forks a child that has everything loaded, lets it release for 0 to 30 milliseconds, kills it, and looks at what is
# left; a new folder, hence a new ledger, every ten kills. The parent runs nothing that starts a thread.
NURSERY = """
import os, random, signal, sys, time
from pathlib import Path
from release_samples import SCHEMA, gaussian, marginals
from fedsel.privacy import client
from fedsel.privacy.ledger import Ledger
from fedsel.privacy.ledger_file import is_blank
import fedsel.release_file, numpy, pyarrow.parquet

plan, exact = gaussian(epsilon=0.001, delta=1e-9), marginals()
delays = random.Random(int(sys.argv[3]))

def look(folder):
    files = {int(file.stem) for file in folder.glob("*.parquet")}
    if is_blank(folder / "ledger"):
        assert not files, files
        return files, set()
    with Ledger(folder / "ledger", client="north") as ledger:
        charges = ledger.charges
    assert charges, "a ledger without a charge"
    charged = {charge.round for charge in charges}
    assert files <= charged, files - charged
    assert {charge.round for charge in charges if charge.released} <= files
    return files, charged

def work(folder, first):
    with Ledger.open_or_create(folder / "ledger", client="north", epsilon=1e6, delta=0.5) as ledger:
        for number in range(first, 1_000_000):
            path = folder / f"{number}.parquet"
            client.release(exact, SCHEMA, plan, client="north", ledger=ledger, round=number, path=path)

kills, lost = int(sys.argv[2]), 0
for number in range(kills):
    folder = Path(sys.argv[1]) / str(number // 10)
    folder.mkdir(exist_ok=True)
    before, charged = look(folder)
    child = os.fork()
    if child == 0:
        try:
            work(folder, 1 + max(charged, default=0))
        finally:
            os._exit(1)
    time.sleep(delays.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the child stopped by itself"
    files, now = look(folder)
    assert before <= files
    assert len((now - charged) - (files - before)) <= 1, "more than one charge without its release"
    lost += len((now - charged) - (files - before))
print(lost)
"""


def test_killed_hundreds_of_times(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NURSERY, str(tmp_path), "300", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 30
    files = [file for folder in folders for file in folder.glob("*.parquet")]
    assert files  # the delays were long enough for some
    for file in files:
        assert read_release(file).round == int(file.stem)
    with Ledger(files[0].parent / "ledger", client="north") as ledger:
        assert ledger.spent.epsilon > 0
