"""Simple bodies for the library robots: inertias, visual shapes and size checks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import positive
from torsor.mechanism import Link, Visual
from torsor.robot.robot import Robot
from torsor.spatial import axis_frame, make_pose

SLENDERNESS = 0.05  # ratio of a bar's radius to its length
FLATNESS = 0.35  # ratio of a drawn bar's thickness to its width
Colour = str | tuple[float, float, float]  # a name of COLOURS, or red, green, blue
COLOURS = {
    "white": (0.93, 0.94, 0.95), "silver": (0.74, 0.76, 0.79), "grey": (0.55, 0.58, 0.62), "dark": (0.17, 0.19, 0.22),
    "blue": (0.36, 0.60, 0.80), "orange": (0.93, 0.45, 0.13), "yellow": (0.96, 0.72, 0.15), "steel": (0.62, 0.66, 0.72),
    "copper": (0.78, 0.48, 0.28), "green": (0.30, 0.58, 0.42),
}  # fmt: skip
BAR_COLOURS = ((0.25, 0.47, 0.72), (0.90, 0.49, 0.18), (0.33, 0.60, 0.38), (0.55, 0.41, 0.66))


def cylinder(mass: float, radius: float, length: float, along: int) -> Array:
    """Return the inertia (3 x 3) of a solid cylinder about its centre; ``along`` (0, 1, 2) is its axis."""
    moments = np.full(3, mass * (3 * radius**2 + length**2) / 12)
    moments[along] = mass * radius**2 / 2
    return np.diag(moments)


def bar(name: str, length: float, mass: float, along: int = 0, start: float = 0.0) -> Link:
    """Return a round bar along an axis (0, 1, 2) of its frame, from ``start`` on that axis."""
    com = np.zeros(3)
    com[along] = start + length / 2
    return Link(name, mass, com, cylinder(mass, SLENDERNESS * length, length, along))


def check_positive(where: str, **sizes: float) -> None:
    """Raise ModelError unless all sizes are finite and above 0."""
    for name, value in sizes.items():
        positive(value, where, name)


# Visual shapes, which are drawn but have no effect on dynamics or collisions.
_ALONG = tuple(axis_frame(axis) for axis in np.eye(3))  # rotations that turn z along x, y and z


def _rgba(colour: Colour) -> tuple[float, float, float, float]:
    return *(COLOURS[colour] if isinstance(colour, str) else colour), 1.0


def tube(start: ArrayLike, end: ArrayLike, radius: float, colour: Colour, shape: str = "cylinder") -> Visual:
    """Return a cylinder or capsule between two points (m)."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    size = radius, float(np.linalg.norm(b - a))
    return Visual(shape, size, make_pose(axis_frame(b - a), (a + b) / 2), _rgba(colour))


def disc(centre: ArrayLike, axis: int, radius: float, length: float, colour: Colour, shape: str = "cylinder") -> Visual:
    """Return a cylinder or capsule centred at a point (m), along the axis 0, 1 or 2."""
    return Visual(shape, (radius, length), make_pose(_ALONG[axis], centre), _rgba(colour))


def block(centre: ArrayLike, sizes: Sequence[float], colour: Colour, rotation: Array | None = None) -> Visual:
    """Return a box with edges ``sizes`` (m), centred at a point (m)."""
    return Visual("box", tuple(sizes), make_pose(rotation, centre), _rgba(colour))


def ball(centre: ArrayLike, radius: float | Sequence[float], colour: Colour) -> Visual:
    """Return a sphere, or an ellipsoid with three radii (m), centred at a point (m)."""
    if isinstance(radius, float | int):
        return Visual("sphere", (radius,), make_pose(p=centre), _rgba(colour))
    return Visual("ellipsoid", tuple(radius), make_pose(p=centre), _rgba(colour))


def plate(
    start: ArrayLike, end: ArrayLike, width: float, colour: Colour, hinge: int = 2, level: float = 0.0
) -> list[Visual]:
    """Return a flat bar between two revolute joints whose axes are parallel to the axis ``hinge`` (0, 1, 2).

    ``level`` shifts the bar along that axis by a number of thicknesses, so that adjacent bars are not in one plane.
    """
    thickness = FLATNESS * width
    normal = np.eye(3)[hinge]
    a, b = (np.asarray(point, dtype=float) + level * thickness * normal for point in (start, end))
    way = b - a
    length = float(np.linalg.norm(way))
    x = way / length
    rotation = np.column_stack([x, np.cross(normal, x), normal])
    eyes = [disc(point, hinge, width / 2, thickness, colour) for point in (a, b)]
    pins = [disc(point, hinge, 0.22 * width, 1.3 * thickness, "dark") for point in (a, b)]
    return [block((a + b) / 2, (length, width, thickness), colour, rotation), *eyes, *pins]


def with_visuals(robot: Robot, visuals: Mapping[str, Sequence[Visual]]) -> Robot:
    """Return a robot with ``visuals`` {link name: visuals}, which replace those of these links.

    The keys may include the base. Unknown names are ignored.
    """
    base, *links = (
        replace(link, visuals=tuple(visuals[link.name])) if link.name in visuals else link
        for link in (robot.base, *robot.links)
    )
    return replace(robot, base=base, links=tuple(links))
