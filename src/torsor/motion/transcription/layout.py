"""Where the variables of a motion problem are: control points, durations and shared numbers in one column x.

What is known beforehand is no variable: the first control points where the start is given and at rest, the last ones
likewise, and durations that are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline

__all__ = ["Layout", "PhaseLayout"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """A phase laid out: of each profile its spline, where its control points are in x (-1: known), and what they are.

    ``columns`` and ``known`` are (N, most control points of a profile); ``duration`` is the index of T or -1.
    """

    phase: Phase
    splines: tuple[Spline, ...]
    columns: Indices
    known: Array
    duration: int

    def points(self, x: Array) -> Array:
        """Return the control points (N, most)."""
        return np.where(
            self.columns >= 0, np.append(x, 0.0)[self.columns], self.known
        )  # -1 is behind all, even of none

    def seconds(self, x: Array) -> float:
        """Return the duration."""
        return float(x[self.duration]) if self.duration >= 0 else self.phase.bounds[0]

    def profiles(self, x: Array, s: Array, orders: int) -> Array:
        """Return profiles and their rates in time (orders, K, N) at shares s."""
        C, T = self.points(x), self.seconds(x)
        found = np.empty((orders, len(s), len(self.splines)))
        for i, spline in enumerate(self.splines):
            for order in range(orders):
                found[order, :, i] = spline.matrix(s, order) @ C[i, : spline.count] / T**order
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """All variables: those of the phases, then the shared ``numbers`` by name; ``size`` counts them."""

    stretches: tuple[PhaseLayout, ...]
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
        """Return the layout of phases; ``known`` of each has {(profile, control point): value}."""
        stretches, size = list[PhaseLayout](), 0
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
            stretches.append(PhaseLayout(phase, splines, columns, values, duration))
        return cls(tuple(stretches), {name: size + k for k, name in enumerate(numbers)}, size + len(numbers))
