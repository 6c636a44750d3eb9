"""The layout of the variables x of a motion problem: control points, durations and shared numbers.

Known quantities are not variables: the first control points where the start is given and at rest, the last ones
likewise, and given durations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """The layout of a phase: the spline of each profile, and the indices of its control points in x (-1: known).

    ``columns`` and the ``known`` values are (N, largest count of control points); ``duration`` is the index of T or -1,
    and ``ticks`` are the indices of the variables of the clock.
    """

    phase: Phase
    splines: tuple[Spline, ...]
    columns: Indices
    known: Array
    duration: int
    ticks: tuple[int, ...] = ()

    def points(self, x: Array) -> Array:
        """Return the control points (N, most)."""
        padded = np.append(x, 0.0)  # so that the index -1 exists even without variables
        return np.where(self.columns >= 0, padded[self.columns], self.known)

    def seconds(self, x: Array) -> float:
        """Return the duration."""
        return float(x[self.duration]) if self.duration >= 0 else self.phase.bounds[0]

    def profiles(self, x: Array, s: Array, orders: int) -> Array:
        """Return profiles and their time derivatives (orders, K, N) at s (K,)."""
        C, T = self.points(x), self.seconds(x)
        found = np.empty((orders, len(s), len(self.splines)))
        for i, spline in enumerate(self.splines):
            for order in range(orders):
                found[order, :, i] = spline.matrix(s, order) @ C[i, : spline.count] / T**order
        return self._timed(found, x, s) if self.ticks else found

    def _timed(self, y: Array, x: Array, s: Array) -> Array:
        """Return derivatives by time (orders, K, N), from those by s T."""
        h1, h2, h3 = (self.phase.timing.numeric(s, x[list(self.ticks)], order)[:, None] for order in (1, 2, 3))
        T, found = self.seconds(x), y.copy()
        h2, h3 = h2 / T, h3 / T**2
        if len(y) > 1:
            found[1] = y[1] / h1
        if len(y) > 2:
            found[2] = (y[2] * h1 - y[1] * h2) / h1**3
        if len(y) > 3:
            found[3] = (y[3] * h1**2 - 3 * y[2] * h1 * h2 + y[1] * (3 * h2**2 - h1 * h3)) / h1**5
        return found

    def times(self, x: Array, s: Array) -> Array:
        """Return the times (K,) since the start of the phase, at s (K,)."""
        return self.seconds(x) * self.phase.timing.fraction(s, x[list(self.ticks)])

    def places(self, x: Array, times: Array) -> Array:
        """Return s (K,) at times (K,) since the start of the phase."""
        fraction = np.clip(np.asarray(times) / self.seconds(x), 0.0, 1.0)
        return self.phase.timing.place(fraction, x[list(self.ticks)]) if self.ticks else fraction


@dataclass(frozen=True, eq=False)
class Layout:
    """All variables: those of the phases, then the shared ``numbers`` by name; ``size`` is their count."""

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
        """Return the layout of phases; ``known`` has {(profile, control point): value} for each."""
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
        timed = (replace(each, ticks=tuple(shared[name] for name in each.phase.timing.names)) for each in layouts)
        return cls(tuple(timed), shared, size + len(numbers))
