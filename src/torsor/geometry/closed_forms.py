"""Closed-form distances between simple shapes in CasADi symbols, for distances, motion terms and contact.

A shape is given by its pose [R, p] (3 x 4 or 4 x 4) and its size, as in ``torsor.Shape``. Each function returns the
signed distance (negative if the shapes overlap), the unit normal from the first shape to the second, and the nearest
points, in the parent axes of the poses. The time derivative of the distance is normal . (velocity of the second point -
velocity of the first), which is exact if the nearest points are unique.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array

# Nearest points of segments, such as the axes of capsules, in CasADi symbols.
#
# Distances are exact. Their squares have continuous first derivatives where the nearest points are unique, which
# excludes parallel segments that overlap.

PARALLEL_TOLERANCE = 1e-9  # squared sine of the angle below which segments are treated as parallel


def on_segment(point: ca.SX, start: ca.SX, end: ca.SX) -> ca.SX:
    """Return the point (3 x 1) on a segment that is nearest to ``point``; the ends may coincide."""
    along = end - start
    square = ca.sumsqr(along)
    share = ca.dot(point - start, along) / ca.if_else(square > 0, square, 1)
    return start + _clamped(share) * along


def nearest_points(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return the nearest points (3 x 1 each) of two segments or points, each given by its ends."""
    if len(first) == 1:
        return first[0], second[0] if len(second) == 1 else on_segment(first[0], *second)
    if len(second) == 1:
        return on_segment(second[0], *first), second[0]
    a, b, r = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    aa, bb, ab, ar, br = ca.sumsqr(a), ca.sumsqr(b), ca.dot(a, b), ca.dot(a, r), ca.dot(b, r)
    area = aa * bb - ab * ab
    apart = area > PARALLEL_TOLERANCE * aa * bb
    # Fraction along the first segment that is nearest to the line of the second; arbitrary for parallel lines.
    s = ca.if_else(apart, _clamped((ab * br - bb * ar) / ca.if_else(apart, area, 1)), 0)
    # The point of the second segment nearest to it, and the point of the first nearest to that one, are the result.
    t = _clamped((ab * s + br) / ca.if_else(bb > 0, bb, 1))
    s = _clamped((ab * t - ar) / ca.if_else(aa > 0, aa, 1))
    return first[0] + s * a, second[0] + t * b


def _clamped(share: ca.SX) -> ca.SX:
    result: ca.SX = ca.fmax(0, ca.fmin(1, share))
    return result


