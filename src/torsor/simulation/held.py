"""Loops in a simulation: closed at the start, closed after each step, and by equations that are independent there."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.dynamics import Tree, closed_state, lean
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.errors import ModelError, describe
from torsor.robot.closed_loops.closure import OPEN
from torsor.robot.closed_loops.multipliers import POOR, SINGULAR
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import compiled
from torsor.simulation.trajectory import SimulationError

__all__ = ["HeldStep", "Keeper", "brought_back", "closed_at_start"]

Array = NDArray[np.float64]
Index = tuple[int, ...]
Kernel = Callable[..., tuple[Array, Array, Array]]


def closed_at_start(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the state (..., nq) and (..., nv) with the rounding of its loops gone, or refuse one that is open."""
    gap = np.abs(robot.closure.scaled_error(q))
    rate = np.abs((robot.closure_jacobian(q) @ v[..., None])[..., 0]) / robot.closure.scales[0]
    allowed = f"{OPEN:g} of its size"
    if not gap.max(initial=0.0) <= OPEN:
        fix = "q0 = robot.assemble(q_active, guess)"
        found = f"q0 leaves the loops open by {gap.max():.2g}"
        raise ModelError(describe(found, where=robot.name, allowed=allowed, fix=fix))
    if not rate.max(initial=0.0) <= OPEN * max(1.0, np.abs(v).max(initial=0.0)):
        fix = "v0 = robot.constrained_velocities(q0, v_active)"
        found = f"v0 opens the loops at a rate of {rate.max():.2g}"
        raise ModelError(describe(found, where=robot.name, fix=fix))
    kept = robot.closure.independent_near(q.reshape(-1, robot.nq)[0])
    if q.ndim > 1 and robot.closure.ranks_differ(q, kept):
        found = "rollouts have different numbers of independent equations of closure"
        raise ModelError(
            describe(found, where=robot.name, fix="simulate those that robot.mobility(q) tells apart alone")
        )
    for index in map(tuple, np.argwhere(~(robot.closure.margin(kept, q) >= POOR))):
        if robot.closure.rank(q[index]) < len(kept.rows):
            raise SimulationError(_lost(robot, 0.0, index))
    return brought_back(robot, q, v)


