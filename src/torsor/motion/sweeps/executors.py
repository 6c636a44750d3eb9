"""Execution of cases in this process, in local processes, on a cluster, or by any other executor."""

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic, perf_counter
from typing import Any, NamedTuple, cast

from threadpoolctl import ThreadpoolController

from torsor.base.checks import whole_number
from torsor.base.errors import ModelError, missing
from torsor.base.progress import be_silent
from torsor.motion import MotionError
from torsor.motion.sweeps.cases import RESERVED_COLUMNS, Case, Row
from torsor.motion.sweeps.subjects import Subject
from torsor.simulation import SimulationError

# Computation of cases in a worker: this process, a local process, or a cluster node.
#
# The function is sent as bytes with every case and unpacked once per process, so a replacement worker needs no other
# data. Errors of a case are stored in its row.

MAX_CACHED_SUBJECTS = 4  # largest number of cached functions per process, because a cluster may serve several studies
# Errors with self-explanatory messages; other errors are shown with their type.
_EXPLAINED_ERRORS = (ModelError, MotionError, SimulationError)

_subjects: dict[str, Subject] = {}


class Parcel(NamedTuple):
    """A subject as bytes, and their hash."""

    digest: str
    content: bytes

    @classmethod
    def of(cls, subject: Subject) -> "Parcel":
        """Return a subject as bytes; cloudpickle, if installed, also handles functions defined in notebooks."""
        try:
            from cloudpickle import dumps
        except ImportError:
            from pickle import dumps
        try:
            content = dumps(subject)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            message = f"{subject.name} cannot be sent to another process: {error}"
            fix = "define the function in a module, install cloudpickle, or compute in this process (`workers=0`)"
            raise ModelError(message, where="sweep", fix=fix) from None
        return cls(hashlib.blake2b(content, digest_size=8).hexdigest(), content)

    def open(self) -> Subject:
        """Return the subject, which is unpacked once per process."""
        result = _subjects.get(self.digest)
        if result is None:
            result = _subjects[self.digest] = pickle.loads(self.content)
            while len(_subjects) > MAX_CACHED_SUBJECTS:
                _subjects.pop(next(iter(_subjects)), None)
        return result


def run_parcel(parcel: Parcel, cases: Sequence[Case], attempt: int = 0) -> list[Row]:
    """Return the rows of cases in a worker; ``attempt`` distinguishes repeated attempts on a cluster."""
    try:
        subject = parcel.open()
    except (Exception, SystemExit) as error:  # for example from a module imported by this process
        reason = _encodable(f"the function cannot be unpacked in a worker: {type(error).__name__}: {error}")
        return [Row(case.number, case.digest, case.values, {}, reason, units={}) for case in cases]
    return run_cases(subject, cases)


def run_cases(subject: Subject, cases: Sequence[Case]) -> list[Row]:
    """Return the rows of cases, including errors; cases that a batch supports are solved together."""
    attempts, made = [_Attempt() for _ in cases], [None] * len(cases)
    # Linear algebra uses one thread because workers share the cores.
    with _threads().limit(limits=1):
        for k, (case, attempt) in enumerate(zip(cases, attempts, strict=True)):
            with attempt:
                made[k] = subject.function(**case.values)
        start = perf_counter()
        made = subject.solved(made)
        seconds = (perf_counter() - start) / len(cases)
        rows = []
        for case, attempt, one in zip(cases, attempts, made, strict=True):
            results, units = dict[str, Any](), dict[str, str]()
            if not attempt.error:
                with attempt:
                    found = subject.found(one)
                    for name in found.results:
                        if name in case.values or name in RESERVED_COLUMNS:
                            message, fix = f"the result {name!r} has the same name as another column", "rename it"
                            raise ModelError(message, value=name, where="sweep", fix=fix)
                    results, units, attempt.error = found.results, dict(found.units), found.reason
            texts = _encodable(attempt.error), _encodable("\n".join(dict.fromkeys(attempt.warnings)))
            rows.append(Row(case.number, case.digest, case.values, results, *texts, attempt.seconds + seconds, units))
    return rows


