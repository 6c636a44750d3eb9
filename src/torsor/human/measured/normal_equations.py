"""Symbolic least squares for markers: cost, gradient and Hessian of one frame, and solution of the equations.

With weights w, measured positions y and marker positions x(q), in base axes,

    minimise  sum of w |x(q) - y|^2        H = sum of w J^T J       g = sum of w J^T (x - y)

H is the mass matrix of the body with a point mass w at each marker, so the composite-rigid-body recursion computes it
without a Jacobian. With the mass m, first moment h and inertia I about the origin of all markers that joint j moves,

    f_j = w_j x h + m v_j      n_j = I w_j + h x v_j      H_ij = w_i . n_j + v_i . f_j      (i moves j)

where (w_j, v_j) is the axis of joint j as a twist about the origin (Featherstone 2008, section 6.2). The second
derivative of a position with respect to i and j is w_i x (dx/dq_j), so in the exact Hessian, n_j is replaced by

    n_j + Q w_j - trace(Q) w_j + v_j x f        Q = sum of w x (x - y)^T      f = sum of w (x - y)

If a position is a function f of a variable, as in OpenSim joints, its axis is multiplied by f', and f'' times the
derivative with respect to the position is added to the diagonal of the exact Hessian.

The tree structure also determines an elimination order without fill-in, from the tips to the root (section 6.5).
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.recursions.kinematics import Move, moves, sx, world_poses
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism.curves import Curve
from torsor.robot.robot import Robot
from torsor.spatial import cross, inverse_pose

Twist = tuple[ca.SX, ca.SX]
Rates = tuple[ca.SX | float, ca.SX | float]  # first and second derivatives of a position with respect to its variable


@dataclass(frozen=True)
class Layout:
    """The structure of the equations of a recording, without numbers that may change.

    ``links`` are the link indices of the M markers. Position k of the robot is variable ``variables[k]``, or
    ``fixed[k]`` if that is -1. With ``curves``, position k is the function curves[k] of the variable.
    """

    links: tuple[int, ...]
    variables: tuple[int, ...]
    fixed: tuple[float, ...]
    curves: tuple[tuple[Curve, ...], ...] = ()

    @property
    def count(self) -> int:
        """Number n of variables."""
        return max(self.variables) + 1

    def positions(self, y: Array) -> Array:
        """Return the positions (..., nq) for variables (..., n)."""
        q: Array = np.zeros((*y.shape[:-1], len(self.variables))) + np.asarray(self.fixed)
        for k, variable in enumerate(self.variables):
            if variable >= 0:
                x = y[..., variable]
                for curve in self.curves[k] if self.curves else ():
                    x = curve(x)[0]
                q[..., k] = x
        return q

    def moved(self, k: int, y: ca.SX) -> tuple[ca.SX, ca.SX | float, ca.SX | float]:
        """Return position k as a function of y (n), with its first and second derivatives by its variable."""
        if self.variables[k] < 0:
            return ca.SX(self.fixed[k]), 0.0, 0.0
        x, slope, bend = y[self.variables[k]], ca.SX(1), ca.SX(0)
        for curve in self.curves[k] if self.curves else ():
            x, first, second = curve.traced(x)
            slope, bend = first * slope, second * slope**2 + first * bend
        return x, slope, bend


@dataclass(frozen=True, eq=False)
class Equations:
    """The symbolic equations of one frame: inputs, cost, gradient (n x 1), and Hessian as {(i, j): entry}."""

    inputs: dict[str, ca.SX]
    cost: ca.SX
    gradient: ca.SX
    hessian: dict[tuple[int, int], ca.SX]


def moved_places(robot: Robot, layout: Layout) -> tuple[dict[str, ca.SX], list[ca.SX], list[ca.SX]]:
    """Return the inputs of ``_moved``, the marker positions (3 x 1), and the rotations of all links (3 x 3)."""
    inputs, places, tree, moved = _moved(robot, layout)
    pairs = zip(world_poses(tree, moved), tree.bodies, strict=True)
    return inputs, places, [R @ sx(body.link)[:3, :3] for (R, _), body in pairs]


def _moved(robot: Robot, layout: Layout) -> tuple[dict[str, ca.SX], list[ca.SX], Tree, list[Move]]:
    """Return the inputs, the symbolic marker positions, the tree, and the motions of its joints.

    Inputs are y (n), joint ``offsets`` (links, 3) in parent axes, and marker positions ``local`` (M, 3) on the links.
    """
    count, joints = len(layout.links), robot.joints
    inputs = {"y": ca.SX.sym("y", layout.count), "offsets": ca.SX.sym("offsets", len(joints), 3)}
    inputs["local"] = ca.SX.sym("local", count, 3)
    q = ca.vertcat(*(layout.moved(k, inputs["y"])[0] for k in range(len(layout.variables))))
    tree = Tree.of(robot)
    bodies = list(tree.bodies)
    for k, (joint, body) in enumerate(zip(joints, bodies, strict=True)):
        inverse = inverse_pose(joints[body.parent].frame) if body.parent >= 0 else np.eye(4)
        origin = inputs["offsets"][k, :].T + sx(joint.placement[:3, :3] @ joint.frame[:3, 3])
        T = sx(body.T)
        T[:3, 3] = sx(inverse[:3, :3]) @ origin + sx(inverse[:3, 3])
        bodies[k] = replace(body, T=T)
    tree = replace(tree, bodies=tuple(bodies))
    moved = moves(tree, q)
    poses = world_poses(tree, moved)
    places = []
    for m, link in enumerate(layout.links):
        R, p = poses[link]
        frame = sx(bodies[link].link)
        places.append(p + R @ (frame[:3, :3] @ inputs["local"][m, :].T + frame[:3, 3]))
    return inputs, places, tree, moved


def equations(robot: Robot, layout: Layout) -> Equations:
    """Return the equations of one frame, with the additional inputs ``measured`` (M, 3) and ``weights`` (M).

    The Hessian is the Gauss-Newton matrix if the input ``exact`` is 0, and exact if it is 1.
    """
    inputs, places, tree, moved = _moved(robot, layout)
    inputs["measured"], inputs["weights"] = ca.SX.sym("measured", len(places), 3), ca.SX.sym("weights", len(places))
    inputs["exact"] = ca.SX.sym("exact")
    cost, loads = ca.SX(0), [_Load() for _ in tree.bodies]
    for m, (link, x) in enumerate(zip(layout.links, places, strict=True)):
        w, off = inputs["weights"][m], x - inputs["measured"][m, :].T
        cost += w * ca.sumsqr(off)
        loads[link].add(w, x, off)
    for k in reversed(range(len(loads))):
        if tree.bodies[k].parent >= 0 and loads[k].used:
            loads[tree.bodies[k].parent].join(loads[k])
    columns = [column if load.used else [] for column, load in zip(_columns(tree, moved), loads, strict=True)]
    gradient, hessian = ca.SX.zeros(layout.count), dict[tuple[int, int], ca.SX]()
    rates = [layout.moved(k, inputs["y"])[1:] for k in range(len(layout.variables))]
    for k, load in enumerate(loads):
        for at, axis in columns[k]:
            variable, (factor, bend) = layout.variables[at], rates[at]
            if variable < 0:
                continue
            pull = _dot(axis, load.wrench)
            gradient[variable] += factor * pull
            wrench = load.times(axis, inputs["exact"])
            for other, sum_of in _moving(k, at, tree, columns, layout, rates).items():
                twice = 2.0 if other == variable else 1.0
                pair = max(other, variable), min(other, variable)
                hessian[pair] = hessian.get(pair, ca.SX(0)) + twice * factor * _dot(sum_of, wrench)
            diagonal = variable, variable
            hessian[diagonal] = hessian.get(diagonal, ca.SX(0)) + factor**2 * _dot(axis, wrench)
            if layout.curves:
                hessian[diagonal] += inputs["exact"] * bend * pull
    return Equations(inputs, cost, gradient, hessian)


class _Load:
    """Mass and first and second moments of the markers carried by a body, and their residuals as a wrench."""

    def __init__(self) -> None:
        self.used = False
        self.m, self.h, self.second = ca.SX(0), ca.SX.zeros(3), ca.SX(3, 3)
        self.Q, self.f = ca.SX.zeros(3, 3), ca.SX.zeros(3)

    def add(self, w: ca.SX, x: ca.SX, off: ca.SX) -> None:
        """Add a marker with weight w, position x and residual ``off``."""
        wx = w * x
        self.used, self.m, self.h = True, self.m + w, self.h + wx
        self.second += ca.triu(wx @ x.T)
        self.f += w * off
        self.Q += wx @ off.T

    def join(self, other: "_Load") -> None:
        """Add the markers of a child body."""
        self.used, self.m, self.h = True, self.m + other.m, self.h + other.h
        self.second, self.Q, self.f = self.second + other.second, self.Q + other.Q, self.f + other.f

    @property
    def wrench(self) -> Twist:
        """The moment of the residuals about the origin, and their sum as a force."""
        Q = self.Q
        return ca.vertcat(Q[1, 2] - Q[2, 1], Q[2, 0] - Q[0, 2], Q[0, 1] - Q[1, 0]), self.f

    def times(self, axis: Twist, exact: ca.SX) -> Twist:
        """Return the moment and force that accelerate the point masses along a twist, including second derivatives."""
        w, v = axis
        second = ca.triu2symm(self.second)
        inertia_w = ca.trace(second) * w - second @ w
        curved = self.Q @ w - ca.trace(self.Q) * w + cross(v, self.f)
        return inertia_w + cross(self.h, v) + exact * curved, cross(w, self.h) + self.m * v


def _dot(twist: Twist, wrench: Twist) -> ca.SX:
    return ca.dot(twist[0], wrench[0]) + ca.dot(twist[1], wrench[1])


def _columns(tree: Tree, moved: list[Move]) -> list[list[tuple[int, Twist]]]:
    """Return, for each body, the index and the twist (about the base origin, in base axes) of each coordinate."""
    columns = []
    for body, move, (R, p) in zip(tree.bodies, moved, world_poses(tree, moved), strict=True):
        twists = []
        for c in range(body.v.stop - body.v.start):
            w, v = R @ move.S[:3, c], R @ move.S[3:, c]
            twists.append((body.v.start + c, (body.joint.ratio * w, body.joint.ratio * (v + cross(p, w)))))
        columns.append(twists)
    return columns


def _moving(
    k: int, at: int, tree: Tree, columns: list[list[tuple[int, Twist]]], layout: Layout, rates: list[Rates]
) -> dict[int, Twist]:
    """Return the summed twists, by variable, of the coordinates before ``at`` that move body k."""
    sums: dict[int, Twist] = {}
    body = k
    while body >= 0:
        for other, (w, v) in columns[body]:
            variable, (factor, _) = layout.variables[other], rates[other]
            if variable >= 0 and other < at:
                before = sums.get(variable, (ca.SX.zeros(3), ca.SX.zeros(3)))
                sums[variable] = before[0] + factor * w, before[1] + factor * v
        body = tree.bodies[body].parent
    return sums


def solve(hessian: dict[tuple[int, int], ca.SX], right: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return H^-1 ``right`` and the smallest pivot, by the factorisation L^T D L, which has no fill-in for a tree.

    The pivot is 0 if the markers do not determine the variables.
    """
    n = right.numel()
    rows: list[dict[int, ca.SX]] = [{} for _ in range(n)]
    for (i, j), entry in hessian.items():
        rows[i][j] = entry
    least = ca.SX(np.inf)
    inverse: list[ca.SX] = [ca.SX(0)] * n
    x = [right[k] for k in range(n)]
    for k in reversed(range(n)):
        pivot = rows[k].pop(k)
        least = ca.fmin(least, pivot)
        inverse[k] = 1 / pivot
        for i, entry in rows[k].items():
            share = entry * inverse[k]
            x[i] -= share * x[k]
            for j, other in rows[k].items():
                if j <= i:
                    rows[i][j] = rows[i].get(j, ca.SX(0)) - share * other
    for k in range(n):
        x[k] = (x[k] - sum((entry * x[j] for j, entry in rows[k].items()), start=ca.SX(0))) * inverse[k]
    return ca.vertcat(*x), least
