"""Loop projection, which keeps the loops of a mechanism closed during a simulation.

States are projected onto closed loops. The closure equations may be redundant, so a linearly independent subset (a
``ClosureChoice``) is used. A new subset is chosen when the current one becomes nearly dependent.
"""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.base.errors import ModelError, SimulationError, listing
from torsor.dynamics import Tree, closed_state, lean
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.closed_loops.closure import MAX_CLOSURE_ERROR
from torsor.robot.closed_loops.constrained import MIN_MARGIN
from torsor.robot.closed_loops.inputs import SINGULAR_MARGIN
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import compiled

Index = tuple[int, ...]
Kernel = Callable[..., tuple[Array, Array, Array]]


class Choices:
    """Choices of independent closure equations of a robot; ``given`` are the names of its prescribed coordinates.

    If coordinates are prescribed, the equations must be independent for the motion of the others.
    """

    def __init__(self, robot: Robot, given: tuple[str, ...] = ()) -> None:
        self.robot, self.given = robot, given
        self._first: Array | None = None
        self.closure = robot.with_active(given).closed.closure if given else robot.closed.closure

    def near(self, q: Array) -> ClosureChoice:
        """Return the equations to try first at positions q (nq,)."""
        return self.at(q) if self.given else self.closure.independent_near(q)

    def at(self, q: Array) -> ClosureChoice:
        """Return equations that are independent and well-conditioned at positions q (nq,)."""
        if not self.given:
            return self.closure.independent_at(q)
        self._first = q if self._first is None else self._first  # so that equal equations give equal choices
        choice = self.closure.driven_equations_at(q, self._first)
        less = int(self.closure.rank(q)) - len(choice.rows)
        if less:
            found = f"the loops determine {less} of the {len(self.given)} prescribed coordinates"
            raise ModelError(found, where=self.robot.name, fix="prescribe fewer: robot.closed.mobility(q).dof")
        return choice

    def during(self, t: float, index: Index, q: Array) -> ClosureChoice:
        """Return well-conditioned equations at time t (s) of a rollout; raise SimulationError if there are none."""
        try:
            return self.at(q)
        except ModelError:
            raise _rank_loss(self.robot, t, index, self.given) from None


