"""Contact points chosen in each step: robots with many shapes touch the ground with few of them at a time.

A step takes a number of operations of order K^3 in the number K of its contact points, so that it cannot include the
hundreds of points of a robot with thirty shapes. They are chosen in two stages, both a fixed sequence of operations:

1. ``_supports``: of each pair of links (or of a link and a shape of the base), at most five points on which one would
   rest on the other. They are the deepest, and the lowest in four directions slightly off the normal: the corners of a
   face that lies flat, the ends of an edge, or a corner. A point that is found twice counts once.
2. ``_deepest``: of all these, the points with the smallest distances.

Implicit compliant contact chooses those of each pair in the same stages (``deepest_of_links``).

The number of the candidate at which a chosen point is, and the joints that move it, are known only at run time. Its
velocity is the sum of the relative twists of all joints, with weights that are 1 for the joints between the base and
its link, and 0 for others.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.simulation.contact import ContactPoint, ContactState, Touch
from torsor.spatial import cross

# Number of directions, as many as a rectangular foot has corners.
CORNERS = 4
# Tangent of the angle between the normal and the directions whose lowest points are chosen.
TILT = 0.02
# rad: the first of the four directions. Symmetric bodies in symmetric postures have no ties in oblique directions.
FIRST = 0.35
# m: distance of a point that was chosen before.
AWAY = 1e3


class _Candidate(NamedTuple):
    """A contact point in base axes between two links, known by their numbers; -1 is the base."""

    distance: ca.SX
    normal: ca.SX
    point: ca.SX
    friction: Any
    links: tuple[int, int]


def chosen_points(state: ContactState, most: int) -> tuple[list[ContactPoint], ca.SX]:
    """Return at most ``most`` contact points, and the smallest distance (m) of a point that is left out."""
    groups = defaultdict[tuple[str | int, ...], list[_Candidate]](list)
    for each, touch in zip(state.points, state.touches, strict=True):
        links = touch.first.link, touch.second.link
        groups[_bodies(touch)].append(_Candidate(each.distance, each.normal, each.point, each.friction, links))
    candidates = [each for group in groups.values() for each in _supports(group)]
    found = _deepest([each.distance for each in candidates], most + 1)
    if len(found) <= most:
        found.append((ca.SX(AWAY), ca.SX(-1)))
    twists, points = state.joint_twists(), []
    for distance, index in found[:-1]:
        is_this = [index == k for k in range(len(candidates))]
        normal, point, friction = (_value(is_this, [each[part] for each in candidates]) for part in (1, 2, 3))
        weights = _weights(is_this, candidates)
        velocity = ca.SX.zeros(3, 1)
        for weight, (omega, v) in zip(_carried(state, weights, candidates), twists, strict=True):
            velocity += weight * (cross(omega, point) + v)
        points.append(ContactPoint(distance, normal, point, velocity, weights, friction))
    return points, found[-1][0]


def deepest_of_links(state: ContactState, most: int) -> list[ContactPoint]:
    """Return at most ``most`` points of each link on each shape of the base: the deepest on which it would rest.

    The deepest of all would change from step to step under a face at rest, which would rock on them.
    """
    groups, result = defaultdict[tuple[str | int, ...], list[ContactPoint]](list), list[ContactPoint]()
    for each, touch in zip(state.points, state.touches, strict=True):
        groups[_bodies(touch)].append(each)
    for group in groups.values():
        if len(group) <= most:
            result += group
            continue
        own = [_Candidate(each.distance, each.normal, each.point, each.friction, (-1, -1)) for each in group]
        candidates = own if most == 1 else _supports(own)
        for distance, index in _deepest([each.distance for each in candidates], most):
            is_this = [index == k for k in range(len(candidates))]
            normal, point, friction = (_value(is_this, [each[part] for each in candidates]) for part in (1, 2, 3))
            result.append(group[0]._replace(distance=distance, normal=normal, point=point, friction=friction))
    return result


def _bodies(touch: Touch) -> tuple[str | int, ...]:
    """Return the links of two shapes in their order, which is that of forces; of the base, the name of the shape."""
    return tuple(side.name if side.link < 0 else side.link for side in touch)


def _supports(group: Sequence[_Candidate]) -> Sequence[_Candidate]:
    """Return the points of a pair of links at which one would rest on the other."""
    if len(group) <= CORNERS + 1:
        return group
    across, before, result = tangents(group[0].normal), list[ca.SX](), []
    angles = FIRST + np.arange(CORNERS) * 2 * np.pi / CORNERS
    for cosine, sine in [(0.0, 0.0), *zip(np.cos(angles), np.sin(angles), strict=True)]:
        way = TILT * (across @ ca.DM([cosine, sine]))
        ((_, index),) = _deepest([each.distance - ca.dot(way, each.point) for each in group], 1)
        is_this = [index == k for k in range(len(group))]
        distance, normal, point, friction = (_value(is_this, [each[part] for each in group]) for part in range(4))
        again = ca.SX(0)
        for other in before:
            again = ca.logic_or(again, index == other)
        before.append(index)
        result.append(_Candidate(ca.if_else(again, AWAY, distance), normal, point, friction, group[0].links))
    return result


def _deepest(distances: Sequence[ca.SX], count: int) -> list[tuple[ca.SX, ca.SX]]:
    """Return the ``count`` smallest distances in rising order, each with its index."""
    found = list[tuple[ca.SX, ca.SX]]()
    for k, distance in enumerate(distances):
        here, index = distance, ca.SX(k)
        for j, (best, its) in enumerate(found):
            nearer = here < best
            found[j] = ca.fmin(here, best), ca.if_else(nearer, index, its)
            here, index = ca.fmax(here, best), ca.if_else(nearer, its, index)
        if len(found) < count:
            found.append((here, index))
    return found


def _value(is_this: Sequence[ca.SX], values: Sequence[Any]) -> Any:
    """Return the value that is chosen."""
    if all(ca.is_equal(ca.SX(each), ca.SX(values[0])) for each in values):
        return values[0]
    return sum((ca.if_else(mask, each, 0) for mask, each in zip(is_this, values, strict=True)), start=ca.SX(0))


def _weights(is_this: Sequence[ca.SX], candidates: Sequence[_Candidate]) -> dict[int, ca.SX]:
    """Return the factor of a chosen point's force on each link."""
    weights = defaultdict[int, ca.SX](lambda: ca.SX(0))
    for mask, each in zip(is_this, candidates, strict=True):
        for link, sign in zip(each.links, (-1, 1), strict=True):
            if link >= 0:
                weights[link] += sign * mask
    return dict(weights)


def _carried(state: ContactState, weights: dict[int, ca.SX], candidates: Sequence[_Candidate]) -> list[ca.SX]:
    """Return the sum of the weights of each body and those that it carries; 1 if it carries all candidates."""
    below = [{k} for k in range(len(state.tree.bodies))]
    result = [weights.get(k, ca.SX(0)) for k in range(len(below))]
    for k, body in reversed(list(enumerate(state.tree.bodies))):
        if all(each.links[1] in below[k] and each.links[0] not in below[k] for each in candidates):
            result[k] = ca.SX(1)
        if body.parent >= 0:
            result[body.parent] += result[k]
            below[body.parent] |= below[k]
    return result


def tangents(normal: ca.SX) -> ca.SX:
    """Return two unit vectors (3 x 2) perpendicular to a unit vector and to each other (Duff et al. 2017)."""
    x, y, z = ca.vertsplit(normal)
    side = ca.if_else(z >= 0, 1, -1)
    a = -1 / (side + z)
    b = x * y * a
    first, second = ca.vertcat(1 + side * x**2 * a, side * b, -side * x), ca.vertcat(b, side + y**2 * a, -y)
    return ca.horzcat(first, second)
