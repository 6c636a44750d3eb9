"""In which axes, and of which point, the motion of a place is given.

    local     the place's own axes; rates of its origin, or of a point that is fixed to it
    aligned   base axes; rates of the same point
    world     base axes; the twist at the origin of the base, (omega, x' - omega x x) for any point x of the place

The linear part of the twist at the base's origin is not the velocity of the place. Its rates in time are those of its
components: with the rates of x in base axes, Leibniz' rule gives

    (x' - omega x x)^(m) = x^(m+1) - sum over k of binomial(m, k) omega^(k) x x^(m-k)
"""

from collections.abc import Sequence
from math import comb

import casadi as ca

from torsor.dynamics.recursions.kinematics import Move, sx
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Place
from torsor.spatial import cross

AXES = ("local", "aligned", "world")


def place_in_body(tree: Tree, place: Place, point: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a place in the frame of its body (in base axes for a place on the base).

    p is the origin of the place, or a point (3 x 1) given in its axes.
    """
    T = tree.bodies[place.link].link @ place.pose if place.link >= 0 else place.pose
    R, p = sx(T[:3, :3]), sx(T[:3, 3])
    return R, p if point is None else p + R @ point


def bodies_above(tree: Tree, link: int) -> list[int]:
    """Return the indices of a body and of those that carry it, from the body to the root."""
    found = list[int]()
    while link >= 0:
        found.append(link)
        link = tree.bodies[link].parent
    return found


def body_in_base(tree: Tree, moved: list[Move], link: int) -> tuple[ca.SX, ca.SX]:
    """Return (R, p) of a body's frame in base axes."""
    R, p = sx(ca.DM.eye(3)), ca.SX.zeros(3, 1)
    for k in reversed(bodies_above(tree, link)):
        R, p = moved[k].down(R.T).T, p + R @ moved[k].p
    return R, p


def spatial_rate(w: Sequence[ca.SX], x: Sequence[ca.SX]) -> ca.SX:
    """Return a rate (6 x 1) of the twist at the base's origin, from omega and its rates, and x with one rate more."""
    m = len(w) - 1
    turned = sum((comb(m, k) * cross(w[k], x[m - k]) for k in range(m + 1)), start=ca.SX.zeros(3, 1))
    return ca.vertcat(w[m], x[m + 1] - turned)


def in_axes(
    tree: Tree,
    moved: list[Move],
    place: Place,
    point: ca.SX | None,
    axes: str,
    angular: Sequence[ca.SX],
    linear: Sequence[ca.SX],
) -> ca.SX:
    """Return the last of the rates of a place (6 x 1) in the axes asked for.

    ``angular`` are omega and its rates, ``linear`` the velocity of the point and its rates, all in the body's axes;
    only the twist at the base's origin needs more than the last ones.
    """
    R, p = place_in_body(tree, place, point)
    if axes == "local":
        return ca.vertcat(R.T @ angular[-1], R.T @ linear[-1])
    R, origin = body_in_base(tree, moved, place.link)
    if axes == "aligned":
        return ca.vertcat(R @ angular[-1], R @ linear[-1])
    return spatial_rate([R @ each for each in angular], [origin + R @ p, *(R @ each for each in linear)])
