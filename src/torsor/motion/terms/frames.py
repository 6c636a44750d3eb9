"""Frames and links in space: where they are, how they are turned, how fast they move."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.terms.term import Constraint, Rows, one_of, spread
from torsor.motion.transcription.node import Node

__all__ = ["FramePosition", "FrameVelocity", "Orientation", "numbers", "point_of", "unit"]

Array = NDArray[np.float64]
AXES = ("x", "y", "z")
NONE = 1e-16  # keeps the root of nothing, at half a turn, a number


def numbers(value: Any, shape: tuple[int, ...], what: str, where: str) -> Array:
    """Return finite numbers of a shape.

    Example:
        >>> numbers([0, 0, 1], (3,), "axis", "orientation").tolist()
        [0.0, 0.0, 1.0]
    """
    try:
        array = np.array(value)
    except ValueError:  # rows of several lengths
        array = np.array("")
    if array.dtype.kind not in "iuf" or array.shape != shape or not np.isfinite(array).all():
        allowed = f"{' x '.join(map(str, shape))} finite numbers"
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed=allowed))
    return array.astype(float)


def unit(value: Any, what: str, where: str) -> Array:
    """Return the direction (3,) of a vector.

    Example:
        >>> unit([0, 0, 2], "axis", "orientation").tolist()
        [0.0, 0.0, 1.0]
    """
    array = numbers(value, (3,), what, where)
    length = float(np.linalg.norm(array))
    if not length > 0:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="a vector with a length"))
    return array / length


def point_of(node: Node, place: str | None, point: Any) -> ca.SX:
    """Return where a point (3,) of a link or frame is (3 x 1), in base axes; None is the base."""
    local = ca.SX(np.asarray(point, dtype=float))
    if place is None:
        return local
    T = node.pose(place)
    return T[:3, :3] @ local + T[:3, 3]


def _banded(values: ca.SX, lower: Any, upper: Any, given: tuple[Any, Any], labels: Sequence[str], where: str) -> Rows:
    """Return the components with a finite bound, either (lower, upper) or (a target, its tolerance)."""
    m, (target, tolerance) = values.numel(), given
    if target is None and (np.ndim(tolerance) or tolerance != 0):
        raise ModelError(describe(f"tolerance is {tolerance!r} of no target", where=where, fix="widen the bounds"))
    if target is not None:
        if lower is not None or upper is not None:
            raise ModelError(describe("a target and bounds", where=where, fix="leave one of them out"))
        near = spread(tolerance, m, f"{where}: tolerance")
        if not (near >= 0).all():
            raise ModelError(describe(f"tolerance is {tolerance!r}", where=where, allowed="0 or more"))
        aim = numbers(target, (m,), "the target", where)
        least, most = aim - near, aim + near
    else:
        least = spread(-np.inf if lower is None else lower, m, f"{where}: lower")
        most = spread(np.inf if upper is None else upper, m, f"{where}: upper")
    kept = np.flatnonzero(np.isfinite(least) | np.isfinite(most))
    if not kept.size or not (least <= most).all():
        found = "no component has a bound" if not kept.size else "a lower bound is above the upper"
        raise ModelError(describe(found, where=where))
    return Rows(values[kept.tolist()], least[kept], most[kept], tuple(labels[k] for k in kept.tolist()))


@dataclass(frozen=True, eq=False, kw_only=True)
class FramePosition(Constraint):
    """Where a ``point`` (3,) of a ``frame`` or link is (m): within ``tolerance`` of ``position``, or between bounds.

    ``lower`` and ``upper`` (3,) bound components, infinite ones are free. Axes are those of the base, or of the frame
    or link ``seen_from``, from whose origin it is then measured; it may move too.

    Example:
        >>> FramePosition(frame="hand", position=[0.5, 0.0, 0.2], tolerance=[0.01, 0.01, np.inf], at=0.5).title
        'FramePosition'
    """

    frame: str
    position: Any = None
    tolerance: Any = 0.0
    lower: Any = None
    upper: Any = None
    point: Any = (0.0, 0.0, 0.0)
    seen_from: str | None = None

    def rows(self, node: Node) -> Rows:
        """Return the components that are bounded."""
        node.robot.place(self.frame)
        p = point_of(node, self.frame, numbers(self.point, (3,), "point", self.title))
        if self.seen_from is not None:
            node.robot.place(self.seen_from)
            T = node.pose(self.seen_from)
            p = T[:3, :3].T @ (p - T[:3, 3])
        labels = [f"{axis} of {self.frame}" for axis in AXES]
        return _banded(p, self.lower, self.upper, (self.position, self.tolerance), labels, self.title)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameVelocity(Constraint):
    """How fast a ``frame`` or link moves: components between ``lower`` and ``upper`` (3,), and a ``speed`` at most.

    ``part`` is "linear", of its origin (m/s), or "angular" (rad/s). Components are in base axes, or in its own with
    ``axes="own"``. The speed is bounded as (|v| / speed)^2 <= 1, which is smooth at rest. ``velocity`` with
    ``tolerance`` is a target in place of bounds.

    Example:
        >>> FrameVelocity(frame="hand", speed=0.25).part
        'linear'
    """

    frame: str
    part: str = "linear"
    axes: str = "base"
    velocity: Any = None
    tolerance: Any = 0.0
    lower: Any = None
    upper: Any = None
    speed: float | None = None

    def rows(self, node: Node) -> Rows:
        """Return the components that are bounded, and the squared share of the speed."""
        one_of(self.part, ("linear", "angular"), "part", self.title)
        one_of(self.axes, ("base", "own"), "axes", self.title)
        node.robot.place(self.frame)
        V = node.velocity(self.frame)
        own = V[3:] if self.part == "linear" else V[:3]
        v = own if self.axes == "own" else node.pose(self.frame)[:3, :3] @ own
        labels = [f"{axis} of the {self.part} velocity of {self.frame}" for axis in AXES]
        if self.speed is None:
            return _banded(v, self.lower, self.upper, (self.velocity, self.tolerance), labels, self.title)
        if not (isinstance(self.speed, (int, float)) and 0 < self.speed < np.inf):
            found = f"speed is {self.speed!r}"
            raise ModelError(describe(found, where=self.title, allowed="a finite number above 0"))
        size = ca.sumsqr(own) / self.speed**2
        whole = Rows(size, np.array([-np.inf]), np.ones(1), (f"{self.part} speed of {self.frame}",))
        if self.lower is None and self.upper is None and self.velocity is None:
            return whole
        parts = _banded(v, self.lower, self.upper, (self.velocity, self.tolerance), labels, self.title)
        return Rows(
            ca.vertcat(parts.expression, size),
            np.append(parts.lower, -np.inf),
            np.append(parts.upper, 1.0),
            (*parts.labels, *whole.labels),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Orientation(Constraint):
    """How a ``frame`` or link is turned, within ``tolerance`` (rad, below pi).

    With ``axis`` (3,), a direction in its own axes, that one points along ``direction`` (3,) in base axes. Otherwise
    the whole frame is turned as ``rotation`` (3 x 3, its axes as columns in base axes). Rows are

        (1 - cos angle) / (1 - cos tolerance) <= 1

    with the angle between the two directions, or that of the rotation between the two frames. With no tolerance, where
    this has no jacobian, they are the two components of 2 sin(angle / 2) across the direction, or the vector
    2 sin(angle / 2) u of the rotation, all zero: these grow all the way to half a turn.

    Example:
        >>> Orientation(frame="hand", axis=[0, 0, 1], direction=[0, 0, -1], tolerance=0.1).tolerance
        0.1
    """

    frame: str
    axis: Any = None
    direction: Any = None
    rotation: Any = None
    tolerance: float = 0.0

    def rows(self, node: Node) -> Rows:
        """Return the rows of the angle."""
        if (self.axis is None) != (self.direction is None) or (self.axis is None) == (self.rotation is None):
            fix = "give axis with direction, or rotation"
            raise ModelError(describe("it is not said how it is turned", where=self.title, fix=fix))
        if not (isinstance(self.tolerance, (int, float)) and 0 <= self.tolerance < np.pi):
            found = f"tolerance is {self.tolerance!r}"
            raise ModelError(describe(found, where=self.title, allowed="0 to below pi (rad)"))
        node.robot.place(self.frame)
        cosine, across = self._angle(node.pose(self.frame)[:3, :3])
        if self.tolerance > 0:
            row = (1 - cosine) / (1 - np.cos(self.tolerance))
            return Rows(row, np.array([-np.inf]), np.ones(1), (f"angle of {self.frame}",))
        half = ca.sqrt((1 + cosine) / 2 + NONE)  # the cosine of half the angle
        labels = tuple(f"turn {k} of {self.frame}" for k in range(across.numel()))
        return Rows(across / half, np.zeros(len(labels)), np.zeros(len(labels)), labels)

    def _angle(self, R: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the cosine of the angle, and what vanishes with its sine."""
        if self.rotation is None:
            aim, axis = unit(self.direction, "direction", self.title), unit(self.axis, "axis", self.title)
            aside = np.linalg.svd(aim[None, :])[2][1:]  # two directions across it
            now = R @ ca.SX(axis)
            return ca.dot(ca.SX(aim), now), ca.SX(aside) @ now
        wanted = numbers(self.rotation, (3, 3), "rotation", self.title)
        if not np.allclose(wanted @ wanted.T, np.eye(3), atol=1e-6) or np.linalg.det(wanted) < 0:
            raise ModelError(describe(f"rotation is {wanted.tolist()}", where=self.title, allowed="a rotation matrix"))
        E = ca.SX(wanted).T @ R
        return (ca.trace(E) - 1) / 2, ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]) / 2
