"""What is kept of a search while it runs: its log, the best point so far, the time, and each evaluation once."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.solvers.outcome import Iteration, Outcome, Settings, Solvable, StoppedError, violation

__all__ = ["STOPPED", "Evaluations", "Record", "TimeIsUpError", "searched"]

Array = NDArray[np.float64]

STOPPED = "stopped"


class TimeIsUpError(StoppedError):
    """Raised when the most seconds are over."""


class Evaluations:
    """The functions of a program, each computed once where they are asked for at the same x again.

    Numbers that are not finite are no error here: whether there are any is told by ``is_finite``.
    """

    def __init__(self, program: Solvable):
        self.program = program
        self._x: Array | None = None
        self._value: tuple[float, Array] | None = None
        self._slope: tuple[Array, Array] | None = None

    def _move(self, x: Array) -> None:
        if self._x is None or not np.array_equal(x, self._x):
            self._x, self._value, self._slope = x.copy(), None, None

    def value(self, x: Array) -> tuple[float, Array]:
        """Return f and the rows (m,)."""
        self._move(x)
        if self._value is None:
            with np.errstate(all="ignore"):
                self._value = self.program.value(x)
        return self._value

    def slope(self, x: Array) -> tuple[Array, Array]:
        """Return the gradient (n,) and the entries of the rows' derivatives."""
        self._move(x)
        if self._slope is None:
            with np.errstate(all="ignore"):
                self._slope = self.program.slope(x)
        return self._slope

    def bend(self, x: Array, multipliers: Array, weight: float) -> Array:
        """Return the Hessian; second derivatives that do not exist count as 0."""
        with np.errstate(all="ignore"):
            found = self.program.bend(x, multipliers, weight)
        return found if np.isfinite(found).all() else np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)

    def is_finite(self, x: Array) -> bool:
        """Whether f, the rows, and their first derivatives are finite at x."""
        f, rows = self.value(x)
        if not (np.isfinite(f) and np.isfinite(rows).all()):
            return False
        gradient, entries = self.slope(x)
        return bool(np.isfinite(gradient).all() and np.isfinite(entries).all())


class Record:
    """The log of a search and the best of its points: of those that hold all bounds, the one with the least f."""

    def __init__(self, program: Solvable, start: Array, settings: Settings):
        self.program, self.settings, self.evaluations = program, settings, Evaluations(program)
        self.log = list[Iteration]()
        self._began = perf_counter()
        self._key = np.inf, np.inf
        self._last: Array | None = None
        self._best = start.copy(), np.zeros(program.m), np.zeros(program.n)

    @property
    def seconds(self) -> float:
        """Time since the search began (s)."""
        return perf_counter() - self._began

    def note(self, x: Array, multipliers: Array, bound_multipliers: Array) -> None:
        """Take the next iteration in, and show it to who watches."""
        f, rows = self.evaluations.value(x)
        away = violation(self.program, x, rows)
        step = 0.0 if self._last is None else float(np.abs(x - self._last).max(initial=0.0))
        self._last = x.copy()
        self.log.append(Iteration(len(self.log), f, away, step))
        key = max(away - self.settings.tolerance, 0.0), f
        if key < self._key:
            self._key, self._best = key, (self._last, multipliers.copy(), bound_multipliers.copy())
        if self.settings.watch is not None:
            self.settings.watch(self.log[-1], self._last)
        if self.seconds > self.settings.seconds:
            raise TimeIsUpError

    def outcome(self, status: str, is_solved: bool, found: tuple[Array, Array, Array] | None = None) -> Outcome:
        """Return what was found (x, multipliers, bounds' multipliers), by default the best so far."""
        x, multipliers, bound_multipliers = self._best if found is None else found
        f, rows = self.evaluations.value(x)
        away, iterations = violation(self.program, x, rows), max(len(self.log) - 1, 0)
        return Outcome(
            x, multipliers, bound_multipliers, f, iterations, status, is_solved, self.log, away, self.seconds
        )


def searched(
    program: Solvable, start: Array, settings: Settings, search: Callable[[Record, Array], Outcome]
) -> Outcome:
    """Return the outcome of a search; one that is stopped (Ctrl-C too) or out of time gives the best so far."""
    x = np.array(start, dtype=float)
    if x.shape != (program.n,) or not np.isfinite(x).all():
        found = f"shape {x.shape}" if x.shape != (program.n,) else "numbers that are not finite"
        raise ModelError(describe(found, where="start", allowed=f"{program.n} finite numbers"))
    for kind, lower, upper in (
        ("variable", program.lower, program.upper),
        ("row", program.row_lower, program.row_upper),
    ):
        wrong = np.flatnonzero(~(lower <= upper))
        if wrong.size:
            k = int(wrong[0])
            raise ModelError(describe(f"bounds of {kind} {k} are {lower[k]:g} and {upper[k]:g}", allowed="rising"))
    x = np.clip(x, program.lower, program.upper)
    record = Record(program, x, settings)
    try:
        if not record.evaluations.is_finite(x):
            return record.outcome("the start has values that are not finite", False)
        return search(record, x)
    except TimeIsUpError:
        return record.outcome("stopped at the most seconds", False)
    except (StoppedError, KeyboardInterrupt):
        return record.outcome(STOPPED, False)
