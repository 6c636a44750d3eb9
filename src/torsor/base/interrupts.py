"""Reliable Ctrl-C during long work in foreign code.

CasADi's conversions discard a KeyboardInterrupt that is raised inside them, so the work would continue. Inside
``Stoppable``, an interrupt is repeated until it takes effect, at the latest when the work ends. A time limit interrupts
the work in the same way.
"""

import _thread
import math
import signal
import threading
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, Self

REPEAT_INTERVAL = 0.05  # seconds after which a lost interrupt is repeated

_active: list["Stoppable"] = []
_limits = threading.local()  # ``at``: the time (s) at which the work of this thread must end


class OutOfTimeError(Exception):
    """Error for work that reached the time limit of its ``Stoppable``."""


def is_stoppable() -> bool:
    """Return whether the main thread is inside ``Stoppable``: a SIGINT handler should then raise KeyboardInterrupt.

    Example:
        >>> is_stoppable()
        False
    """
    return bool(_active)


class Stoppable:
    """Context for work in the main thread that Ctrl-C stops, even if foreign code discards the exception.

    SIGINT calls the previously installed handler. If the handler raises an exception, KeyboardInterrupt is raised again
    every ``REPEAT_INTERVAL`` seconds until the work ends. Ctrl-C is handled only in the main thread, in the outermost
    ``Stoppable``, and if SIGINT is neither ignored nor ends the process.

    After ``seconds``, the work is interrupted as if by Ctrl-C and ends with ``OutOfTimeError``. In other threads,
    inside another ``Stoppable``, or if SIGINT ends the process, the limit is checked only when an inner ``Stoppable``
    starts, such as that of a compiled function.

    Example:
        >>> with Stoppable():
        ...     sum(range(10))
        45
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._seconds, self._outer = seconds, getattr(_limits, "at", math.inf)
        self._before: Any = None
        self._stopped = self._ended = self._late = self._entered = False
        self._end = threading.Event()
        self._repeating: threading.Thread | None = None

    def __enter__(self) -> Self:
        if perf_counter() > self._outer:
            raise OutOfTimeError
        _limits.at = min(self._outer, perf_counter() + self._seconds)
        if threading.current_thread() is threading.main_thread() and not _active:
            before = signal.getsignal(signal.SIGINT)
            timed = math.isfinite(self._seconds)
            # Other handlers ignore the signal, end the process, or were not installed by Python.
            if callable(before) or (timed and before is signal.SIG_IGN):
                _active.append(self)
                self._before = before
                signal.signal(signal.SIGINT, self._handle)
                if timed:
                    self._repeating = threading.Thread(target=self._repeat, args=(self._seconds,), daemon=True)
                    self._repeating.start()
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _limits.at = self._outer
        if self._before is None:
            return
        self._ended = True  # from now on, the handler does not raise
        self._end.set()
        if self._repeating is not None:
            self._repeating.join()
        signal.signal(signal.SIGINT, self._before)
        _active.remove(self)
        if self._stopped and (kind is None or not issubclass(kind, KeyboardInterrupt)):
            raise KeyboardInterrupt from None
        if self._late and not self._stopped and (kind is None or issubclass(kind, (KeyboardInterrupt, Exception))):
            raise OutOfTimeError from None  # also replaces an error that the interrupt caused in foreign code

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._ended:
            return
        if not self._stopped and not self._late:
            if not callable(self._before):
                return
            try:
                self._before(number, frame)
            except BaseException:
                self._stopped = True
            else:
                return  # the user's handler does not stop the work
            if self._repeating is None:
                self._repeating = threading.Thread(target=self._repeat, daemon=True)
                self._repeating.start()
        # Entering and leaving must not be interrupted: the interrupt is repeated, or raised at the end.
        if self._entered and (frame is None or frame.f_code not in (_ENTER, _EXIT)) and not _is_deleting(frame):
            raise KeyboardInterrupt

    def _repeat(self, seconds: float = REPEAT_INTERVAL) -> None:
        """Interrupt the main thread repeatedly, after Ctrl-C or at the limit of ``seconds``."""
        ends = perf_counter() + seconds
        while not self._end.wait(REPEAT_INTERVAL):
            self._late = self._late or (perf_counter() >= ends and not self._stopped)
            if not self._late and not self._stopped:
                continue
            if hasattr(signal, "pthread_kill"):  # a signal also interrupts waiting for a lock
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()


def _is_deleting(frame: FrameType | None) -> bool:
    """Return whether a frame is inside ``__del__`` or the callback of a weak reference.

    Python discards exceptions there and prints a traceback.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or (code.co_name.startswith("_remove") and "weakref" in code.co_filename):
            return True
        frame = frame.f_back
    return False


_ENTER, _EXIT = Stoppable.__enter__.__code__, Stoppable.__exit__.__code__
