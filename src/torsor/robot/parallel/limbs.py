"""One leg at one state, over symbols: its closure equations, their rates, and its wrench on the platform.

In the tip's axes, the joint on the platform has the pose (R, p); the kind of joint gives the closure equations
phi(R, p) = 0 (``mechanism.Loop``). With the platform's motion in base axes and D = (tip)R(base),

    Omega = D w_b - w_a                 p' = D v_b - v_a - w_a x p              R' = [Omega] R
    phi'  = C Omega + P p'              A_q q' + A_x u = 0

so that a leg needs only one small matrix A_q, which in the tip's axes is often triangular: that of a UPS leg is
diagonal. Khalil 2010, eqs. 63-65; here for every kind of joint.
"""

from functools import cache
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.dynamics.recursions.axes import place_in_body
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import motions, moves, sx
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import CUTS, Loop, Place
from torsor.robot.parallel.platforms import Platform
from torsor.robot.parallel.small import margin, solve
from torsor.spatial import cross, skew


class Limb(NamedTuple):
    """A leg in the form that the algorithms use.

    ``tip`` is on its tree, ``at`` on the platform's. ``rows`` are the independent equations of ``loop``; ``idle``
    (k x nv) are combinations of rates that stay zero, where the leg could spin. ``driven`` are indices of its own
    velocities, ``q`` and ``v`` the slices of its coordinates among those of all legs. ``length`` (m) is the size of the
    robot, which scales translations.
    """

    name: str
    tree: Tree
    tip: Place
    at: Place
    loop: Loop
    rows: tuple[int, ...]
    idle: Array
    driven: tuple[int, ...]
    q: slice
    v: slice
    length: float

    @property
    def units(self) -> tuple[list[float], Array]:
        """Characteristic scales of the equations (independent rows, then idle ones) and of the leg's velocities."""
        rows, own = self.loop.units(self.length), characteristic_scales(self.tree, self.length)[1]
        return [*(rows[k] for k in self.rows), *[1.0] * len(self.idle)], own

    @property
    def angles(self) -> NDArray[np.bool_]:
        """Which positions (nq) of the leg are angles."""
        found = np.zeros(self.tree.nq, dtype=bool)
        for body in self.tree.bodies:
            if not body.joint.follows and body.q.stop - body.q.start == len(body.joint.kind.turns):
                found[body.q] = body.joint.kind.turns
        return found


# Entries of R that are known while the joint is closed: tracing folds their products.
_SAME_AXES = ("weld", "prismatic")
_SAME_LINE = ("revolute", "cylindrical", "planar")
_ANY_AXES = ("spherical", "rod")  # their equations do not depend on the axes of the two frames


@cache
def _rates(kind: str, length: float, closed: bool = True) -> tuple[ca.Function, ca.Function]:
    """Return two functions: (R, p) -> phi and its Jacobian; and the second derivative of phi along a rate of (R, p).

    Equations of a joint that is not ``closed`` take more operations; they are not satisfied by opposite axes.
    """
    R, p, rate = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("rate", 12)
    x = ca.vertcat(ca.vec(R), p)
    loop = Loop("joint", "a", "b", kind, length)
    rows = loop.rows(R, p) if closed else loop.error(R, p)
    jacobian = ca.jacobian(rows, x)
    second = ca.densify(ca.jtimes(jacobian @ rate, x, rate))
    return ca.Function("rows", [R, p], [rows, jacobian]), ca.Function("second", [R, p, rate], [second])