class _Attempt:
    """The time, warnings and error of a case, collected over several blocks."""

    def __init__(self) -> None:
        self.seconds, self.error, self.warnings = 0.0, "", list[str]()

    def __enter__(self) -> None:
        # Warnings are recorded only if no other thread can change the filters in the meantime.
        is_here = threading.current_thread() is threading.main_thread()
        self._start, self._catching = perf_counter(), warnings.catch_warnings(record=is_here)
        self._caught = self._catching.__enter__()
        if is_here:
            warnings.simplefilter("default")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.warnings += [str(record.message) for record in self._caught or ()]
        self._catching.__exit__(None, None, None)
        self.seconds += perf_counter() - self._start
        if isinstance(error, (Exception, SystemExit)):
            self.error = str(error) if isinstance(error, _EXPLAINED_ERRORS) else f"{type(error).__name__}: {error}"
            return True
        return False


def _encodable(text: str) -> str:
    """Return text with lone surrogates escaped, which every file can store."""
    return text.encode(errors="backslashreplace").decode()


@cache
def _threads() -> Any:
    """Return the controller of linear-algebra threads."""
    return ThreadpoolController()


# Local processes as an executor: a killed process is replaced, and only its current case ends with an error.
#
# Processes are spawned, so threads and locks of this process do not affect them. Each uses one BLAS thread. Kernels
# come from the disk cache: the first process that needs one compiles it while the others wait.

# Number of linear-algebra threads in a new process.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")}
# Largest number of successive processes that end before they are ready, because of a recurring error or a signal.
MAX_FAILED_STARTS, MAX_KILLED_STARTS = 3, 100
_starting = threading.Lock()  # all threads share the environment variables


class WorkerDiedError(BrokenExecutor):
    """Error for a process that was killed, ran out of memory or crashed while computing a case."""


class CannotStartError(ModelError):
    """Error for worker processes that end before they are ready."""


class _Job(NamedTuple):
    future: "Future[Any]"
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Processes(Executor):
    """An executor with ``workers`` processes on this machine (by default one per core).

    A process that dies is replaced by a new one. The future of its call raises ``WorkerDiedError``; other calls
    continue.

    Example:
        >>> with Processes(2) as pool:  # processes start with the first calls
        ...     pool.workers, pool.pids
        (2, [])
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cores() if workers is None else whole_number(workers, "sweep", "workers", most=10_000)
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            message, fix = (
                "the script starts processes while it is imported",
                'call it under if __name__ == "__main__":',
            )
            raise ModelError(message, where="sweep", fix=fix)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._processes: set[BaseProcess] = set()
        self._threads: list[threading.Thread] = []
        self._is_closed = self._is_killed = False

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [process.pid for process in list(self._processes) if process.pid is not None]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return the future of a call in one of the processes; keyword arguments are ignored."""
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
        """Stop the processes: after all submitted calls if ``wait`` is True, otherwise immediately.

        With ``cancel_futures`` or without ``wait``, calls that have not begun are cancelled.
        """
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
        """Run jobs one after another; each process is served by one thread."""
        worker: _Worker | None = None
        try:
            while (job := self._jobs.get()) is not None:
                if not job.future.set_running_or_notify_cancel():
                    continue
                worker = worker or self._started()
                if worker is None:
                    fix = 'in a script, call it under if __name__ == "__main__":, and see the errors above'
                    job.future.set_exception(CannotStartError("new processes end immediately", where="sweep", fix=fix))
                    continue
                try:
                    is_error, reply = worker.call(job.function, job.arguments)
                except (EOFError, OSError):
                    error = WorkerDiedError(self._ended(worker))
                    worker = None
                    job.future.set_exception(error)
                    continue
                if is_error:
                    job.future.set_exception(reply)
                else:
                    job.future.set_result(reply)
        finally:
            if worker is not None:
                worker.close()
                self._processes.discard(worker.process)

    def _started(self) -> "_Worker | None":
        """Return a process that is ready, or None if none can be started."""
        failed = killed = 0
        while failed < MAX_FAILED_STARTS and killed < MAX_KILLED_STARTS and not self._is_killed:
            worker = _Worker()
            self._processes.add(worker.process)
            if self._is_killed:  # the worker was started while the others were killed
                worker.process.kill()
            if worker.is_ready():
                return worker
            self._ended(worker)
            killed, failed = killed + (worker.exit_code < 0), failed + (worker.exit_code >= 0)
        return None

    def _ended(self, worker: "_Worker") -> str:
        """Return a description of how a process ended."""
        worker.close()
        self._processes.discard(worker.process)
        code = worker.exit_code
        if code >= 0:
            return f"its process ended with status {code}"
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process was ended by signal {-code}"


