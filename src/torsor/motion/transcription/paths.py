"""A path of the joints: positions as functions of one number, the progress from 0 to 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, real_array
from torsor.base.errors import ModelError, describe
from torsor.motion.transcription.splines import Spline

MOST_ROWS = 2000  # of points: each adds a piece to the expression of a path


def _rows(value: object, where: str) -> Array:
    """Return points (K, coordinates), all finite."""
    array = real_array(value, where, "points")  # type: ignore[arg-type]
    if array.ndim != 2 or not np.isfinite(array).all():
        allowed = "rows of finite numbers, one for each coordinate"
        raise ModelError(describe(f"points of shape {array.shape}", where=where, allowed=allowed))
    if len(array) > MOST_ROWS:
        raise ModelError(describe(f"{len(array)} points", where=where, allowed=f"{MOST_ROWS} or fewer"))
    return array


@dataclass(frozen=True, eq=False)
class Path:
    """Positions q = f(x) for x from 0 to 1: a clamped spline with control points (count, nq).

    ``Path.through`` returns the path through given points.

    Example:
        >>> path = Path.through([[0.0, 0.0], [0.5, 1.0], [1.0, 0.0], [1.5, 0.5], [2.0, 0.0], [2.5, 1.0]])
        >>> path.positions(np.array([0.0, 1.0])).round(9).tolist()
        [[0.0, 0.0], [2.5, 1.0]]
    """

    spline: Spline
    points: Array

    def __post_init__(self) -> None:
        if not isinstance(self.spline, Spline):
            raise ModelError(describe(f"spline is {self.spline!r}", where="path", allowed="a Spline"))
        points = _rows(self.points, "path")
        if len(points) != self.spline.count:
            allowed = f"({self.spline.count}, coordinates)"
            raise ModelError(describe(f"control points of shape {points.shape}", where="path", allowed=allowed))
        points.setflags(write=False)
        object.__setattr__(self, "points", points)

    @classmethod
    def of(cls, given: object, degree: int = 5, at: object = None, where: str = "path") -> "Path":
        """Return a path from a path, a table of its ``degree``, ``knots`` and ``points``, or points on it.

        Example:
            >>> Path.of({"degree": 3, "knots": [], "points": [[0.0], [1.0], [2.0], [3.0]]}).positions(np.array([0.5]))
            array([[1.5]])
        """
        if isinstance(given, Path):
            return given
        if not isinstance(given, Mapping):
            return cls.through(given, degree, at, where)
        if set(given) != {"degree", "knots", "points"}:
            allowed = "degree, knots and points"
            raise ModelError(describe(f"a table of {', '.join(map(str, given))}", where=where, allowed=allowed))
        return cls(Spline(given["degree"], given["knots"]), given["points"])

    @classmethod
    def through(cls, points: object, degree: int = 5, at: object = None, where: str = "path") -> "Path":
        """Return the spline through points (K, nq), at a progress ``at`` (K,), by default that of the length."""
        given, _ = _rows(points, where), Spline(degree, np.zeros(0))  # checks the degree
        if len(given) <= degree:
            allowed = f"({degree + 1} or more, coordinates)"
            raise ModelError(describe(f"points of shape {given.shape}", where=where, allowed=allowed))
        if at is None:
            ways = np.linalg.norm(np.diff(given, axis=0), axis=1)
            if not (ways > 0).all():
                fix = "leave one out"
                raise ModelError(describe("two successive points are equal", where=where, fix=fix))
            places = np.concatenate([[0.0], np.cumsum(ways) / ways.sum()])
            places[-1] = 1.0
        else:
            read = finite_vector(at)
            places = np.zeros(0) if read is None else read
            if len(places) != len(given) or places[0] != 0 or places[-1] != 1 or not (np.diff(places) > 0).all():
                allowed = f"{len(given)} increasing numbers from 0 to 1"
                raise ModelError(describe(f"at is {at!r}", where=where, allowed=allowed))
        inner = [places[k + 1 : k + 1 + degree].mean() for k in range(len(places) - degree - 1)]  # so that one exists
        spline = Spline(degree, np.array(inner))  # (Schoenberg and Whitney)
        return cls(spline, np.asarray(np.linalg.solve(spline.matrix(places), given), dtype=float))

    def positions(self, x: Array, order: int = 0) -> Array:
        """Return positions (..., nq), or their derivatives by the progress, at a progress (...)."""
        at = np.asarray(x, dtype=float)
        found = self.spline.matrix(np.clip(at.ravel(), 0.0, 1.0), order) @ self.points
        return np.asarray(found.reshape(*at.shape, self.points.shape[1]))

    @cached_property
    def _pieces(self) -> Array:
        """Coefficients (spans, degree + 1, nq) of the powers of x minus the start of the span."""
        starts, p = np.concatenate([[0.0], self.spline.inner]), self.spline.degree
        taylor, factor = [], 1.0
        for order in range(p + 1):
            factor *= max(order, 1)
            taylor.append(self.spline.matrix(starts, order) @ self.points / factor)
        return np.stack(taylor, axis=1)

    def over(self, x: ca.SX, orders: int = 1) -> list[ca.SX]:
        """Return positions (nq x 1) at a symbolic progress, and their derivatives by it: ``orders`` columns in all."""
        starts = np.concatenate([[0.0], self.spline.inner])
        pieces, begin = ca.SX(self._pieces[0]), ca.SX(0)
        for start, piece in zip(starts[1:], self._pieces[1:], strict=True):
            pieces, begin = ca.if_else(x >= start, ca.SX(piece), pieces), ca.if_else(x >= start, start, begin)
        far, p = x - begin, self.spline.degree
        columns = []
        for order in range(orders):
            value = ca.SX.zeros(self.points.shape[1], 1)
            for power in reversed(range(order, p + 1)):
                factor = float(np.prod(np.arange(power - order + 1, power + 1)))
                value = value * far + factor * pieces[power, :].T
            columns.append(value)
        return columns

    def motion(self, y: list[ca.SX]) -> list[ca.SX]:
        """Return symbolic positions, velocities, accelerations and jerks, from the progress and its derivatives."""
        f, f1, f2, f3 = self.over(y[0], 4)
        v, a = f1 * y[1], f1 * y[2] + f2 * y[1] ** 2
        return [f, v, a, f1 * y[3] + 3 * f2 * y[1] * y[2] + f3 * y[1] ** 3]
