"""What a motion is at given moments: positions and their rates, forces and their rates, reactions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node import Node

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem

__all__ = ["Moments", "Profiled", "sampled"]

Array = NDArray[np.float64]

MOVED: tuple[str, ...] = ("q", "v", "a", "j", "tau")
RATES: tuple[str, ...] = ("tau_rate",)
REACTIONS: tuple[str, ...] = ("reactions",)
ROUNDING = 1e-9  # of the duration, by which a time may be outside


@dataclass(frozen=True, eq=False, kw_only=True)
class _Seen(Constraint):
    """Quantities of a node, one after the other, without bounds."""

    names: tuple[str, ...]

    def parts(self, node: Node) -> list[ca.SX]:
        """Return the quantities, each as a column; of reactions the six numbers of each joint in turn."""
        return [ca.vec(node.wrenches().T) if name == "reactions" else getattr(node, name) for name in self.names]

    def rows(self, node: Node) -> Rows:
        """Return them as rows, with their places as labels."""
        rows = ca.vertcat(*self.parts(node))
        free = np.full(rows.numel(), np.inf)
        return Rows(rows, -free, free, tuple(map(str, range(rows.numel()))))


class _Sampler:
    """Quantities traced as rows of a problem; those that are the same at all moments need not be among the rows."""

    def __init__(self, problem: "MotionProblem", seen: _Seen):
        self.traced = problem._trace([seen])
        parts = seen.parts(self.traced.node)
        self.ends = np.cumsum([part.numel() for part in parts])
        rows = ca.densify(ca.vertcat(*parts))
        self.still = np.array([float(rows[k]) if rows[k].is_constant() else 0.0 for k in range(rows.numel())])
        self.places = [int(label) for label in self.traced.bounds[0].labels]

    def __call__(self, problem: "MotionProblem", x: Array, phase: int, s: Array) -> list[Array]:
        batch = Batch(self.traced, problem.program.layout, phase, s, np.zeros(len(s)))
        rows = np.tile(self.still, (len(s), 1))
        rows[:, self.places] = batch.value(x)[0].reshape(len(s), -1)
        return np.split(rows, self.ends[:-1], axis=1)


# Forces are there for every use; their rates and reactions are traced when they are asked for.
_GROUPS: dict[tuple[str, ...], _Seen] = {names: _Seen(names=names) for names in (MOVED, RATES, REACTIONS)}


def sampled(problem: "MotionProblem", x: Array, phase: int, s: Array, names: tuple[str, ...]) -> dict[str, Array]:
    """Return quantities (K, ...) of a phase at rising shares s (K,), for variables x."""
    samplers = problem._samplers
    if names not in samplers:
        samplers[names] = _Sampler(problem, _GROUPS[names])
    return dict(zip(names, samplers[names](problem, x, phase, s), strict=True))


class Moments:
    """A motion at times t (K,), or at one: all arrays then have no first axis.

    ``q`` (K, nq), ``v``, ``a``, ``j`` (K, nv) are positions and their rates, ``tau`` (K, nv) forces and ``tau_rate``
    their rates (with closed loops, of the active coordinates: (K, N)), ``reactions`` (K, L, 6) what each parent exerts
    on its link, at the link's origin in its axes. ``phase`` (K,) and ``s`` (K,) say where in the motion they are; where
    two phases meet, it is the start of the later one.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> problem = motion.MotionProblem(torsor.library.two_link(), motion.Phase(2.0, points=5), motion.Time(), ends)
        >>> at = Moments(problem, problem.guess(), [0.0, 1.0, 2.0])
        >>> at.q.tolist()
        [[0.0, -2.0], [0.5, -1.5], [1.0, -1.0]]
        >>> at.tau.shape, at.reactions.shape
        ((3, 2), (3, 2, 6))
    """

    def __init__(self, problem: "MotionProblem", x: Array, t: ArrayLike):
        try:
            self.times = np.asarray(t, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(describe(f"at {t!r}", where=problem.name, allowed="times in s")) from None
        self._problem, self._x = problem, x
        durations = np.array([stretch.seconds(x) for stretch in problem.program.layout.stretches])
        ends = np.cumsum(durations)
        T, near = float(ends[-1]), ROUNDING * float(ends[-1])
        if self.times.ndim > 1 or not ((self.times >= -near) & (self.times <= T + near)).all():
            allowed = f"times from 0 to {T:.6g} s"
            raise ModelError(describe(f"at {self.times.tolist()} s", where=problem.name, allowed=allowed))
        self.phase = np.searchsorted(ends[:-1], self.times, side="right")
        begun = ends[self.phase] - durations[self.phase]
        self.s = np.clip((self.times - begun) / durations[self.phase], 0.0, 1.0)

    @classmethod
    def of_shares(cls, problem: "MotionProblem", x: Array, shares: Sequence[Array]) -> "Moments":
        """Return the moments at shares of each phase, the start of later phases left out."""
        found, begun, times = cls(problem, x, 0.0), 0.0, []
        parts = [each if k == 0 else each[each > 0] for k, each in enumerate(shares)]
        for stretch, part in zip(problem.program.layout.stretches, parts, strict=True):
            times.append(begun + part * stretch.seconds(x))
            begun += stretch.seconds(x)
        found.times, found.s = np.concatenate(times), np.concatenate(parts)
        found.phase = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return found

    def __len__(self) -> int:
        return self.times.size

    def _found(self, names: tuple[str, ...]) -> dict[str, Array]:
        phases, shares, parts = np.atleast_1d(self.phase), np.atleast_1d(self.s), list[dict[str, Array]]()
        order = np.lexsort((shares, phases))
        for phase in np.unique(phases):
            own = order[phases[order] == phase]
            parts.append(sampled(self._problem, self._x, int(phase), shares[own], names))
        if not parts:  # no moments have shapes too
            first = sampled(self._problem, self._x, 0, np.zeros(1), names)
            return {name: values[:0] for name, values in first.items()}
        found = {name: np.concatenate([part[name] for part in parts]) for name in names}
        back = np.argsort(order)
        return {name: values[back].reshape(*self.times.shape, -1) for name, values in found.items()}

    @cached_property
    def _moved(self) -> dict[str, Array]:
        return self._found(MOVED)

    @property
    def q(self) -> Array:
        """Positions (K, nq)."""
        return self._moved["q"]

    @property
    def v(self) -> Array:
        """Velocities (K, nv)."""
        return self._moved["v"]

    @property
    def a(self) -> Array:
        """Accelerations (K, nv)."""
        return self._moved["a"]

    @property
    def j(self) -> Array:
        """Jerks (K, nv)."""
        return self._moved["j"]

    @property
    def tau(self) -> Array:
        """Forces (K, nv) in N m and N; with closed loops those of the active coordinates (K, N)."""
        return self._moved["tau"]

    @cached_property
    def tau_rate(self) -> Array:
        """Rates of the forces, in N m/s and N/s."""
        return self._found(RATES)["tau_rate"]

    @cached_property
    def reactions(self) -> Array:
        """Joint reactions (K, L, 6): moment and force, in N m and N."""
        found = self._found(REACTIONS)["reactions"]
        return found.reshape(*self.times.shape, found.shape[-1] // 6, 6)


class Profiled:
    """What has a motion at ``moments``, and its quantities there."""

    @property
    def moments(self) -> Moments:
        """The motion at the moments."""
        raise NotImplementedError

    @property
    def times(self) -> Array:
        """Times (K,) of the profiles, in s."""
        return self.moments.times

    @property
    def q(self) -> Array:
        """Positions (K, nq)."""
        return self.moments.q

    @property
    def v(self) -> Array:
        """Velocities (K, nv)."""
        return self.moments.v

    @property
    def a(self) -> Array:
        """Accelerations (K, nv)."""
        return self.moments.a

    @property
    def j(self) -> Array:
        """Jerks (K, nv)."""
        return self.moments.j

    @property
    def tau(self) -> Array:
        """Forces (K, nv) in N m and N; with closed loops, of the active coordinates (K, N)."""
        return self.moments.tau

    @property
    def tau_rate(self) -> Array:
        """Rates of the forces, in N m/s and N/s."""
        return self.moments.tau_rate

    @property
    def reactions(self) -> Array:
        """Joint reactions (K, L, 6), in N m and N."""
        return self.moments.reactions
