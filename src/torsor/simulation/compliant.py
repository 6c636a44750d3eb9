"""Compliant contact in the recursion: each contact point adds its impedance to the inertia of its link.

The force of a point on a link is linear in the velocity u+ of the point at the end of the step:

    f_n = c x+ - e n . u+,    c = k x_r^(n-1),   e = d c x_r         f_t = -b u_t+,    b = mu f_r / sqrt(|u_r|^2 + s^2)

with the depth x+ = x_m - h n . (u+ - u / 2), where x_m is the depth in the middle of the step, at q + h/2 v, and u is
the velocity of the point due to v. c, e and b are secants of the laws of ``Contact``: the force is exact if the
reference r is the end of the step, that is, if x_r = x+, u_r = u_t+ and f_r = f_n. With u+ = u + h J a, the force is

    F(end) = f - Z J a,       f = (c x_0 - e n . u) n - b u_t,   x_0 = x_m - h/2 n . u
                              Z = h (h c + e) n n^T + h b (1 - n n^T)

Moved to the origin of the link and added to its articulated inertia, Z adds J^T Z J to the mass matrix. A step takes
one recursion for each acceleration, whatever the number of points, and is stable for any stiffness, friction and slip
speed, because Z has no negative eigenvalue.

The two accelerations of a step (``free_motion``) have two references. In the first one, c is that of x_r = x_0, and u_r
is u_t. Damping and friction are those of the depth at the start, because c x_0 may be far too large in an impact. The
first acceleration gives the reference of the second one. A point acts if x_r > 0 and d n . u_r < 1, where Hunt and
Crossley's force is positive: in the second acceleration, points that would pull are released, and points that would
penetrate are added. If a point acts, positions follow the velocities at the end of the step, as stiff coordinates do.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from torsor.dynamics.recursions.elimination import mirror
from torsor.robot.robot import Robot
from torsor.simulation.contact import (
    IMPLICIT,
    Contact,
    ContactPoint,
    ContactState,
    Touch,
    added_contact,
    compliant_force,
    elastic_power,
)
from torsor.simulation.selection import deepest_of_links
from torsor.spatial import skew


class Slopes(NamedTuple):
    """The slopes c (N/m), e (N s/m) and b (N s/m) of the force of a point, which are 0 without contact."""

    c: ca.SX
    e: ca.SX
    b: ca.SX


class Load(NamedTuple):
    """The wrenches (L x 6) f on all links, and the impedances Z (6 x 6) of those that may touch.

    Both are about the origins of the links, in their axes.
    """

    wrenches: ca.SX
    impedances: list[ca.SX]


class ImplicitContact:
    """The contact of a robot with shapes of its base in a step of length h; q and v are those in its middle.

    ``parameters`` are those of ``contact``, as numbers or symbols. ``links`` are the links that may touch.
    """

    def __init__(self, robot: Robot, contact: Contact, parameters: Sequence[Any], q: ca.SX, v: ca.SX, h: ca.SX):
        self._contact, self._h = contact, h
        self._friction, self._stiffness, self._dissipation, self._slip = parameters
        self._state = ContactState(robot, contact, q, v, _on_base(robot, contact))
        self._points = _chosen(self._state, contact, v)
        self.links = sorted({link for each in self._points for link in each.weights})

    def first(self) -> list[Slopes]:
        """Return the slopes for the first acceleration."""
        found = []
        for point in self._points:
            step = self._h / 2 * ca.dot(point.normal, point.velocity)
            start = ca.fmax(step - point.distance, 0)
            c, e = self._normal(point, -step - point.distance, start, point.velocity)
            found.append(self._slopes(point, c, e, c * start, point.velocity))
        return found

    def second(self, v: ca.SX, before: Sequence[Slopes]) -> list[Slopes]:
        """Return the slopes for the second acceleration, from those ``before`` and the velocities v that they gave."""
        found = []
        for point, end, (c, e, _) in zip(self._points, self._state.moving(self._points, v), before, strict=True):
            u = end.velocity
            depth = -point.distance - self._h * ca.dot(point.normal, u - point.velocity / 2)
            force = ca.fmax(c * depth - e * ca.dot(point.normal, u), 0)
            c, e = self._normal(point, depth, ca.fmax(depth, 0), u)
            found.append(self._slopes(point, c, e, force, u))
        return found

    def load(self, slopes: Sequence[Slopes], change: ca.SX) -> Load:
        """Return the load in a step in which v would become v + ``change`` without forces."""
        h, poses = self._h, self._state.links
        wrenches, impedances = ca.SX.zeros(len(poses), 6), []
        drifts = [each.velocity for each in self._state.moving(self._points, change)]
        for link in self.links:
            own = [k for k, point in enumerate(self._points) if link in point.weights]
            R, origin = poses[link][:, :3], poses[link][:, 3]
            # A single point is added in the axes of its link, several in base axes, where normals have zeros.
            axes, late = (R.T, ca.SX.eye(3)) if len(own) == 1 else (ca.SX.eye(3), R.T)
            wrench, impedance = ca.SX.zeros(6, 1), ca.SX.zeros(6, 6)
            for k in own:
                point, (c, e, b) = self._points[k], slopes[k]
                n, u, drift = (axes @ each for each in (point.normal, point.velocity + drifts[k], drifts[k]))
                arm = ca.vertcat(skew(axes @ (point.point - origin)), ca.SX.eye(3))
                depth = -point.distance - h / 2 * ca.dot(n, u + drift)
                f = (c * depth + (b - e) * ca.dot(n, u)) * n - b * u
                Z = h * (b * ca.SX.eye(3) + (h * c + e - b) * n @ n.T)
                wrench += point.weights[link] * (arm @ f)
                impedance += mirror(arm @ Z @ arm.T)
            turn = ca.diagcat(late, late)
            wrenches[link, :] = (turn @ wrench).T
            impedances.append(mirror(turn @ impedance @ turn.T))
        return Load(wrenches, impedances)

    def _normal(self, point: ContactPoint, depth: ca.SX, damped: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return c at a ``depth``, and e at the depth ``damped``."""
        c = self._stiffness * elastic_power(ca.fmax(depth, 0), self._contact.exponent)
        is_pressed = ca.logic_and(depth > 0, self._dissipation * ca.dot(point.normal, u) < 1)
        c = ca.if_else(is_pressed, c, 0)
        return c, self._dissipation * c * damped

    def _slopes(self, point: ContactPoint, c: ca.SX, e: ca.SX, force: ca.SX, u: ca.SX) -> Slopes:
        """Return the slopes c, e and that of friction under a normal ``force``; it acts only where c does."""
        mu = point.friction if self._contact.friction is None else self._friction
        if self._contact.friction == 0:
            return Slopes(c, e, ca.SX(0))
        slip = u - ca.dot(point.normal, u) * point.normal
        b = mu * ca.if_else(c > 0, force, 0) / ca.sqrt(ca.sumsqr(slip) + self._slip**2)
        return Slopes(c, e, b)


