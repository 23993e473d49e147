"""Console sessions in Markdown files, run and compared with what they show.

A block that opens with three backticks and ``console`` is a session: a line that begins with ``$`` is a command, which
goes on after a backslash at the end of the line; the lines below show its output. Those must come up in the output,
one below the other; ``...`` stands for anything, on a line of its own for any lines. A command that shows a line which
begins with ``error:`` must fail with status 2, every other one must succeed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command and the output it shows."""

    command: str
    shown: str


def steps(markdown: str) -> list[Step]:
    """Return the commands of all sessions in a text, in order."""
    found: list[Step] = []
    for block in _BLOCK.findall(markdown):
        commands: list[tuple[list[str], list[str]]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append(([line[2:]], []))
            elif commands and commands[-1][0][-1].endswith("\\") and not commands[-1][1]:
                commands[-1][0].append(line)
            else:
                commands[-1][1].append(line.rstrip())
        found += [Step("\n".join(command), "\n".join(shown).strip("\n")) for command, shown in commands]
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """Return what output must match somewhere to be the output shown."""
    lines = []
    for line in shown.splitlines():
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(r"[^\n]*".join(map(re.escape, line.split("..."))) + r"[ ]*\n")
    return re.compile("^" + "".join(lines), re.MULTILINE)


def shims(folder: Path) -> Path:
    """Return a folder with the commands ``python`` and ``fedsel`` of the running environment."""
    folder.mkdir()
    for name, arguments in (("python", ""), ("fedsel", "-c 'from fedsel.cli.main import main; main()'")):
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        path.chmod(0o755)
    return folder


def run(markdown: str, folder: Path, files: Mapping[str, str] | None = None) -> None:
    """Run every command of a text in a folder, and fail at the first that does not do what is shown.

    `files` are those that a reader brings along, content by name.
    """
    place = folder / "session"
    place.mkdir()
    for name, content in (files or {}).items():
        (place / name).write_text(content, encoding="utf-8")
    path = f"{shims(folder / 'bin')}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    for step in steps(markdown):
        done = subprocess.run(
            step.command,
            shell=True,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        told = f"$ {step.command}\n--- got, status {done.returncode}\n{done.stdout}\n--- shown\n{step.shown}"
        fails = any(line.startswith("error: ") for line in step.shown.splitlines())
        assert done.returncode == (2 if fails else 0), told
        assert pattern(step.shown).search(done.stdout + "\n"), told
