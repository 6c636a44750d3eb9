"""Terms on the position, velocity and orientation of frames and links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import by_name, direction, frozen_array, indices_of, number, one_of, positive
from torsor.base.errors import ModelError
from torsor.motion.terms.term import Constraint, Cost, Rows
from torsor.motion.transcription.motion_model import MotionModel, Path
from torsor.motion.transcription.node import Node

AXES = ("x", "y", "z")
TINY = 1e-16  # makes the square root differentiable at half a turn


def point_of(node: Node, place: str | None, point: Any) -> ca.SX:
    """Return the position (3 x 1) in base axes of a point (3,) of a link or frame (None: the base)."""
    if place is None:
        return node.given(point)
    T = node.pose(place)
    return T[:3, :3] @ node.given(point, keep_zeros=True) + T[:3, 3]


def _bounded(values: ca.SX, lower: Any, upper: Any, given: tuple[Any, Any], labels: Sequence[str], where: str) -> Rows:
    """Return the components with finite bounds, from (lower, upper) or from ``given`` = (target, tolerance)."""
    target, tolerance = given
    if target is None and (np.ndim(tolerance) or tolerance != 0):
        message = f"is {tolerance!r} without a target"
        raise ModelError(message, value=tolerance, argument="tolerance", where=where, fix="widen the bounds")
    if target is not None:
        if lower is not None or upper is not None:
            raise ModelError("both a target and bounds are given", where=where, fix="omit one of them")
        near = by_name(tolerance, labels, 0.0, f"{where}: tolerance")
        if not (near >= 0).all():
            raise ModelError(argument="tolerance", value=tolerance, where=where, allowed="0 or more")
        aim = frozen_array(target, (values.numel(),), where, "the target")
        lower, upper = aim - near, aim + near
    return Rows.bounded(values, lower, upper, labels, where)


@dataclass(frozen=True, eq=False, kw_only=True)
class FramePosition(Constraint):
    """The position of a ``point`` (3,) of a ``frame`` or link (m), within ``tolerance`` of ``position`` or bounded.

    Instead of ``position``, ``lower`` and ``upper`` (3,) may bound the components; infinite bounds leave them free.
    ``point`` is in the axes of the frame. Components are in base axes, or relative to the frame or link ``seen_from``,
    which may move.

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
        """Return the bounded components."""
        node.robot.place(self.frame)
        p = point_of(node, self.frame, frozen_array(self.point, (3,), self.title, "point"))
        if self.seen_from is not None:
            T = node.pose(self.seen_from)
            p = T[:3, :3].T @ (p - T[:3, 3])
        labels = [f"{axis} of {self.frame}" for axis in AXES]
        return _bounded(p, self.lower, self.upper, (self.position, self.tolerance), labels, self.title)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameVelocity(Constraint):
    """The velocity of a ``frame`` or link: components between ``lower`` and ``upper`` (3,), and a maximum ``speed``.

    ``part`` is "linear" for the origin (m/s), or "angular" (rad/s). Components are in base axes, or in the axes of the
    frame with ``axes="own"``. The speed is bounded by (|v| / speed)^2 <= 1, which is smooth at rest. ``velocity`` with
    ``tolerance`` is a target instead of bounds.
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
        """Return the bounded components and the squared ratio of the speed."""
        one_of(self.part, ("linear", "angular"), self.title, "part")
        one_of(self.axes, ("base", "own"), self.title, "axes")
        V = node.velocity(self.frame)
        local_velocity = V[3:] if self.part == "linear" else V[:3]
        v = local_velocity if self.axes == "own" else node.pose(self.frame)[:3, :3] @ local_velocity
        labels = [f"{axis} of the {self.part} velocity of {self.frame}" for axis in AXES]
        parts = Rows(ca.SX(0, 1), np.zeros(0), np.zeros(0), ())
        if self.speed is None or any(bound is not None for bound in (self.lower, self.upper, self.velocity)):
            parts = _bounded(v, self.lower, self.upper, (self.velocity, self.tolerance), labels, self.title)
        if self.speed is None:
            return parts
        most = node.given(1 / positive(self.speed, self.title, "speed") ** 2)
        rows = ca.vertcat(parts.expression, ca.sumsqr(local_velocity) * most)
        label = f"{self.part} speed of {self.frame}"
        return Rows(rows, np.append(parts.lower, -np.inf), np.append(parts.upper, 1.0), (*parts.labels, label))


@dataclass(frozen=True, eq=False, kw_only=True)
class Orientation(Constraint):
    """The orientation of a ``frame`` or link, within ``tolerance`` (rad, below pi).

    With ``axis`` (3,), this axis of the frame points along ``direction`` (3,) in base axes. Otherwise, the frame has
    the orientation ``rotation`` (3 x 3), whose columns are the frame's axes in base axes. Rows are

        (1 - cos angle) / (1 - cos tolerance) <= 1

    with the angle between the two directions, or of the rotation between the two frames. This expression has no
    gradient at zero, so with zero tolerance, the rows are the two components of 2 sin(angle / 2) normal to the
    direction, or the vector 2 sin(angle / 2) u of the rotation. These rows must be zero, and they increase with the
    angle up to half a turn.

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
            raise ModelError(
                "the orientation is incomplete", where=self.title, fix="give either axis and direction, or rotation"
            )
        number(self.tolerance, self.title, "tolerance", least=0.0, below=np.pi)
        cosine, across = self._angle(node)
        if self.tolerance > 0:
            row = (1 - cosine) * node.given(1 / (1 - np.cos(self.tolerance)))
            return Rows(row, np.array([-np.inf]), np.ones(1), (f"angle of {self.frame}",))
        half = ca.sqrt((1 + cosine) / 2 + TINY)  # the cosine of half the angle
        labels = tuple(f"turn {k} of {self.frame}" for k in range(across.numel()))
        return Rows(across / half, np.zeros(len(labels)), np.zeros(len(labels)), labels)

    def _angle(self, node: Node) -> tuple[ca.SX, ca.SX]:
        """Return the cosine of the angle, and a vector whose length is its sine."""
        R = node.pose(self.frame)[:3, :3]
        if self.rotation is None:
            aim, axis = direction(self.direction, self.title, "direction"), direction(self.axis, self.title, "axis")
            aside = np.linalg.svd(aim[None, :])[2][1:]  # two directions perpendicular to it
            now = R @ node.given(axis, keep_zeros=True)
            # Zeros are replaced by constants, because rows that are 0 for every motion would be redundant equations.
            return ca.dot(node.given(aim, keep_zeros=True), now), node.given(aside, keep_zeros=True) @ now
        target = frozen_array(self.rotation, (3, 3), self.title, "rotation")
        if not np.allclose(target @ target.T, np.eye(3), atol=1e-6) or np.linalg.det(target) < 0:
            allowed = "a rotation matrix"
            raise ModelError(f"is {target.tolist()}", argument="rotation", where=self.title, allowed=allowed)
        E = node.given(target.T, keep_zeros=True) @ R
        return (ca.trace(E) - 1) / 2, ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Reference(Cost):
    """The integral of the squared distance of positions from a reference motion.

    ``values`` (K, n), with at least 4 rows, are positions at the fractions ``shares`` (K,) of the phase, from 0 to 1
    (by default equidistant), interpolated by a cubic spline. They may also be a ``Path``. ``names`` are the n
    coordinates (by default all). Differences are divided by ``scale``: one number, one per coordinate, or {name:
    number}, which ignores other coordinates.
    """

    values: Any
    shares: Any = None
    names: Sequence[str] | None = None
    scale: Any = 1.0

    @cached_property
    def _path(self) -> Path:
        count = len(self.values) if isinstance(self.values, (Sequence, np.ndarray)) else 0
        fractions = np.linspace(0.0, 1.0, count) if self.shares is None else self.shares
        return Path.of(self.values, 3, fractions, f"{self.title}: values")

    def fewest(self, model: MotionModel) -> int:
        """Return the smallest number of integration points."""
        return max(super().fewest(model), 8 * self._path.spline.count)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squares."""
        kept, path = indices_of(self.names, node.robot.position_names, self.title), self._path
        if path.points.shape[1] != len(kept):
            raise ModelError(
                f"the values have {path.points.shape[1]} columns", where=self.title, allowed=f"{len(kept)}"
            )
        scale = by_name(self.scale, [node.robot.position_names[k] for k in kept], np.inf, f"{self.title}: scale")
        if not (scale > 0).all():
            raise ModelError(argument="scale", value=self.scale, where=self.title, allowed="positive numbers")
        by_scale = 1 if (scale == 1).all() else node.given(1 / scale, keep_zeros=True)
        return ca.sumsqr((node.q[kept] - path.over(node.time_fraction, numbers=node.given(path.numbers))[0]) * by_scale)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnPath(Constraint):
    """Bounds that keep the progress of a robot along a joint path between 0 and 1."""

    name: str = "Path"

    @property
    def has_rows(self) -> bool:
        """Whether the term is evaluated at nodes."""
        return False

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return the bounds of the progress, which is the first profile."""
        return {0: (0.0, 1.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Follow(Constraint):
    """A constraint that a ``point`` (3,) of a ``frame`` or link follows a curve in space at a free speed.

    ``curve`` is a ``Path`` of points (3) in base axes, or points (K, 3) on it. The progress along the curve, from 0 at
    the start of the term's phases to 1 at their end, is an additional, nondecreasing profile named ``progress``.
    ``Phase.own`` may assign a different spline to it, and several frames may share one progress. With ``during``, the
    constraint applies only in that interval. Each component stays within ``tolerance`` (m) of the curve. The tolerance
    must be positive because joint splines cannot follow a curve exactly.

    Example:
        >>> Follow(frame="hand", curve=np.linspace([0.5, 0, 0], [0.5, 0, 0.3], 6), tolerance=1e-3).profiles()
        {'progress': (0.0, 1.0)}
    """

    frame: str
    curve: Any
    tolerance: float = 1e-3
    point: Any = (0.0, 0.0, 0.0)
    progress: str = "progress"

    def profiles(self) -> Mapping[str, tuple[float, float]]:
        """Return the progress along the curve."""
        return {self.progress: (0.0, 1.0)}

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return the bounds that keep the progress on the curve."""
        return {model.names.index(self.progress): (0.0, 1.0)}

    def rows(self, node: Node) -> Rows:
        """Return the components of the deviation and the rate of the progress."""
        near = positive(self.tolerance, self.title, "tolerance")
        node.robot.place(self.frame)
        path = Path.of(self.curve, where=f"{self.title}: curve")
        if path.points.shape[1] != 3:
            message = f"the curve has {path.points.shape[1]} coordinates"
            raise ModelError(message, where=self.title, allowed="points (3) in base axes")
        p = point_of(node, self.frame, frozen_array(self.point, (3,), self.title, "point"))
        away = p - path.over(node.profile(self.progress), numbers=node.given(path.numbers))[0]
        labels = (*(f"{axis} of {self.frame} from the curve" for axis in AXES), f"pace of {self.progress}")
        rows = ca.vertcat(away, node.profile(self.progress, 1))
        return Rows(rows, np.array([-near] * 3 + [0.0]), np.array([near] * 3 + [np.inf]), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Manipulability(Cost):
    """The distance of a frame or link from singularities, measured by det(J J^T) of its Jacobian J (m, rad).

    ``kind`` is "log" for the integral of -log det(J J^T), or "reciprocal" for the integral of 1/sqrt(det(J J^T)), the
    reciprocal of Yoshikawa's measure. ``part`` is "translation", "rotation" or "all". J has rows for the base ``axes``
    of that part, and one column per profile. The value depends on units if J has both kinds of rows.
    """

    frame: str
    part: str = "translation"
    axes: str = "xyz"
    kind: str = "log"

    def integrand(self, node: Node) -> ca.SX:
        """Return -log det(J J^T) or 1/sqrt(det(J J^T))."""
        one_of(self.part, ("translation", "rotation", "all"), self.title, "part")
        one_of(self.kind, ("log", "reciprocal"), self.title, "kind")
        if not self.axes or any(self.axes.count(axis) > 1 or axis not in AXES for axis in self.axes):
            raise ModelError(argument="axes", value=self.axes, where=self.title, allowed="different letters of 'xyz'")
        which = [AXES.index(axis) for axis in self.axes]
        rows = [k + 3 for k in which] if self.part != "rotation" else []
        rows += which if self.part != "translation" else []
        J = node.jacobian(self.frame)[rows, :]
        # The rank at a random configuration is the structural rank.
        symbols = ca.symvar(J)
        values = [ca.DM(value) for value in np.random.default_rng(0).uniform(0.3, 1.2, len(symbols))]
        free = np.linalg.matrix_rank(ca.Function("J", symbols, [J]).call(values)[0].full())
        if free < len(rows):
            message = f"{self.frame} can move along at most {free} of the {len(rows)} axes"
            raise ModelError(message, where=self.title, fix="name only axes along which it can move")
        A, log_det = J @ J.T, ca.SX(0)
        for k in range(len(rows)):  # by L D L^T factorisation
            log_det += ca.log(A[k, k])
            column = A[k + 1 :, k]
            A[k + 1 :, k + 1 :] -= column @ column.T / A[k, k]
        return -log_det if self.kind == "log" else ca.exp(-log_det / 2)
