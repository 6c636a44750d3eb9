"""Objects in the view of a robot, as plain data: solids that are fixed or move with links."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from torsor.base.arrays import Array

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity (0 to 1)."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A unit box, ball or cylinder, scaled by ``size`` (3,), in m, along its axes and placed at ``pose`` (4 x 4).

    Before scaling, a box has edges of length 1, a ball has radius 1, and a cylinder has radius 1 and length 1 along z.

    Example:
        >>> Solid("box", np.eye(4), np.array([1.0, 2.0, 3.0])).shape
        'box'
    """

    shape: str
    pose: Array
    size: Array


@dataclass(frozen=True)
class Thing:
    """An object such as a load, seat or stairs, with ``solids`` in base axes or in the axes of ``pose``.

    ``pose`` returns the poses (..., 4, 4) of a moving object from the link poses (..., L, 4, 4). Objects are equal if
    their ``source`` is equal.
    """

    name: str
    source: Hashable
    color: Color = field(compare=False)
    solids: tuple[Solid, ...] = field(compare=False)
    pose: Callable[[Array], Array] | None = field(default=None, compare=False)
