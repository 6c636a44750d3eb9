"""Contacts of a whole-body controller: places that stay where they are, and the forces that the ground can exert.

The friction cone is replaced by the pyramid inside it, of four sides, so that a force that satisfies its rows satisfies
the cone too. A surface contact of a rectangle |x| <= X, |y| <= Y has a wrench that forces in the cones of its corners
can make (Caron, Pham and Nakamura 2015), with the friction m of the pyramid:

    |f_x|, |f_y| <= m f_z        |n_x| <= Y f_z        |n_y| <= X f_z
    m (X + Y) f_z + n_z >= |Y f_x - m n_x| + |X f_y - m n_y|
    m (X + Y) f_z - n_z >= |Y f_x + m n_x| + |X f_y + m n_y|
"""

from dataclasses import dataclass
from itertools import product
from math import inf, sqrt
from typing import ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import direction, number, positive
from torsor.base.errors import ModelError, describe
from torsor.control.whole_body.symbols import Symbols
from torsor.robot.robot import Robot
from torsor.spatial import axis_frame


@dataclass(frozen=True, eq=False, kw_only=True)
class Contact:
    """What contacts share: ``friction`` coefficient, ``most`` normal force (N), ``damping`` (1/s) of a slip."""

    friction: float = 0.7
    most: float = inf
    damping: float = 20.0
    size: ClassVar[int] = 3

    @property
    def where(self) -> str:
        """The name that messages use."""
        return f"contact of {getattr(self, 'place', '')!r}"

    def __post_init__(self) -> None:
        positive(self.friction, self.where, "friction")
        number(self.damping, self.where, "damping", least=0)
        number(self.most, self.where, "most", above=0, finite=False)

    def check(self, robot: Robot) -> None:
        """Raise ModelError for a place that the robot does not have, or that does not move."""
        if robot.place(self.place).link < 0:  # type: ignore[attr-defined]
            raise ModelError(
                describe("a contact of the base, which does not move", where=f"{robot.name}: {self.where}")
            )

    def cone(self) -> Array:
        """Return the rows C (k x size) of C f >= 0."""
        raise NotImplementedError

    def normal_row(self) -> Array:
        """Return the row (size) of the normal force."""
        raise NotImplementedError

    def motion(self, at: Symbols) -> tuple[ca.SX, ca.SX]:
        """Return J and the acceleration of J a = wanted, in the axes of the place, that keeps the place where it is."""
        place, rows = self.place, slice(6 - self.size, 6)  # type: ignore[attr-defined]
        J, V, drift = at.jacobian(place, "local"), at.velocity(place, "local"), at.drift(place, "local")
        return J[rows, :], (-self.damping * V - drift)[rows]

    def moved(self, at: Symbols) -> ca.SX:
        """Return the Jacobian (size x nv) by which the force acts on the coordinates."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PointContact(Contact):
    """The origin of a link or frame stays; a force (3), N in base axes, inside the friction cone about ``normal``.

    ``normal`` (3), in base axes, points from the ground to the robot.

    Example:
        >>> PointContact("fl_foot", friction=0.6).cone().shape
        (5, 3)
    """

    place: str
    normal: ArrayLike = (0.0, 0.0, 1.0)
    size: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "normal", direction(self.normal, self.where, "normal"))

    def cone(self) -> Array:
        """Return the rows of C f >= 0."""
        return _pyramid(self.friction / sqrt(2)) @ axis_frame(np.asarray(self.normal)).T

    def normal_row(self) -> Array:
        """Return the row of the normal force."""
        return np.asarray(self.normal, dtype=float)

    def moved(self, at: Symbols) -> ca.SX:
        """Return the Jacobian of the origin in base axes."""
        return at.jacobian(self.place)[3:, :]


@dataclass(frozen=True, eq=False)
class SurfaceContact(Contact):
    """A rectangle of a link or frame stays on the ground, its z axis the normal that points to the robot.

    ``half_length`` and ``half_width`` (m) are half the sides along x and y of the place, whose origin is the centre.
    The wrench (6), moment (N m) then force (N), is at the origin in the axes of the place.

    Example:
        >>> SurfaceContact("left_sole", 0.1, 0.05).cone().shape
        (17, 6)
    """

    place: str
    half_length: float
    half_width: float
    size: ClassVar[int] = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.half_length, self.where, "half_length")
        positive(self.half_width, self.where, "half_width")

    def cone(self) -> Array:
        """Return the rows of C w >= 0."""
        m, X, Y = self.friction / sqrt(2), self.half_length, self.half_width
        rows = [[0, 0, 0, *row] for row in _pyramid(m)]
        rows += [[s, 0, 0, 0, 0, Y] for s in (-1, 1)] + [[0, s, 0, 0, 0, X] for s in (-1, 1)]
        for side, s, r in product((-1, 1), repeat=3):
            # m (X + Y) f_z + side n_z >= s (Y f_x - side m n_x) + r (X f_y - side m n_y), for all signs
            rows.append([s * side * m, r * side * m, side, -s * Y, -r * X, m * (X + Y)])
        return np.array(rows, dtype=float)

    def normal_row(self) -> Array:
        """Return the row of the normal force."""
        return np.array([0.0, 0, 0, 0, 0, 1])

    def moved(self, at: Symbols) -> ca.SX:
        """Return the Jacobian in the axes of the place."""
        return at.jacobian(self.place, "local")


def _pyramid(m: float) -> Array:
    """Return the rows of a pyramid about z: f_z >= 0, and |f_x|, |f_y| <= m f_z."""
    return np.array([[0, 0, 1], [1, 0, m], [-1, 0, m], [0, 1, m], [0, -1, m]], dtype=float)
