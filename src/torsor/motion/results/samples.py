"""A motion sampled at given times: positions and their rates, forces and their rates, joint reactions."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, shortened
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node import Node

MOVED: tuple[str, ...] = ("q", "v", "a", "j", "tau")
RATES: tuple[str, ...] = ("tau_rate",)
REACTIONS: tuple[str, ...] = ("reactions",)
ROUNDING = 1e-9  # of the duration: rounding by which a time may be outside of the motion


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sampled(Constraint):
    """Quantities of a node as rows without bounds."""

    names: tuple[str, ...]

    def parts(self, node: Node) -> list[ca.SX]:
        """Return each quantity as a column; reactions as six numbers for each joint in turn."""
        return [ca.vec(node.wrenches().T) if name == "reactions" else getattr(node, name) for name in self.names]

    def rows(self, node: Node) -> Rows:
        """Return the quantities as rows, labelled by their indices."""
        rows = ca.vertcat(*self.parts(node))
        free = np.full(rows.numel(), np.inf)
        return Rows(rows, -free, free, tuple(map(str, range(rows.numel()))))


class _Sampler:
    """Kernels of sampled quantities; constant entries are no rows of the kernels and are filled in here."""

    def __init__(self, problem: ProblemStatement, term: _Sampled):
        self.kernels = problem.kernels_of([term])
        parts = term.parts(self.kernels.node)
        self.ends = np.cumsum([part.numel() for part in parts])
        rows = ca.densify(ca.vertcat(*parts))
        self.constants = np.array([float(rows[k]) if rows[k].is_constant() else 0.0 for k in range(rows.numel())])
        self.indices = [int(label) for label in self.kernels.rows[0].labels]

    def __call__(self, problem: ProblemStatement, x: Array, phase: int, s: Array) -> list[Array]:
        batch = Batch(self.kernels, problem.program.layout, phase, s, np.zeros(len(s)))
        rows = np.tile(self.constants, (len(s), 1))
        rows[:, self.indices] = batch.value(x)[0].reshape(len(s), -1)
        return np.split(rows, self.ends[:-1], axis=1)


# Forces are always sampled; their rates and the reactions have kernels of their own, made when they are needed.
_GROUPS: dict[tuple[str, ...], _Sampled] = {names: _Sampled(names=names) for names in (MOVED, RATES, REACTIONS)}


def sampled(problem: ProblemStatement, x: Array, phase: int, s: Array, names: tuple[str, ...]) -> dict[str, Array]:
    """Return quantities (K, ...) of a phase at increasing s (K,) from 0 to 1, for variables x (n,)."""
    samplers = problem.samplers
    if names not in samplers:
        samplers[names] = _Sampler(problem, _GROUPS[names])
    return dict(zip(names, samplers[names](problem, x, phase, s), strict=True))


class Profiled:
    """A mixin with the quantities of a motion at its ``moments``."""

    @property
    def moments(self) -> "Moments":
        """The motion at the moments."""
        raise NotImplementedError

    @property
    def q(self) -> Array:
        """Positions (K, nq)."""
        return self.moments.sampled("q")

    @property
    def v(self) -> Array:
        """Velocities (K, nv)."""
        return self.moments.sampled("v")

    @property
    def a(self) -> Array:
        """Accelerations (K, nv)."""
        return self.moments.sampled("a")

    @property
    def j(self) -> Array:
        """Jerks (K, nv)."""
        return self.moments.sampled("j")

    @property
    def tau(self) -> Array:
        """Forces (K, nv) in N m and N; with closed loops, of the active coordinates (K, N)."""
        return self.moments.sampled("tau")

    @property
    def tau_rate(self) -> Array:
        """Rates of the forces, in N m/s and N/s."""
        return self.moments.sampled("tau_rate")

    @property
    def reactions(self) -> Array:
        """Joint reactions (K, L, 6): moment and force, in N m and N."""
        found = self.moments.sampled("reactions")
        return found.reshape(*found.shape[:-1], found.shape[-1] // 6, 6)


class Moments(Profiled):
    """A motion at times t (K,), or at one time: arrays then have no first axis.

    ``q`` (K, nq), ``v``, ``a``, ``j`` (K, nv) are positions and their rates, ``tau`` (K, nv) forces and ``tau_rate``
    their rates (with closed loops, of the active coordinates: (K, N)), ``reactions`` (K, L, 6) the moment and force
    that each parent exerts on its link, at the link's origin in its axes. ``phase`` (K,) is the index of the phase and
    ``s`` (K,) the fraction of it that has passed; where two phases meet, it is the start of the later one.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> problem = motion.MotionProblem(torsor.library.two_link(), motion.Phase(2.0, points=5), motion.Time(), ends)
        >>> at = Moments(problem, problem.guess(), [0.0, 1.0, 2.0])
        >>> at.q.tolist()
        [[0.0, -2.0], [0.5, -1.5], [1.0, -1.0]]
        >>> at.tau.shape, at.reactions.shape
        ((3, 2), (3, 2, 6))
    """

    def __init__(self, problem: ProblemStatement, x: Array, t: ArrayLike):
        try:
            self.times = np.asarray(t, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"at {t!r}", value=t, where=problem.name, allowed="times in s") from None
        self._problem, self._x, self._found = problem, x, dict[str, Array]()
        durations = np.array([phase_layout.seconds(x) for phase_layout in problem.program.layout.phases])
        ends = np.cumsum(durations)
        T, near = float(ends[-1]), ROUNDING * float(ends[-1])
        if self.times.ndim > 1 or not ((self.times >= -near) & (self.times <= T + near)).all():
            raise ModelError(f"at {shortened(self.times)} s", where=problem.name, allowed=f"times from 0 to {T:.6g} s")
        self.phase = np.searchsorted(ends[:-1], self.times, side="right")
        begun = ends[self.phase] - durations[self.phase]
        self.s = np.clip((self.times - begun) / durations[self.phase], 0.0, 1.0)
        if problem.stages[0].clock:
            self.s = problem.program.layout.phases[0].places(x, self.times)

    @classmethod
    def of_fractions(cls, problem: ProblemStatement, x: Array, fractions: Sequence[Array]) -> "Moments":
        """Return the moments at fractions s of each phase, the start of later phases left out."""
        found, begun, times = cls(problem, x, 0.0), 0.0, []
        parts = [each if k == 0 else each[each > 0] for k, each in enumerate(fractions)]
        for phase_layout, part in zip(problem.program.layout.phases, parts, strict=True):
            times.append(begun + phase_layout.times(x, part))
            begun += phase_layout.seconds(x)
        found.times, found.s = np.concatenate(times), np.concatenate(parts)
        found.phase = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return found

    def __len__(self) -> int:
        return self.times.size

    @property
    def moments(self) -> "Moments":
        """The moments themselves."""
        return self

    def sampled(self, name: str) -> Array:
        """Return a quantity, sampled together with the others of its kernel when it is first needed."""
        if name not in self._found:
            self._found |= self._sample(next(names for names in _GROUPS if name in names))
        return self._found[name]

    def _sample(self, names: tuple[str, ...]) -> dict[str, Array]:
        phases, s, parts = np.atleast_1d(self.phase), np.atleast_1d(self.s), list[dict[str, Array]]()
        order = np.lexsort((s, phases))
        for phase in np.unique(phases):
            parts.append(sampled(self._problem, self._x, int(phase), s[order[phases[order] == phase]], names))
        if not parts:  # an empty array of times: shapes with K = 0
            first = sampled(self._problem, self._x, 0, np.zeros(1), names)
            return {name: values[:0] for name, values in first.items()}
        found = {name: np.concatenate([part[name] for part in parts]) for name in names}
        back = np.argsort(order)
        return {name: values[back].reshape(*self.times.shape, -1) for name, values in found.items()}