class _Worker:
    """A worker process and the pipe to it."""

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
        theirs.close()  # the pipe then closes when the process ends

    def is_ready(self) -> bool:
        """Wait until the process has imported its modules, and return whether it succeeded."""
        try:
            return bool(self._received())
        except (EOFError, OSError):
            return False

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Return (whether it failed, the result or error) of a call; raise EOFError if the process ends."""
        self.pipe.send((function, arguments))
        result: tuple[bool, Any] = self._received()
        return result

    def _received(self) -> Any:
        wait([self.pipe, self.process.sentinel])
        if not self.pipe.poll():
            raise EOFError
        return self.pipe.recv()

    @property
    def exit_code(self) -> int:
        """The exit status of the process, or minus the signal that ended it."""
        return self.process.exitcode or 0

    def close(self) -> None:
        """Close the pipe, which ends the process, and wait for it."""
        self.pipe.close()
        self.process.join()


def _work(pipe: Connection) -> None:
    """Execute calls from a pipe until it is closed; the parent process handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_silent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(True)
        while True:
            function, arguments = pipe.recv()
            try:
                reply = False, function(*arguments)
            except Exception as error:
                reply = True, _sendable(error)
            pipe.send(reply)


def _sendable(error: Exception) -> Exception:
    """Return the error, or a picklable replacement that the other process can restore."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """End this process when its parent ends, because nothing would receive its results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CASES_PER_WORKER = 2  # cases submitted per worker, so that no worker is idle
_REFRESH_SECONDS = 2.0  # s after which the cluster size is queried again
MAX_RENEWED = 30  # largest number of successive executors that break before computing a case


