"""A phase of a motion: its duration, the splines of its profiles, and the nodes at which terms are evaluated."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, instance_of, is_whole, one_of, whole_number
from torsor.base.errors import ModelError
from torsor.motion.transcription.splines import Spline

# A free clock: the elapsed time of a phase as a function of the spline parameter s.
#
# Splines, nodes and contact events are at fixed s. With a clock, the time at s is
#
#     t = T h(s)      h = s + sum_k (a_k sin 2 pi k s + b_k (1 - cos 2 pi k s)) / (2 pi k)
#
# with variables a_k, b_k, so the optimisation determines the durations between events. The rate dh/ds and its
# derivative are equal at both ends. Profiles with equal derivatives with respect to s at both ends therefore have equal
# derivatives with respect to t.

SLOWEST = 0.25  # smallest rate dh/ds, which keeps time increasing
MAX_CLOCK_VARIABLE = 0.7  # bound of each variable


@dataclass(frozen=True)
class Clock:
    """A clock with ``harmonics`` pairs of variables; with 0, t = s T."""

    harmonics: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(f"clock {part} {k + 1}" for k in range(self.harmonics) for part in ("cos", "sin"))

    def _basis(self, s: Any, order: int, pi: Any) -> list[Any]:
        """Return the derivative of order ``order`` of the functions of s that the variables multiply in h."""
        basis = list[Any]()
        for k in range(1, self.harmonics + 1):
            w = 2 * math.pi * k
            sine, cosine = pi.sin(w * s), pi.cos(w * s)
            basis += [
                [sine / w, (1 - cosine) / w],
                [cosine, sine],
                [-w * sine, w * cosine],
                [-(w**2) * cosine, -(w**2) * sine],
            ][order]
        return basis

    def derivative(self, s: ca.SX, values: ca.SX, order: int) -> ca.SX:
        """Return h (order 0) or its derivative with respect to s, as an expression."""
        first = [s, ca.SX(1), ca.SX(0), ca.SX(0)][order]
        return first + sum((values[k] * b for k, b in enumerate(self._basis(s, order, ca))), start=ca.SX(0))

    def numeric(self, s: Array, values: Array, order: int = 0) -> Array:
        """Return h (order 0) or its derivative with respect to s at s (K,), for values of the variables."""
        s = np.asarray(s, dtype=float)
        first = [s, np.ones_like(s), np.zeros_like(s), np.zeros_like(s)][order]
        basis = self._basis(s, order, np)
        return np.asarray(first + sum((float(v) * b for v, b in zip(values, basis, strict=True)), start=0.0))

    def place(self, fraction: Array, values: Array) -> Array:
        """Return s (K,) for elapsed fractions of the duration, which is the inverse of h, by Newton's method."""
        target = np.asarray(fraction, dtype=float)
        grid = np.linspace(0.0, 1.0, 257)
        s = np.interp(target, self.numeric(grid, values), grid)
        for _ in range(4):
            s = np.clip(s - (self.numeric(s, values) - target) / self.numeric(s, values, 1), 0.0, 1.0)
        return np.asarray(s)


EVEN_CLOCK = Clock()


POINTS = 12  # control points of a phase without ``points``, before refinement
MAX_POINTS, MAX_NODES = 10_000, 1_000_000  # limits of a phase; more would not fit in memory
MAX_HARMONICS = 6  # largest number of harmonics of a clock
FAR_APART_RATIO = 100.0  # ratio of duration bounds above which the initial guess is their geometric mean
MIN_GAUSS_POINTS = 20  # smallest number per integral; with fewer, solvers exploit fast motions between them


