"""Kinematics of links and frames: poses, velocities, accelerations, Jacobians and their rates.

A place is a pose in the axes of a link. Joint k above it has the column Ad S_k of the Jacobian, seen from an observer:
the place itself ("local"), a frame that follows a point of it without turning ("aligned"), or the base ("world"). The
rate of that column is ad(V) Ad S_k + Ad S'_k, with V the twist of body k relative to the observer. Of the columns times
their velocities, it is minus the sum of those after k for the place, and the sum of those up to k for the base; the
frame that follows the point turns as the base does and translates as the place does.
"""

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.axes import bodies_above, body_in_base, in_axes, place_in_body
from torsor.dynamics.recursions.kinematics import Move, motions, moves, sx, twists, world_poses
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Place
from torsor.spatial import ad, cross, skew


def links(tree: Tree) -> list[Place]:
    """Return the frames of the links as places."""
    return [Place(i, np.eye(4)) for i in range(len(tree.bodies))]


def _poses(tree: Tree, q: ca.SX, places: list[Place]) -> ca.SX:
    bodies = world_poses(tree, moves(tree, q))
    rows = [ca.SX.zeros(0, 4)]
    for place in places:
        R, p = place_in_body(tree, place)
        if place.link >= 0:
            R_body, p_body = bodies[place.link]
            R, p = R_body @ R, p_body + R_body @ p
        rows.append(ca.vertcat(ca.horzcat(R, p), sx([[0, 0, 0, 1]])))
    return ca.vertcat(*rows)


def poses(tree: Tree, q: ca.SX) -> ca.SX:
    """Return the poses of the links in base axes, stacked (4 L x 4)."""
    return _poses(tree, q, links(tree))


def pose(tree: Tree, q: ca.SX, place: Place) -> ca.SX:
    """Return the pose of a place in base axes (4 x 4)."""
    return _poses(tree, q, [place])


def seen(tree: Tree, places: list[Place], rate: Callable[[int, ca.SX], tuple[ca.SX, ca.SX]]) -> ca.SX:
    """Return (angular, linear) rates of places in their own axes (places x 6), from those of a point of a body."""
    rows = [ca.SX.zeros(0, 6)]
    for place in places:
        R, p = place_in_body(tree, place)
        parts = rate(place.link, p) if place.link >= 0 else [ca.SX.zeros(3, 1)] * 2
        rows.append(ca.vertcat(*(R.T @ part for part in parts)).T)
    return ca.vertcat(*rows)


