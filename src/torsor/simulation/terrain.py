"""Terrains: the height z(x, y) of the ground as a CasADi function, for ``Contact(ground=...)``.

Heights are continuous, because contact points touch tangent planes: the sides of steps and blocks are steep ramps.
"""

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.checks import frozen_array, number, positive, positive_vector, whole_number
from torsor.base.errors import ModelError
from torsor.geometry.contacts import bilinear
from torsor.mechanism.parts import checked_heights

_WHERE = "terrain"
_PRIME = 1009  # number of heights of blocks; its products are exact in float32
_STEEPEST = 0.5  # widest ramp, as a fraction of the length of a step


def steps(height: float, depth: float, ramp: float = 0.02, count: int = 10) -> ca.Function:
    """Return stairs along x that begin at x = 0 and rise by ``height`` (m) after each ``depth`` (m), ``count`` times.

    The sides of steps rise over the length ``ramp`` (m). A negative height leads downstairs.

    Example:
        >>> stairs = torsor.simulation.steps(0.1, 0.3)
        >>> [float(stairs(x, 0.0)) for x in (-0.1, 0.1, 0.4, 100.0)]
        [0.0, 0.1, 0.2, 1.0]
    """
    height, depth = number(height, _WHERE, "height"), positive(depth, _WHERE, "depth")
    ramp, count = _ramp(ramp, depth), whole_number(count, _WHERE, "count")
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    stair = ca.fmin(ca.fmax(ca.floor(x / depth), -1), count - 1)
    share = ca.fmin(ca.fmax((x - stair * depth) / ramp, 0), 1)
    z = height * ca.if_else(stair < 0, 0, stair + share)
    return ca.Function("steps", [x, y], [z], ["x", "y"], ["z"])


def rough_ground(height: float, size: float = 0.3, ramp: float = 0.04, seed: int = 0) -> ca.Function:
    """Return square blocks of edge length ``size`` (m) with pseudorandom heights from 0 to ``height`` (m).

    The heights of neighbouring blocks are joined by ramps of length ``ramp`` (m).

    Example:
        >>> ground = torsor.simulation.rough_ground(0.05)
        >>> heights = [float(ground(0.3 * k + 0.1, 0.1)) for k in range(100)]
        >>> round(min(heights), 3), round(max(heights), 3)
        (0.001, 0.049)
    """
    height, size = positive(height, _WHERE, "height"), positive(size, _WHERE, "size")
    ramp, seed = _ramp(ramp, size), whole_number(seed, _WHERE, "seed", least=0)
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    i, j = ca.floor(x / size), ca.floor(y / size)
    across, along = (ca.fmax((each - k * size - size + ramp) / ramp, 0) for each, k in ((x, i), (y, j)))
    corners = [[_pseudorandom(i + a, j + b, seed) for b in (0, 1)] for a in (0, 1)]
    low, high = ((1 - along) * row[0] + along * row[1] for row in corners)
    return ca.Function("rough_ground", [x, y], [height * ((1 - across) * low + across * high)], ["x", "y"], ["z"])


def height_field(heights: ArrayLike, size: ArrayLike, center: ArrayLike = (0.0, 0.0)) -> ca.Function:
    """Return a terrain with given ``heights`` (m) on a regular grid (rows, columns), and bilinear heights between them.

    As in MuJoCo, rows are along y and columns along x, both ascending. The grid has the edge lengths ``size`` (x, y)
    (m), which are twice the radii of MuJoCo, and the middle ``center`` (x, y) (m). Outside of it, the height is that of
    the nearest point on its border.

    Example:
        >>> ground = torsor.simulation.height_field([[0.0, 0.1], [0.0, 0.3]], size=(2.0, 2.0))
        >>> [round(float(ground(x, y)), 9) for x, y in ((1, -1), (1, 1), (0, 1), (0, 0), (9, 1))]
        [0.1, 0.3, 0.15, 0.1, 0.3]
    """
    where = f"{_WHERE}: height field"
    edges, middle = positive_vector(size, 2, where, "size"), frozen_array(center, (2,), where, "center")
    return bilinear(checked_heights(heights, where), edges, middle)


def _ramp(ramp: float, length: float) -> float:
    """Return a checked length of ramps."""
    ramp = positive(ramp, _WHERE, "ramp")
    if ramp > _STEEPEST * length:
        raise ModelError(argument="ramp", value=ramp, where=_WHERE, allowed=f"at most {_STEEPEST * length:g} m")
    return ramp


def _pseudorandom(i: ca.SX, j: ca.SX, seed: int) -> ca.SX:
    """Return a number between 0 and 1 for each pair of whole numbers: a polynomial in a finite field."""
    k = _remainder(57 * _remainder(i) + 131 * _remainder(j) + seed % _PRIME)
    k = _remainder(13 * k**2 + 7 * k + 3)
    return _remainder(k * _remainder(k**2 + 11)) / (_PRIME - 1)


def _remainder(k: ca.SX) -> ca.SX:
    """Return the remainder of a whole number by the prime; half a unit keeps quotients away from whole numbers."""
    return k - _PRIME * ca.floor((k + 0.5) / _PRIME)
