"""``torsor.sweep``: compute many cases in parallel, write results as they arrive, and resume stopped studies."""

import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from itertools import islice
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, NamedTuple, Self

from torsor.base.checks import whole_number
from torsor.base.errors import ModelError, warn
from torsor.base.progress import Bar
from torsor.motion.batched import WIDTHS
from torsor.motion.sweeps.cases import Case, Row, numbered
from torsor.motion.sweeps.executors import Pool, WorkerDiedError
from torsor.motion.sweeps.results import COMPLETE, STOPPED, Results
from torsor.motion.sweeps.store import Store, new_store
from torsor.motion.sweeps.subjects import Subject, subject_of

# Number of times that a case may lose its worker; clusters may withdraw nodes repeatedly.
DEFAULT_ATTEMPTS = 5
_POLL_SECONDS = 0.2  # interval (s) between checks for Ctrl-C and for rows to write


def sweep(
    function_or_problem: Any,
    cases: Iterable[Mapping[str, Any]],
    *,
    executor: Any = None,
    workers: int | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    keep: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    attempts: int = DEFAULT_ATTEMPTS,
    progress: bool | None = None,
) -> Results:
    """Compute a function or a motion problem for many cases, and return the results table.

    ``function_or_problem`` is one of the following:

    - a function of keyword arguments that returns a number, an array, a dict of these, a motion problem (which is then
      solved), or a motion result
    - a ``MotionProblem``, whose parts have dotted names (see docs/plan/sweep.md), or its .toml file
    - one of ``motion.sweeps.PROBLEMS``, such as "walk"

    ``cases`` are dicts {parameter: value} of numbers, text, booleans and lists of these: a list, a generator,
    ``motion.sweeps.grid`` or ``motion.sweeps.samples``. ``fixed`` contains parameters that all cases share. Motions are
    solved with ``settings`` of ``MotionProblem.solve``. Their key figures and the arrays named in ``keep``, such as "q"
    and "tau", are stored. ``units`` maps names to units.

    Cases run in ``workers`` local processes with one thread each (by default one process per core), or in this process
    with ``workers=0``. Alternatively, ``executor`` is an executor of ``concurrent.futures``, a function that returns
    one, a ``distributed.Client`` or the address of its scheduler ("tcp://...", which requires the extra ``cluster``).
    If the function is defined in a script, call ``sweep`` under ``if __name__ == "__main__"``.

    Results are written to ``output`` as they arrive: .sqlite, .sqlite3 or .db (SQLite), or .parquet (a Parquet folder,
    which requires the extra ``parquet``). None keeps them in memory. With ``resume``, an existing file is continued:
    its cases are not computed again, except failed ones with ``retry_failed``, and new cases may be added at the end. A
    ``ModelWarning`` is issued if the function, its data, the problem, ``settings`` or Torsor has changed since. Ctrl-C
    ends the study and returns the finished cases, with a corresponding ``status``.

    If a case raises an error or its motion is not solved, its row contains the error. If the worker of a case is
    killed, the case is computed again; it fails after ``attempts`` attempts. ``progress`` shows a progress bar, by
    default on a terminal.

    Example:
        >>> results = torsor.sweep("two-link-time", torsor.motion.sweeps.grid(points=[6, 8]), workers=0)
        >>> results["T"].round(4).tolist(), results.units["T"]
        ([0.4212, 0.4054], 's')
    """
    whole_number(attempts, "sweep", "attempts")
    subject = subject_of(function_or_problem, keep=keep, settings=settings, units=units)
    path = None if output is None else Path(output)
    store = new_store(path, subject.name, subject.units, resume, "" if path is None else subject.fingerprint)
    status = "failed"
    try:
        if retry_failed:
            store.forget_failed()
        total = len(cases) if isinstance(cases, Sized) else None
        with Bar(total, progress, "sweep") as bar, _Interrupt() as interrupt:
            todo = _todo(numbered(cases, fixed), subject, store, bar)
            status = _Sweep(subject, store, bar, interrupt, attempts, total).run(todo, executor, workers)
    finally:
        if path is not None or status == "failed":
            store.close()
    return Results(path, store if path is None else None, status)


def _todo(cases: Iterator[Case], subject: Subject, store: Store, bar: Bar) -> Iterator[Case]:
    """Yield the cases that are not stored yet."""
    checked: set[tuple[str, ...]] = set()
    count = 0
    for case in cases:
        count += 1
        names = tuple(case.values)
        if names not in checked:  # most studies use the same names in all cases
            subject.check(case.values, f"case {case.number}")
            checked.add(names)
        digest = store.known(case.number)
        if digest is None:
            yield case
        elif digest != case.digest:
            message, fix = (
                f"case {case.number} has different values in the file",
                "pass the same cases, or choose another file",
            )
            raise ModelError(message, where="resume", fix=fix)
        else:
            bar.at(case.number)
    stored = sum(store.counts().values())
    if stored > count:
        text = f"the file has {stored} cases, and {count} are given: the results are taken from the file"
        warn(text, where="resume", fix="pass all cases, or choose another file")


class _Job(NamedTuple):
    """Cases that are computed together, the number of lost workers, and the job number at which they are due."""

    cases: tuple[Case, ...]
    losses: int = 0
    turn: int = 0


class _Interrupt:
    """Context that defers Ctrl-C while files are written; it is raised as usual during a case in this process."""

    def __init__(self) -> None:
        self.is_requested = False
        self.raises = False
        self._before: Any = None

    def __enter__(self) -> Self:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.raises or self.is_requested:  # a second Ctrl-C takes effect immediately
            self._before(number, frame)
        self.is_requested = True


