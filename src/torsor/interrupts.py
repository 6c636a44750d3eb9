"""Ctrl-C during long work in foreign code: it is never lost.

CasADi's conversions discard the KeyboardInterrupt that Python raises inside of them, and the work would go on. Inside
``Stoppable``, an interrupt is repeated until it arrives, and at the latest it is raised at the end.
"""

import _thread
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

AGAIN = 0.05  # seconds after which an interrupt that was lost is repeated

_active: list["Stoppable"] = []


def is_stoppable() -> bool:
    """Whether the main thread is inside ``Stoppable``: a handler of SIGINT should raise KeyboardInterrupt then.

    Example:
        >>> is_stoppable()
        False
    """
    return bool(_active)


class Stoppable:
    """Work in the main thread that Ctrl-C stops, also where foreign code discards the exception.

    SIGINT calls the handler that was installed before; if that raises an exception, KeyboardInterrupt is raised again
    every ``AGAIN`` seconds until the work ends. In other threads, where SIGINT is ignored or ends the process, and
    inside another ``Stoppable``, nothing changes.

    Example:
        >>> with Stoppable():
        ...     is_stoppable()
        True
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._stopped = self._ended = False
        self._end = threading.Event()
        self._repeating: threading.Thread | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and not _active:
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # else it is ignored, ends the process, or was not installed by Python
                _active.append(self)
                self._before = before
                signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is None:
            return
        self._ended = True  # from here on, the handler raises nothing
        self._end.set()
        if self._repeating is not None:
            self._repeating.join()
        signal.signal(signal.SIGINT, self._before)
        _active.remove(self)
        if self._stopped and (kind is None or not issubclass(kind, KeyboardInterrupt)):
            raise KeyboardInterrupt from None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._ended:
            return
        if not self._stopped:
            try:
                self._before(number, frame)
            except BaseException:
                self._stopped = True
            else:
                return  # the user's own handler does not want to stop
            self._repeating = threading.Thread(target=self._repeat, daemon=True)
            self._repeating.start()
        # Entering and leaving must not be left half done: the interrupt is repeated, or raised at the end.
        if frame is None or frame.f_code not in (Stoppable.__enter__.__code__, Stoppable.__exit__.__code__):
            raise KeyboardInterrupt

    def _repeat(self) -> None:
        while not self._end.wait(AGAIN):
            if hasattr(signal, "pthread_kill"):  # a signal also ends waiting for a lock
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()
