"""Progress of long computations on standard error: a bar, a compilation message, live solver text.

By default, progress is shown only on a terminal, and only after some seconds. Rich is imported when it first appears.
"""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress

PATIENCE = 1.0  # seconds before a display appears
PAUSE = 0.1  # seconds between two updates of a bar
_compilation = threading.Lock()  # of several concurrent compilations, one is shown
_is_silent = False


class Display:
    """Content on standard error that is replaced while a computation runs.

    ``shown`` is True, False, or None to show it on a terminal after ``patience`` seconds. At the end it disappears from
    a terminal, unless ``keep`` is True.
    """

    def __init__(self, shown: bool | None = None, patience: float = PATIENCE, keep: bool = False) -> None:
        # sys.stderr is None in a program without a console on Windows
        is_terminal = not _is_silent and sys.stderr is not None and sys.stderr.isatty()
        self.is_wanted = is_terminal if shown is None else shown
        self._due = time.monotonic() + (0.0 if shown else patience) if self.is_wanted else math.inf
        self._keep = keep
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._live is not None:
            self._live.stop()
            if not self._live.console.is_terminal:  # there the content has no final line break
                self._live.console.line()

    @property
    def is_due(self) -> bool:
        """Return whether content would be shown now."""
        return time.monotonic() >= self._due

    def show(self, content: Any) -> None:
        """Replace the content by text or another object that Rich can show."""
        if self._live is None:
            from rich.console import Console  # slow to import, and rarely needed
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(console=console, auto_refresh=False, transient=console.is_terminal and not self._keep)
            self._live.start()
        self._live.update(content, refresh=True)


class Bar(Display):
    """A progress bar; ``duration`` is None if unknown. For ``shown`` see ``Display``."""

    def __init__(self, duration: float | None, shown: bool | None, title: str = "simulating") -> None:
        super().__init__(shown)
        self.duration, self.title = duration, title
        self._progress: Progress | None = None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._progress is not None and error is None:
            self._progress.update(self._progress.task_ids[0], completed=self.duration)
        super().__exit__(kind, error, trace)

    def at(self, t: float) -> None:
        """Set the progress to t of the duration; cheap enough for every step."""
        if time.monotonic() < self._due:
            return
        if self._progress is None:
            from rich.progress import Progress

            self._progress = Progress(auto_refresh=False)
            self._progress.add_task(self.title, total=self.duration)
        self._progress.update(self._progress.task_ids[0], completed=t)
        self.show(self._progress)
        self._due = time.monotonic() + PAUSE


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Show a message while a function compiles, because a first call takes long; ``what`` is its name.

    Example:
        >>> with compiling("inverse_dynamics"):
        ...     sum(range(10))
        45
    """
    display = Display()
    if not display.is_wanted or not _compilation.acquire(blocking=False):
        yield
        return
    end = threading.Event()
    thread = threading.Thread(target=_show_compilation, args=(what, display, end), daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        _compilation.release()


def _show_compilation(what: str, display: Display, end: threading.Event) -> None:
    if end.wait(PATIENCE):
        return
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), auto_refresh=False)
    progress.add_task(escape(f"compiling {what} (first time only)"), total=None)
    with display:
        display.show(progress)
        while not end.wait(PAUSE):
            display.show(progress)


def be_silent() -> None:
    """Disable all displays of this process: the terminal belongs to the process that started it."""
    global _is_silent
    _is_silent = True
