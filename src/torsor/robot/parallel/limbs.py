"""One symbolic leg at one state: its closure equations, their rates, and its wrench on the platform.

In the tip's axes, the joint on the platform has the pose (R, p). The kind of joint determines the closure equations
phi(R, p) = 0 (``mechanism.Loop``). With the platform's motion in base axes, and D the rotation from base to tip axes,

    Omega = D w_b - w_a                 p' = D v_b - v_a - w_a x p              R' = [Omega] R
    phi'  = C Omega + P p'              A_q q' + A_x u = 0

A leg therefore needs only one small matrix A_q. In the tip's axes it is often triangular, and for a UPS leg it is
diagonal. This generalises Khalil 2010, eqs. 63-65, to every kind of joint.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.dynamics.loops.closure import characteristic_scales
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import motions, moves, sx, symmetric, twists, world_poses
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.recursions.places import bodies_above, jacobian, place_in_body
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import CUTS, Loop, Place
from torsor.robot.parallel.small import margin, solve
from torsor.spatial import cross, inverse_pose, skew
from torsor.spatial.vectors import choose

Given = ca.SX | None  # symbols, or None for zero

# The symbolic platform at one state: its motion in base axes, and the generalised forces of wrenches on it.


class Platform:
    """The platform with coordinates x, velocities u and accelerations u_rate; None means zero."""

    def __init__(self, tree: Tree, x: ca.SX, u: Given = None, u_rate: Given = None):
        self.tree, self.x = tree, x
        self.u = ca.SX.zeros(tree.nv, 1) if u is None else u
        self.u_rate = ca.SX.zeros(tree.nv, 1) if u_rate is None else u_rate
        self._moved = moves(tree, x)
        self.R, self.p = world_poses(tree, self._moved)[-1]
        self.is_free = len(tree.bodies) == 1 and tree.nv == 6
        self._twist = twists(tree, self._moved, self.u)[-1]
        motion = motions(tree, self._moved, self.u, self.u_rate)[-1]
        # Vectors are rotated to base axes once, for all legs.
        self._w, self._v = self.R @ self._twist[:3], self.R @ self._twist[3:]
        self._wd, self._a = self.R @ motion.wd, self.R @ motion.a
        W = skew(self._w)
        self._U = skew(self._wd) + symmetric(W @ W)

    def place(self, at: Place) -> tuple[ca.SX, ca.SX]:
        """Return a place's position relative to the platform's origin, and its axes (3 x 3), both in base axes."""
        R, p = place_in_body(self.tree, at)
        return self.R @ p, self.R @ R

    def velocity_at(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (omega, v) of a point of the platform, in base axes."""
        return self._w, self._v + cross(self._w, r)

    def acceleration_at(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return (d omega/dt, acceleration) of a point of the platform, in base axes, without gravity."""
        return self._wd, self._a + self._U @ r

    def project(self, wrench: ca.SX) -> ca.SX:
        """Return the generalised forces (nv rows) of wrenches (6 rows) at the platform's origin in base axes."""
        local = ca.vertcat(self.R.T @ wrench[:3, :], self.R.T @ wrench[3:, :])
        if self.is_free:
            return local
        k = len(self.tree.bodies) - 1
        return jacobian(self.tree, self.x, Place(k, inverse_pose(self.tree.bodies[k].link))).T @ local

    def lifted(self, force: ca.SX) -> ca.SX:
        """Return the generalised forces of a free platform as a wrench (6 x 1) at its origin in base axes."""
        return ca.vertcat(self.R @ force[:3], self.R @ force[3:])

    def forces(self, external: Given = None) -> ca.SX:
        """Return the generalised forces (nv x 1) of the platform alone.

        ``external`` (6 x 1) is a wrench at the platform's origin, in its axes.
        """
        rows = None
        if external is not None:
            above = len(self.tree.bodies) - 1
            rows = ca.vertcat(ca.SX.zeros(above, 6), external.T)
        return inverse_dynamics(self.tree, self.x, self.u, self.u_rate, rows)

    def mass_matrix(self) -> ca.SX:
        """Return the platform's own mass matrix (nv x nv)."""
        return mass_matrix(self.tree, self.x)

    def unit_rates(self) -> ca.SX:
        """Return the platform's twists (6 x nv) at its origin in base axes, for unit rates of its coordinates."""
        return self.project(sx(np.eye(6))).T


class Limb(NamedTuple):
    """A leg as the algorithms use it.

    ``tip`` is a place on its tree, and ``at`` is one on the platform's tree. ``rows`` are the independent equations of
    ``loop``. If the leg could spin, ``idle`` (k x nv) are the combinations of rates that remain zero. ``driven`` are
    indices of its own velocities; ``q`` and ``v`` are the slices of its coordinates among those of all legs. ``length``
    (m) is the size of the robot, which scales translations.
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
        rows, velocities = self.loop.units(self.length), characteristic_scales(self.tree, self.length)[1]
        return [*(rows[k] for k in self.rows), *[1.0] * len(self.idle)], velocities

    @property
    def angles(self) -> NDArray[np.bool_]:
        """Mask (nq) of the leg positions that are angles."""
        result = np.zeros(self.tree.nq, dtype=bool)
        for body in self.tree.bodies:
            if not body.joint.follows and body.q.stop - body.q.start == len(body.joint.kind.turns):
                result[body.q] = body.joint.kind.turns
        return result


# Entries of R that are known while the joint is closed: their products are simplified during tracing.
_SAME_AXES = ("weld", "prismatic")
_SAME_LINE = ("revolute", "cylindrical", "planar")
_ANY_AXES = ("spherical", "rod")  # their equations do not depend on the axes of the two frames


@cache
def _rates(kind: str, length: float, closed: bool = True) -> tuple[ca.Function, ca.Function]:
    """Return (R, p) -> phi and Jacobian, and its second derivative; ``closed`` joints need fewer operations."""
    R, p, rate = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("rate", 12)
    x = ca.vertcat(ca.vec(R), p)
    loop = Loop("joint", "a", "b", kind, length)
    rows = loop.rows(R, p) if closed else loop.error(R, p)
    jacobian = ca.jacobian(rows, x)
    second = ca.densify(ca.jtimes(jacobian @ rate, x, rate))
    return ca.Function("rows", [R, p], [rows, jacobian]), ca.Function("second", [R, p, rate], [second])


class TracedLimb:
    """A leg at positions q, and the platform; ``closed`` assumes that the loop is closed, which saves operations."""

    def __init__(self, limb: Limb, q: ca.SX, platform: Platform, closed: bool = True):
        self.limb, self.q, self.platform = limb, q, platform
        self.moved = moves(limb.tree, q)
        self.R_tip, self.p_tip = place_in_body(limb.tree, limb.tip)
        if limb.loop.kind in _ANY_AXES:
            self.R_tip = ca.SX.eye(3)
        self.path = bodies_above(limb.tree, limb.tip.link)
        J, x = self._jacobian()
        self.J = J
        self.r, R_at = platform.place(limb.at)  # relative to the platform's origin, in base axes
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
        """Return the tip's Jacobian (6 x nv) and position (3 x 1) in its own axes, in which it has many zeros."""
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
        """Return vectors (columns) rotated from base axes to the tip's axes."""
        for k in reversed(self.path):
            x = self.moved[k].down(x)
        return self.R_tip.T @ x

    def up(self, x: ca.SX) -> ca.SX:
        """Return vectors (columns) rotated from the tip's axes to base axes."""
        x = self.R_tip @ x
        for k in self.path:
            x = self.moved[k].up(x)
        return x

    def solve(self, right: ca.SX) -> ca.SX:
        """Return the rates x of the leg's coordinates with A_q x = -right in the independent rows, without spin."""
        return solve(self.A, -ca.vertcat(right, self.no_idle))

    def step(self) -> ca.SX:
        """Return the Newton step towards closure, with the platform fixed."""
        return self.solve(self.error[list(self.limb.rows)])

    def closure_error(self) -> ca.SX:
        """Return the nondimensional closure error of the leg."""
        return self.error / ca.SX(self.limb.loop.units(self.limb.length))

    def margin(self, signed: bool = False) -> list[ca.SX]:
        """Return numbers of which at least one is zero if the leg is singular."""
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


# Inverse kinematics of UPS legs in closed form: two intersecting axes, and a slide from there to the platform.
#
# Let w be the vector from the centre of the universal joint to the joint on the platform, in the first joint's axes:
#
#     |w| = length      q_1 rotates w into the plane of the second joint      q_2: the angle of w from the first axis
#
# There are four solutions: two with q_1 half a turn apart, and for each a second one with the leg reversed and a
# negative length. Two signs select one of them.

AXIS_TOLERANCE = 1e-12  # tolerance for the distance between intersecting axes (m) and for right angles


class Angles(NamedTuple):
    """Positions (3 x 1) of a strut, and the cosines and sines of its first two joint angles."""

    q: ca.SX
    cosines: tuple[ca.SX, ca.SX]
    sines: tuple[ca.SX, ca.SX]


class Strut(NamedTuple):
    """Constants of a UPS leg, including the pose (R, centre) of its universal joint in base axes.

    Each joint turns or slides by ratio * q + offset, where (ratio, offset) is in ``scale``. ``first`` and ``second``
    are the zeros of the two angles, and ``rest`` is the leg length at zero slide.
    """

    limb: Limb
    R: Array
    centre: Array
    first: float
    second: float
    rest: float
    scale: tuple[tuple[float, float], ...]

    def signs(self, q: Any) -> tuple[Any, Any]:
        """Return the two signs of the assembly mode at positions q (3,): those of sin(q_2) and of the length."""
        ratio, offset = self.scale[1]
        slide, rest = self.scale[2]
        side = choose(ca.sin(ratio * q[1] + offset - self.second) >= 0, 1.0, -1.0)
        return side, choose(slide * q[2] + rest + self.rest >= 0, 1.0, -1.0)

    def solve(self, platform: Platform, signs: tuple[Any, Any]) -> Angles:
        """Return the leg's positions for the platform's pose, in the assembly mode given by ``signs``."""
        r, _ = platform.place(self.limb.at)
        x, y, z = ca.vertsplit(sx(self.R.T) @ (platform.p + r - sx(self.centre)))
        flat, (side, way) = x * x + y * y, signs
        across, length = ca.sqrt(flat), way * ca.sqrt(flat + z * z)
        c1, s1 = _add_angle(side * way * x / across, side * way * y / across, -self.first)
        c2, s2 = _add_angle(z / length, side * way * across / length, self.second)
        values = ca.atan2(s1, c1), ca.atan2(s2, c2), length - self.rest
        q = [(value - offset) / ratio for value, (ratio, offset) in zip(values, self.scale, strict=True)]
        return Angles(ca.vertcat(*q), (c1, c2), (s1, s2))


def closest(q: ca.SX, guess: Any) -> ca.SX:
    """Return the positions of a strut with angles within half a turn of the guess."""
    turns = (2 * math.pi * ca.floor((q[k] - guess[k]) / (2 * math.pi) + 0.5) for k in range(2))
    return ca.vertcat(*(q[k] - turn for k, turn in enumerate(turns)), q[2])


def _add_angle(c: ca.SX, s: ca.SX, angle: float) -> tuple[ca.SX, ca.SX]:
    """Return the cosine and sine of the angle with cosine c and sine s, plus ``angle``."""
    quarters = round(angle / (math.pi / 2))
    if abs(angle - quarters * math.pi / 2) < 1e-14:
        return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]
    cos, sin = math.cos(angle), math.sin(angle)
    return c * cos - s * sin, s * cos + c * sin


