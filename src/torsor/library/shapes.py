"""Simple bodies that the robots of the library are made of, and the check of their sizes."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import positive
from torsor.mechanism import Link

SLENDER = 0.05  # radius of a bar over its length


def cylinder(mass: float, radius: float, length: float, along: int) -> Array:
    """Return the inertia (3 x 3) of a solid cylinder about its centre; ``along`` (0, 1, 2) is its axis."""
    across = mass * (3 * radius**2 + length**2) / 12
    moments = np.full(3, across)
    moments[along] = mass * radius**2 / 2
    return np.diag(moments)


def bar(name: str, length: float, mass: float, along: int = 0, start: float = 0.0) -> Link:
    """Return a round bar along an axis (0, 1, 2) of its frame, from ``start`` on that axis."""
    com = np.zeros(3)
    com[along] = start + length / 2
    return Link(name, mass, com, cylinder(mass, SLENDER * length, length, along))


def check_positive(where: str, **sizes: float) -> None:
    """Raise ModelError unless all sizes are finite and above 0."""
    for name, value in sizes.items():
        positive(value, where, name)