class _Sweep:
    """The state of a sweep: running cases, cases that lost their worker, and unwritten rows."""

    def __init__(
        self, subject: Subject, store: Store, bar: Bar, interrupt: _Interrupt, attempts: int, total: int | None
    ) -> None:
        self._subject, self._store, self._bar, self._interrupt = subject, store, bar, interrupt
        self._attempts, self._total = attempts, total
        self._width = 0  # batch size, determined for the first case
        self._given = self._capacity = 0  # number of submitted cases, and number submitted simultaneously
        self._running: dict[Future[Any], _Job] = {}
        self._again: deque[_Job] = deque()  # cases that lost their worker
        self._alone: deque[_Job] = deque()  # cases that lost it together; running each alone identifies the cause
        self._rows: list[Row] = []
        self._written, self._count = monotonic(), sum(store.counts().values())

    def run(self, todo: Iterator[Case], executor: Any, workers: int | None) -> str:
        """Compute all cases and return the status."""
        pool = Pool(executor, workers, self._subject)
        at_once = True
        try:
            while not self._interrupt.is_requested:
                self._fill(todo, pool)
                if not self._running:
                    at_once = False
                    return COMPLETE
                self._collect(pool)
                if len(self._rows) >= self._store.most or monotonic() - self._written >= self._store.patience:
                    self._write()
        except KeyboardInterrupt:
            pass  # raised by a case in this process, or by a second Ctrl-C
        finally:
            self._keep_finished()
            for future in self._running:
                future.cancel()
            try:
                self._write()
            finally:  # even if the disk is full
                pool.close(at_once)
        return STOPPED

    def _next(self, todo: Iterator[Case]) -> _Job | None:
        """Return the next cases, leaving enough for every worker."""
        first = next(todo, None)
        if first is None:
            return None
        if not self._width:
            share = None if self._total is None else -(-self._total // self._capacity)
            self._width = min(self._subject.width(first.values), max(1, share or WIDTHS["cpu"]))
        return _Job((first, *islice(todo, self._width - 1)))

    def _fill(self, todo: Iterator[Case], pool: Pool) -> None:
        """Submit cases until the executor is full; submit suspected causes of lost workers one at a time."""
        if self._alone:
            if not self._running:
                self._submit(self._alone.popleft(), pool)
            return
        self._capacity = pool.capacity()
        while len(self._running) < self._capacity and not self._interrupt.is_requested:
            # A case that lost its worker waits, because the cause may persist.
            is_due = bool(self._again) and self._again[0].turn <= self._given
            job = None if is_due else self._next(todo)
            if job is None and self._again:
                job = self._again.popleft()
            if job is None or not self._submit(job, pool):
                return

    def _submit(self, job: _Job, pool: Pool) -> bool:
        try:
            self._interrupt.raises = pool.is_here
            self._running[pool.submit(job.cases, job.losses)] = job
            self._given += 1
        except BrokenExecutor:  # it broke since the last check
            (self._alone if self._alone else self._again).appendleft(job)
            if not self._running:
                pool.renew()
            return False
        finally:
            self._interrupt.raises = False
        return True

    def _collect(self, pool: Pool) -> None:
        """Collect the cases that have ended."""
        ended, _ = wait(self._running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in ended:
            if future not in self._running:  # already collected from a broken executor
                continue
            error = future.exception() if not future.cancelled() else BrokenExecutor()
            if error is None:
                pool.renewed = 0
                self._running.pop(future)
                self._take(future.result())
            elif not pool.is_loss(error):
                for case in self._running.pop(future).cases:
                    self._fail(case, f"{type(error).__name__}: {error}")
            elif isinstance(error, WorkerDiedError) or not isinstance(error, BrokenExecutor) or future.cancelled():
                self._lose(self._running.pop(future), error)
            else:  # the executor is unusable and all its cases are lost, regardless of the cause
                self._break(pool, error)

    def _take(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        self._count += len(rows)
        self._bar.at(self._count)

    def _fail(self, case: Case, reason: str) -> None:
        self._take([Row(case.number, case.digest, case.values, {}, reason)])

    def _lose(self, job: _Job, error: BaseException, alone: bool = False) -> None:
        """Schedule cases that lost their worker to be computed again one by one, or mark them as failed."""
        for case in job.cases:
            again = _Job((case,), job.losses + 1, self._given + self._capacity)
            if again.losses >= self._attempts:
                self._fail(case, f"its worker was lost {again.losses} times, the last time: {error}")
            else:
                (self._alone if alone else self._again).append(again)

    def _break(self, pool: Pool, error: BaseException) -> None:
        """Schedule the cases of a broken executor to be computed again one by one, since any may be the cause."""
        self._keep_finished()
        lost, is_alone = list(self._running.values()), len(self._running) == 1
        self._running.clear()
        for job in lost:
            if is_alone:
                self._lose(job, error, alone=True)
            else:
                self._alone += [job._replace(cases=(case,)) for case in job.cases]
        pool.renew()

    def _keep_finished(self) -> None:
        """Store all available results."""
        for future in [running for running in self._running if running.done() and not running.cancelled()]:
            if future.exception() is None:
                self._running.pop(future)
                self._take(future.result())

    def _write(self) -> None:
        self._written = monotonic()
        if self._rows:
            self._store.append(self._rows)
            self._rows.clear()