def strut_of(limb: Limb) -> Strut | None:
    """Return a UPS leg (two orthogonal hinges, a slide orthogonal to the second, a ball) as a strut, or None."""
    bodies = limb.tree.bodies
    kinds = [body.joint.kind.name for body in bodies]
    turns = ("revolute", "continuous")
    serial = [body.parent for body in bodies] == [-1, 0, 1] and limb.tip.link == 2 and limb.loop.kind == "spherical"
    if not serial or kinds[0] not in turns or kinds[1] not in turns or kinds[2] != "prismatic":
        return None
    if any(body.joint.follows for body in bodies) or any(abs(body.joint.ratio) != 1 for body in bodies[:2]):
        return None
    first, second, third = (np.asarray(body.T) for body in bodies)
    # All quantities are in the frame of the first joint at zero angle.
    axis, at = second[:3, 2], second[:3, 3]
    if abs(axis[2]) > AXIS_TOLERANCE:
        return None
    # The point on the second axis that is nearest to the first axis, which is the z axis.
    level = at - (at[:2] @ axis[:2]) * axis
    if np.hypot(level[0], level[1]) > AXIS_TOLERANCE:
        return None
    centre = np.array([0.0, 0.0, level[2]])
    seen = second[:3, :3].T @ (centre - at)  # the centre, on the z axis of the second body, in its axes
    _, p_tip = place_in_body(limb.tree, limb.tip)
    along = third[:3, 2]
    tip = third[:3, 3] + third[:3, :3] @ np.asarray(ca.DM(p_tip)).ravel() - seen  # at zero slide
    if abs(along[2]) > AXIS_TOLERANCE or np.linalg.norm(np.cross(tip, along)) > AXIS_TOLERANCE:
        return None
    # The slide rotates in the plane normal to the second axis; at the angle ``second`` it is along the first axis.
    upright = second[2, 0], second[2, 1]
    flat = second[:3, :3] @ np.array([-upright[1], upright[0], 0.0])
    angle = math.atan2(upright[1], upright[0]) - math.atan2(along[1], along[0])
    scale = tuple((body.joint.ratio, body.joint.offset + body.turn) for body in bodies)
    R = first[:3, :3]
    return Strut(limb, R, first[:3, 3] + R @ centre, math.atan2(flat[1], flat[0]), angle, float(tip @ along), scale)