class TracedLimb:
    """A leg at its positions q, and the platform; ``closed``: the loop is closed, which saves operations."""

    def __init__(self, limb: Limb, q: ca.SX, platform: Platform, closed: bool = True):
        self.limb, self.q, self.platform = limb, q, platform
        self.moved = moves(limb.tree, q)
        self.R_tip, self.p_tip = place_in_body(limb.tree, limb.tip)
        if limb.loop.kind in _ANY_AXES:
            self.R_tip = ca.SX.eye(3)
        self.path = list[int]()
        k = limb.tip.link
        while k >= 0:
            self.path.append(k)
            k = limb.tree.bodies[k].parent
        J, x = self._jacobian()
        self.J = J
        self.r, R_at = platform.place(limb.at)  # from the platform's origin, in base axes
        rows, _ = _rates(limb.loop.kind, limb.loop.length, closed)
        self.R, self.p = self.down(R_at), self.down(platform.p + self.r) - x
        self.error = rows(self.R, self.p)[0]
        if closed:
            self.R, self.p = self._closed_rotation(self.R), self._closed_position(self.p)
        jacobian = rows(self.R, self.p)[1][list(limb.rows), :]
        self.P = jacobian[:, 9:]
        self.C = ca.horzcat(*(jacobian[:, :9] @ ca.vec(skew(sx(e)) @ self.R) for e in np.eye(3)))
        by_leg = self.C @ J[:3, :] + self.P @ (J[3:, :] - skew(self.p) @ J[:3, :])
        self.A = ca.densify(ca.vertcat(-by_leg, sx(limb.idle)))
        self.no_idle = ca.SX.zeros(len(limb.idle), 1)

    def _closed_position(self, p: ca.SX) -> ca.SX:
        fixed = CUTS[self.limb.loop.kind][0]
        return ca.vertcat(*(ca.SX(0) if k in fixed else p[k] for k in range(3)))

    def _closed_rotation(self, R: ca.SX) -> ca.SX:
        kind = self.limb.loop.kind
        if kind in _SAME_AXES:
            return ca.SX.eye(3)
        closed = ca.densify(ca.SX(R))
        if kind in _SAME_LINE:
            for i, j in ((0, 2), (1, 2), (2, 0), (2, 1)):
                closed[i, j] = 0
        if kind == "universal":
            closed[2, 2] = 0
        return closed

    def _jacobian(self) -> tuple[ca.SX, ca.SX]:
        """Return the tip's Jacobian (6 x nv) and its position (3 x 1) in the base, both in its own axes.

        All vectors are in the tip's axes, from the tip to the base: joints whose axes meet there leave zeros.
        """
        tree, R = self.limb.tree, self.R_tip
        x = R.T @ self.p_tip
        columns = [ca.SX(6, 1)] * tree.nv
        for k in self.path:
            body, move = tree.bodies[k], self.moved[k]
            turn = R.T @ move.S[:3, :]
            column = ca.vertcat(turn, R.T @ move.S[3:, :] - skew(x) @ turn)
            for c, index in enumerate(range(body.v.start, body.v.stop)):
                columns[index] = columns[index] + body.joint.ratio * column[:, c]
            R = move.up(R)
            x = x + R.T @ move.p
        return ca.densify(ca.horzcat(*columns)), x

    def down(self, x: ca.SX) -> ca.SX:
        """Return vectors (columns) from base axes in the tip's axes."""
        for k in reversed(self.path):
            x = self.moved[k].down(x)
        return self.R_tip.T @ x

    def up(self, x: ca.SX) -> ca.SX:
        """Return vectors (columns) from the tip's axes in base axes."""
        x = self.R_tip @ x
        for k in self.path:
            x = self.moved[k].up(x)
        return x

    def solve(self, right: ca.SX) -> ca.SX:
        """Return the rates x of the leg's coordinates with A_q x = -right in the independent rows, and no spin."""
        return solve(self.A, -ca.vertcat(right, self.no_idle))

    def step(self) -> ca.SX:
        """Return Newton's step toward closure, with the platform fixed."""
        return self.solve(self.error[list(self.limb.rows)])

    def closure_error(self) -> ca.SX:
        """Return the closing error of the leg, without units."""
        return self.error / ca.SX(self.limb.loop.units(self.limb.length))

    def margin(self, signed: bool = False) -> list[ca.SX]:
        """Return numbers of which one is zero where the leg is singular."""
        rows, columns = self.limb.units
        return margin(self.A, rows, list(columns), signed)

    def velocities(self) -> ca.SX:
        """Return q' (nv x 1) of the leg."""
        w, v = self.platform.velocity_at(self.r)
        return self.solve(self.C @ self.down(w) + self.P @ self.down(v))

    def accelerations(self, rates: ca.SX) -> ca.SX:
        """Return q'' (nv x 1) of the leg, from its velocities and the platform's motion."""
        body = motions(self.limb.tree, self.moved, rates, None)[self.limb.tip.link]
        R_T = self.R_tip.T
        w_a, wd_a, U_a = R_T @ body.w, R_T @ body.wd, R_T @ body.U @ self.R_tip
        a_a = R_T @ (body.a + body.U @ self.p_tip)
        w, v = self.platform.velocity_at(self.r)
        wd, a = self.platform.acceleration_at(self.r)
        w_b = self.down(w)
        spin = w_b - w_a
        spin_rate = self.down(wd) - cross(w_a, w_b) - wd_a
        # p', the velocity of the joint on the platform relative to the tip
        p_rate = self._closed_position(self.down(v) - self.J[3:, :] @ rates - cross(w_a, self.p))
        R_rate, R_second = skew(spin) @ self.R, (skew(spin_rate) + skew(spin) @ skew(spin)) @ self.R
        p_second = self.down(a) - a_a - 2 * cross(w_a, p_rate) - U_a @ self.p
        rows, bias = _rates(self.limb.loop.kind, self.limb.loop.length)
        second = rows(self.R, self.p)[1] @ ca.vertcat(ca.vec(R_second), p_second)
        second = second + bias(self.R, self.p, ca.vertcat(ca.vec(R_rate), p_rate))
        return self.solve(second[list(self.limb.rows)])

    def forces(self, rates: ca.SX, accelerations: ca.SX) -> ca.SX:
        """Return the forces (nv x 1) of the leg's coordinates for its own motion."""
        return inverse_dynamics(self.limb.tree, self.q, rates, accelerations)

    def mass_matrix(self) -> ca.SX:
        """Return the leg's own mass matrix (nv x nv)."""
        return mass_matrix(self.limb.tree, self.q)

    def carried(self, tau: ca.SX) -> ca.SX:
        """Return (dq'/du)^T tau as wrenches (6 rows) at the platform's origin in base axes: J_v^T J_i^-T tau."""
        multipliers = -solve(self.A.T, tau)[: len(self.limb.rows), :]
        f = self.up(self.P.T @ multipliers)
        return ca.vertcat(self.up(self.C.T @ multipliers) + skew(self.r) @ f, f)

    def driven_rows(self) -> ca.SX:
        """Return the wrenches (6 x driven) whose product with the platform's twist is the rate of each drive."""
        return self.carried(sx(np.eye(self.limb.tree.nv)[:, list(self.limb.driven)]))
