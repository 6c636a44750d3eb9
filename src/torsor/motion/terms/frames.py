"""Position, velocity and orientation of frames and links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, frozen_array, number, one_of, positive
from torsor.base.errors import ModelError, describe
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.node import Node

AXES = ("x", "y", "z")
TINY = 1e-16  # keeps the square root differentiable at half a turn


def direction(value: Any, where: str, what: str) -> Array:
    """Return the unit vector (3,) along a vector.

    Example:
        >>> direction([0, 0, 2], "orientation", "axis").tolist()
        [0.0, 0.0, 1.0]
    """
    array = frozen_array(value, (3,), where, what)
    length = float(np.linalg.norm(array))
    if not length > 0:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="a vector other than zero"))
    return array / length


def point_of(node: Node, place: str | None, point: Any) -> ca.SX:
    """Return the position (3 x 1) in base axes of a point (3,) of a link or frame; None is the base."""
    local = ca.SX(np.asarray(point, dtype=float))
    if place is None:
        return local
    T = node.pose(place)
    return T[:3, :3] @ local + T[:3, 3]


def _bounded(values: ca.SX, lower: Any, upper: Any, given: tuple[Any, Any], labels: Sequence[str], where: str) -> Rows:
    """Return the components with finite bounds, from (lower, upper) or from ``given`` (target, tolerance)."""
    (target, tolerance), m = given, values.numel()
    if target is None and (np.ndim(tolerance) or tolerance != 0):
        raise ModelError(describe(f"tolerance is {tolerance!r} without a target", where=where, fix="widen the bounds"))
    if target is not None:
        if lower is not None or upper is not None:
            raise ModelError(describe("a target and bounds", where=where, fix="leave one of them out"))
        near = by_name(tolerance, labels, 0.0, f"{where}: tolerance")
        if not (near >= 0).all():
            raise ModelError(describe(f"tolerance is {tolerance!r}", where=where, allowed="0 or more"))
        aim = frozen_array(target, (m,), where, "the target")
        least, most = aim - near, aim + near
    else:
        least = by_name(-np.inf if lower is None else lower, labels, -np.inf, f"{where}: lower")
        most = by_name(np.inf if upper is None else upper, labels, np.inf, f"{where}: upper")
    kept = np.flatnonzero(np.isfinite(least) | np.isfinite(most))
    if not kept.size or not (least <= most).all():
        found = "no component has a bound" if not kept.size else "a lower bound is above the upper"
        raise ModelError(describe(found, where=where))
    return Rows(values[kept.tolist()], least[kept], most[kept], tuple(labels[k] for k in kept.tolist()))


@dataclass(frozen=True, eq=False, kw_only=True)
class FramePosition(Constraint):
    """The position of a ``point`` (3,) of a ``frame`` or link (m): within ``tolerance`` of ``position``, or bounded.

    ``lower`` and ``upper`` (3,) bound the components; infinite bounds leave them free. Axes are those of the base, or
    of the frame or link ``seen_from``, whose origin is then the reference point; it may move too.

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
        p = point_of(node, self.frame, frozen_array(self.point, (3,), self.title, "point"))
        if self.seen_from is not None:
            node.robot.place(self.seen_from)
            T = node.pose(self.seen_from)
            p = T[:3, :3].T @ (p - T[:3, 3])
        labels = [f"{axis} of {self.frame}" for axis in AXES]
        return _bounded(p, self.lower, self.upper, (self.position, self.tolerance), labels, self.title)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameVelocity(Constraint):
    """The velocity of a ``frame`` or link: components between ``lower`` and ``upper`` (3,), and a largest ``speed``.

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
        """Return the bounded components, and the squared ratio of the speed."""
        one_of(self.part, ("linear", "angular"), self.title, "part")
        one_of(self.axes, ("base", "own"), self.title, "axes")
        node.robot.place(self.frame)
        V = node.velocity(self.frame)
        own = V[3:] if self.part == "linear" else V[:3]
        v = own if self.axes == "own" else node.pose(self.frame)[:3, :3] @ own
        labels = [f"{axis} of the {self.part} velocity of {self.frame}" for axis in AXES]
        if self.speed is None:
            return _bounded(v, self.lower, self.upper, (self.velocity, self.tolerance), labels, self.title)
        size = ca.sumsqr(own) / positive(self.speed, self.title, "speed") ** 2
        whole = Rows(size, np.array([-np.inf]), np.ones(1), (f"{self.part} speed of {self.frame}",))
        if self.lower is None and self.upper is None and self.velocity is None:
            return whole
        parts = _bounded(v, self.lower, self.upper, (self.velocity, self.tolerance), labels, self.title)
        return Rows(
            ca.vertcat(parts.expression, size),
            np.append(parts.lower, -np.inf),
            np.append(parts.upper, 1.0),
            (*parts.labels, *whole.labels),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Orientation(Constraint):
    """The orientation of a ``frame`` or link, within ``tolerance`` (rad, below pi).

    With ``axis`` (3,), that direction of the frame points along ``direction`` (3,) in base axes. Otherwise the frame
    has the orientation ``rotation`` (3 x 3, its axes as columns in base axes). Rows are

        (1 - cos angle) / (1 - cos tolerance) <= 1

    with the angle between the two directions, or of the rotation between the two frames. Without a tolerance, where
    this has no gradient, rows are the two components of 2 sin(angle / 2) across the direction, or the vector 2
    sin(angle / 2) u of the rotation, all zero: these grow up to half a turn.

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
            raise ModelError(describe("no orientation is given", where=self.title, fix=fix))
        number(self.tolerance, self.title, "tolerance", least=0.0, below=np.pi)
        node.robot.place(self.frame)
        cosine, across = self._angle(node.pose(self.frame)[:3, :3])
        if self.tolerance > 0:
            row = (1 - cosine) / (1 - np.cos(self.tolerance))
            return Rows(row, np.array([-np.inf]), np.ones(1), (f"angle of {self.frame}",))
        half = ca.sqrt((1 + cosine) / 2 + TINY)  # the cosine of half the angle
        labels = tuple(f"turn {k} of {self.frame}" for k in range(across.numel()))
        return Rows(across / half, np.zeros(len(labels)), np.zeros(len(labels)), labels)

    def _angle(self, R: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the cosine of the angle, and a vector of the length of its sine."""
        if self.rotation is None:
            aim, axis = direction(self.direction, self.title, "direction"), direction(self.axis, self.title, "axis")
            aside = np.linalg.svd(aim[None, :])[2][1:]  # two directions across it
            now = R @ ca.SX(axis)
            return ca.dot(ca.SX(aim), now), ca.SX(aside) @ now
        wanted = frozen_array(self.rotation, (3, 3), self.title, "rotation")
        if not np.allclose(wanted @ wanted.T, np.eye(3), atol=1e-6) or np.linalg.det(wanted) < 0:
            raise ModelError(describe(f"rotation is {wanted.tolist()}", where=self.title, allowed="a rotation matrix"))
        E = ca.SX(wanted).T @ R
        return (ca.trace(E) - 1) / 2, ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]) / 2