class Here(Executor):
    """An executor that computes immediately in this process."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return the completed future of a call; Ctrl-C propagates."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool:
    """An executor with its capacity and the errors that indicate a lost worker.

    ``executor`` is None for ``workers`` processes on this machine (0: this process), an executor of
    ``concurrent.futures``, a function that returns one, a ``distributed.Client``, or the address of its scheduler.
    """

    def __init__(self, executor: Any, workers: int | None, subject: Subject) -> None:
        if executor is not None and workers is not None:
            raise ModelError("and workers are both given", argument="executor", where="sweep", allowed="one of them")
        self._subject, self._source, self._workers = subject, executor, workers
        self._is_given = isinstance(executor, Executor) or _is_client(executor)
        self.renewed = 0  # number of new executors since the last computed case
        self.executor: Executor = self._made()
        self.is_here = isinstance(self.executor, Here)
        # Threads of this process share the function, so it need not be sent.
        self._parcel = None if isinstance(self.executor, (Here, ThreadPoolExecutor)) else Parcel.of(subject)
        self._size, self._asked = 0, -_REFRESH_SECONDS

    def capacity(self) -> int:
        """Return the largest number of cases to submit to the executor simultaneously."""
        if self.is_here:
            return 1
        if monotonic() - self._asked >= _REFRESH_SECONDS:
            client = getattr(self.executor, "_client", None)
            known = getattr(self.executor, "workers", None) or getattr(self.executor, "_max_workers", None)
            count = known if isinstance(known, int) else cores()
            size = count if client is None else int(sum(client.nthreads().values()))
            self._asked, self._size = monotonic(), max(1, size)
        return CASES_PER_WORKER * self._size

    def submit(self, cases: Sequence[Case], attempt: int) -> "Future[Any]":
        """Return the future of cases that are computed together."""
        try:
            if self._parcel is None:
                return self.executor.submit(run_cases, self._subject, cases)
            return self.executor.submit(run_parcel, self._parcel, cases, attempt)
        except BrokenExecutor:
            raise
        except RuntimeError as error:  # it was shut down
            fix = "pass an open executor; finished cases are stored, and `resume=True` continues"
            raise ModelError(f"the executor does not accept cases: {error}", where="sweep", fix=fix) from None

    def _made(self) -> Executor:
        """Return the user's executor, or a new one of the same kind."""
        source: Any = self._source
        if source is None:
            return Here() if self._workers == 0 else Processes(self._workers)
        if isinstance(source, Executor):
            return source
        if isinstance(source, str):
            return _connected(source)
        if _is_client(source):
            return cast(Executor, source.get_executor(pure=False))
        allowed = "an executor of concurrent.futures, a function that returns one, a distributed.Client, or an address"
        if not callable(source):
            message = f"is of type {type(source).__name__}"
            raise ModelError(message, argument="executor", where="sweep", allowed=allowed)
        made = source()
        if not isinstance(made, Executor) and not hasattr(made, "submit"):
            message, allowed = f"the function executor returned {type(made).__name__}", allowed.partition(",")[0]
            raise ModelError(message, where="sweep", allowed=allowed)
        return cast(Executor, made)

    def is_loss(self, error: BaseException) -> bool:
        """Return whether an error indicates a lost worker; raise it if a different worker would fail too."""
        if isinstance(error, CannotStartError):
            raise error
        if isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__name__ in _LOST_WORKER_ERRORS:
            client = getattr(self.executor, "_client", None)
            if client is not None and client.status != "running":
                fix = "start the scheduler and continue with `resume=True`; finished cases are stored"
                raise ModelError("the cluster can no longer be reached", where="sweep", fix=fix) from None
            return True
        return False

    def renew(self) -> None:
        """Replace a broken executor with a new one."""
        self.renewed += 1
        if self._is_given or self.renewed > MAX_RENEWED:
            message = "the executor is broken: a worker ended" if self._is_given else "new workers end immediately"
            fix = "pass a function that returns an executor, or `workers=N`; continue the study with `resume=True`"
            raise ModelError(message, where="sweep", fix=fix)
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._made()

    def close(self, at_once: bool) -> None:
        """Stop the workers, unless the user provided them; with ``at_once``, do not wait for their cases."""
        if not self._is_given:
            client = getattr(self.executor, "_client", None)
            if client is None:
                self.executor.shutdown(wait=not at_once, cancel_futures=True)
            else:
                with contextlib.suppress(OSError):
                    client.close()  # also cancels its cases


# Names of errors of dask.distributed, which may not be installed: a worker died repeatedly with a task, or a restarted
# scheduler lost tasks.
_LOST_WORKER_ERRORS = ("KilledWorker", "FutureCancelledError")


def _is_client(executor: Any) -> bool:
    return hasattr(executor, "get_executor")


def _connected(address: str) -> Executor:
    """Return the executor of a cluster."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise missing("clusters need dask.distributed", "cluster") from None
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        fix = "start one with: dask scheduler"
        message = f"there is no scheduler at {address!r}: {error}"
        raise ModelError(message, value=address, where="sweep", fix=fix) from None
    return cast(Executor, client.get_executor(pure=False))