def brought_back(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the nearest states with closed loops."""
    if not q.size:
        return q, v
    kernel = _closer(robot, robot.closure.independent_near(q.reshape(-1, robot.nq)[0]))
    q_closed, v_closed, margin = kernel(q, v)
    for index in map(tuple, np.argwhere(~(margin >= POOR))):
        kept = robot.closure.independent_at(q[index])
        q_closed[index], v_closed[index], _ = _closer(robot, kept)(q[index], v[index])
    return q_closed, v_closed


def _closer(robot: Robot, kept: ClosureChoice) -> Kernel:
    def make() -> ca.Function:
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        found = ca.cse([ca.densify(each) for each in closed_state(lean(Tree.of(robot)), q, v, kept)])
        return ca.Function("closer", [q, v], found, ["q", "v"], ["q_next", "v_next", "margin"])

    return compiled(robot, f"closer {kept}", (), make)


class Keeper:
    """The equations that keep the loops of one rollout closed, for a method that chooses its own steps.

    Such steps may be long: whether A lost its rank within one is seen by the sign of det [A; N], with N the motions
    that A leaves at the start of the step.
    """

    def __init__(self, robot: Robot, q: Array) -> None:
        self.robot, self.kept, self.q = robot, robot.closure.independent_near(q), q

    def holds(self, t: float, q: Array) -> bool:
        """Return whether the equations held on the way to q (nq,) at a time; if not, there are others now."""
        if self._good(self.kept, q):
            self.q = q
            return True
        others = self.robot.closure.independent_at(self.q)
        if others == self.kept or len(others.rows) != len(self.kept.rows) or not self._good(others, q):
            if self._margin(self.kept, q) >= SINGULAR and not self._turned(self.kept, q):
                self.q = q  # poor, but no others are better
                return True
            raise SimulationError(_lost(self.robot, t, ()))
        self.kept = others
        return False

    def _good(self, kept: ClosureChoice, q: Array) -> bool:
        return self._margin(kept, q) >= POOR and not self._turned(kept, q)

    def _margin(self, kept: ClosureChoice, q: Array) -> float:
        return float(self.robot.closure.margin(kept, q))

    def _turned(self, kept: ClosureChoice, q: Array) -> bool:
        A, A_there = (self.robot.closure_jacobian(each)[list(kept.rows)] for each in (self.q, q))
        motions = np.linalg.svd(A)[2][len(A) :]
        signs = [np.linalg.slogdet(np.vstack([each, motions]))[0] for each in (A, A_there)]
        return bool(signs[0] != signs[1])


class HeldStep:
    """A step of fixed length of a robot with loops: step(t, q, v, ..., h) -> (q, v).

    ``make(closing)`` gives the compiled step that keeps those equations of closure; each rollout has its own choice of
    them, which is made anew where they become dependent.
    """

    def __init__(
        self, robot: Robot, make: Callable[[ClosureChoice], Kernel], q: Array, cores: list[tuple[int, ...]]
    ) -> None:
        self.robot, self.make, self.batch = robot, make, q.shape[:-1]
        self.cores = cores  # of what acts, for one rollout
        self.choices = [robot.closure.independent_near(q.reshape(-1, robot.nq)[0])]
        self.kernels = [make(self.choices[0])]
        self.choice = np.zeros(self.batch, dtype=int)
        self.single: Kernel | None = self.kernels[0]
        self.tried = np.full(self.batch, np.inf)  # the margin at which other equations were looked for

    def __call__(self, t: Array, q: Array, v: Array, *rest: Array) -> tuple[Array, Array]:
        """Return the state after the step, or raise an error where no choice of equations is independent."""
        q_next, v_next, margin = self._all(t, q, v, rest) if self.single is None else self.single(t, q, v, *rest)
        if not margin.min() >= POOR:
            q_next, v_next, margin = (np.array(each) for each in (q_next, v_next, margin))
            for index in map(tuple, np.argwhere(~(margin >= POOR))):
                q_next[index], v_next[index] = self._again(
                    index, t, q, v, rest, (q_next[index], v_next[index], margin[index])
                )
        return q_next, v_next

    def of(self, index: Index) -> Callable[..., tuple[Array, Array]]:
        """Return the step of one rollout, by the equations that it has now."""
        kernel = self.kernels[self.choice[index]]
        return lambda *values: kernel(*values)[:2]

    def _all(self, t: Array, q: Array, v: Array, rest: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        found = np.empty_like(q), np.empty_like(v), np.empty(self.batch)
        for k, kernel in enumerate(self.kernels):
            own = self.choice == k
            if own.any():
                parts = kernel(t, q[own], v[own], *self._picked(own, rest))
                for whole, part in zip(found, parts, strict=True):
                    whole[own] = part
        return found

    def _picked(self, index: Any, rest: tuple[Array, ...]) -> list[Array]:
        *forces, h = rest
        pairs = zip(forces, self.cores, strict=True)
        return [np.broadcast_to(each, (*self.batch, *core))[index] for each, core in pairs] + [h]

    def _again(
        self, index: Index, t: Array, q: Array, v: Array, rest: tuple[Array, ...], found: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """Return the state of one rollout after the step, with other equations if there are better ones."""
        margin = found[2]
        if not 0 < margin < np.inf or margin < self.tried[index] / 2:
            self.tried[index] = margin if margin > 0 else np.inf
            kept = self.robot.closure.independent_at(q[index])
            here = self.choices[self.choice[index]]
            if kept != here and len(kept.rows) == len(here.rows):
                there = self._of(kept)(t, q[index], v[index], *self._picked(index, rest))
                if there[2] > 2 * np.fmax(margin, 0):
                    found = there
                    self.choice[index] = self.choices.index(kept)
                    first = self.choice.flat[0]
                    self.single = self.kernels[first] if (self.choice == first).all() else None
        if found[2] < SINGULAR:  # what is not a number is no margin, but a step that failed
            raise SimulationError(_lost(self.robot, float(t) + float(rest[-1]), index))
        return found[0], found[1]

    def _of(self, kept: ClosureChoice) -> Kernel:
        if kept not in self.choices:
            self.choices.append(kept)
            self.kernels.append(self.make(kept))
        return self.kernels[self.choices.index(kept)]


def _lost(robot: Robot, t: float, index: Index) -> str:
    where = f"{robot.name}, rollout {[int(k) for k in index]}" if index else robot.name
    found = f"the loops lose their rank at t = {t:.6g} s: the mechanism is singular, and may go on in several ways"
    fix = "keep it away from there, or add what decides the way, such as a gear: robot.with_coupling(...)"
    return describe(found, where=where, fix=fix)
