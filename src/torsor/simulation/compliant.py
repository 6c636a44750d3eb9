"""Compliant contact in the recursion: each contact point adds its impedance to the inertia of its link.

The force of a point on a link is linear in the velocity u+ of the point at the end of the step:

    f_n = c x+ - e n . u+,    c = k x_r^(n-1),   e = d c x_r         f_t = -b u_t+,    b = mu f_r / sqrt(|u_r|^2 + s^2)

with the depth x+ = x_m - h n . (u+ - u / 2), where x_m is the depth in the middle of the step, at q + h/2 v, and u is
the velocity of the point due to v. c, e and b are secants of the laws of ``Contact``: the force is exact if the
reference r is the end of the step, that is, if x_r = x+, u_r = u_t+ and f_r = f_n. With u+ = u + h J a, the force is

    F(end) = f - Z J a,       f = (c x_0 - e n . u) n - b u_t,   x_0 = x_m - h/2 n . u
                              Z = h (h c + e) n n^T + h b (1 - n n^T)

Moved to the origin of the link and added to its articulated inertia, Z adds J^T Z J to the mass matrix. Between two
links, u and J are those of the second link relative to the first. The Z of all their points is then moved to the origin
of the second one, and J^T Z J is added as an impedance of the coordinates that move one link relative to the other,
which are eliminated where their branches meet. A step takes one recursion for each acceleration, whatever the number of
points, and is stable for any stiffness, friction and slip speed, because Z has no negative eigenvalue.

The two accelerations of a step (``free_motion``) have two references. That of the first one is an estimate: u_r = u_t,
and x_r is the depth at the start of the step or, if it is larger, the depth

    x_0 / (1 + h^2 c g (1 + d |n . u|))

at which a point of mobility g (1/kg) would end: c x_0 alone may be far too large in an impact. g is that of the robot
in its default posture, with its own masses even if masses are inputs of the step: it only affects this estimate. The
first acceleration gives u_r and f_r of the second one, and x_r is the depth at which the law gives f_r. A point acts if
x_r > 0 and d n . u_r < 1, where Hunt and Crossley's force is positive: in the second acceleration, points that would
pull are released, and points that would penetrate are added. If a point acts, positions follow the velocities at the
end of the step, as stiff coordinates do.

Stacked bodies would not come to rest if the contact of an upper body began only after that of the lower one. If links
may touch each other, points that are apart by less than h^2 times the gravity therefore act in the first acceleration.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics import Tree
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.elimination import mirror
from torsor.mechanism.mechanism import default_posture
from torsor.robot.robot import Robot
from torsor.simulation.contact import (
    IMPLICIT,
    Contact,
    ContactPoint,
    ContactState,
    added_contact,
    compliant_force,
    elastic_power,
)
from torsor.simulation.selection import deepest_of_links
from torsor.spatial import cross, skew


class Slopes(NamedTuple):
    """The slopes c (N/m), e (N s/m) and b (N s/m) of the force of a point, which are 0 without contact."""

    c: ca.SX
    e: ca.SX
    b: ca.SX


class Load(NamedTuple):
    """The wrenches (L x 6) f on all links, and the impedances Z (6 x 6) of ``ImplicitContact.bodies``.

    Both are about the origins of the links, in their axes.
    """

    wrenches: ca.SX
    impedances: list[ca.SX]


class ImplicitContact:
    """The contact of a robot in a step of length h; q and v are those in its middle.

    ``parameters`` are those of ``contact``, as numbers or symbols. ``bodies`` are the links that may touch the base,
    (link,), and the pairs of links that may touch each other, (first, second).
    """

    def __init__(self, robot: Robot, contact: Contact, parameters: Sequence[Any], q: ca.SX, v: ca.SX, h: ca.SX):
        self._contact, self._h = contact, h
        self._friction, self._stiffness, self._dissipation, self._slip = parameters
        self._state = ContactState(robot, contact, q, v)
        self._points = _chosen(self._state, contact, v)
        self._mobility = _mobilities(robot, contact)
        self.bodies = sorted(self._mobility)
        is_paired = any(len(each) > 1 for each in self.bodies)
        self._near = h**2 * float(np.linalg.norm(robot.gravity)) if is_paired else None

    def first(self) -> list[Slopes]:
        """Return the slopes for the first acceleration."""
        found = []
        for point in self._points:
            apart = ca.dot(point.normal, point.velocity)
            start, ahead = (sign * self._h / 2 * apart - point.distance for sign in (1, -1))
            if self._near is not None:
                ahead = ca.if_else(ahead > 0, ahead, ahead + self._near)
            start, ahead = ca.fmax(start, 0), ca.fmax(ahead, 0)
            share = 1 - self._dissipation * apart
            factor = 1 + self._h**2 * self._stiff(ahead) * self._mobility[tuple(point.weights)] * ca.fmax(share, 1)
            depth = ca.fmax(start, ahead / factor)
            c = ca.if_else(ca.logic_and(ahead > 0, share > 0), self._stiff(ahead), 0)
            found.append(self._slopes(point, c, depth, c * depth * share, point.velocity))
        return found

    def second(self, v: ca.SX, before: Sequence[Slopes]) -> list[Slopes]:
        """Return the slopes for the second acceleration, from those ``before`` and the velocities v that they gave."""
        found = []
        for point, end, (c, e, _) in zip(self._points, self._state.moving(self._points, v), before, strict=True):
            u = end.velocity
            apart = ca.dot(point.normal, u)
            share = 1 - self._dissipation * apart
            ahead = -point.distance - self._h * ca.dot(point.normal, u - point.velocity / 2)
            force = c * ahead - e * apart
            depth = ca.fmax(ca.if_else(c > 0, force / ca.if_else(c > 0, c * share, 1), ahead), 0)
            c = ca.if_else(ca.logic_and(depth > 0, share > 0), self._stiff(depth), 0)
            found.append(self._slopes(point, c, depth, force, u))
        return found

    def load(self, slopes: Sequence[Slopes], change: ca.SX) -> Load:
        """Return the load in a step in which v would become v + ``change`` without forces."""
        h, poses = self._h, self._state.links
        wrenches, impedances = ca.SX.zeros(len(poses), 6), []
        drifts = [each.velocity for each in self._state.moving(self._points, change)]
        for bodies in self.bodies:
            own = [k for k, point in enumerate(self._points) if tuple(point.weights) == bodies]
            *others, link = bodies
            R, origin = poses[link][:, :3], poses[link][:, 3]
            # A single point is added in the axes of its link, several in base axes, where normals have zeros.
            axes, late = (R.T, ca.SX.eye(3)) if len(own) == 1 else (ca.SX.eye(3), R.T)
            wrench, impedance = ca.SX.zeros(6, 1), ca.SX.zeros(6, 6)
            first = ca.SX.zeros(6, 1)  # the wrench on the first link of a pair, in the same axes
            for k in own:
                point, (c, e, b) = self._points[k], slopes[k]
                n, u, drift = (axes @ each for each in (point.normal, point.velocity + drifts[k], drifts[k]))
                arm = ca.vertcat(skew(axes @ (point.point - origin)), ca.SX.eye(3))
                depth = -point.distance - h / 2 * ca.dot(n, u + drift)
                f = (c * depth + (b - e) * ca.dot(n, u)) * n - b * u
                Z = h * (b * ca.SX.eye(3) + (h * c + e - b) * n @ n.T)
                wrench += point.weights[link] * (arm @ f)
                impedance += mirror(arm @ Z @ arm.T)
                for other in others:
                    first -= ca.vertcat(cross(axes @ (point.point - poses[other][:, 3]), f), f)
            turn = ca.diagcat(late, late)
            wrenches[link, :] += (turn @ wrench).T
            impedances.append(mirror(turn @ impedance @ turn.T))
            for other in others:
                back = poses[other][:, :3].T @ axes.T
                wrenches[other, :] += (ca.diagcat(back, back) @ first).T
        return Load(wrenches, impedances)

    def _stiff(self, depth: ca.SX) -> ca.SX:
        """Return the secant stiffness at a depth."""
        return ca.SX(self._stiffness * elastic_power(depth, self._contact.exponent))

    def _slopes(self, point: ContactPoint, c: ca.SX, depth: ca.SX, force: ca.SX, u: ca.SX) -> Slopes:
        """Return the slopes c, e at a ``depth`` and b under a normal ``force``; e and b are 0 where c is."""
        mu = point.friction if self._contact.friction is None else self._friction
        e = self._dissipation * c * depth
        if self._contact.friction == 0:
            return Slopes(c, e, ca.SX(0))
        slip = u - ca.dot(point.normal, u) * point.normal
        b = mu * ca.if_else(c > 0, ca.fmax(force, 0), 0) / ca.sqrt(ca.sumsqr(slip) + self._slip**2)
        return Slopes(c, e, b)


def contact_of_motion(robot: Robot, contact: Contact | None, method: str) -> ca.Function | None:
    """Return the function (t, q, v) -> wrenches (L x 6) of compliant contact in a motion by ``method``, or None.

    It is created once per robot. The forces are those of the laws of ``Contact`` at the points that a step chooses.
    """
    if contact is None or contact.kind == "hard" or method != IMPLICIT:
        return added_contact(robot, contact, method)

    def make() -> ca.Function:
        t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        state = ContactState(robot, contact, q, v)
        points = _chosen(state, contact, v)
        wrenches = state.wrenches(points, [compliant_force(contact, each) for each in points])
        return ca.Function("contact", [t, q, v], [ca.densify(wrenches)], ["t", "q", "v"], ["contact"])

    made: ca.Function = robot.kernels.once(("contact of a motion", contact.key(robot)), make)
    return made


def _chosen(state: ContactState, contact: Contact, v: ca.SX) -> list[ContactPoint]:
    """Return the contact points of a step."""
    most = contact.most_points(len(state.points))
    return state.points if most >= len(state.points) else state.moving(deepest_of_links(state, most), v)


def _mobilities(robot: Robot, contact: Contact) -> dict[tuple[int, ...], float]:
    """Return the largest mobility (1/kg) of the points of each link or pair along normals, in the default posture."""
    q, v, tree = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), Tree.of(robot)
    points = ContactState(robot, contact, q, v).points
    J = ca.jacobian(ca.vertcat(*(ca.dot(each.normal, each.velocity) for each in points)), v)
    both = ca.Function("mobility", [q], [J, mass_matrix(tree, q)])(default_posture(robot))
    rows, M = (ca.DM(each).full() for each in both)
    mobility = np.einsum("kn,nk->k", rows, np.linalg.pinv(M) @ rows.T)
    found = dict[tuple[int, ...], float]()
    for point, g in zip(points, mobility.tolist(), strict=True):
        bodies = tuple(point.weights)
        found[bodies] = max(g, found.get(bodies, 0.0))
    return found
