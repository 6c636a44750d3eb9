"""Rotations about given axes that move points and vectors to given places: the parts of closed-form solutions.

They are the subproblems of Paden and Kahan (Murray, Li and Sastry 1994, section 3.3), for axes in any position.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array

# Fractions of the size of the arm: below them, numbers are the rounding of zero.
SAME, MISSED = 1e-9, 1e-6


class Axis(NamedTuple):
    """A joint axis: a unit vector ``w`` (3) and a point ``o`` (3) on it, in base axes."""

    w: Array
    o: Array

    def turned(self, x: Array, angle: float) -> Array:
        """Return a point after a rotation about the axis."""
        return self.o + rotated(self.w, x - self.o, angle)

    def angle(self, start: Array, end: Array) -> float:
        """Return the angle that turns a point about the axis to another one; 0 for points on the axis."""
        return angle_between(self.w, start - self.o, end - self.o)


def rotated(w: Array, x: Array, angle: float) -> Array:
    """Return a vector after a rotation about the unit vector w (Rodrigues).

    Example:
        >>> rotated(np.array([0, 0, 1.0]), np.array([1.0, 0, 0]), np.pi / 2).round(9).tolist()
        [0.0, 1.0, 0.0]
    """
    c, s = math.cos(angle), math.sin(angle)
    return np.asarray(c * x + s * np.cross(w, x) + (1 - c) * (w @ x) * w)


def angle_between(w: Array, start: Array, end: Array) -> float:
    """Return the angle that turns the part of ``start`` across w to that of ``end``, 0 where there is none."""
    u, v = start - (w @ start) * w, end - (w @ end) * w
    if min(float(np.linalg.norm(u)), float(np.linalg.norm(v))) < SAME:
        return 0.0
    return math.atan2(float(w @ np.cross(u, v)), float(u @ v))


def sinusoid(a: float, b: float, c: float) -> list[float]:
    """Return the angles x with a cos x + b sin x = c: two, one, or none; the nearest one where rounding parts them."""
    size = math.hypot(a, b)
    if size < SAME or abs(c) > size * (1 + MISSED):
        return []
    middle, half = math.atan2(b, a), math.acos(max(-1.0, min(1.0, c / size)))
    return [middle] if half == 0 else [middle + half, middle - half]


def with_two_products(w: Array, a: float, v: Array, b: float, length: float) -> list[Array]:
    """Return the vectors y with w . y = a, v . y = b and a given length, for unit vectors w and v that differ."""
    cosine = float(w @ v)
    across = np.cross(w, v)
    square = float(across @ across)
    flat = ((a - b * cosine) * w + (b - a * cosine) * v) / square
    rest = length**2 - float(flat @ flat)
    if rest < -MISSED * max(length**2, SAME):
        return []
    high = math.sqrt(max(rest, 0.0) / square)
    return [flat + high * across, flat - high * across] if high > 0 else [flat]


def closest_points(one: Axis, other: Axis) -> tuple[Axis, Axis]:
    """Return both axes with the points where they are nearest to each other."""
    across = np.cross(one.w, other.w)
    if float(across @ across) < SAME**2:
        return one, Axis(other.w, other.o + ((one.o - other.o) @ other.w) * other.w)
    columns = np.stack([one.w, -other.w, across], axis=1)
    s, t, _ = np.linalg.solve(columns, other.o - one.o)
    return Axis(one.w, one.o + s * one.w), Axis(other.w, other.o + t * other.w)


def meeting_point(axes: list[Axis], size: float) -> Array | None:
    """Return the point where all axes meet, or None."""
    first, second = closest_points(axes[0], axes[1])
    if np.linalg.norm(np.cross(first.w, second.w)) < SAME or np.linalg.norm(first.o - second.o) > SAME * size:
        return None
    point = first.o
    for axis in axes[2:]:
        away = point - axis.o
        if np.linalg.norm(away - (away @ axis.w) * axis.w) > SAME * size:
            return None
    return point


def three_turns(axes: list[Axis], x: Array, p: Array) -> Iterator[tuple[float, float, float]]:
    """Yield the angles about three axes that move the point x to p, the last axis first (Pieper 1968)."""
    first, second = closest_points(axes[0], axes[1])
    third = axes[2]
    lever = x - third.o
    middle = third.o + (lever @ third.w) * third.w
    u, v = x - middle, np.cross(third.w, x - middle)  # x after a turn: middle + u cos + v sin
    apart = second.o - first.o
    reach = float((p - first.o) @ (p - first.o))
    for angle in _third(first, second, middle, u, v, p, apart, reach):
        moved = third.turned(x, angle)
        for y in _between(first, second, moved, p, apart):
            yield first.angle(y, p), second.angle(moved, y), angle


def _third(
    first: Axis, second: Axis, middle: Array, u: Array, v: Array, p: Array, apart: Array, reach: float
) -> list[float]:
    """Return the angles of the third axis."""
    if np.linalg.norm(np.cross(first.w, second.w)) < SAME:  # parallel: the height along them is that of p
        return sinusoid(float(first.w @ u), float(first.w @ v), float(first.w @ (p - middle)))
    m = middle - second.o
    size = float(m @ m + u @ u), 2 * float(m @ u), 2 * float(m @ v)  # |x - o2|^2 = size . (1, cos, sin)
    if np.linalg.norm(apart) < SAME:  # they meet: the distance from there is that of p
        return sinusoid(size[1], size[2], reach - size[0])
    # Skew: y - o1 is linear in (1, cos, sin), and has the length of p - o1.
    rows = np.stack([first.w, second.w, 2 * apart])
    right = np.zeros((3, 3))
    right[0, 0] = first.w @ (p - first.o)
    right[1] = second.w @ (middle - first.o), second.w @ u, second.w @ v
    right[2] = reach + apart @ apart - size[0], -size[1], -size[2]
    a, b, c = np.linalg.solve(rows, right).T
    products = a @ a - reach, 2 * a @ b, 2 * a @ c, b @ b, 2 * b @ c, c @ c
    return _quadric(*map(float, products))


def _quadric(k: float, c1: float, s1: float, cc: float, cs: float, ss: float) -> list[float]:
    """Return the angles with k + c1 cos + s1 sin + cc cos^2 + cs cos sin + ss sin^2 = 0, by a quartic in exp(ix)."""
    # cos = (z + 1/z) / 2, sin = (z - 1/z) / 2i: a polynomial in z, whose roots of length 1 are the angles.
    second, first = (cc - ss) / 4 - 0.25j * cs, c1 / 2 - 0.5j * s1
    roots = np.roots([second, first, k + (cc + ss) / 2, np.conj(first), np.conj(second)])
    return [float(np.angle(z)) for z in roots if abs(abs(z) - 1) < 1e-4]


def _between(first: Axis, second: Axis, moved: Array, p: Array, apart: Array) -> list[Array]:
    """Return the points that the second axis moves ``moved`` to, and the first axis moves to p."""
    length = float(np.linalg.norm(p - first.o))
    if np.linalg.norm(np.cross(first.w, second.w)) >= SAME:
        a, b = float(first.w @ (p - first.o)), float(second.w @ (moved - first.o))
        found = with_two_products(first.w, a, second.w, b, length)
        far = float(np.linalg.norm(moved - second.o))
        if np.linalg.norm(apart) >= SAME:  # one of both has the right distance from the second axis
            found = sorted(found, key=lambda y: abs(float(np.linalg.norm(first.o + y - second.o)) - far))[:1]
        return [first.o + y for y in found]
    distance = float(np.linalg.norm(apart))
    if distance < SAME:
        return []
    across = p - first.o
    flat = across - (across @ first.w) * first.w
    radius, other = float(np.linalg.norm(flat)), moved - second.o
    other = other - (other @ first.w) * first.w
    along = (radius**2 + distance**2 - float(other @ other)) / (2 * distance)
    rest = radius**2 - along**2
    if rest < -MISSED * max(radius**2, SAME):
        return []
    foot = first.o + (across @ first.w) * first.w + along * apart / distance
    side = math.sqrt(max(rest, 0.0)) * np.cross(first.w, apart / distance)
    return [foot + side, foot - side]
