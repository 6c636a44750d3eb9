"""Samples of a motion: positions and their derivatives, forces and their rates, and joint reactions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.time_series import TimeAxis, polynomials
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.variables import PhaseLayout

POSITION_RATES = ("q", "v", "a", "j")
MOTION_NAMES: tuple[str, ...] = (*POSITION_RATES, "tau")
RATE_NAMES: tuple[str, ...] = ("tau_rate",)
REACTION_NAMES: tuple[str, ...] = ("reactions",)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sampled(Constraint):
    """Quantities of a node as rows without bounds."""

    names: tuple[str, ...]

    def parts(self, node: Node) -> list[ca.SX]:
        """Return each quantity as a column; reactions have six numbers per joint."""
        return [ca.vec(node.wrenches().T) if name == "reactions" else getattr(node, name) for name in self.names]

    def rows(self, node: Node) -> Rows:
        """Return the quantities as rows, labelled by their indices."""
        rows = ca.vertcat(*self.parts(node))
        free = np.full(rows.numel(), np.inf)
        return Rows(rows, -free, free, tuple(map(str, range(rows.numel()))))


class _Sampler:
    """Kernels of sampled quantities, and their constant entries, which are not rows of the kernels."""

    def __init__(self, problem: ProblemStatement, term: _Sampled):
        self.kernels = problem.kernels_of([term])
        parts = term.parts(self.kernels.node)
        ends = np.cumsum([0, *(part.numel() for part in parts)]).tolist()
        self.parts = {name: slice(*edges) for name, edges in zip(term.names, pairwise(ends), strict=True)}
        rows = ca.densify(ca.vertcat(*parts))
        self.constants = np.array([float(rows[k]) if rows[k].is_constant() else 0.0 for k in range(rows.numel())])
        self.indices = [int(label) for label in self.kernels.rows[0].labels]

    def __call__(self, **inputs: Any) -> Array:
        """Return all entries (..., rows) at nodes (...)."""
        result = self.kernels.value(**inputs).get("rows")
        if result is not None and len(self.indices) == len(self.constants):
            return result
        rows = np.tile(self.constants, (*np.shape(inputs["s"]), 1))
        if result is not None:
            rows[..., self.indices] = result
        return rows


# Forces are always sampled; their rates and the reactions have separate kernels, which are compiled when needed.
_GROUPS: dict[tuple[str, ...], _Sampled] = {
    names: _Sampled(names=names) for names in (MOTION_NAMES, RATE_NAMES, REACTION_NAMES)
}


class Profiled:
    """Mixin with the quantities of a motion at its ``moments``."""

    @property
    def moments(self) -> "Moments":
        """The samples of the motion."""
        raise NotImplementedError

    @cached_property
    def q(self) -> Array:
        """Positions (..., nq)."""
        return self.moments.sampled("q")

    @cached_property
    def v(self) -> Array:
        """Velocities (..., nv)."""
        return self.moments.sampled("v")

    @cached_property
    def a(self) -> Array:
        """Accelerations (..., nv)."""
        return self.moments.sampled("a")

    @cached_property
    def j(self) -> Array:
        """Jerks (..., nv)."""
        return self.moments.sampled("j")

    @cached_property
    def tau(self) -> Array:
        """Forces (..., nv) in N m and N; with closed loops, those of the active coordinates (..., N)."""
        return self.moments.sampled("tau")

    @cached_property
    def tau_rate(self) -> Array:
        """Force rates (..., nv), in N m/s and N/s; with closed loops, those of the active coordinates (..., N)."""
        return self.moments.sampled("tau_rate")

    @cached_property
    def reactions(self) -> Array:
        """Joint reactions (..., L, 6): moment and force, in N m and N."""
        result = self.moments.sampled("reactions")
        return result.reshape(*result.shape[:-1], result.shape[-1] // 6, 6)


class Course:
    """The motion of a problem for variables x: profile polynomials between knots, phase by phase."""

    def __init__(self, problem: ProblemStatement, x: Array):
        layout = problem.program.layout
        self.problem, self.x, self.phases = problem, x, layout.phases
        self.durations = np.array([phase.seconds(x) for phase in layout.phases])
        self._begun = np.cumsum([0.0, *self.durations])
        self._axis = TimeAxis(self._begun, problem.name, len(layout.phases) - 1)
        starts = [
            np.unique([0.0, *(knot for spline in phase.splines for knot in spline.inner)]) for phase in layout.phases
        ]
        parts = zip(layout.phases, starts, self.durations, strict=True)
        pieces = [_pieces(phase, x, begins, T) for phase, begins, T in parts]
        powers = max(piece.shape[1] for piece in pieces)
        self._pieces = np.concatenate(
            [np.pad(piece, ((0, 0), (0, powers - piece.shape[1]), (0, 0))) for piece in pieces]
        )
        self._starts = np.concatenate([T * begins for begins, T in zip(starts, self.durations, strict=True)])
        # The piece at s of phase p is looked up at p + s; the end of a phase belongs to its last piece.
        places = np.concatenate([k + begins for k, begins in enumerate(starts)])
        self._places = TimeAxis(places, problem.name, len(places) - 1)
        self._last = np.cumsum([len(begins) for begins in starts]) - 1
        self._numbers = x[list(layout.numbers.values())]

    def at(self, t: ArrayLike) -> "Moments":
        """Return the motion at times t (...)."""
        times, phase = self._axis.find(t)
        if self.problem.stages[0].clock:
            return Moments(self, times, phase, self.phases[0].places(self.x, np.asarray(times)))
        s = (times - self._begun[phase]) / self.durations[phase]
        return Moments(self, times, phase, min(s, 1.0) if isinstance(phase, int) else np.minimum(s, 1.0))

    def at_fractions(self, fractions: Sequence[Array]) -> "Moments":
        """Return the motion at fractions s of each phase; the start of later phases is omitted."""
        parts = [fraction if k == 0 else fraction[fraction > 0] for k, fraction in enumerate(fractions)]
        layouts = zip(self.phases, parts, self._begun[:-1], strict=True)
        times = [begun + phase.times(self.x, part) for phase, part, begun in layouts]
        phase = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return Moments(self, np.concatenate(times), phase, np.concatenate(parts))

    @cached_property
    def _plain(self) -> Array | None:
        """The polynomials (S, powers, nv) of the coordinates if each is a profile or constant, otherwise None."""
        problem, model = self.problem, self.problem.model
        if model.is_closed or model.path is not None or problem.stages[0].clock:
            return None
        result = np.zeros((*self._pieces.shape[:2], model.robot.nq))
        result[:, 0] = model.positions(np.zeros(model.names.moving))
        result[:, :, model.places] = self._pieces[..., : model.names.moving]
        return result

    def sampled(self, name: str, phase: Any, s: Any) -> dict[str, Array]:
        """Return a quantity (..., n) at fractions s (...) of phases (...), with the other quantities of its kernel."""
        least = min if isinstance(phase, int) else np.minimum
        piece = least(self._places.interval(phase + s), self._last[phase])
        time = s * self.durations[phase] - self._starts[piece]  # since the start of the piece
        if name in POSITION_RATES and self._plain is not None:
            y = polynomials(self._plain[piece], time, len(POSITION_RATES))
            return {rate: y[..., k, :] for k, rate in enumerate(POSITION_RATES)}
        names, samplers = next(names for names in _GROUPS if name in names), self.problem.samplers
        if names not in samplers:
            samplers[names] = _Sampler(self.problem, _GROUPS[names])
        sampler: _Sampler = samplers[names]
        orders, model = sampler.kernels.orders, self.problem.model
        y = polynomials(self._pieces[piece], time, orders)
        inputs = {f"y_{k}": y[..., k, :] for k in range(orders)}
        inputs |= {"numbers": self._numbers, "given": sampler.kernels.given}
        if model.is_closed:
            inputs["Q"] = model.positions(y[..., 0, :])
        rows = sampler(T=np.asarray(self.durations[phase]), s=np.asarray(s), **inputs)
        return {quantity: rows[..., columns] for quantity, columns in sampler.parts.items()}


def _pieces(phase: PhaseLayout, x: Array, s: Array, T: float) -> Array:
    """Return profile coefficients (S, powers, N) of a phase, for pieces that start at s (S,), in local time."""
    points, powers = phase.points(x), 1 + max(spline.degree for spline in phase.splines)
    result = np.zeros((len(s), powers, len(points)))
    for k, spline in enumerate(phase.splines):
        result[:, : spline.degree + 1, k] = spline.taylor(s, points[k, : spline.count, None])[..., 0]
    return np.asarray(result / T ** np.arange(powers)[:, None])


class Moments(Profiled):
    """A motion sampled at ``times`` t (...), in s.

    ``q`` (..., nq), ``v``, ``a``, ``j`` (..., nv) are positions and their derivatives, ``tau`` (..., nv) are forces,
    and ``tau_rate`` are their rates; with closed loops, those of the active coordinates (..., N). ``reactions`` (...,
    L, 6) are the moment and force that each parent exerts on its link, at the link origin, in link axes. ``phase``
    (...) is the index of the phase and ``s`` (...) its elapsed fraction. Where two phases meet, ``at`` returns the
    start of the later one.
    """

    def __init__(self, course: Course, times: Any, phase: Any, s: Any):
        self.times, self.phase, self.s = times, phase, s
        self._course, self._found = course, dict[str, Array]()

    def __len__(self) -> int:
        return int(np.size(self.times))

    @property
    def moments(self) -> "Moments":
        """The samples themselves, as required by the mixin."""
        return self

    def sampled(self, name: str) -> Array:
        """Return a quantity; the first access samples all quantities of its kernel."""
        if name not in self._found:
            self._found |= self._course.sampled(name, self.phase, self.s)
        return self._found[name]
