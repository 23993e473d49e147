"""A progress bar for work that takes long enough to notice."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

DELAY = 0.5  # seconds before anything is shown


class RateColumn(ProgressColumn):
    """How much is done a second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text, nothing while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


class DelayedProgress:
    """Callback that shows a bar on stderr, if that is a terminal, once half a second has passed.

    Parameters
    ----------
    description : str
        What is being done.
    """

    def __init__(self, description: str) -> None:
        self._started = time.perf_counter()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(description, total=None)
        self._shown = False
        self._done = 0

    def __call__(self, done: int, planned: int) -> None:
        """Update the bar; `planned` is 0 while unknown. Searches and their certificates fill it anew."""
        if not self._shown and time.perf_counter() - self._started > DELAY and self._bar.console.is_terminal:
            self._bar.start()
            self._shown = True
        if done < self._done or not self._done:
            # Another piece of work, or one that goes on from a checkpoint: what was done before tells no rate.
            self._bar.reset(self._task, completed=done, total=planned or None)
        self._done = done
        self._bar.update(self._task, completed=done, total=planned or None)

    def __enter__(self) -> DelayedProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:  # stopping a bar that never started prints an empty line
            self._bar.stop()