def segment_distance(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> ca.SX:
    """Return the squared distance between two segments or points, each given by its ends (3 x 1)."""
    p, q = nearest_points(first, second)
    return ca.sumsqr(p - q)


MIN_DIRECTION_LENGTH = 1e-12  # m: distance below which the direction between two points is rounding error
Size = Any  # a row of numbers or symbols


class Closest(NamedTuple):
    """The nearest points of two shapes, with the signed ``distance`` (m) and the ``normal`` (3) from first to second.

    ``first`` and ``second`` (3) are points on the two surfaces, with second = first + distance * normal.
    """

    distance: Any
    normal: Any
    first: Any
    second: Any

    @property
    def flipped(self) -> "Closest":
        """The result with the two shapes exchanged."""
        return Closest(self.distance, -self.normal, self.second, self.first)


def _column(pose: ca.SX, k: int) -> ca.SX:
    return pose[:3, k]


def axis_ends(shape: str, pose: ca.SX, size: Size) -> list[ca.SX]:
    """Return the centre of a sphere, or both ends of the axis of a capsule or cylinder (3 x 1 each)."""
    center = _column(pose, 3)
    if shape == "sphere":
        return [center]
    half = size[1] / 2 * _column(pose, 2)
    return [center - half, center + half]


def _between(p: ca.SX, q: ca.SX, r: Any, s: Any, otherwise: ca.SX) -> Closest:
    """Return the nearest points of spheres with radii r and s; if the centres coincide, the normal is ``otherwise``."""
    apart = q - p
    length = ca.sqrt(ca.sumsqr(apart))
    known = length > MIN_DIRECTION_LENGTH
    normal = ca.if_else(known, apart / ca.if_else(known, length, 1), otherwise)
    return Closest(length - r - s, normal, p + r * normal, q - s * normal)


def _perpendicular(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return a unit vector perpendicular to two unit vectors, or only to the first if they are parallel."""
    across = ca.cross(a, b)
    length = ca.sqrt(ca.sumsqr(across))
    small = ca.fabs(a[0]) < 0.6  # a coordinate axis along which a unit vector is small is not parallel to it
    other = ca.cross(a, ca.if_else(small, ca.SX([1, 0, 0]), ca.SX([0, 1, 0])))
    apart = length > MIN_DIRECTION_LENGTH
    return ca.if_else(apart, across / ca.if_else(apart, length, 1), other / ca.sqrt(ca.sumsqr(other)))


def _round_pair(kinds: tuple[str, str], A: ca.SX, a: Size, B: ca.SX, b: Size) -> Closest:
    """Return the nearest points of two shapes, each a sphere or a capsule."""
    p, q = nearest_points(axis_ends(kinds[0], A, a), axis_ends(kinds[1], B, b))
    if kinds == ("sphere", "sphere"):  # any direction is valid
        return _between(p, q, a[0], b[0], ca.SX([0, 0, 1]))
    axes = [_column(pose, 2) for pose, kind in zip((A, B), kinds, strict=True) if kind == "capsule"]
    return _between(p, q, a[0], b[0], _perpendicular(axes[0], axes[-1]))


def on_plane(A: ca.SX, lowest: ca.SX) -> Closest:
    """Return the distance of a point from the plane z = 0 of a pose, with the plane's normal."""
    normal = _column(A, 2)
    height = ca.dot(normal, lowest - _column(A, 3))
    return Closest(height, normal, lowest - height * normal, lowest)


def lowest_point(shape: str, pose: ca.SX, size: Size, up: ca.SX) -> ca.SX:
    """Return the lowest point (3 x 1) of a shape along the unit vector ``up``, or one of them if there are several."""
    center, R = _column(pose, 3), pose[:3, :3]
    down = -(R.T @ up)
    if shape == "sphere":
        return ca.SX(center - size[0] * up)
    if shape == "ellipsoid":
        squares = ca.vertcat(*(item**2 for item in ca.vertsplit(_stack(size))))
        scaled = squares * down
        return center + R @ (scaled / ca.sqrt(ca.dot(scaled, down)))
    signs = ca.if_else(down >= 0, 1, -1)
    if shape == "box":
        return center + R @ (signs * _stack(size) / 2)
    if shape == "capsule":
        return ca.SX(center + signs[2] * size[1] / 2 * _column(pose, 2) - size[0] * up)
    across = ca.sqrt(down[0] ** 2 + down[1] ** 2)
    tilted = across > MIN_DIRECTION_LENGTH  # otherwise all points of the disc are equally low
    rim = ca.if_else(tilted, down[:2] / ca.if_else(tilted, across, 1), ca.SX([1, 0]))
    return ca.SX(center + R @ ca.vertcat(size[0] * rim, signs[2] * size[1] / 2))


def _stack(size: Size) -> ca.SX:
    return ca.SX(ca.vertcat(*size)) if isinstance(size, Sequence) else ca.SX(size)


def _plane_pair(kind: str, A: ca.SX, a: Size, B: ca.SX, b: Size) -> Closest:
    """Return the nearest points of a plane and another shape."""
    return on_plane(A, lowest_point(kind, B, b, _column(A, 2)))


def _from_solid(A: ca.SX, a: Size, B: ca.SX, b: Size, beyond: Callable[[ca.SX, Size], tuple[ca.SX, ca.SX]]) -> Closest:
    """Return the nearest points of a sphere A and a solid B.

    ``beyond`` maps the sphere's centre in the solid's axes to the outward direction and the signed distance.
    """
    center, R = _column(A, 3), B[:3, :3]
    outward, signed = beyond(R.T @ (center - _column(B, 3)), b)
    normal = -(R @ outward)
    return Closest(signed - a[0], normal, center + a[0] * normal, center + signed * normal)


def _beyond_box(local: ca.SX, size: Size) -> tuple[ca.SX, ca.SX]:
    """Return the outward unit direction and the signed distance of a point from a box, in box axes."""
    excess = ca.fabs(local) - _stack(size) / 2
    out = ca.fmax(excess, 0)
    length = ca.sqrt(ca.sumsqr(out))
    outside = length > 0
    side = ca.if_else(local >= 0, 1, -1)
    nearest = largest(*ca.vertsplit(excess))  # the nearest face, for a point inside
    direction = ca.if_else(outside, out / ca.if_else(outside, length, 1), nearest)
    return side * direction, ca.if_else(outside, length, ca.mmax(excess))


def largest(x: ca.SX, y: ca.SX, z: ca.SX) -> ca.SX:
    """Return a vector (3 x 1) that is 1 at the first maximum of three numbers and 0 elsewhere."""
    first = ca.logic_and(x >= y, x >= z)
    second = ca.logic_and(ca.logic_not(first), y >= z)
    return ca.vertcat(first, second, ca.logic_not(ca.logic_or(first, second)))


def _beyond_cylinder(local: ca.SX, size: Size) -> tuple[ca.SX, ca.SX]:
    """Return the outward unit direction and the signed distance of a point from a cylinder, in cylinder axes."""
    across = ca.sqrt(local[0] ** 2 + local[1] ** 2)
    known = across > MIN_DIRECTION_LENGTH
    radial = ca.if_else(known, local[:2] / ca.if_else(known, across, 1), ca.SX([1, 0]))
    up = ca.if_else(local[2] >= 0, 1, -1)
    wide, high = across - size[0], ca.fabs(local[2]) - size[1] / 2
    out = ca.vertcat(ca.fmax(wide, 0), ca.fmax(high, 0))
    length = ca.sqrt(ca.sumsqr(out))
    outside, sideways = length > 0, wide >= high
    inward = ca.if_else(sideways, ca.SX([1, 0]), ca.SX([0, 1]))
    share = ca.if_else(outside, out / ca.if_else(outside, length, 1), inward)
    return ca.vertcat(share[0] * radial, share[1] * up), ca.if_else(outside, length, ca.fmax(wide, high))


CLOSED_FORMS: dict[tuple[str, str], Callable[[ca.SX, Size, ca.SX, Size], Closest]] = {
    **{pair: partial(_round_pair, pair) for pair in combinations_with_replacement(("sphere", "capsule"), 2)},
    **{("plane", kind): partial(_plane_pair, kind) for kind in ("sphere", "capsule", "cylinder", "box", "ellipsoid")},
    ("sphere", "box"): partial(_from_solid, beyond=_beyond_box),
    ("sphere", "cylinder"): partial(_from_solid, beyond=_beyond_cylinder),
}
"""Closed forms by shape kinds; ``closest`` also covers exchanged kinds."""


def is_closed(a: str, b: str) -> bool:
    """Return whether the distance between two kinds of shapes has a closed form.

    Example:
        >>> is_closed("box", "sphere"), is_closed("box", "box")
        (True, False)
    """
    return (a, b) in CLOSED_FORMS or (b, a) in CLOSED_FORMS


def closest(a: str, A: ca.SX, size_a: Size, b: str, B: ca.SX, size_b: Size) -> Closest:
    """Return the nearest points of shapes of kinds a and b, with poses A and B ([R, p], 3 or 4 rows).

    Example:
        >>> at = lambda z: ca.SX(np.block([[np.eye(3), np.array([[0], [0], [z]])]]))
        >>> closest("sphere", at(3.0), (0.5,), "box", at(0.0), (1.0, 1.0, 2.0)).distance
        SX(1.5)
    """
    if (a, b) in CLOSED_FORMS:
        return CLOSED_FORMS[a, b](A, size_a, B, size_b)
    return CLOSED_FORMS[b, a](B, size_b, A, size_a).flipped


def box_corners(size: Sequence[float]) -> Array:
    """Return the corners (8, 3) of a box in its own axes."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1], indexing="ij")).reshape(3, -1).T
    return np.asarray(signs * np.asarray(size, dtype=float) / 2)
