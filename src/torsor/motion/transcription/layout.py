"""The layout of the variables x of a motion problem: control points, durations and shared numbers.

Known quantities are not variables: the first control points where the start is given and at rest, the last ones
likewise, and given durations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from torsor.arrays import Array, Indices
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """The layout of a phase: the spline of each profile, and the indices of its control points in x (-1: known).

    ``columns`` and the ``known`` values are (N, largest count of control points); ``duration`` is the index of T or -1.
    """

    phase: Phase
    splines: tuple[Spline, ...]
    columns: Indices
    known: Array
    duration: int

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
        return found


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
        return cls(tuple(layouts), {name: size + k for k, name in enumerate(numbers)}, size + len(numbers))
