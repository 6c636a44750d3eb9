"""Kinematics of links and frames: poses, velocities, accelerations, Jacobians and their rates.

A place is a pose in the axes of a link. In the axes of the place at its origin, joint k above it has the column Ad S_k
of the Jacobian, computed from the place up to the root; the rate of that column is -ad(V) Ad S_k + Ad S'_k, with V the
twist of the place relative to body k: the sum of the columns computed before, times their velocities.
"""

from collections.abc import Callable

import casadi as ca
import numpy as np

from torsor.dynamics.recursions.kinematics import motions, moves, sx, twists, world_poses
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place
from torsor.spatial import ad, cross, skew


def place_in_body(tree: Tree, place: Place) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a place in the frame of its body (in base axes for a place on the base)."""
    T = tree.bodies[place.link].link @ place.pose if place.link >= 0 else place.pose
    return sx(T[:3, :3]), sx(T[:3, 3])


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


def _velocities(tree: Tree, q: ca.SX, v: ca.SX, places: list[Place]) -> ca.SX:
    twist = twists(tree, moves(tree, q), v)
    return seen(tree, places, lambda k, p: (twist[k][:3], twist[k][3:] + cross(twist[k][:3], p)))


def velocities(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the twist (omega, v of the origin) of each link in its own axes (L x 6)."""
    return _velocities(tree, q, v, links(tree))


def velocity(tree: Tree, q: ca.SX, v: ca.SX, place: Place) -> ca.SX:
    """Return the twist (omega, v of the origin) of a place in its own axes (6 x 1)."""
    return _velocities(tree, q, v, [place]).T


def _accelerations(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, places: list[Place]) -> ca.SX:
    motion = motions(tree, moves(tree, q), v, a)
    return seen(tree, places, lambda k, p: (motion[k].wd, motion[k].a + motion[k].U @ p))


def accelerations(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return (omega', acceleration of the origin) of each link in its own axes, without gravity (L x 6)."""
    return _accelerations(tree, q, v, a, links(tree))


def acceleration(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX, place: Place) -> ca.SX:
    """Return (omega', acceleration of the origin) of a place in its own axes, without gravity (6 x 1)."""
    return _accelerations(tree, q, v, a, [place]).T


def _jacobians(tree: Tree, q: ca.SX, v: ca.SX | None, place: Place) -> tuple[ca.SX, ca.SX]:
    """Return the Jacobian of a place and, given v, its rate (both 6 x nv)."""
    moved = moves(tree, q)
    J, J_rate = [ca.SX(6, 1)] * tree.nv, [ca.SX(6, 1)] * tree.nv  # structural zeros where no joint is above
    R, p = place_in_body(tree, place)
    V = ca.SX.zeros(6, 1)
    k = place.link
    while k >= 0:
        body, move = tree.bodies[k], moved[k]

        def column_of(S: ca.SX, R: ca.SX = R, p: ca.SX = p) -> ca.SX:
            return ca.vertcat(R.T @ S[:3, :], R.T @ (S[3:, :] - skew(p) @ S[:3, :]))

        column = column_of(move.S)
        if v is not None:
            rate = body.rate(v)
            column_rate = column_of(move.S_rate(rate)) - ad(V) @ column
            V = V + column @ rate
        for c, index in enumerate(range(body.v.start, body.v.stop)):
            J[index] = J[index] + body.joint.ratio * column[:, c]
            if v is not None:
                J_rate[index] = J_rate[index] + body.joint.ratio * column_rate[:, c]
        R, p = move.up(R), move.p + move.up(p)
        k = body.parent
    return ca.horzcat(ca.SX.zeros(6, 0), *J), ca.horzcat(ca.SX.zeros(6, 0), *J_rate)


def jacobian(tree: Tree, q: ca.SX, place: Place) -> ca.SX:
    """Return J (6 x nv) with (omega, v of the origin) = J v in the place's own axes."""
    return _jacobians(tree, q, None, place)[0]


def jacobian_rate(tree: Tree, q: ca.SX, v: ca.SX, place: Place) -> ca.SX:
    """Return J' (6 x nv), the rate of the Jacobian's components in the place's own axes."""
    return _jacobians(tree, q, v, place)[1]
