"""The log, best iterate and run time of a solver, and the checks and stopping conditions of all solvers."""

import math
import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError
from torsor.base.interrupts import is_stoppable
from torsor.base.progress import Display
from torsor.optimisation.program import (
    Evaluations,
    Iteration,
    NonlinearProgram,
    Outcome,
    Settings,
    StoppedError,
    largest_violation,
)

# A scaled program for solvers, in which the objective is not tiny and constant rows have no bounds.
#
# - Tolerances are absolute, so any start would be optimal for an objective of 1e-9. If the objective and its gradient
#   are smaller than 1 near the start, they are scaled up to 1. Solvers themselves scale large objectives down.
# - Some rows at a bound do not depend on any variable, such as the initial position of a joint that starts at its
#   limit. Interior-point methods would search for a point inside that bound, which does not exist, and return a
#   meaningless multiplier.

ZERO_CHANGE = 1e-12  # derivatives and changes of scaled rows that count as 0
NEARBY_DISTANCE = 1e-2  # distance from the start to a second point, at which constant rows must have the same values
MIN_OBJECTIVE = 1e-100  # objectives below this count as 0


class Scaled:
    """A program with its objective multiplied by ``weight``, and without bounds on constant rows at a bound."""

    def __init__(self, evaluations: Evaluations, start: Array, tolerance: float):
        program, self._evaluations = evaluations.program, evaluations
        self.n, self.m, self.scales = program.n, program.m, program.scales
        self.lower, self.upper = program.lower, program.upper
        self.structure, self.hessian_structure = program.structure, program.hessian_structure
        moves = np.random.default_rng(0).uniform(-NEARBY_DISTANCE, NEARBY_DISTANCE, self.n)
        nearby = np.clip(start + moves, self.lower, self.upper)
        with np.errstate(invalid="ignore"):
            size, rows, still = self._sample(start)
            still &= np.minimum(np.abs(rows - program.row_lower), np.abs(rows - program.row_upper)) <= tolerance
            if size < 1 or still.any():
                other = self._sample(nearby)
                size = float(np.fmax(size, other[0]))
                still = still & other[2] & (np.abs(other[1] - rows) <= ZERO_CHANGE)
        self.weight = 1 / size if MIN_OBJECTIVE < size < 1 else 1.0
        self.row_lower = np.where(still, -np.inf, program.row_lower)
        self.row_upper = np.where(still, np.inf, program.row_upper)

    def _sample(self, x: Array) -> tuple[float, Array, Flags]:
        """Return the magnitude of f and its gradient, the rows (m,), and flags (m,) of rows with zero derivatives."""
        (f, rows), (gradient, entries) = self._evaluations.value(x), self._evaluations.jacobian(x)
        still = np.ones(self.m, dtype=bool)
        still[self.structure[0][~(np.abs(entries) <= ZERO_CHANGE)]] = False
        return float(max(abs(f), np.abs(gradient).max(initial=0.0))), rows, still

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        f, rows = self._evaluations.value(x)
        return self.weight * f, rows

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) of f and the entries of the rows' Jacobian."""
        gradient, entries = self._evaluations.jacobian(x)
        return gradient if self.weight == 1 else self.weight * gradient, entries

    def hessian(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian."""
        return self._evaluations.hessian(x, multipliers, self.weight * weight)

    def settings(self, given: Settings) -> Settings:
        """Return the settings with multipliers scaled for this program."""
        both = given.multipliers, given.bound_multipliers
        rows, bounds = (None if multipliers is None else self.weight * multipliers for multipliers in both)
        return replace(given, multipliers=rows, bound_multipliers=bounds)


MAX_ROWS_SHOWN = 8  # number of iterations in the live table
PATIENCE_SECONDS = 2.0  # seconds before a line appears on a terminal


_stops: list[Callable[[], bool]] = []  # conditions that stop all solvers of this process


def stop_when(condition: Callable[[], bool]) -> None:
    """Stop all solvers of this process, as Ctrl-C does, as soon as a condition is true."""
    _stops.append(condition)


class Watch:
    """A ``watch`` function for solver settings that shows progress and handles Ctrl-C.

    With ``shown=True``, a table of the last iterations is shown on stderr. With None, a terminal shows the last
    iteration in one line, from two seconds after the start until the end. Inside ``with``, Ctrl-C stops the solver at
    the next iteration (``interrupted``), and the best iterate is returned. A second Ctrl-C raises KeyboardInterrupt.

    Example:
        >>> watch = Watch()
        >>> watch(Iteration(0, 3.0, 0.5, 0.0), np.zeros(1))
        >>> watch.interrupted = True
        >>> watch(Iteration(1, 5.0, 0.0, 0.1), np.ones(1))
        Traceback (most recent call last):
            ...
        torsor.optimisation.program.StoppedError
    """

    def __init__(self, shown: bool | None = False, title: str = "solver"):
        self.title, self._shown, self.interrupted = title, shown, False
        self._display = Display(shown, PATIENCE_SECONDS, keep=bool(shown))
        self._last = deque[Iteration](maxlen=MAX_ROWS_SHOWN)
        self._before: Any = None

    def __enter__(self) -> Self:
        # Python handles signals only in the main thread. If SIGINT is ignored, as in background jobs, it remains
        # ignored. A handler not installed by Python (None) could not be restored.
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if before not in (signal.SIG_IGN, None):
                self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._outer is not None:
            self.interrupted = self._outer.interrupted
        return self

    @property
    def _outer(self) -> "Watch | None":
        """The watch of a group of solves that includes this one."""
        outer = getattr(self._before, "__self__", None)
        return outer if isinstance(outer, Watch) else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self._display.__exit__(kind, error, trace)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if self._outer is not None:
            self._outer.interrupted = True
        if again or is_stoppable():  # compilation takes long and has no iterations at which it could stop
            raise KeyboardInterrupt

    def __call__(self, iteration: Iteration, x: Array) -> None:
        """Show an iteration; raise StoppedError after Ctrl-C."""
        if self._display.is_due:
            self._last.append(iteration)
            self._display.show(self._table() if self._shown else self._line(iteration))
        self.interrupted = self.interrupted or any(stop() for stop in _stops)
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
        for last in self._last:
            table.add_row(str(last.number), f"{last.objective:.8g}", f"{last.violation:.2e}", f"{last.step:.2e}")
        return table


class Patience:
    """A ``watch`` that also stops a solver without progress, for programs that only measure infeasibility.

    It raises StoppedError if, within ``iterations``, neither the largest violation (down to ``tolerance``) nor the
    objective has fallen below ``factor`` times its previous minimum. ``watch`` is called first.

    Example:
        >>> patience = Patience(Watch(), tolerance=1e-6, iterations=2)
        >>> for k, violation in enumerate([5.0, 1.0, 0.99]):
        ...     patience(Iteration(k, 0.0, violation, 0.1), np.zeros(1))
        >>> patience(Iteration(3, 0.0, 0.99, 0.1), np.zeros(1))
        Traceback (most recent call last):
            ...
        torsor.optimisation.program.StoppedError
    """

    def __init__(self, watch: Watch, tolerance: float, iterations: int = 150, factor: float = 0.95):
        self.watch, self.tolerance, self.iterations, self.factor = watch, tolerance, iterations, factor
        self._least = [math.inf, math.inf]  # violation and objective
        self._since = 0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.watch.interrupted

    def __call__(self, iteration: Iteration, x: Array) -> None:
        """Call ``watch`` with an iteration; raise StoppedError after too many iterations without progress."""
        self.watch(iteration, x)
        self._since += 1
        for kind, value in enumerate((max(iteration.violation, self.tolerance), iteration.objective)):
            before = self._least[kind]
            gain = (1 - self.factor) * abs(before) if math.isfinite(before) else 0.0
            if value < before - gain:  # small decreases add up, because the reference value changes only here
                self._since, self._least[kind] = 0, value
        if self._since >= self.iterations:
            raise StoppedError


TIME_LIMIT_STATUS = "stopped at the time limit"
MAX_VARIABLE = 1e20  # variables beyond this count as diverging (as in IPOPT)


class LimitError(StoppedError):
    """Exception at the time limit or when variables diverge; its text is the status of the outcome."""


class Record:
    """The log and best iterate of a solver: the feasible one with the smallest f, or the least infeasible one."""

    def __init__(self, program: NonlinearProgram, start: Array, settings: Settings):
        self.program, self.settings, self.evaluations = program, settings, Evaluations(program)
        self.weight = 1.0
        self.log = list[Iteration]()
        self._began = perf_counter()
        self._key = np.inf, np.inf
        self._last: Array | None = None
        self._best = start.copy(), np.zeros(program.m), np.zeros(program.n)

    def scale(self, start: Array) -> None:
        """Replace the program with its scaled form; the log and the outcome still refer to the original program."""
        scaled = Scaled(self.evaluations, start, self.settings.tolerance)
        self.program, self.weight, self.evaluations = scaled, scaled.weight, Evaluations(scaled)
        self.settings = scaled.settings(self.settings)

    @property
    def seconds(self) -> float:
        """Time from the start (s)."""
        return perf_counter() - self._began

    def _value(self, x: Array) -> tuple[float, Array]:
        f, rows = self.evaluations.value(x)
        return f / self.weight, rows

    def note(self, x: Array, multipliers: Array, bound_multipliers: Array) -> None:
        """Log an iterate, call ``watch``, and raise LimitError if a limit is exceeded."""
        f, rows = self._value(x)
        excess = largest_violation(self.program, x, rows)
        step = 0.0 if self._last is None else float(np.abs(x - self._last).max(initial=0.0))
        self._last = x.copy()
        self.log.append(Iteration(len(self.log), f, excess, step))
        key = max(excess - self.settings.tolerance, 0.0), f
        if key < self._key:
            self._key, self._best = key, (self._last, multipliers.copy(), bound_multipliers.copy())
        if self.settings.watch is not None:
            self.settings.watch(self.log[-1], self._last)
        self.check()
        if np.abs(x).max(initial=0.0) > MAX_VARIABLE:
            raise LimitError("stopped: variables grow without bound")

    def check(self) -> None:
        """Raise StoppedError after the time limit or an interrupt, for long computations within an iteration."""
        if getattr(self.settings.watch, "interrupted", False):
            raise StoppedError
        if self.seconds > self.settings.seconds:
            raise LimitError(TIME_LIMIT_STATUS)

    def outcome(self, status: str, is_solved: bool, found: tuple[Array, Array, Array] | None = None) -> Outcome:
        """Return the outcome for (x, multipliers, bound_multipliers), by default those of the best iterate."""
        x, multipliers, bound_multipliers = self._best if found is None else found
        if self.weight != 1:
            multipliers, bound_multipliers = multipliers / self.weight, bound_multipliers / self.weight
        f, rows = self._value(x)
        excess, count = largest_violation(self.program, x, rows), max(len(self.log) - 1, 0)
        return Outcome(x, multipliers, bound_multipliers, f, count, status, is_solved, self.log, excess, self.seconds)


def run_solver(
    program: NonlinearProgram, start: Array, settings: Settings, search: Callable[[Record, Array], Outcome]
) -> Outcome:
    """Return the outcome of a solver, or of its best iterate if it is stopped (even by Ctrl-C) or out of time."""
    x = np.array(start, dtype=float)
    if x.shape != (program.n,) or not np.isfinite(x).all():
        problem = f"has shape {x.shape}" if x.shape != (program.n,) else "has values that are not finite"
        raise ModelError(problem, argument="start", allowed=f"{program.n} finite numbers")
    bounds = {"variable": (program.lower, program.upper), "row": (program.row_lower, program.row_upper)}
    for kind, (lower, upper) in bounds.items():
        for k in np.flatnonzero(~(lower <= upper)).tolist():
            raise ModelError(f"the bounds of {kind} {k} are {lower[k]:g} and {upper[k]:g}", allowed="lower <= upper")
    x = np.clip(x, program.lower, program.upper)
    record = Record(program, x, settings)
    try:
        if not record.evaluations.is_finite(x):
            return record.outcome("the start has values that are not finite", False)
        record.scale(x)
        return search(record, x)
    except LimitError as limit:
        return record.outcome(str(limit), False)
    except (StoppedError, KeyboardInterrupt):
        return record.outcome("stopped", False)
