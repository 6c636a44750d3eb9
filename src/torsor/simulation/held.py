"""Loops in a simulation: closed at the start, closed after each step, and by equations that are independent there."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.dynamics import Tree, closed_state, lean
from torsor.errors import ModelError, describe
from torsor.loops.closed import OPEN
from torsor.loops.multipliers import POOR, SINGULAR
from torsor.model import Robot
from torsor.simulation.dynamics import compiled
from torsor.simulation.trajectory import SimulationError

__all__ = ["HeldStep", "brought_back", "closed_at_start"]

Array = NDArray[np.float64]
Index = tuple[int, ...]
Rows = tuple[int, ...]
Kernel = Callable[..., tuple[Array, Array, Array]]


def closed_at_start(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the state (..., nq) and (..., nv) with the rounding of its loops gone, or refuse one that is open."""
    gap, rate = np.abs(robot.closure_error(q)), np.abs(np.matvec(robot.closure_jacobian(q), v))
    allowed = f"{OPEN:g} of it"
    if not gap.max(initial=0.0) <= OPEN:
        fix = "q0 = robot.assemble(q_active, guess)"
        found = f"q0 leaves the loops open by {gap.max():.2g}"
        raise ModelError(describe(found, where=robot.name, allowed=allowed, fix=fix))
    if not rate.max(initial=0.0) <= OPEN * max(1.0, np.abs(v).max(initial=0.0)):
        fix = "v0 = robot.constrained_velocities(q0, v_active)"
        found = f"v0 opens the loops at a rate of {rate.max():.2g}"
        raise ModelError(describe(found, where=robot.name, allowed=allowed, fix=fix))
    for index in np.ndindex(q.shape[:-1]):
        if robot._rank_at(q[index]) < len(robot._rows_near(q[index])):
            raise SimulationError(_lost(robot, 0.0, index))
    return brought_back(robot, q, v)


def brought_back(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the nearest states with closed loops."""
    if not q.size:
        return q, v
    kernel = _closer(robot, robot._rows_near(q.reshape(-1, robot.nq)[0]))
    q_closed, v_closed, margin = kernel(q, v)
    for index in map(tuple, np.argwhere(~(margin >= POOR))):
        rows = robot._rows_at(q[index])
        q_closed[index], v_closed[index], _ = _closer(robot, rows)(q[index], v[index])
    return q_closed, v_closed


def _closer(robot: Robot, rows: Rows) -> Kernel:
    def make() -> ca.Function:
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        found = ca.cse([ca.densify(each) for each in closed_state(lean(Tree.of(robot)), q, v, rows)])
        return ca.Function("closer", [q, v], found, ["q", "v"], ["q_next", "v_next", "margin"])

    return compiled(robot, f"closer {rows}", (), make)


class HeldStep:
    """A step of fixed length of a robot with loops: step(t, q, v, ..., h) -> (q, v).

    ``make(rows)`` gives the compiled step that keeps those equations of closure; each rollout has its own choice of
    them, which is made anew where they become dependent.
    """

    def __init__(self, robot: Robot, make: Callable[[Rows], Kernel], q: Array, cores: list[tuple[int, ...]]) -> None:
        self.robot, self.make, self.batch = robot, make, q.shape[:-1]
        self.cores = cores  # of what acts, for one rollout
        self.choices = [robot._rows_near(q.reshape(-1, robot.nq)[0])]
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
            rows = self.robot._rows_at(q[index])
            here = self.choices[self.choice[index]]
            if rows != here and len(rows) == len(here):
                there = self._of_rows(rows)(t, q[index], v[index], *self._picked(index, rest))
                if there[2] > 2 * np.fmax(margin, 0):
                    found = there
                    self.choice[index] = self.choices.index(rows)
                    first = self.choice.flat[0]
                    self.single = self.kernels[first] if (self.choice == first).all() else None
        if not found[2] >= SINGULAR:
            raise SimulationError(_lost(self.robot, float(t) + float(rest[-1]), index))
        return found[0], found[1]

    def _of_rows(self, rows: Rows) -> Kernel:
        if rows not in self.choices:
            self.choices.append(rows)
            self.kernels.append(self.make(rows))
        return self.kernels[self.choices.index(rows)]


def _lost(robot: Robot, t: float, index: Index) -> str:
    where = f"{robot.name}, rollout {[int(k) for k in index]}" if index else robot.name
    found = f"the loops lose their rank at t = {t:.6g} s: the mechanism is singular, and may go on in several ways"
    fix = "keep it away from there; robot.mobility(q) has the motions that part"
    return describe(found, where=where, fix=fix)
