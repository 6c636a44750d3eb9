"""The layout of the variables x of a motion problem: control points, durations and shared numbers.

Known quantities are not variables: the first control points if the start is prescribed and at rest, the last ones if
the end is, and fixed durations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags, Indices
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """The layout of a phase: the splines of the profiles, and the indices of their control points in x (-1: known).

    ``columns`` and the ``known`` values have the shape (N, largest number of control points). ``duration`` is the index
    of T or -1, and ``ticks`` are the indices of the clock variables.
    """

    phase: Phase
    splines: tuple[Spline, ...]
    columns: Indices
    known: Array
    duration: int
    ticks: tuple[int, ...] = ()

    def points(self, x: Array) -> Array:
        """Return the control points (N, maximum count)."""
        padded = np.append(x, 0.0)  # makes the index -1 valid even without variables
        return np.where(self.columns >= 0, padded[self.columns], self.known)

    def seconds(self, x: Array) -> float:
        """Return the duration."""
        return float(x[self.duration]) if self.duration >= 0 else self.phase.bounds[0]

    def profiles(self, x: Array, s: Array, orders: int) -> Array:
        """Return profiles and their time derivatives (orders, K, N) at s (K,)."""
        C, T = self.points(x), self.seconds(x)
        result = np.empty((orders, len(s), len(self.splines)))
        for i, spline in enumerate(self.splines):
            for order in range(orders):
                result[order, :, i] = spline.matrix(s, order) @ C[i, : spline.count] / T**order
        return self._timed(result, x, s) if self.ticks else result

    def _timed(self, y: Array, x: Array, s: Array) -> Array:
        """Return time derivatives (orders, K, N) from derivatives with respect to s T."""
        h1, h2, h3 = (self.phase.timing.numeric(s, x[list(self.ticks)], order)[:, None] for order in (1, 2, 3))
        T, result = self.seconds(x), y.copy()
        h2, h3 = h2 / T, h3 / T**2
        if len(y) > 1:
            result[1] = y[1] / h1
        if len(y) > 2:
            result[2] = (y[2] * h1 - y[1] * h2) / h1**3
        if len(y) > 3:
            result[3] = (y[3] * h1**2 - 3 * y[2] * h1 * h2 + y[1] * (3 * h2**2 - h1 * h3)) / h1**5
        return result

    def times(self, x: Array, s: Array) -> Array:
        """Return the times (K,) from the start of the phase at s (K,)."""
        return self.seconds(x) * self.phase.timing.numeric(s, x[list(self.ticks)])

    def places(self, x: Array, times: Array) -> Array:
        """Return s (K,) at times (K,) from the start of the phase."""
        fraction = np.clip(np.asarray(times) / self.seconds(x), 0.0, 1.0)
        return self.phase.timing.place(fraction, x[list(self.ticks)]) if self.ticks else fraction


@dataclass(frozen=True, eq=False)
class Layout:
    """All variables: those of the phases, followed by the shared ``numbers``; ``size`` is their number."""

    phases: tuple[PhaseLayout, ...]
    numbers: Mapping[str, int] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(
        cls,
        phases: Sequence[Phase],
        names: Sequence[str],
        known: Sequence[Mapping[tuple[int, int], float]],
        numbers: Sequence[str],
    ) -> "Layout":
        """Return the layout of phases; ``known`` contains {(profile, control point): value} for each phase."""
        layouts, size = list[PhaseLayout](), 0
        for phase, fixed in zip(phases, known, strict=True):
            splines = tuple((phase.own or {}).get(name, phase.spline) for name in names)
            shape = len(splines), max(spline.count for spline in splines)
            columns, values = np.full(shape, -1, dtype=int), np.zeros(shape)
            for i, spline in enumerate(splines):
                for k in range(spline.count):
                    if (i, k) in fixed:
                        values[i, k] = fixed[i, k]
                    else:
                        columns[i, k], size = size, size + 1
            least, most = phase.bounds
            duration = -1 if least == most else size
            size += duration >= 0
            layouts.append(PhaseLayout(phase, splines, columns, values, duration))
        shared = {name: size + k for k, name in enumerate(numbers)}
        timed = (replace(layout, ticks=tuple(shared[name] for name in layout.phase.timing.names)) for layout in layouts)
        return cls(tuple(timed), shared, size + len(numbers))


# Rows that are linear in control points: end states, continuity of phases, periodicity and symmetry.
#
# Each row is a sum of parts T^-d (A x + b), one for each of its phases and derivative orders d.


class Part(NamedTuple):
    """``coefficient`` times the derivative of order ``order`` of a profile (index) at s of a phase."""

    phase: int
    s: float
    order: int
    profile: int
    coefficient: float = 1.0


class Equation(NamedTuple):
    """A linear equation or inequality: a weighted sum of parts between bounds."""

    title: str
    label: str
    parts: tuple[Part, ...]
    lower: float
    upper: float
    pace: float = 0.0  # factor of the duration of the first phase
    paced_by: str = ""  # name of a shared number that multiplies the pace

    @property
    def is_timeless(self) -> bool:
        """Whether the row is 0 for any duration: T^-d (A x + b) = 0."""
        is_single = len({(part.phase, part.order) for part in self.parts}) == 1
        return is_single and self.lower == self.upper == self.pace == 0.0


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear rows over the variables of a layout."""

    equations: Sequence[Equation]
    layout: Layout

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.equations)

    @cached_property
    def parts(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """The matrix A (m, n) and the column b (m,) for each (phase, order).

        T^-d (A x + b) = 0 does not depend on T, so T is replaced by the mean of its bounds, which makes the Jacobian
        constant.
        """
        result: dict[tuple[int, int], tuple[Array, Array]] = {}
        for row, equation in enumerate(self.equations):
            is_timeless = equation.is_timeless
            for part in equation.parts:
                key = part.phase, 0 if is_timeless else part.order
                if key not in result:
                    result[key] = np.zeros((self.m, self.layout.size)), np.zeros(self.m)
                A, b = result[key]
                phase_layout = self.layout.phases[part.phase]
                spline = phase_layout.splines[part.profile]
                values = part.coefficient * spline.row(part.s, part.order)
                if is_timeless:
                    values = values / (sum(phase_layout.phase.bounds) / 2) ** part.order
                columns = phase_layout.columns[part.profile, : spline.count]
                known = columns < 0
                A[row, columns[~known]] += values[~known]
                b[row] += values[known] @ phase_layout.known[part.profile, : spline.count][known]
        return result

    def value(self, x: Array) -> Array:
        """Return the rows (m,)."""
        total = np.zeros(self.m)
        for (phase, order), (A, b) in self.parts.items():
            total += (A @ x + b) / self.layout.phases[phase].seconds(x) ** order
        for row, column, pace in self.paces:
            total[row] += (pace * x[column] if column >= 0 else pace) * self.layout.phases[0].seconds(x)
        return total

    @cached_property
    def paces(self) -> list[tuple[int, int, float]]:
        """The parts proportional to the duration: row, index of a shared number (-1: none), and factor."""
        columns = {"": -1, **self.layout.numbers}
        return [
            (row, columns[equation.paced_by], equation.pace)
            for row, equation in enumerate(self.equations)
            if equation.pace
        ]

    @cached_property
    def pattern(self) -> Flags:
        """The sparsity pattern (m, n) of the Jacobian."""
        result = np.zeros((self.m, self.layout.size), dtype=bool)
        for (phase, order), (A, b) in self.parts.items():
            result |= A != 0
            at = self.layout.phases[phase].duration
            if at >= 0 and order:
                result[:, at] |= (A != 0).any(axis=1) | (b != 0)
        for row, column, _ in self.paces:
            result[row, [place for place in (self.layout.phases[0].duration, column) if place >= 0]] = True
        return result

    def jacobian(self, x: Array) -> Array:
        """Return the Jacobian (m, n)."""
        total = np.zeros((self.m, self.layout.size))
        for (phase, order), (A, b) in self.parts.items():
            phase_layout = self.layout.phases[phase]
            T = phase_layout.seconds(x)
            total += A / T**order
            if phase_layout.duration >= 0:
                total[:, phase_layout.duration] -= order * (A @ x + b) / T ** (order + 1)
        first = self.layout.phases[0]
        for row, column, pace in self.paces:
            if first.duration >= 0:
                total[row, first.duration] += pace * x[column] if column >= 0 else pace
            if column >= 0:
                total[row, column] += pace * first.seconds(x)
        return total

    def hessian(self, x: Array, multipliers: Array) -> Array:
        """Return the Hessian (n, n) of multipliers . rows."""
        total = np.zeros((self.layout.size, self.layout.size))
        for (phase, order), (A, b) in self.parts.items():
            phase_layout = self.layout.phases[phase]
            T, at = phase_layout.seconds(x), phase_layout.duration
            if at >= 0 and order:
                column = -order * (multipliers @ A) / T ** (order + 1)
                total[at] += column
                total[:, at] += column
                total[at, at] += order * (order + 1) * float(multipliers @ (A @ x + b)) / T ** (order + 2)
        at = self.layout.phases[0].duration
        for row, place, pace in self.paces:
            if at >= 0 and place >= 0:
                total[at, place] += pace * multipliers[row]
                total[place, at] += pace * multipliers[row]
        return total

    @cached_property
    def is_curved(self) -> bool:
        """Whether the rows are nonlinear, because T or a number multiplies other variables."""
        return bool(self.hessian_pattern.any())

    @cached_property
    def hessian_pattern(self) -> Flags:
        """The sparsity pattern (n, n) of the Hessian."""
        result = np.zeros((self.layout.size, self.layout.size), dtype=bool)
        for (phase, order), (A, _) in self.parts.items():
            at = self.layout.phases[phase].duration
            if at >= 0 and order:
                seen = A.any(axis=0)
                result[at, seen] = result[seen, at] = result[at, at] = True
        at = self.layout.phases[0].duration
        for _, column, _ in self.paces:
            if at >= 0 and column >= 0:
                result[at, column] = result[column, at] = True
        return result
