"""Progress of a solver: a live table of iterations, and Ctrl-C."""

import math
import signal
import sys
import threading
import time
from collections import deque
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from torsor.base.arrays import Array
from torsor.base.interrupts import is_stoppable
from torsor.optimisation.outcome import Iteration, StoppedError

if TYPE_CHECKING:
    from rich.live import Live


SHOWN = 8  # iterations in the live table
PATIENCE = 2.0  # seconds before a line appears on a terminal


class Watch:
    """The ``watch`` of a solver's settings, called with every iteration and its variables.

    With ``shown``, the last iterations are shown on stderr as a table; with None, on a terminal and after two seconds,
    the last one is shown in a line that disappears at the end. Inside ``with``, Ctrl-C stops the solver at the next
    iteration (``interrupted``), so that it returns the best iterate; a second Ctrl-C raises KeyboardInterrupt.

    Example:
        >>> watch = Watch()
        >>> watch(Iteration(0, 3.0, 0.5, 0.0), np.zeros(1))
        >>> watch.interrupted = True
        >>> watch(Iteration(1, 5.0, 0.0, 0.1), np.ones(1))
        Traceback (most recent call last):
            ...
        torsor.optimisation.outcome.StoppedError
    """

    def __init__(self, shown: bool | None = False, title: str = "solver"):
        self.title, self._shown, self.interrupted = title, shown, False
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._later = time.monotonic() + PATIENCE if shown is None and terminal else math.inf
        self._last = deque[Iteration](maxlen=SHOWN)
        self._live: Live | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        # Python handles signals in the main thread only. Where SIGINT is ignored, as in background jobs, it stays
        # ignored; a handler that Python did not install (None) could not be restored.
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before not in (signal.SIG_IGN, None):
                self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._shown:
            self._start()
        return self

    def _start(self) -> None:
        from rich.console import Console  # imported here: it is slow, and rarely used
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=not self._shown)
        self._live.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._live is not None:
            self._live.stop()
            if not self._live.console.is_terminal:  # there the table has no final line break
                self._live.console.line()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if again or is_stoppable():  # compiling takes long, and has no iterations at which to stop
            raise KeyboardInterrupt

    def __call__(self, iteration: Iteration, x: Array) -> None:
        """Show an iteration; raise StoppedError after Ctrl-C."""
        if self._live is None and time.monotonic() > self._later:
            self._start()
        if self._live is not None:
            self._last.append(iteration)
            self._live.update(self._table() if self._shown else self._line(iteration), refresh=True)
        if self.interrupted:
            raise StoppedError

    def _line(self, last: Iteration) -> Any:
        from rich.text import Text

        numbers = f"objective {last.objective:.6g}, violation {last.violation:.1e}"
        return Text(f"{self.title}: iteration {last.number}, {numbers}; Ctrl-C ends the search", style="dim")

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", title_style="bold", header_style="bold")
        for column in ("iteration", "objective", "violation", "step"):
            table.add_column(column, justify="right", min_width=9)
        for each in self._last:
            table.add_row(str(each.number), f"{each.objective:.8g}", f"{each.violation:.2e}", f"{each.step:.2e}")
        return table


class Patience:
    """A ``watch`` that also stops a search without progress, where a search only measures how infeasible a program is.

    It raises StoppedError where in ``iterations`` neither the largest violation (down to ``tolerance``) nor the
    objective fell below ``factor`` times its least value before. ``watch`` is called first.

    Example:
        >>> patience = Patience(Watch(), tolerance=1e-6, iterations=2)
        >>> for k, violation in enumerate([5.0, 1.0, 0.99]):
        ...     patience(Iteration(k, 0.0, violation, 0.1), np.zeros(1))
        >>> patience(Iteration(3, 0.0, 0.99, 0.1), np.zeros(1))
        Traceback (most recent call last):
            ...
        torsor.optimisation.outcome.StoppedError
    """

    def __init__(self, watch: Watch, tolerance: float, iterations: int = 150, factor: float = 0.95):
        self.watch, self.tolerance, self.iterations, self.factor = watch, tolerance, iterations, factor
        self._least = [math.inf, math.inf]  # violation, and objective
        self._since = 0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.watch.interrupted

    def __call__(self, iteration: Iteration, x: Array) -> None:
        """Pass an iteration on; raise StoppedError after too many without progress."""
        self.watch(iteration, x)
        self._since += 1
        for kind, value in enumerate((max(iteration.violation, self.tolerance), iteration.objective)):
            before = self._least[kind]
            gain = (1 - self.factor) * abs(before) if math.isfinite(before) else 0.0
            if value < before - gain:  # small steps add up: the value to compare with stays until then
                self._since, self._least[kind] = 0, value
        if self._since >= self.iterations:
            raise StoppedError