def contact_of_motion(robot: Robot, contact: Contact | None, method: str) -> ca.Function | None:
    """Return the function (t, q, v) -> wrenches (L x 6) of compliant contact in a motion by ``method``, or None.

    It is created once per robot. The forces are those of the laws of ``Contact`` at the points that a step chooses.
    """
    explicit = added_contact(robot, contact, method)
    if contact is None or contact.kind == "hard" or method != IMPLICIT:
        return explicit

    def make() -> ca.Function:
        t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        state = ContactState(robot, contact, q, v, _on_base(robot, contact))
        points = _chosen(state, contact, v)
        wrenches = state.wrenches(points, [compliant_force(contact, each) for each in points])
        total = wrenches if explicit is None else wrenches + explicit(t, q, v)
        return ca.Function("contact", [t, q, v], [ca.densify(total)], ["t", "q", "v"], ["contact"])

    made: ca.Function = robot.kernels.once(("contact of a motion", contact.key(robot)), make)
    return made


def _on_base(robot: Robot, contact: Contact) -> list[Touch]:
    """Return the shapes that may touch of which one is on the base."""
    return [touch for touch in contact.touches(robot) if not touch.moves_twice]


def _chosen(state: ContactState, contact: Contact, v: ca.SX) -> list[ContactPoint]:
    """Return the contact points of a step."""
    most = contact.most_points(len(state.points))
    return state.points if most >= len(state.points) else state.moving(deepest_of_links(state, most), v)