def project_start(robot: Robot, choices: Choices, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the initial state (..., nq) and (..., nv) projected onto closed loops; raise ModelError if they are open.

    If coordinates are prescribed, the velocities of the others may be arbitrary, because they are projected.
    """
    gap = np.abs(robot.closed.closure.space.error(q))
    if not gap.max(initial=0.0) <= MAX_CLOSURE_ERROR:
        given = " with the prescribed positions at t = 0" * bool(choices.given)
        found = f"q0 does not close the loops{given}: closure error {gap.max():.2g}"
        allowed = f"{MAX_CLOSURE_ERROR:g} of its size"
        fix = "q0 = robot.closed.assemble(q_active, guess)"
        fix += "" if choices.given else ", or robot.closed.positions(q0), which is near"
        lifted = robot.closed.closure.off_ground(robot.closed.error(q))
        if lifted:
            found, fix = f"at q0{given}, {lifted}", "q0 = robot.closed.positions(q0)"
        raise ModelError(found, where=robot.name, allowed=allowed, fix=fix)
    rate = np.abs((robot.closed.jacobian(q) @ v[..., None])[..., 0]) / robot.closed.closure.scales[0]
    if not choices.given and not rate.max(initial=0.0) <= MAX_CLOSURE_ERROR * max(1.0, np.abs(v).max(initial=0.0)):
        found = f"v0 opens the loops at a rate of {rate.max():.2g}"
        fix = "v0 = robot.closed.velocities(q0, v_active), or robot.closed.velocities(q0, v0, coordinates='all')"
        slip = robot.closed.closure.sliding(rate * robot.closed.closure.scales[0])
        found = f"the velocities v0 {slip}" if slip else found
        raise ModelError(found, where=robot.name, fix=fix)
    choice = choices.near(q.reshape(-1, robot.nq)[0])
    if q.ndim > 1 and robot.closed.closure.ranks_differ(q, choice):
        found = "rollouts have different numbers of independent closure equations"
        fix = "simulate rollouts of different robot.closed.mobility(q) separately"
        raise ModelError(found, where=robot.name, fix=fix)
    for index in map(tuple, np.argwhere(~(robot.closed.closure.margin(choice, q) >= MIN_MARGIN))):
        if robot.closed.closure.rank(q[index]) < len(choice.rows):
            raise _rank_loss(robot, 0.0, index, choices.given)
    return project(robot, q, v, choices)


def project(robot: Robot, q: Array, v: Array, choices: Choices | None = None) -> tuple[Array, Array]:
    """Return the nearest states (..., nq) and (..., nv) with closed loops, in the norm of the mass matrix."""
    if not q.size:
        return q, v
    choices = Choices(robot) if choices is None else choices
    kernel = _projection(robot, choices.near(q.reshape(-1, robot.nq)[0]))
    q_closed, v_closed, margin = kernel(q, v)
    for index in map(tuple, np.argwhere(~(margin >= MIN_MARGIN))):
        choice = choices.at(q[index])
        q_closed[index], v_closed[index], _ = _projection(robot, choice)(q[index], v[index])
    return q_closed, v_closed


def _projection(robot: Robot, choice: ClosureChoice) -> Kernel:
    def make() -> ca.Function:
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        found = ca.cse([ca.densify(each) for each in closed_state(lean(Tree.of(robot)), q, v, choice)[:3]])
        return ca.Function("projection", [q, v], found, ["q", "v"], ["q_next", "v_next", "margin"])

    return compiled(robot, f"projection {choice}", (), make)


class ClosureMonitor:
    """The independent closure equations of one rollout, for a method that chooses its own steps.

    Such steps may be long. A loss of rank of the closure Jacobian A within a step is detected by the sign of
    det [A; N], where N is a basis of the null space of A at the start of the step.
    """

    def __init__(self, choices: Choices, q: Array) -> None:
        self.robot, self.choices, self.choice, self.q = choices.robot, choices, choices.near(q), q

    def is_valid(self, t: float, q: Array) -> bool:
        """Return whether the equations stay independent up to q (nq,) at t; if not, choose others or raise an error."""
        if self._good(self.choice, q):
            self.q = q
            return True
        others = self.choices.during(t, (), self.q)
        if others == self.choice or len(others.rows) != len(self.choice.rows) or not self._good(others, q):
            if self._good(self.choice, q, SINGULAR_MARGIN):
                self.q = q  # nearly dependent, but no other choice is better
                return True
            raise _rank_loss(self.robot, t, (), self.choices.given)
        self.choice = others
        return False

    def _good(self, choice: ClosureChoice, q: Array, least: float = MIN_MARGIN) -> bool:
        margin = float(self.robot.closed.closure.margin(choice, q))
        return margin >= least and not self._changes_sign(choice, q)

    def _changes_sign(self, choice: ClosureChoice, q: Array) -> bool:
        given = np.eye(self.robot.nv)[list(choice.active)]
        A, A_next = (np.vstack([self.robot.closed.jacobian(each)[list(choice.rows)], given]) for each in (self.q, q))
        N = np.linalg.svd(A)[2][len(A) :]
        signs = [np.linalg.slogdet(np.vstack([each, N]))[0] for each in (A, A_next)]
        return bool(signs[0] != signs[1])


class LoopStep:
    """A fixed step of a robot with loops, for a batch of rollouts: step(t, q, v, ..., h) -> (q, v).

    ``make(choice)`` returns the compiled step for a choice of independent closure equations. Each rollout has its
    own choice, which is replaced when its equations become nearly dependent. ``cores`` are the shapes of the held
    forces and wrenches for one rollout.
    """

    def __init__(self, among: Choices, make: Callable[[ClosureChoice], Kernel], q: Array, cores: list[Shape]) -> None:
        self.among, self.make, self.batch, self.cores = among, make, q.shape[:-1], cores
        self.choices = [among.near(q.reshape(-1, among.robot.nq)[0])]
        self.kernels = [make(self.choices[0])]
        self.choice = np.zeros(self.batch, dtype=int)
        self.single: Kernel | None = self.kernels[0]
        self.searched = np.full(self.batch, np.inf)  # the margin at the last search for other equations

    def __call__(self, t: Array, q: Array, v: Array, *rest: Array) -> tuple[Array, Array]:
        """Return the state after the step; raise SimulationError if no choice of equations is independent."""
        q_next, v_next, margin = self._all(t, q, v, rest) if self.single is None else self.single(t, q, v, *rest)
        if not margin.min() >= MIN_MARGIN:
            q_next, v_next, margin = (np.array(each) for each in (q_next, v_next, margin))
            for index in map(tuple, np.argwhere(~(margin >= MIN_MARGIN))):
                now = q_next[index], v_next[index], margin[index]
                q_next[index], v_next[index] = self._retry(index, t, q, v, rest, now)
        return q_next, v_next

    def of(self, index: Index) -> Callable[..., tuple[Array, Array]]:
        """Return the step of one rollout with its current equations."""
        kernel = self.kernels[self.choice[index]]
        return lambda *values: kernel(*values)[:2]

    def _all(self, t: Array, q: Array, v: Array, rest: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        found = np.empty_like(q), np.empty_like(v), np.empty(self.batch)
        for k, kernel in enumerate(self.kernels):
            own = self.choice == k
            if own.any():
                parts = kernel(t, q[own], v[own], *self._forces_of(own, rest))
                for whole, part in zip(found, parts, strict=True):
                    whole[own] = part
        return found

    def _forces_of(self, index: Any, rest: tuple[Array, ...]) -> list[Array]:
        *forces, h = rest
        pairs = zip(forces, self.cores, strict=True)
        return [np.broadcast_to(each, (*self.batch, *core))[index] for each, core in pairs] + [h]

    def _retry(
        self, index: Index, t: Array, q: Array, v: Array, rest: tuple[Array, ...], found: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """Return the state of one rollout after the step, with other equations if they are better."""
        margin = found[2]
        if not 0 < margin < np.inf or margin < self.searched[index] / 2:
            self.searched[index] = margin if margin > 0 else np.inf
            choice = self.among.during(float(t), index, q[index])
            present = self.choices[self.choice[index]]
            if choice != present and len(choice.rows) == len(present.rows):
                if choice not in self.choices:
                    self.choices.append(choice)
                    self.kernels.append(self.make(choice))
                k = self.choices.index(choice)
                other = self.kernels[k](t, q[index], v[index], *self._forces_of(index, rest))
                if other[2] > 2 * np.fmax(margin, 0):
                    found, self.choice[index] = other, k
                    first = self.choice.flat[0]
                    self.single = self.kernels[first] if (self.choice == first).all() else None
        if found[2] < SINGULAR_MARGIN:  # NaN means that the step failed, which is detected elsewhere
            raise _rank_loss(self.among.robot, float(t) + float(rest[-1]), index, self.among.given)
        return found[0], found[1]


def _rank_loss(robot: Robot, t: float, index: Index, given: tuple[str, ...]) -> SimulationError:
    where = f"{robot.name}, rollout {[int(k) for k in index]}" if index else robot.name
    if given:
        found = f"the loops do not determine a motion with {listing(map(repr, given), most=4)} as prescribed"
        found += f" at t = {t:.6g} s: it reaches a dead point or the limit of its workspace"
        fix = "prescribe a motion that stays away from it, or other coordinates: robot.closed.active_sets(q)"
        return SimulationError(found, where=where, fix=fix)
    found = f"the loops lose their rank at t = {t:.6g} s: the mechanism is singular, and its motion is not unique"
    fix = "avoid this configuration, or add a constraint that selects the motion: robot.with_coupling(...)"
    return SimulationError(found, where=where, fix=fix)
