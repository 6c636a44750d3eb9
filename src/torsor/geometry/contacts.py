"""Points of contact of two shapes over CasADi symbols, for simulations with contact.

A contact of two bodies that rest on each other needs several points: both ends of a capsule on a plane, the corners of
a box, three points of each rim of a cylinder. Each point has its own signed distance; a law of contact acts where it is
negative. All are closed forms, without a search; their positions are continuous where the shapes move, but for the rim
of a cylinder that is exactly upright.
"""

import casadi as ca
import numpy as np

from torsor.base.checks import instance_of
from torsor.base.errors import ModelError, describe
from torsor.geometry.box_contacts import box_contacts
from torsor.geometry.closed_forms import Closest, axis_ends, box_corners, closest, is_closed, on_plane
from torsor.geometry.hulls import hull_of
from torsor.mechanism import Shape

MOST = 64  # vertices of a mesh that are points of contact
_THIRD = 2 * np.pi / 3
_FALLBACK = ca.SX([1, 0])


def has_contact_points(a: Shape, b: Shape) -> bool:
    """Return whether two shapes have points of contact in closed form.

    Example:
        >>> has_contact_points(Shape("plane"), Shape("box", (1, 1, 1)))
        True
    """
    kinds = {instance_of(each, Shape, "points of contact", "shape").shape for each in (a, b)}
    return is_closed(a.shape, b.shape) or kinds in ({"plane", "mesh"}, {"box"})


def contact_points(a: Shape, A: ca.SX, b: Shape, B: ca.SX) -> list[Closest]:
    """Return the points of contact of two shapes, whose links have the poses A and B (4 x 4, or 3 x 4) in base axes.

    ``normal`` is from a to b. On a plane: 1 point of a sphere or ellipsoid, 2 of a capsule, 6 of a cylinder, 8 of a
    box, the vertices of a small mesh. Two boxes have 12 (``box_contacts``). Other pairs with a closed form have one
    point; all others are an error.

    Example:
        >>> ground, box = Shape("plane"), Shape("box", (1.0, 1.0, 0.4))
        >>> found = contact_points(ground, ca.SX(np.eye(4)), box, ca.SX(torsor.spatial.make_pose(p=[0, 0, 0.3])))
        >>> [round(float(each.distance), 9) for each in found]
        [0.1, 0.5, 0.1, 0.5, 0.1, 0.5, 0.1, 0.5]
    """
    if not has_contact_points(a, b):
        text = f"a {a.shape} and a {b.shape} have no points of contact in closed form"
        allowed = "planes with any other shape; spheres, capsules; boxes; spheres with boxes and cylinders"
        raise ModelError(describe(text, allowed=allowed, fix="use capsules or spheres for one of them"))
    if b.shape == "plane":
        return [each.flipped for each in contact_points(b, B, a, A)]
    first, second = _moved(A, a), _moved(B, b)
    if a.shape == b.shape == "box":
        return box_contacts(first, a.size, second, b.size)
    if a.shape != "plane" or b.shape in ("sphere", "ellipsoid"):
        return [closest(a.shape, first, a.size, b.shape, second, b.size)]
    up = first[:3, 2]
    if b.shape == "capsule":
        lowest = [end - b.size[0] * up for end in axis_ends("capsule", second, b.size)]
    elif b.shape == "cylinder":
        lowest = _rim_points(second, b.size, up)
    else:
        local = box_corners(b.size) if b.shape == "box" else _vertices(b)
        lowest = [second[:3, :3] @ ca.SX(each) + second[:3, 3] for each in local]
    return [on_plane(first, point) for point in lowest]


def _moved(pose: ca.SX, shape: Shape) -> ca.SX:
    """Return the pose [R, p] of a shape in base axes."""
    own = ca.SX(shape.pose)
    R = pose[:3, :3]
    return ca.horzcat(R @ own[:3, :3], pose[:3, 3] + R @ own[:3, 3])


def _rim_points(pose: ca.SX, size: tuple[float, ...], up: ca.SX) -> list[ca.SX]:
    """Return the lowest point of both rims of a cylinder, and those a third of a turn to both sides of it."""
    down = -(pose[:3, :3].T @ up)
    across = ca.sqrt(down[0] ** 2 + down[1] ** 2)
    tilted = across > 1e-9  # upright, all points of a rim are equally low
    lowest = ca.if_else(tilted, down[:2] / ca.if_else(tilted, across, 1), _FALLBACK)
    points = []
    for side in (-1, 1):
        for angle in (0.0, _THIRD, -_THIRD):
            c, s = np.cos(angle), np.sin(angle)
            rim = ca.vertcat(c * lowest[0] - s * lowest[1], s * lowest[0] + c * lowest[1])
            points.append(pose[:3, 3] + pose[:3, :3] @ ca.vertcat(size[0] * rim, side * size[1] / 2))
    return points


def _vertices(shape: Shape) -> np.ndarray:
    where = f"shape {shape.name!r}"
    found = hull_of(shape, where).vertices
    if len(found) > MOST:
        text = f"its convex hull has {len(found)} vertices"
        fix = "use a box, capsule or spheres for contact"
        raise ModelError(describe(text, where=where, allowed=f"{MOST} or fewer points of contact", fix=fix))
    return found