def velocities(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the twist (omega, v of the origin) of each link in its own axes (L x 6)."""
    twist = twists(tree, moves(tree, q), v)
    return seen(tree, links(tree), lambda k, p: twist_at(twist[k], p))


def twist_at(twist: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return (omega, velocity of the point p) of a body with that twist, in its axes."""
    return twist[:3], twist[3:] + cross(twist[:3], p)


def velocity(tree: Tree, q: ca.SX, v: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None) -> ca.SX:
    """Return the twist (omega, v of the point) of a place (6 x 1)."""
    if place.link < 0:
        return ca.SX.zeros(6, 1)
    moved = moves(tree, q)
    w, x_rate = twist_at(twists(tree, moved, v)[place.link], place_in_body(tree, place, point)[1])
    return in_axes(tree, moved, place, point, axes, [w], [x_rate])


def accelerations(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return (omega', acceleration of the origin) of each link in its own axes, without gravity (L x 6)."""
    motion = motions(tree, moves(tree, q), v, a)
    return seen(tree, links(tree), lambda k, p: (motion[k].wd, motion[k].a + motion[k].U @ p))


def acceleration(
    tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> ca.SX:
    """Return (omega', acceleration of the point) of a place (6 x 1), without gravity; "world": the twist's rate."""
    if place.link < 0:
        return ca.SX.zeros(6, 1)
    moved, p = moves(tree, q), place_in_body(tree, place, point)[1]
    motion = motions(tree, moved, v, a)[place.link]
    w, x_rate = list[ca.SX](), list[ca.SX]()
    if axes == "world":
        w, x_rate = ([each] for each in twist_at(twists(tree, moved, v)[place.link], p))
    return in_axes(tree, moved, place, point, axes, [*w, motion.wd], [*x_rate, motion.a + motion.U @ p])


class JointAbove(NamedTuple):
    """A joint above a place, with the pose (R, p) of the place in its body, or of its body for an observer."""

    body: Body
    move: Move
    R: ca.SX
    p: ca.SX
    local: bool

    def seen(self, X: ca.SX) -> ca.SX:
        """Return twists of the body (columns) as the place, or the observer, sees them."""
        if self.local:  # the shift comes first: columns of joints have many zeros
            return ca.vertcat(self.R.T @ X[:3, :], self.R.T @ (X[3:, :] - skew(self.p) @ X[:3, :]))
        w = self.R @ X[:3, :]
        return ca.vertcat(w, self.R @ X[3:, :] + skew(self.p) @ w)


def joints_above(
    tree: Tree, moved: list[Move], place: Place, axes: str = "local", point: ca.SX | None = None
) -> list[JointAbove]:
    """Return the joints above a place, root to place."""
    R, p = place_in_body(tree, place, point)
    found, above = list[JointAbove](), bodies_above(tree, place.link)
    if axes == "local":
        for k in above:
            found.append(JointAbove(tree.bodies[k], moved[k], R, p, local=True))
            R, p = moved[k].up(R), moved[k].p + moved[k].up(p)
        return found[::-1]
    R_base, here = body_in_base(tree, moved, place.link)
    at = here + R_base @ p if axes == "aligned" else ca.SX.zeros(3, 1)
    for k in reversed(above):
        R, p = body_in_base(tree, moved, k)
        found.append(JointAbove(tree.bodies[k], moved[k], R, p - at, local=False))
    return found


def _jacobians(
    tree: Tree, q: ca.SX, v: ca.SX | None, place: Place, axes: str, point: ca.SX | None
) -> tuple[ca.SX, ca.SX]:
    """Return the Jacobian of a place and, given v, its rate (both 6 x nv)."""
    above = joints_above(tree, moves(tree, q), place, axes, point)
    columns = [each.seen(each.move.S) for each in above]
    # Structural zeros where no joint is above.
    J = _gathered(tree, above, columns)
    if v is None:
        return J, J
    rates = [each.body.rate(v) for each in above]
    parts = [column @ rate for column, rate in zip(columns, rates, strict=True)]
    before = list(accumulate(parts))
    after = list(accumulate(parts[:0:-1], initial=ca.SX.zeros(6, 1)))[::-1]
    changes = []
    for k, (each, column) in enumerate(zip(above, columns, strict=True)):
        if axes == "local":
            change = -(ad(after[k]) @ column)
        else:
            relative = before[k] if axes == "world" else ca.vertcat(before[k][:3], -after[k][3:])
            change = ad(relative) @ column
        changes.append(each.seen(each.move.S_rate(rates[k])) + change)
    return J, _gathered(tree, above, changes)


def _gathered(tree: Tree, above: list[JointAbove], columns: list[ca.SX]) -> ca.SX:
    """Return the columns of joints as columns of coordinates (6 x nv)."""
    found = [ca.SX(6, 1)] * tree.nv
    for each, block in zip(above, columns, strict=True):
        for c, index in enumerate(range(each.body.v.start, each.body.v.stop)):
            found[index] = found[index] + each.body.joint.ratio * block[:, c]
    return ca.horzcat(ca.SX.zeros(6, 0), *found)


def jacobian(tree: Tree, q: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None) -> ca.SX:
    """Return J (6 x nv) with the twist of the place = J v."""
    return _jacobians(tree, q, None, place, axes, point)[0]


def jacobian_rate(
    tree: Tree, q: ca.SX, v: ca.SX, place: Place, axes: str = "local", point: ca.SX | None = None
) -> ca.SX:
    """Return J' (6 x nv), the rate of the Jacobian's components."""
    return _jacobians(tree, q, v, place, axes, point)[1]
