"""Processes on this machine, as an executor: a killed one is replaced, and only its own case ends with an error.

Processes are spawned, so that threads and locks of this one do no harm, and compute with one BLAS thread each. Kernels
come from the cache on disk, where the first process that needs one compiles it while the others wait.
"""

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from torsor.base.checks import whole_number
from torsor.base.errors import ModelError
from torsor.base.progress import be_silent

# Threads of linear algebra in a new process.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")}
# Processes in a row that end before they are ready: by an error of their own, which will come again, or killed.
MOST_FAILED_STARTS, MOST_KILLED_STARTS = 3, 100
_starting = threading.Lock()  # the environment is shared by all threads


class WorkerDiedError(BrokenExecutor):
    """The process that computed a case ended: it was killed, ran out of memory, or crashed."""


class CannotStartError(ModelError):
    """Processes end before they can compute anything."""


class _Job(NamedTuple):
    future: "Future[Any]"
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Processes(Executor):
    """An executor with ``workers`` processes on this machine (by default, one for each core).

    A process that dies is replaced by a new one. The future of its call raises ``WorkerDiedError``; all others go on.

    Example:
        >>> with Processes(2) as pool:  # processes start with the first calls
        ...     pool.workers, pool.pids
        (2, [])
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cores() if workers is None else whole_number(workers, "sweep", "workers", most=10_000)
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            found, fix = "a script starts processes while it is imported", 'call it under if __name__ == "__main__":'
            raise ModelError(found, where="sweep", fix=fix)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._processes: set[BaseProcess] = set()
        self._threads: list[threading.Thread] = []
        self._is_closed = self._is_killed = False

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run now."""
        return [each.pid for each in list(self._processes) if each.pid is not None]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return the future of a call in one of the processes; keywords are not taken."""
        if self._is_closed:
            raise RuntimeError("the processes are stopped")
        future: Future[Any] = Future()
        self._jobs.put(_Job(future, fn, args))
        if len(self._threads) < self.workers:
            thread = threading.Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the processes: after all calls if ``wait``, else at once."""
        self._is_closed = True
        if cancel_futures or not wait:
            with contextlib.suppress(queue.Empty):
                while True:
                    job = self._jobs.get_nowait()
                    if job is not None:
                        job.future.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        if not wait:
            self._is_killed = True
            for process in list(self._processes):
                process.kill()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        """Take jobs one after the other, in a thread for each process."""
        worker: _Worker | None = None
        try:
            while (job := self._jobs.get()) is not None:
                if not job.future.set_running_or_notify_cancel():
                    continue
                worker = worker or self._started()
                if worker is None:
                    fix = 'call it under if __name__ == "__main__": in a script, and look at the errors above'
                    job.future.set_exception(CannotStartError("new processes end at once", where="sweep", fix=fix))
                    continue
                try:
                    is_error, found = worker.call(job.function, job.arguments)
                except (EOFError, OSError):
                    error = WorkerDiedError(self._ended(worker))
                    worker = None
                    job.future.set_exception(error)
                    continue
                if is_error:
                    job.future.set_exception(found)
                else:
                    job.future.set_result(found)
        finally:
            if worker is not None:
                worker.close()
                self._processes.discard(worker.process)

    def _started(self) -> "_Worker | None":
        """Return a process that is ready, or None if none can be started."""
        failed = killed = 0
        while failed < MOST_FAILED_STARTS and killed < MOST_KILLED_STARTS and not self._is_killed:
            worker = _Worker()
            self._processes.add(worker.process)
            if self._is_killed:  # it was started while the others were killed
                worker.process.kill()
            if worker.is_ready():
                return worker
            self._ended(worker)
            killed, failed = killed + (worker.exit_code < 0), failed + (worker.exit_code >= 0)
        return None

    def _ended(self, worker: "_Worker") -> str:
        """Return how a process ended."""
        worker.close()
        self._processes.discard(worker.process)
        code = worker.exit_code
        if code >= 0:
            return f"its process ended with status {code}"
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process was ended by signal {-code}"


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs,), daemon=True)
        with _starting:
            before = {name: os.environ.get(name) for name in _ONE_THREAD}
            os.environ.update(_ONE_THREAD)
            try:
                self.process.start()
            finally:
                for name, value in before.items():
                    os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()  # so that the end of the process is the end of the pipe

    def is_ready(self) -> bool:
        """Wait for the process to import its modules, and return whether it did."""
        try:
            return bool(self._received())
        except (EOFError, OSError):
            return False

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Return (whether it failed, the result or error) of a call; raise EOFError if the process ends."""
        self.pipe.send((function, arguments))
        found: tuple[bool, Any] = self._received()
        return found

    def _received(self) -> Any:
        wait([self.pipe, self.process.sentinel])
        if not self.pipe.poll():
            raise EOFError
        return self.pipe.recv()

    @property
    def exit_code(self) -> int:
        """The status with which the process ended, or minus the signal that ended it."""
        return self.process.exitcode or 0

    def close(self) -> None:
        """Close the pipe, which ends the process, and wait for that."""
        self.pipe.close()
        self.process.join()


def _work(pipe: Connection) -> None:
    """Compute what comes through a pipe until it is closed; Ctrl-C is for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_silent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(True)
        while True:
            function, arguments = pipe.recv()
            try:
                found = False, function(*arguments)
            except Exception as error:
                found = True, _sendable(error)
            pipe.send(found)


def _sendable(error: Exception) -> Exception:
    """Return an error that the other process can unpack: some exceptions cannot be made again from their pickle."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: nobody would take its result."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def cores() -> int:
    """Return the number of cores that this process may use.

    Example:
        >>> cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
