"""Parallel jobs of one computation, in one or more processes.

On Linux, processes are forked and share the work and its compiled functions. On macOS and Windows, they are spawned:
the work is pickled, and its kernels are loaded from the disk cache. Work that cannot be pickled, such as a problem with
a lambda function, is then done in this process. Ctrl-C is handled by the first process, which tells the others to end
their jobs.
"""

import multiprocessing
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

from torsor.base.errors import warn
from torsor.base.progress import Bar, be_silent
from torsor.optimisation.record import Watch, stop_when

START_METHOD = "fork" if sys.platform.startswith("linux") else "spawn"
PAUSE = 0.05  # interval (s) between checks for Ctrl-C while other processes work

W = TypeVar("W")
J = TypeVar("J")
R = TypeVar("R")


class Monitor(Protocol):
    """Progress of all jobs, and Ctrl-C."""

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""

    def end(self) -> None:
        """Count one more finished case."""


class Here:
    """Monitor of the first process, which updates the progress bar; ``watch`` handles Ctrl-C."""

    def __init__(self, bar: Bar, watch: Watch):
        self._bar, self._watch, self._ended = bar, watch, 0

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._watch.interrupted

    def end(self) -> None:
        """Count one more finished case."""
        self.at(self._ended + 1)

    def at(self, ended: int) -> None:
        """Set the number of finished cases."""
        self._ended = ended
        self._bar.at(ended)


class _There:
    """Monitor of another process, with numbers in shared memory."""

    def __init__(self, ended: Any, stop: Any):
        self._ended, self._stop = ended, stop

    @property
    def is_stopped(self) -> bool:
        return bool(self._stop.value)

    def end(self) -> None:
        with self._ended.get_lock():
            self._ended.value += 1


def results(
    function: Callable[[W, J, Monitor], R], work: W, jobs: Sequence[J], workers: int, monitor: Here
) -> Iterator[R]:
    """Yield ``function(work, job, monitor)`` for each job: in order or, with several ``workers``, as jobs end.

    After Ctrl-C, jobs that have not started are skipped. The function must be defined at module level.
    """
    workers = 1 if multiprocessing.current_process().daemon else min(workers, len(jobs))  # daemons cannot have children
    if workers > 1 and START_METHOD != "fork":
        try:
            pickle.dumps(work)
        except (pickle.PicklingError, AttributeError, TypeError):
            workers = 1
    if workers > 1:
        yield from _in_processes(function, work, jobs, workers, monitor)
        return
    for job in jobs:
        if monitor.is_stopped:
            return
        yield function(work, job, monitor)


_work: list[tuple[Callable[..., Any], Any, _There]] = []  # work of this process, which forked processes inherit


def _in_processes(
    function: Callable[[W, J, Monitor], R], work: W, jobs: Sequence[J], workers: int, monitor: Here
) -> Iterator[R]:
    context = multiprocessing.get_context(START_METHOD)
    ended, stop = context.Value("l", 0), context.RawValue("b", 0)
    task, lost = (function, work, _There(ended, stop)), list[J]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # BLAS threads are idle when the process is forked
        _work.append(task)
        try:
            pool = ProcessPoolExecutor(workers, context, _begin, (None if START_METHOD == "fork" else task,))
            waiting = {pool.submit(_run, job): job for job in jobs}  # the processes are forked here
        finally:
            _work.pop()
        try:
            while waiting:
                done = wait(waiting, PAUSE, FIRST_COMPLETED).done
                monitor.at(ended.value)
                stop.value = monitor.is_stopped
                for future in done:
                    job = waiting.pop(future)
                    try:
                        is_done, result = future.result()
                    except BrokenProcessPool:
                        lost.append(job)
                        continue
                    if is_done:
                        yield result
        finally:
            stop.value = True
            pool.shutdown(wait=True, cancel_futures=True)
    if lost:
        message = f"a process ended unexpectedly: {len(lost)} of {len(jobs)} jobs are done in this process"
        warn(message, where="workers", fix="use fewer workers if the memory is full")
        yield from results(function, work, lost, 1, monitor)


def _begin(task: tuple[Callable[..., Any], Any, _There] | None) -> None:
    """Initialise a process, with its task if it was spawned."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_silent()
    if task is not None:
        _work.append(task)
    monitor = _work[-1][2]
    stop_when(lambda: monitor.is_stopped)


def _run(job: Any) -> tuple[bool, Any]:
    """Return whether a job was run, and its result."""
    function, work, monitor = _work[-1]
    return (False, None) if monitor.is_stopped else (True, function(work, job, monitor))
