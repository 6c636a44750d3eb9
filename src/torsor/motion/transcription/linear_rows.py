"""Rows that are linear in control points and their rates: ends, continuity of phases, periodicity, symmetry.

Each is a sum of parts T^-d (A x + b), one for each phase and order of rates that occurs in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.motion.transcription.layout import Layout

__all__ = ["Equation", "Linear", "Part"]

Array = NDArray[np.float64]


class Part(NamedTuple):
    """``share`` times a rate of that ``order`` of a profile (by its index) at a share s of a phase."""

    phase: int
    s: float
    order: int
    profile: int
    share: float = 1.0


class Equation(NamedTuple):
    """A sum of parts that stays between two bounds."""

    title: str
    label: str
    parts: tuple[Part, ...]
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Linear:
    """Equations over the variables of a layout."""

    equations: Sequence[Equation]
    layout: Layout

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.equations)

    @cached_property
    def _parts(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """For each (phase, order) the matrix A (m, x) and the column b (m,)."""
        found: dict[tuple[int, int], tuple[Array, Array]] = {}
        for row, equation in enumerate(self.equations):
            for part in equation.parts:
                key = part.phase, part.order
                if key not in found:
                    found[key] = np.zeros((self.m, self.layout.size)), np.zeros(self.m)
                A, b = found[key]
                stretch = self.layout.stretches[part.phase]
                spline = stretch.splines[part.profile]
                values = part.share * spline.matrix([part.s], part.order)[0]
                columns = stretch.columns[part.profile, : spline.count]
                known = columns < 0
                A[row, columns[~known]] += values[~known]
                b[row] += values[known] @ stretch.known[part.profile, : spline.count][known]
        return found

    def value(self, x: Array) -> Array:
        """Return the rows (m,)."""
        total = np.zeros(self.m)
        for (phase, order), (A, b) in self._parts.items():
            total += (A @ x + b) / self.layout.stretches[phase].seconds(x) ** order
        return total

    def jacobian(self, x: Array) -> Array:
        """Return their derivatives (m, x)."""
        total = np.zeros((self.m, self.layout.size))
        for (phase, order), (A, b) in self._parts.items():
            stretch = self.layout.stretches[phase]
            T = stretch.seconds(x)
            total += A / T**order
            if stretch.duration >= 0:
                total[:, stretch.duration] -= order * (A @ x + b) / T ** (order + 1)
        return total

    def hessian(self, x: Array, multipliers: Array) -> Array:
        """Return the Hessian (x, x) of multipliers . rows."""
        total = np.zeros((self.layout.size, self.layout.size))
        for (phase, order), (A, b) in self._parts.items():
            stretch = self.layout.stretches[phase]
            T, at = stretch.seconds(x), stretch.duration
            if at >= 0 and order:
                column = -order * (multipliers @ A) / T ** (order + 1)
                total[at] += column
                total[:, at] += column
                total[at, at] += order * (order + 1) * float(multipliers @ (A @ x + b)) / T ** (order + 2)
        return total

    @cached_property
    def touched(self) -> NDArray[np.bool_]:
        """Where the Hessian may be other than zero (x, x)."""
        found = np.zeros((self.layout.size, self.layout.size), dtype=bool)
        for (phase, order), (A, _) in self._parts.items():
            at = self.layout.stretches[phase].duration
            if at >= 0 and order:
                seen = A.any(axis=0)
                found[at, seen] = found[seen, at] = found[at, at] = True
        return found
