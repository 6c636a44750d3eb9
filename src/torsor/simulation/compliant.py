"""Compliant contact in the recursion: each contact point adds its impedance to the inertia of its link.

The force of a point on a link is linearised in the velocity u+ of the point at the end of the step,

    f_n = c x+,   x+ = x - h n . (u+ - u),   c = k x_r^(n-1) max(0, 1 - d n . u_r)       f_t = -b u_t+,   b = mu f_r / |u_r|_s

with the depth x and the velocity u at (q + h v, v), where the step would end without forces, and |u|_s^2 = |u_t|^2 +
s^2. These are the secants of ``Contact``'s force laws: if the reference r is the end of the step, so that x_r = x+,
u_r = u+ and f_r = f_n, the force is exact. Since u+ = u + h J a, the force is

    F(end) = f - Z J a,     f = c x n - b u_t,   Z = h^2 c n n^T + h b (1 - n n^T)

The sum of J^T Z J of all points is added to the mass matrix by adding Z, moved to the link's origin, to the articulated
inertia of the link. It takes one recursion, whatever the number of points and their stiffness. Z is symmetric and not
negative, so that a step is stable for any stiffness, friction and slip speed.

The two accelerations of a step (``free_motion``) provide two references. For the first one, x_r and u_r are x and u, and
f_r is the elastic force at the start, which is zero in an impact. The first acceleration then tells x+, u+ and f_n, the
reference of the second one. A point acts if x_r > 0: a point that would pull in the first solution is released in the
second, and a point that would touch is added. Positions follow the velocities at the end, as those of stiff coordinates
do, in each step in which a point acts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from torsor.dynamics.recursions.elimination import mirror
from torsor.dynamics.recursions.kinematics import moves, world_poses
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact, ContactState, link_poses
from torsor.spatial import skew

# m: keeps derivatives of x^(n-1) and of square roots finite at zero.
_TINY = 1e-12


class Pressure(NamedTuple):
    """The slopes of a point's force, c (N/m) along the normal and b (N s/m) across it, which are 0 without contact."""

    c: ca.SX
    b: ca.SX


class Load(NamedTuple):
    """The wrenches (L x 6) on all links at zero acceleration, and the impedances (6 x 6) of those that may touch.

    Both are at the origins of the links, in their axes.
    """

    wrenches: ca.SX
    impedances: list[ca.SX]


class Pressed:
    """The contact of a robot with shapes of its base in a step of length h that would end at (q, v) without forces."""

    def __init__(self, robot: Robot, contact: Contact, q: ca.SX, v: ca.SX, h: ca.SX):
        touches = [touch for touch in contact.touches(robot) if not touch.moves_twice]
        self._contact, self._h, self.q = contact, h, q
        self._state = ContactState(robot, contact, q, v, touches)
        self.links = sorted({link for each in self._state.points for link in each.weights})

    def first(self) -> list[Pressure]:
        """Return the slopes for the first acceleration."""
        found = []
        for point in self._state.points:
            apart = ca.dot(point.normal, point.velocity)
            c = self._normal(-point.distance - self._h / 2 * apart, apart)
            start = ca.fmax(-point.distance + self._h / 2 * apart, 0)  # depth at the start of the step
            found.append(Pressure(c, self._across(point.friction, c * start, point.velocity, point.normal)))
        return found

    def second(self, v: ca.SX) -> list[Pressure]:
        """Return the slopes for the second acceleration, from the velocities v at the end of the first one."""
        found = []
        for point, u in zip(self._state.points, self._state.velocities(v), strict=True):
            apart = ca.dot(point.normal, u)
            depth = -point.distance - self._h * (apart - ca.dot(point.normal, point.velocity) / 2)
            c = self._normal(depth, apart)
            found.append(Pressure(c, self._across(point.friction, c * depth, u, point.normal)))
        return found

    def load(self, pressures: Sequence[Pressure], change: ca.SX) -> Load:
        """Return the load in a step in which v would become v + ``change`` without forces."""
        h, poses = self._h, self._state.links
        wrenches = ca.SX.zeros(len(poses), 6)
        impedances = {link: ca.SX.zeros(6, 6) for link in self.links}
        for point, drift, (c, b) in zip(self._state.points, self._state.velocities(change), pressures, strict=True):
            ((link, weight),) = point.weights.items()
            R_T, origin = poses[link][:, :3].T, poses[link][:, 3]
            n, u, drift = (R_T @ each for each in (point.normal, point.velocity + drift, drift))
            arm = ca.vertcat(skew(R_T @ (point.point - origin)), ca.SX.eye(3))
            force = (b * ca.dot(n, u) - c * (point.distance + h * ca.dot(n, drift + u) / 2)) * n - b * u
            Z = h * (b * ca.SX.eye(3) + (h * c - b) * n @ n.T)
            wrenches[link, :] += weight * (arm @ force).T
            impedances[link] += mirror(arm @ Z @ arm.T)
        return Load(wrenches, list(impedances.values()))

    def _normal(self, depth: ca.SX, apart: ca.SX) -> ca.SX:
        law, deep = self._contact, ca.fmax(depth, 0)
        c = law.stiffness * ca.fmax(1 - law.dissipation * apart, 0)
        if law.exponent == 1.5:
            c *= ca.sqrt(deep + _TINY)
        elif law.exponent > 1:
            c *= (deep + _TINY) ** (law.exponent - 1)
        return ca.if_else(depth > 0, c, 0)

    def _across(self, mu: float | ca.SX, force: ca.SX, u: ca.SX, n: ca.SX) -> ca.SX:
        slip = u - ca.dot(n, u) * n
        return mu * force / ca.sqrt(ca.sumsqr(slip) + self._contact.slip**2)
