"""A progress bar for simulations and other long computations, shown only if they take long."""

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 1.0  # seconds before the bar appears
PAUSE = 0.1  # seconds between two updates


class Bar:
    """A progress bar on stderr; ``shown`` is True, False, or None to show it on a terminal after a second.

    A ``duration`` of None is one that is not known.
    """

    def __init__(self, duration: float | None, shown: bool | None, title: str = "simulating") -> None:
        self.duration, self.title = duration, title
        terminal = sys.stderr is not None and sys.stderr.isatty()  # None in a program without a console on Windows
        self._wanted = terminal if shown is None else shown
        self._next = time.monotonic() + (0.0 if shown else PATIENCE)
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._progress is not None:
            if error is None:
                self._progress.update(self._progress.task_ids[0], completed=self.duration)
            self._progress.stop()

    def at(self, t: float) -> None:
        """Set the progress to t of the duration; cheap enough for every step."""
        if not self._wanted or time.monotonic() < self._next:
            return
        if self._progress is None:
            from rich.console import Console  # slow to import, and few simulations show a bar
            from rich.progress import Progress

            console = Console(stderr=True)
            self._progress = Progress(console=console, transient=console.is_terminal)
            self._progress.add_task(self.title, total=self.duration)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=t)
        self._next = time.monotonic() + PAUSE
