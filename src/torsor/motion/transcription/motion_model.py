"""The model of a motion problem: a robot, and the relation of its coordinates to profiles over time.

The profiles y(t) are the robot's coordinates that are not frozen, the active coordinates of a robot with closed loops
(which determine the others), or a single profile, the progress along a path q = f(y), with

    v = f' y'      a = f' y'' + f'' y'^2      j = f' y''' + 3 f'' y' y'' + f''' y'^3

Terms may add profiles that do not move coordinates, such as the progress along a curve that a frame follows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import finite_vector, indices_of, instance_of, real_array
from torsor.base.errors import ModelError
from torsor.dynamics import Tree
from torsor.dynamics.recursions.configuration import steps
from torsor.mechanism import Wheel
from torsor.motion.transcription.splines import Spline
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

MAX_ROWS = 2000  # largest number of points; each adds a piece to the path expression


def _rows(value: object, where: str) -> Array:
    """Return finite points (K, coordinates)."""
    array = real_array(value, where, "points")  # type: ignore[arg-type]
    if array.ndim != 2 or not np.isfinite(array).all():
        allowed = "rows of finite numbers, one per coordinate"
        raise ModelError(f"the points have shape {array.shape} or are not finite", where=where, allowed=allowed)
    if len(array) > MAX_ROWS:
        raise ModelError(f"there are {len(array)} points", where=where, allowed=f"{MAX_ROWS} or fewer")
    return array


@dataclass(frozen=True, eq=False)
class Path:
    """Positions q = f(x) for x from 0 to 1: a clamped spline with control points (count, nq).

    ``Path.through`` returns the path through points.

    Example:
        >>> path = Path.through([[0.0, 0.0], [0.5, 1.0], [1.0, 0.0], [1.5, 0.5], [2.0, 0.0], [2.5, 1.0]])
        >>> path.positions(np.array([0.0, 1.0])).round(9).tolist()
        [[0.0, 0.0], [2.5, 1.0]]
    """

    spline: Spline
    points: Array

    def __post_init__(self) -> None:
        instance_of(self.spline, Spline, "path", "spline")
        points = _rows(self.points, "path")
        if len(points) != self.spline.count:
            allowed = f"({self.spline.count}, coordinates)"
            raise ModelError(f"the control points have shape {points.shape}", where="path", allowed=allowed)
        points.setflags(write=False)
        object.__setattr__(self, "points", points)

    @classmethod
    def of(cls, given: object, degree: int = 5, at: object = None, where: str = "path") -> "Path":
        """Return a path from a path, a dict of its ``degree``, ``knots`` and ``points``, or points on it.

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
            raise ModelError(f"the table has the keys {', '.join(map(str, given))}", where=where, allowed=allowed)
        return cls(Spline(given["degree"], given["knots"]), given["points"])

    @classmethod
    def through(cls, points: object, degree: int = 5, at: object = None, where: str = "path") -> "Path":
        """Return the spline through points (K, nq) at progress ``at`` (K,), by default proportional to the length."""
        rows, _ = _rows(points, where), Spline(degree, np.zeros(0))  # checks the degree
        if len(rows) <= degree:
            allowed = f"({degree + 1} or more, coordinates)"
            raise ModelError(f"have shape {rows.shape}", argument="points", where=where, allowed=allowed)
        if at is None:
            ways = np.linalg.norm(np.diff(rows, axis=0), axis=1)
            if not (ways > 0).all():
                raise ModelError("two successive points are equal", where=where, fix="omit one")
            places = np.concatenate([[0.0], np.cumsum(ways) / ways.sum()])
            places[-1] = 1.0
        else:
            read = finite_vector(at)
            places = np.zeros(0) if read is None else read
            if len(places) != len(rows) or places[0] != 0 or places[-1] != 1 or not (np.diff(places) > 0).all():
                allowed = f"{len(rows)} increasing numbers from 0 to 1"
                raise ModelError(argument="at", value=at, where=where, allowed=allowed)
        inner = [places[k + 1 : k + 1 + degree].mean() for k in range(len(places) - degree - 1)]  # so that a spline
        spline = Spline(degree, np.array(inner))  # exists (Schoenberg and Whitney)
        return cls(spline, np.asarray(np.linalg.solve(spline.matrix(places), rows), dtype=float))

    def positions(self, x: Array, order: int = 0) -> Array:
        """Return positions (..., nq), or their derivatives with respect to the progress, at progress x (...)."""
        at = np.asarray(x, dtype=float)
        result = self.spline.matrix(np.clip(at.ravel(), 0.0, 1.0), order) @ self.points
        return np.asarray(result.reshape(*at.shape, self.points.shape[1]))

    @cached_property
    def pieces(self) -> Array:
        """Coefficients (spans, degree + 1, nq) of the powers of x minus the start of the span."""
        return self.spline.taylor(np.concatenate([[0.0], self.spline.inner]), self.points)

    @property
    def numbers(self) -> Array:
        """The inner knots and the coefficients of each span, as one vector."""
        return np.concatenate([self.spline.inner, self.pieces.swapaxes(1, 2).ravel()])

    def piece(self, x: ca.SX, numbers: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
        """Return the coefficients (degree + 1 x nq) at a symbolic progress, and the start of the span.

        ``numbers`` are symbols for the ``numbers`` of paths with equally many spans, by default the values of this
        path.
        """
        numbers = ca.SX(self.numbers) if numbers is None else numbers
        spans, rows, columns = self.pieces.shape
        starts, *each = ca.vertsplit(numbers, [0, *range(spans - 1, numbers.numel() + 1, rows * columns)])
        first, *others = (ca.reshape(piece, rows, columns) for piece in each)
        coefficients, begin = first, ca.SX(0)
        for start, piece in zip(ca.vertsplit(starts), others, strict=True):
            coefficients = ca.if_else(x >= start, piece, coefficients)
            begin = ca.if_else(x >= start, start, begin)
        return coefficients, begin

    def over(self, x: ca.SX, orders: int = 1, numbers: ca.SX | None = None) -> list[ca.SX]:
        """Return positions (nq x 1) at a symbolic progress x, and their derivatives by x: ``orders`` columns."""
        pieces, begin = self.piece(x, numbers)
        far, p = x - begin, self.spline.degree
        columns = []
        for order in range(orders):
            value = ca.SX.zeros(self.points.shape[1], 1)
            for power in reversed(range(order, p + 1)):
                factor = float(np.prod(np.arange(power - order + 1, power + 1)))
                value = value * far + factor * pieces[power, :].T
            columns.append(value)
        return columns

    def motion(self, y: list[ca.SX], numbers: ca.SX) -> list[ca.SX]:
        """Return symbolic positions, velocities, accelerations and jerks from the progress and its derivatives."""
        f, f1, f2, f3 = self.over(y[0], 4, numbers)
        v, a = f1 * y[1], f1 * y[2] + f2 * y[1] ** 2
        return [f, v, a, f1 * y[3] + 3 * f2 * y[1] * y[2] + f3 * y[1] ** 3]


@dataclass(frozen=True, eq=False)
class PathPiece(Path):
    """A path within one span, whose coefficients (degree + 1 x nq) and start ``begin`` are symbols."""

    coefficients: ca.SX
    begin: ca.SX

    def piece(self, x: ca.SX, numbers: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
        """Return the symbols of the span."""
        return self.coefficients, self.begin


ORDERS = 4  # derivative orders of profiles: positions, velocities, accelerations, jerks


class Profiles(tuple[str, ...]):
    """Names of profiles; only the first ``moving`` ones move coordinates."""

    moving: int

    @classmethod
    def of(cls, own: Iterable[str], extras: Iterable[str] = ()) -> "Profiles":
        """Return the names of the profiles that move the robot, followed by the others."""
        first = tuple(own)
        made = cls((*first, *extras))
        made.moving = len(first)
        return made


@dataclass(frozen=True, eq=False)
class MotionModel:
    """A robot (``source``, possibly parametric), with its ``frozen`` coordinates or the ``path`` that it follows.

    ``extras`` are the names of profiles that do not move a coordinate. ``assembly`` (nq,) are positions near the
    assembly mode of closed loops, by default that of ``robot.closed.assemble``.
    """

    source: Robot | Parametric[Robot]
    frozen: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None
    extras: tuple[str, ...] = ()
    assembly: Sequence[float] | None = None

    def __post_init__(self) -> None:
        robot = self.robot
        if robot.nq != robot.nv and not robot.loops:
            turning = [joint.name for joint in robot.joints if joint.kind.nq != joint.kind.nv]
            fix = "replace it by revolute and prismatic joints in series"
            message = f"{', '.join(turning)}: positions are quaternions, which splines cannot interpolate"
            raise ModelError(
                message, where=robot.name, allowed="joints with as many positions as degrees of freedom", fix=fix
            )
        if not isinstance(self.frozen, Mapping) or finite_vector(list(self.frozen.values()) or 0.0) is None:
            allowed = "{coordinate: a finite number}"
            raise ModelError(argument="frozen", value=self.frozen, where=robot.name, allowed=allowed)
        indices_of(list(self.frozen), robot.coordinate_names, f"{robot.name}: frozen")
        wheels = [loop.name for loop in robot.loops if isinstance(loop, Wheel)]
        if wheels:
            message = (
                f"the robot has wheels ({', '.join(wheels)}), whose positions do not follow from active coordinates"
            )
            raise ModelError(message, where=robot.name, fix="use a model without wheels, or torsor.simulate")
        if robot.loops and (self.frozen or self.path is not None):
            fix = "lock coordinates with robot.with_coupling(name, {coordinate: 1.0}, offset)"
            text = "coordinates and paths are not supported for a robot with loops"
            raise ModelError(text, argument="frozen", where=robot.name, fix=fix)
        if robot.loops and self.parameters:
            message = f"free parameters ({', '.join(self.parameters)}) are not supported for a robot with loops"
            raise ModelError(message, where=robot.name, allowed="free parameters of robots without loops")
        if self.path is not None and (self.path.points.shape[1] != robot.nv or self.frozen):
            message = f"the path has {self.path.points.shape[1]} coordinates, and {len(self.frozen)} are frozen"
            raise ModelError(
                message, where=robot.name, allowed=f"a path of all {robot.nv} coordinates, with none frozen"
            )
        assembly = None if self.assembly is None else finite_vector(self.assembly)
        if self.assembly is not None and (not robot.loops or assembly is None or len(assembly) != robot.nq):
            message, allowed = f"is {self.assembly!r}", f"{robot.nq} positions, for a robot with loops"
            raise ModelError(message, argument="assembly", value=self.assembly, where=robot.name, allowed=allowed)
        if not self.names:
            raise ModelError("no coordinate moves", where=robot.name, fix="freeze fewer coordinates")
        twice = [name for name in self.extras if name in self.names[: self.names.moving]]
        if twice:
            message = f"the profile {twice[0]!r} has the name of a coordinate"
            raise ModelError(message, where=robot.name, fix="rename it")

    @property
    def robot(self) -> Robot:
        """The robot, without free parameters."""
        return self.source if isinstance(self.source, Robot) else self.source.robot

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the free parameters of the robot."""
        return () if isinstance(self.source, Robot) else self.source.names

    @cached_property
    def names(self) -> Profiles:
        """Names of the profiles."""
        robot = self.robot
        if self.path is not None:
            return Profiles.of(["progress"], self.extras)
        moving = robot.active if robot.loops else [name for name in robot.coordinate_names if name not in self.frozen]
        return Profiles.of(moving, self.extras)

    @cached_property
    def places(self) -> list[int]:
        """Indices of the profiles in the robot's positions (with closed loops) or coordinates."""
        names = self.robot.position_names if self.robot.loops else self.robot.coordinate_names
        return [names.index(name) for name in self.names[: self.names.moving]]

    @property
    def is_closed(self) -> bool:
        """Whether the robot has closed loops."""
        return bool(self.robot.loops)

    def call(self, name: str, *values: ca.SX, p: ca.SX, **options: Any) -> Any:
        """Return a robot algorithm applied to symbols; ``p`` are the free parameters."""
        return self.source.function(name, **options)(*values, *([p] if self.parameters else []))

    def motion(self, y: list[ca.SX], Q: ca.SX | None, path_numbers: ca.SX) -> list[ca.SX]:
        """Return positions, velocities, accelerations and jerks of all coordinates.

        ``Q`` are the closed-loop positions, and ``path_numbers`` are the ``Path.numbers`` of the path.
        """
        y = [order[: self.names.moving] for order in y]
        if Q is not None:
            v, a = self.robot.function("constrained_accelerations")(Q, y[1], y[2])
            rates = steps(Tree.of(self.robot), Q) @ v
            j = ca.jtimes(a, Q, rates) + ca.jtimes(a, y[1], y[2]) + ca.jtimes(a, y[2], y[3])
            return [Q, v, a, j]
        if self.path is not None:
            return self.path.motion(y, path_numbers)
        spread = ca.SX(self.robot.nv, self.names.moving)
        for column, row in enumerate(self.places):
            spread[row, column] = 1
        return [ca.SX(self._still) + spread @ y[0], *(spread @ rate for rate in y[1:])]

    @property
    def _still(self) -> Array:
        """The positions (nq,) of frozen coordinates, 0 for the others."""
        result = np.zeros(self.robot.nq)
        for name, value in self.frozen.items():
            result[self.robot.coordinate_names.index(name)] = value
        return result

    def follow(self, Q: ca.SX, y_1: ca.SX) -> ca.SX:
        """Return the derivative (nq x N) of closed-loop positions with respect to the profiles."""
        v = self.robot.function("constrained_velocities")(Q, y_1[: self.names.moving])
        return steps(Tree.of(self.robot), Q) @ ca.jacobian(v, y_1)

    def positions(self, y: Array, guess: Array | None = None) -> Array:
        """Return all positions (..., nq) from those of the profiles (..., N)."""
        robot, y = self.robot, y[..., : self.names.moving]
        if self.is_closed:
            near = self.assembly if guess is None else guess
            return robot.closed.assemble(y, near, missing="nan")
        if self.path is not None:
            return self.path.positions(y[..., 0])
        q = np.tile(self._still, (*y.shape[:-1], 1))
        q[..., self.places] = y
        return q
