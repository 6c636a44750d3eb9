"""Where cases are computed: in this process, in processes of this machine, on a cluster, or by any executor."""

import contextlib
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from importlib import import_module
from time import monotonic
from typing import Any, cast

from torsor.base.errors import ModelError, missing
from torsor.motion.sweeps.cases import Case
from torsor.motion.sweeps.processes import CannotStartError, Processes, WorkerDiedError, cores
from torsor.motion.sweeps.subjects import Subject
from torsor.motion.sweeps.worker import Parcel, run_case, run_parcel

AHEAD = 2  # cases that are given to each worker at a time, so that none waits for the next one
_REFRESH = 2.0  # s after which the size of a cluster is asked for again
MOST_RENEWED = 30  # executors in a row that break before they compute a case


class Here(Executor):
    """An executor that computes in this process, at once.

    Example:
        >>> Here().submit(pow, 2, 10).result()
        1024
    """

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return the future of a call that is done; Ctrl-C goes through."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool:
    """An executor with what a sweep must know of it: how many cases it takes, and what the end of a worker means.

    ``executor`` is None for processes of this machine (``workers`` of them, 0 for this process), an executor of
    ``concurrent.futures``, a function that makes one, a ``distributed.Client``, or the address of its scheduler.
    """

    def __init__(self, executor: Any, workers: int | None, subject: Subject) -> None:
        self._subject, self._make = subject, _maker(executor, workers)
        self._is_given, self._renewed = isinstance(executor, Executor) or _is_client(executor), 0
        self.executor: Executor = executor if isinstance(executor, Executor) else self._made()
        self.is_here = isinstance(self.executor, Here)
        # Threads of this process share the function: it need not be sent.
        self._parcel = None if isinstance(self.executor, (Here, ThreadPoolExecutor)) else Parcel.of(subject)
        self._size, self._asked = 0, -_REFRESH

    def capacity(self) -> int:
        """Return how many cases are given to the executor at a time."""
        if self.is_here:
            return 1
        if monotonic() - self._asked >= _REFRESH:
            self._asked, self._size = monotonic(), max(1, _workers(self.executor))
        return AHEAD * self._size

    def submit(self, case: Case, attempt: int) -> "Future[Any]":
        """Return the future of a case."""
        try:
            if self._parcel is None:
                return self.executor.submit(run_case, self._subject, case)
            return self.executor.submit(run_parcel, self._parcel, case, attempt)
        except BrokenExecutor:
            raise
        except RuntimeError as error:  # it was shut down
            fix = "give an executor that is open; what is done is kept: `resume=True` goes on"
            raise ModelError(f"the executor takes no cases: {error}", where="sweep", fix=fix) from None

    def _made(self) -> Executor:
        found = self._make()
        if not isinstance(found, Executor) and not hasattr(found, "submit"):
            allowed = "an executor of concurrent.futures"
            raise ModelError(f"the function executor returned {type(found).__name__}", where="sweep", allowed=allowed)
        return found

    def worked(self) -> None:
        """Note that a case was computed, so that the executor is sound."""
        self._renewed = 0

    def is_loss(self, error: BaseException) -> bool:
        """Whether an error says that the worker of a case was lost; raise it where no other worker can help."""
        if isinstance(error, CannotStartError):
            raise error
        if isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__name__ in _LOST:
            client = getattr(self.executor, "_client", None)
            if client is not None and client.status != "running":
                fix = "what is done is kept: start the scheduler, and go on with `resume=True`"
                raise ModelError("the cluster cannot be reached any more", where="sweep", fix=fix) from None
            return True
        return False

    def is_broken_by(self, error: BaseException) -> bool:
        """Whether an error says that the whole executor is useless: all its cases are lost, whoever is the cause."""
        return isinstance(error, BrokenExecutor) and not isinstance(error, WorkerDiedError)

    def renew(self) -> None:
        """Make another executor in the place of a broken one."""
        self._renewed += 1
        if self._is_given or self._renewed > MOST_RENEWED:
            found = "the executor is broken: one of its workers ended" if self._is_given else "new workers end at once"
            fix = "give a function that makes an executor, or `workers=N`; what is done is kept: `resume=True` goes on"
            raise ModelError(found, where="sweep", fix=fix)
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._made()

    def close(self, at_once: bool) -> None:
        """Stop the workers, unless they were given by the user."""
        if not self._is_given:
            client = getattr(self.executor, "_client", None)
            if client is None:
                self.executor.shutdown(wait=not at_once, cancel_futures=True)
            else:
                with contextlib.suppress(OSError):
                    client.close()  # which also cancels its cases


# Errors of dask.distributed, by name, since it need not be installed: a worker that died again and again with a task,
# and tasks that a restarted scheduler forgot.
_LOST = ("KilledWorker", "FutureCancelledError")


def _is_client(executor: Any) -> bool:
    return hasattr(executor, "get_executor")


def _maker(executor: Any, workers: int | None) -> Callable[[], Executor]:
    """Return a function that makes an executor."""
    if executor is None:
        return Here if workers == 0 else lambda: Processes(workers)
    if workers is not None:
        raise ModelError("and workers are both given", argument="executor", where="sweep", allowed="one of them")
    if isinstance(executor, str):
        return lambda: _connected(executor)
    if _is_client(executor):
        return lambda: cast(Executor, executor.get_executor(pure=False))
    if isinstance(executor, Executor) or callable(executor):
        return cast(Callable[[], Executor], executor)
    allowed = "an executor of concurrent.futures, a function that makes one, a distributed.Client, or an address"
    raise ModelError(f"is of type {type(executor).__name__}", argument="executor", where="sweep", allowed=allowed)


def _connected(address: str) -> Executor:
    """Return the executor of a cluster."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise missing("clusters need dask.distributed", "cluster") from None
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        fix = "start it with: dask scheduler"
        raise ModelError(f"no scheduler at {address!r}: {error}", value=address, where="sweep", fix=fix) from None
    return cast(Executor, client.get_executor(pure=False))


def _workers(executor: Executor) -> int:
    """Return the number of cases that an executor computes at a time."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return int(sum(client.nthreads().values()))
    known = getattr(executor, "workers", None) or getattr(executor, "_max_workers", None)
    return known if isinstance(known, int) else cores()
