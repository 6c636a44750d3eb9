"""The log, the best iterate and the time of a running solver, and the checks and stops that all solvers share."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.optimisation.outcome import Iteration, Outcome, Settings, StoppedError
from torsor.optimisation.program import Evaluations, NonlinearProgram, largest_violation
from torsor.optimisation.scaled import Scaled

TIME_LIMIT = "stopped at the time limit"
FARTHEST = 1e20  # variables beyond this diverge (the limit of IPOPT)


class LimitError(StoppedError):
    """Raised at the time limit, or when variables diverge; its text is the status of the outcome."""


class Record:
    """The log of a solver and its best iterate: the feasible one with the least f, or the least infeasible one."""

    def __init__(self, program: NonlinearProgram, start: Array, settings: Settings):
        self.program, self.settings, self.evaluations = program, settings, Evaluations(program)
        self.weight = 1.0
        self.log = list[Iteration]()
        self._began = perf_counter()
        self._key = np.inf, np.inf
        self._last: Array | None = None
        self._best = start.copy(), np.zeros(program.m), np.zeros(program.n)

    def scale(self, start: Array) -> None:
        """Replace the program by its scaled form; the log and the outcome stay in terms of the program as given."""
        scaled = Scaled(self.evaluations, start, self.settings.tolerance)
        self.program, self.weight, self.evaluations = scaled, scaled.weight, Evaluations(scaled)
        self.settings = scaled.settings(self.settings)

    @property
    def seconds(self) -> float:
        """Time since the start (s)."""
        return perf_counter() - self._began

    def _value(self, x: Array) -> tuple[float, Array]:
        f, rows = self.evaluations.value(x)
        return f / self.weight, rows

    def note(self, x: Array, multipliers: Array, bound_multipliers: Array) -> None:
        """Log an iterate, call ``watch``, and raise an error if a limit is exceeded."""
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
        if np.abs(x).max(initial=0.0) > FARTHEST:
            raise LimitError("stopped: variables grow without bound")

    def check(self) -> None:
        """Raise an error after the time limit, or if the watch was interrupted; for long work within an iteration."""
        if getattr(self.settings.watch, "interrupted", False):
            raise StoppedError
        if self.seconds > self.settings.seconds:
            raise LimitError(TIME_LIMIT)

    def outcome(self, status: str, is_solved: bool, found: tuple[Array, Array, Array] | None = None) -> Outcome:
        """Return the outcome for (x, multipliers, bound_multipliers), by default of the best iterate."""
        x, multipliers, bound_multipliers = self._best if found is None else found
        if self.weight != 1:
            multipliers, bound_multipliers = multipliers / self.weight, bound_multipliers / self.weight
        f, rows = self._value(x)
        excess, count = largest_violation(self.program, x, rows), max(len(self.log) - 1, 0)
        return Outcome(x, multipliers, bound_multipliers, f, count, status, is_solved, self.log, excess, self.seconds)


def run_solver(
    program: NonlinearProgram, start: Array, settings: Settings, search: Callable[[Record, Array], Outcome]
) -> Outcome:
    """Return the outcome of a solver; if it is stopped (also by Ctrl-C) or out of time, that of the best iterate."""
    x = np.array(start, dtype=float)
    if x.shape != (program.n,) or not np.isfinite(x).all():
        found = f"shape {x.shape}" if x.shape != (program.n,) else "values that are not finite"
        raise ModelError(describe(found, where="start", allowed=f"{program.n} finite numbers"))
    bounds = {"variable": (program.lower, program.upper), "row": (program.row_lower, program.row_upper)}
    for kind, (lower, upper) in bounds.items():
        for k in np.flatnonzero(~(lower <= upper)).tolist():
            found = f"bounds of {kind} {k} are {lower[k]:g} and {upper[k]:g}"
            raise ModelError(describe(found, allowed="lower <= upper"))
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
