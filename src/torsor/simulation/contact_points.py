"""The points of contact of a moving robot over CasADi symbols: depth, normal, relative velocity, wrenches on links."""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from torsor.dynamics import Tree
from torsor.dynamics.recursions.kinematics import moves, sx, twists, world_poses
from torsor.geometry import contact_points
from torsor.simulation.contact import Touch
from torsor.spatial import cross


class ContactPoint(NamedTuple):
    """A point of contact in base axes: signed ``distance`` (m), unit ``normal`` (3) from the first shape to the second.

    ``point`` (3) is where forces act on both, ``velocity`` (3) that of the second shape relative to the first there;
    ``touch`` has the shapes. The rate of the distance is normal . velocity.
    """

    distance: ca.SX
    normal: ca.SX
    point: ca.SX
    velocity: ca.SX
    touch: Touch


class ContactState:
    """The points of contact of a robot at (q, v), and what their forces are on its links."""

    def __init__(self, tree: Tree, touches: Sequence[Touch], q: ca.SX, v: ca.SX):
        moved = moves(tree, q)
        self._count = len(tree.bodies)
        self._bodies, self._twists = world_poses(tree, moved), twists(tree, moved, v)
        self._links = list[ca.SX]()
        for body, (R, p) in zip(tree.bodies, self._bodies, strict=True):
            own = sx(body.link)
            self._links.append(ca.horzcat(R @ own[:3, :3], p + R @ own[:3, 3]))
        self.points = [point for touch in touches for point in self._points(touch)]

    def _points(self, touch: Touch) -> list[ContactPoint]:
        poses = [self._links[each.link] if each.link >= 0 else sx(ca.DM.eye(4)[:3, :]) for each in touch]
        found = []
        for each in contact_points(touch.first.shape, poses[0], touch.second.shape, poses[1]):
            middle = (each.first + each.second) / 2
            relative = self._velocity(touch.second.link, middle) - self._velocity(touch.first.link, middle)
            found.append(ContactPoint(each.distance, each.normal, middle, relative, touch))
        return found

    def _velocity(self, link: int, point: ca.SX) -> ca.SX:
        """Return the velocity (3 x 1) of a point of a link, in base axes."""
        if link < 0:
            return ca.SX.zeros(3, 1)
        (R, p), twist = self._bodies[link], self._twists[link]
        velocity: ca.SX = R @ twist[3:] + cross(R @ twist[:3], point - p)
        return velocity

    def wrenches(self, forces: Sequence[ca.SX]) -> ca.SX:
        """Return the wrenches (L x 6) on the links, at their origins in their axes, of forces (3) on the second shapes.

        The first shapes feel the opposite forces at the same points.
        """
        on = dict[int, tuple[ca.SX, ca.SX]]()
        for each, force in zip(self.points, forces, strict=True):
            for side, sign in ((each.touch.second, 1), (each.touch.first, -1)):
                if side.link < 0:
                    continue
                n, f = on.get(side.link, (ca.SX.zeros(3, 1), ca.SX.zeros(3, 1)))
                arm = each.point - self._links[side.link][:, 3]
                on[side.link] = n + sign * cross(arm, force), f + sign * force
        found = ca.SX.zeros(self._count, 6)
        for link, (n, f) in on.items():
            R = self._links[link][:, :3]
            found[link, :] = ca.vertcat(R.T @ n, R.T @ f).T
        return found
