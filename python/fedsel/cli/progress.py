"""A progress bar for work that takes long enough to notice."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

DELAY = 0.5  # seconds before anything is shown


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
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(description, total=None)
        self._shown = False

    def __call__(self, done: int, planned: int) -> None:
        """Update the bar; `planned` is 0 while unknown. Searches and their certificates fill it anew."""
        if not self._shown and time.perf_counter() - self._started > DELAY and self._bar.console.is_terminal:
            self._bar.start()
            self._shown = True
        self._bar.update(self._task, completed=done, total=planned or None)

    def __enter__(self) -> DelayedProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:  # stopping a bar that never started prints an empty line
            self._bar.stop()
