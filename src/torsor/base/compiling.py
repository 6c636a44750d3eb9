"""Words on a terminal while a function compiles for the first time: a first call that takes long says why."""

import threading
from types import TracebackType
from typing import Self

PATIENCE = 1.0  # seconds before anything is shown
_shown = threading.Lock()  # of several compilations at once, one is shown


class Compiling:
    """A line on standard error with a bar that moves, from the first second of the work inside until its end.

    ``what`` is the name of the function. Of several at once, the first is shown.

    Example:
        >>> with Compiling("inverse_dynamics"):
        ...     sum(range(10))
        45
    """

    def __init__(self, what: str) -> None:
        self.title = f"compiling {what} (first time only)"
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if _shown.acquire(blocking=False):
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._end.set()
            self._thread.join()
            _shown.release()

    def _show(self) -> None:
        if self._end.wait(PATIENCE):
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task(escape(self.title), total=None)
            self._end.wait()


def be_silent() -> None:
    """Show nothing in this process from now on: the terminal belongs to the process that started it."""
    _shown.acquire(blocking=False)
