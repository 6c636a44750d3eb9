"""Progress of long computations on standard error: a bar, a status line or live text from a solver.

By default, a display appears only on a terminal, and only after a second. Rich is imported when the first display
appears. The command line also prints the status as plain lines if standard error is not a terminal.
"""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress

PATIENCE = 1.0  # seconds before a display appears
LINE_PATIENCE = 2.0  # seconds before a plain line appears
PAUSE = 0.1  # seconds between two updates of a display
_is_silent = False
_has_lines = False  # whether to print plain lines if standard error is not a terminal


def _is_terminal() -> bool:
    # sys.stderr is None in Windows programs without a console
    return not _is_silent and sys.stderr is not None and sys.stderr.isatty()


class _Message:
    """A message of the status line: its text, its start time, and whether it was printed as a plain line."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.is_printed = text, time.monotonic(), False


class _Status:
    """The status line, which shows the newest message after some seconds without other output.

    If a message is already due when it begins, it is drawn at once, otherwise by a thread. Calls that block other
    threads, such as CasADi's, can therefore still show their message.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._messages: list[_Message] = []
        self._live: Live | None = None
        self._displays = 0  # number of other displays on the screen
        self.quiet_since: float | None = None  # None: no output is expected

    def begin(self, text: str) -> _Message:
        """Add a message, and draw it if it is due."""
        message = _Message(text)
        with self._lock:
            if self.quiet_since is None:
                self.quiet_since = message.start
            self._messages.append(message)
            self._draw()
            if len(self._messages) == 1:
                threading.Thread(target=self._keep_drawing, daemon=True).start()
        return message

    def end(self, message: _Message) -> None:
        """Remove a message, and show the previous one again."""
        with self._lock:
            self._messages.remove(message)
            if self._messages:
                self._draw()
            else:
                if self._live is not None:
                    self.quiet_since = time.monotonic()
                self._clear()
                self.quiet_since = self.quiet_since if _has_lines else None

    def give_way(self) -> None:
        """Clear the line for another display."""
        with self._lock:
            self._displays += 1
            self._clear()

    def take_over(self) -> None:
        """Resume the status line after another display."""
        with self._lock:
            self._displays -= 1
            self.quiet_since = time.monotonic()

    def _keep_drawing(self) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                if not self._messages:
                    return
                self._draw()

    def _draw(self) -> None:
        if self._displays or self.quiet_since is None:
            return
        message, now = self._messages[-1], time.monotonic()
        if not _is_terminal():
            if not message.is_printed and now - self.quiet_since >= LINE_PATIENCE:
                print(message.text, file=sys.stderr, flush=True)
                message.is_printed, self.quiet_since = True, now
            return
        if self._live is None:
            if now - self.quiet_since < PATIENCE:
                return
            self._live = _new_live(redirects=False)
        from rich.text import Text

        seconds = int(now - message.start)
        self._live.update(Text(f"{message.text}, {seconds} s" if seconds else message.text), refresh=True)

    def _clear(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


_status = _Status()


def _new_live(keep: bool = False, redirects: bool = True) -> "Live":
    """Return a live display; if it ``redirects``, text printed meanwhile appears above it."""
    from rich.console import Console  # slow to import, and rarely needed
    from rich.live import Live

    console = Console(stderr=True)
    settings: dict[str, Any] = {"auto_refresh": False, "redirect_stdout": redirects, "redirect_stderr": redirects}
    live = Live(console=console, transient=console.is_terminal and not keep, **settings)
    live.start()
    return live


class Display:
    """Content on standard error that is replaced while a computation runs.

    ``shown`` is True, False, or None to show the content on a terminal after ``patience`` seconds. At the end, it
    disappears from a terminal unless ``keep`` is True.
    """

    def __init__(self, shown: bool | None = None, patience: float = PATIENCE, keep: bool = False) -> None:
        self.is_wanted = _is_terminal() if shown is None else shown
        self._due = time.monotonic() + (0.0 if shown else patience) if self.is_wanted else math.inf
        self._keep = keep
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._live is not None:
            self._live.stop()
            if not self._live.console.is_terminal:  # other outputs have no final line break
                self._live.console.line()
            _status.take_over()

    @property
    def is_due(self) -> bool:
        """Whether content would be shown now."""
        return time.monotonic() >= self._due

    def show(self, content: Any) -> None:
        """Replace the content with text or another object that Rich can display."""
        if self._live is None:
            _status.give_way()
            self._live = _new_live(self._keep)
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
        """Set the progress to ``t``, in the unit of the duration; the method is fast enough to be called every step."""
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
def working(text: str) -> Iterator[None]:
    """Show a message on a terminal during a long computation; only the innermost of nested messages is shown.

    Example:
        >>> with working("adding numbers"):
        ...     sum(range(10))
        45
    """
    if _is_silent or not (_has_lines or _is_terminal()):
        yield
        return
    message = _status.begin(text)
    try:
        yield
    finally:
        _status.end(message)


def compiling(what: str) -> AbstractContextManager[None]:
    """Return a context that shows a message while the function ``what`` compiles.

    Example:
        >>> with compiling("inverse_dynamics"):
        ...     sum(range(10))
        45
    """
    return working(f"compiling {what} (first time only)")


def print_lines() -> None:
    """Print the status as plain lines from now on if standard error is not a terminal; used by the command line."""
    global _has_lines
    _has_lines = True
    _status.quiet_since = time.monotonic()


def be_silent() -> None:
    """Disable all displays of this process, for use if its parent process controls the terminal."""
    global _is_silent
    _is_silent = True