@dataclass(frozen=True, eq=False)
class Phase:
    """A part of a motion with its own profiles.

    ``duration`` (s) is a number, or bounds (least, most) of a variable duration. ``points`` is the number of control
    points of each profile, and ``degree`` is the spline degree. If ``points`` is None, there are 12, and ``solve`` adds
    more where they reduce the objective. Use ``knots`` between 0 and 1 instead of ``points`` if they are not
    equidistant. ``own`` is {coordinate: Spline} for coordinates with different splines. ``nodes`` is the number of
    equidistant times from start to end at which terms are evaluated (by default ten per control point), or an array of
    these times as fractions of the phase from 0 to 1. Integrals use 2 (``degree`` - 1) Gauss points between knots, and
    at least 20 in total (12 per control point of a path that is followed, 8 per row of a reference), or the nodes with
    ``quadrature="trapezoid"``.

    With a ``clock`` of 1 to 6 harmonics (two variables each), time is a free function of s. Terms at fixed s, such as
    contacts, then occur at free times (``Clock``). A clock requires a motion with one phase.

    Example:
        >>> Phase((0.1, 2.0), points=12).nodes.size
        121
    """

    duration: float | tuple[float, float]
    points: int | None = None
    degree: int = 3
    knots: Sequence[float] | None = None
    nodes: Any = None
    own: Mapping[str, Spline] | None = None
    quadrature: str = "gauss"
    name: str = ""
    clock: int = 0

    def __post_init__(self) -> None:
        where = f"phase {self.name!r}" if self.name else "phase"
        bounds = finite_vector(self.duration)
        if bounds is None or bounds.size not in (1, 2) or not (0 < bounds[0] <= bounds[-1] < np.inf):
            allowed = "a positive number of seconds, or bounds (least, most)"
            raise ModelError(argument="duration", value=self.duration, where=where, allowed=allowed)
        instance_of(self.name, str, where, "name", allowed="a string")
        one_of(self.quadrature, ("gauss", "trapezoid"), where, "quadrature")
        whole_number(self.clock, where, "clock", least=0, most=MAX_HARMONICS)
        # Control points or nodes that would not fit in memory are rejected before they are created.
        counts = {"points": (self.points, MAX_POINTS), "nodes": (self.nodes, MAX_NODES)}
        for name, (count, most) in (counts | {"knots": (self.knots, MAX_POINTS)}).items():
            if (is_whole(count) and count > most) or (np.ndim(count) == 1 and np.size(count) > most):
                message = f"{name} is {count}" if is_whole(count) else f"there are {np.size(count)} {name}"
                raise ModelError(message, where=where, allowed=f"{most} or fewer", fix=f"use fewer {name}")
        if self.knots is not None and self.points not in (None, POINTS, self.spline.count):
            message = f"points is {self.points!r}, but the knots belong to {self.spline.count} points"
            raise ModelError(message, value=self.points, where=where, fix="omit points")
        own_splines = {} if self.own is None else self.own
        if not isinstance(own_splines, Mapping) or not all(
            isinstance(spline, Spline) for spline in own_splines.values()
        ):
            raise ModelError(argument="own", value=self.own, where=where, allowed="{coordinate: Spline}")
        node_setting = 10 * self.spline.count + 1 if self.nodes is None else self.nodes
        nodes = (
            np.linspace(0.0, 1.0, max(int(node_setting), 0)) if is_whole(node_setting) else finite_vector(node_setting)
        )
        nodes = np.zeros(0) if nodes is None else np.unique(nodes)
        if nodes.size < 2 or not (nodes[0] >= 0 and nodes[-1] <= 1):
            allowed = "at least 2, or fractions of the phase from 0 to 1"
            raise ModelError(f"are {self.nodes!r}", value=self.nodes, argument="nodes", where=where, allowed=allowed)
        nodes.setflags(write=False)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "duration", tuple(bounds.tolist()) if bounds.size == 2 else float(bounds[0]))

    @cached_property
    def spline(self) -> Spline:
        """The spline of profiles that are not in ``own``."""
        if self.knots is not None:
            return Spline(self.degree, self.knots)  # type: ignore[arg-type]  # Spline converts them to an array
        return Spline.uniform(POINTS if self.points is None else self.points, self.degree)

    @property
    def is_refinable(self) -> bool:
        """Whether ``solve`` may add control points: ``points``, ``knots``, ``nodes`` and ``own`` are not set."""
        is_default = self.points is None and self.knots is None and self.own is None
        return is_default and np.array_equal(self.nodes, np.linspace(0.0, 1.0, 10 * self.spline.count + 1))

    @property
    def timing(self) -> Clock:
        """The clock of the phase."""
        return Clock(self.clock)

    @property
    def bounds(self) -> tuple[float, float]:
        """The shortest and the longest duration (s)."""
        return self.duration if isinstance(self.duration, tuple) else (self.duration, self.duration)

    @property
    def first_duration(self) -> float:
        """The duration (s) of the initial guess: the mean of the bounds, or the geometric mean if they are far apart.

        From the mean of 1e-9 s and 1e9 s, for example, solvers would converge to motions with many reversals.
        """
        least, most = self.bounds
        return math.sqrt(least) * math.sqrt(most) if most > FAR_APART_RATIO * least else (least + most) / 2

    def integral(self, first: float, last: float, fewest: int = MIN_GAUSS_POINTS) -> tuple[Array, Array]:
        """Return quadrature points s (K,) and weights (K,) for the integral from s = ``first`` to s = ``last``.

        There are at least ``fewest`` Gauss points.
        """
        if self.quadrature == "trapezoid":
            moments = np.unique(np.hstack([first, self.nodes[(self.nodes > first) & (self.nodes < last)], last]))
            steps = np.diff(moments)
            return moments, np.concatenate([steps, [0.0]]) / 2 + np.concatenate([[0.0], steps]) / 2
        inner = np.unique(np.concatenate([spline.inner for spline in (self.spline, *(self.own or {}).values())]))
        edges = np.concatenate([[first], inner[(inner > first) & (inner < last)], [last]])
        degree = max(spline.degree for spline in (self.spline, *(self.own or {}).values()))
        count = max(2 * degree - 2, -(-max(fewest, MIN_GAUSS_POINTS) // (len(edges) - 1)))
        at, weights = _gauss(count)
        half = np.diff(edges)[:, None] / 2
        return (edges[:-1, None] + half * (1 + at)).ravel(), (half * weights).ravel()


@cache
def _gauss(count: int) -> tuple[Array, Array]:
    at, weights = np.polynomial.legendre.leggauss(count)
    return at, weights


def is_phase(wanted: object, index: int, phase: Phase) -> bool:
    """Return whether ``wanted`` is the index or the name of a phase."""
    is_name = isinstance(wanted, str) and wanted != "" and wanted == phase.name
    return is_name or (is_whole(wanted) and wanted == index)
