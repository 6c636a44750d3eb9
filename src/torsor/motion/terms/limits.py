"""Bounds on the positions, velocities, forces and force rates of coordinates; unactuated coordinates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, indices_of, one_of, positive
from torsor.base.errors import ModelError
from torsor.motion.terms.term import Constraint, Cost, Number, Rows, Term
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase
from torsor.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class _Reacting(Term):
    """Reactions of ``joints`` (names; None: all), relative to ``force`` (N) and ``moment`` (N m), if not None.

    Moments are about the origin of the child link.
    """

    joints: Sequence[str] | None = None
    force: float | None = None
    moment: float | None = None

    def _loads(self, node: Node) -> tuple[tuple[str, ...], list[ca.SX]]:
        """Return the reaction labels, and the squared ratios of the reactions to their limits."""
        robot, labels, ratios = node.robot, list[str](), list[ca.SX]()
        if self.force is None and self.moment is None:
            raise ModelError("neither force nor moment is given", where=self.title, fix="give at least one of them")
        moving = [joint for joint in robot.joints if joint.child in robot.link_names]
        names = [joint.name for joint in moving]
        wrenches = node.wrenches()
        chosen = indices_of(self.joints, names, self.title, "joint")
        if not chosen:
            raise ModelError("is empty", argument="joints", where=self.title, allowed=", ".join(names))
        for k in chosen:
            row = wrenches[robot.link_names.index(moving[k].child), :]
            for kind, size, part in (("force", self.force, row[3:]), ("moment", self.moment, row[:3])):
                if size is not None:
                    labels.append(f"{kind} of {names[k]}")
                    ratios.append(ca.sumsqr(part) * node.given(1 / positive(size, self.title, kind) ** 2))
        return tuple(labels), ratios


@dataclass(frozen=True, eq=False, kw_only=True)
class Reactions(_Reacting, Constraint):
    """Limits on the magnitudes of the reaction ``force`` (N) and ``moment`` (N m) of ``joints``, by default all.

    At least one limit is required. Moments are about the origin of the child link. Rows are (|f| / limit)^2 <= 1, which
    is smooth even where a reaction vanishes.
    """

    def rows(self, node: Node) -> Rows:
        """Return the squared ratios to the limits."""
        labels, ratios = self._loads(node)
        return Rows(ca.vertcat(*ratios), np.full(len(labels), -np.inf), np.ones(len(labels)), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reaction(_Reacting, Cost):
    """Reactions of ``joints`` relative to ``force`` (N) and ``moment`` (N m): x = |f| / force, |n| / moment.

    At least one of ``force`` and ``moment`` is required, and ``joints`` are all by default. Moments are about the
    origin of the child link. ``kind`` is one of:

    - "squared": the integral of the sum of x^2 (the default)
    - "mean": the mean of the sum of x^2 over the time of each phase
    - "power": the integral of the sum of x^power, dominated by the largest x. ``power`` is even, by default 8: a
      reaction of 0.8 times its scale contributes a sixth of the value at its scale.
    - "peak": the exact largest x of all nodes, a shared number that bounds all x

    Example:
        >>> sorted(Reaction(kind="peak", force=100.0).numbers())
        ['Reaction']
    """

    kind: str = "squared"
    power: int = 8

    @property
    def _is_peak(self) -> bool:
        one_of(self.kind, ("squared", "mean", "power", "peak"), self.title, "kind")
        return self.kind == "peak"

    @property
    def is_sum(self) -> bool:
        """Whether the term is a sum over times instead of an integral."""
        return self._is_peak or self.at is not None

    def numbers(self) -> Mapping[str, Number]:
        """Return the shared number of the largest ratio if ``kind`` is "peak"."""
        return {self.title: Number(1.0, 0.0)} if self._is_peak else {}

    def companions(self) -> Sequence[Term]:
        """Return the constraint that bounds all nodes by the peak."""
        if not self._is_peak:
            return ()
        shared_fields = {field.name: getattr(self, field.name) for field in fields(_Below)}
        return (_Below(**shared_fields | {"name": self.title}),)

    def moments(self, phase: Phase) -> Array:
        """Return the times s; a peak is counted once."""
        return np.zeros(1) if self._is_peak else super().moments(phase)

    def holds_in(self, index: int, phase: Phase) -> bool:
        """Return whether the term applies to a phase; a peak over all phases is counted in the first."""
        return index == 0 if self._is_peak and self.phase is None else super().holds_in(index, phase)

    def integrand(self, node: Node) -> ca.SX:
        """Return the integrand, or the peak."""
        if self._is_peak:
            return node.shared[self.title]
        ratios = self._loads(node)[1]
        if self.kind == "power":
            if type(self.power) is not int or self.power < 2 or self.power % 2:
                raise ModelError(
                    argument="power", value=self.power, where=self.title, allowed="a positive even integer"
                )
            return sum((ratio ** (self.power // 2) for ratio in ratios), start=ca.SX(0))
        total: ca.SX = sum(ratios, start=ca.SX(0))
        if self.kind != "mean":
            return total
        return total / (node.T * (self.during[1] - self.during[0]) if self.at is None else np.unique(self.at).size)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Below(_Reacting, Constraint):
    """Rows x^2 - peak^2 <= 0 of the peak with the same name."""

    def rows(self, node: Node) -> Rows:
        """Return x^2 - peak^2 of each reaction ratio x."""
        (labels, ratios), peak = self._loads(node), node.shared[self.title]
        rows = ca.vertcat(*(ratio - peak**2 for ratio in ratios))
        return Rows(rows, np.full(len(labels), -np.inf), np.zeros(len(labels)), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Limits(Constraint):
    """Bounds ``lower`` and ``upper`` on a quantity of every coordinate.

    Bounds are one number, one per coordinate, or {coordinate: number}, where other coordinates are free. If both are
    None, the robot's limits apply; otherwise, a lower bound of None means minus the upper bound, and an upper bound of
    None means no bound. ``only`` lists the names of the bounded coordinates.
    """

    lower: Any = None
    upper: Any = None
    only: Sequence[str] | None = None
    quantity: ClassVar[str] = ""
    limit: ClassVar[str] = ""

    def _values(self, node: Node) -> tuple[ca.SX, Sequence[str]]:
        """Return the quantity and the names of its entries."""
        return getattr(node, self.quantity), node.robot.coordinate_names

    def _own(self, robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
        """Return the robot's limits."""
        if not self.limit:
            raise ModelError(f"{self.title} has no bounds", where=robot.name, fix="give lower or upper")
        limits = getattr(robot, self.limit)
        most = np.array([limits[robot.coordinate_names.index(name)] for name in names])
        return -most, most

    def _given(self, robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
        """Return lower and upper bounds of the named entries."""
        if self.lower is None and self.upper is None:
            return self._own(robot, names)
        most = by_name(np.inf if self.upper is None else self.upper, names, np.inf, f"{self.title}: upper")
        if self.lower is None:
            return 0.0 - most, most  # avoids -0.0, which would appear in messages
        return by_name(self.lower, names, -np.inf, f"{self.title}: lower"), most

    def bounds_of(self, robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
        """Return the checked lower and upper bounds of the named entries."""
        least, most = self._given(robot, names)
        if not (least <= most).all():
            wrong = names[int(np.flatnonzero(~(least <= most))[0])]
            raise ModelError(f"the lower bound of {wrong} exceeds the upper bound", where=self.title)
        return least, most

    def rows(self, node: Node) -> Rows:
        """Return the rows of coordinates with finite limits."""
        values, names = self._values(node)
        least, most = self.bounds_of(node.robot, names)
        is_chosen = np.zeros(len(names), dtype=bool)
        is_chosen[indices_of(self.only, names, self.title)] = True
        kept = np.flatnonzero(is_chosen & (np.isfinite(most) | np.isfinite(least)))
        if not kept.size:
            fix = f"give bounds to {self.title}, or limits to the robot"
            raise ModelError(f"no {self.quantity} has a limit", where=node.robot.name, fix=fix)
        return Rows(values[kept.tolist()], least[kept], most[kept], tuple(names[k] for k in kept.tolist()))


@dataclass(frozen=True, eq=False, kw_only=True)
class Positions(_Limits):
    """Bounds on positions of the coordinates (rad, m), by default the robot's ``lower`` and ``upper``.

    Bounds are one number, one per position, or {position: number}; a bound of None is the robot's bound. ``only`` lists
    the names of the bounded positions. With ``hull``, the control points are bounded instead of the curve at nodes.
    The curve stays within their convex hull, so the bounds are provably satisfied at all times and need no rows.
    However, the motion may stay farther from a bound than necessary.

    Example:
        >>> Positions(upper={"joint2": 1.5}, hull=True).hull
        True
    """

    hull: bool = False
    quantity = "q"

    @property
    def has_rows(self) -> bool:
        """Whether the term is evaluated at nodes."""
        return not self.hull

    def _values(self, node: Node) -> tuple[ca.SX, Sequence[str]]:
        return node.q, node.robot.position_names

    def _given(self, robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
        lower = robot.lower if self.lower is None else self.lower
        upper = robot.upper if self.upper is None else self.upper
        least = by_name(lower, names, -np.inf, f"{self.title}: lower")
        return least, by_name(upper, names, np.inf, f"{self.title}: upper")

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of control points by profile, if ``hull`` is set."""
        if not self.hull:
            return {}
        if model.path is not None or self.at is not None:
            message = (
                "hull is not supported along a path" if model.path is not None else "hull is not supported with at"
            )
            raise ModelError(message, where=self.title, fix="omit hull, so that nodes are bounded")
        names = model.robot.position_names
        least, most = self.bounds_of(model.robot, names)
        moving = dict(zip(model.places, range(model.names.moving), strict=True))
        chosen = indices_of(self.only, names, self.title)
        still = [names[k] for k in chosen if k not in moving and (np.isfinite(least[k]) or np.isfinite(most[k]))]
        if still and model.is_closed:
            message = f"does not support {', '.join(still)}, which closed loops determine"
            fix = "name the active coordinates in only, and the others in another Positions without hull"
            raise ModelError(message, argument="hull", where=self.title, allowed=", ".join(model.names), fix=fix)
        return {moving[k]: (float(least[k]), float(most[k])) for k in chosen if k in moving}


@dataclass(frozen=True, eq=False, kw_only=True)
class Velocities(_Limits):
    """Bounds on velocities of the coordinates (rad/s, m/s), by default the robot's ``velocity_limit``.

    Bounds are one number, one per coordinate, or {coordinate: number}, where other coordinates are free. If only
    ``upper`` is given, the lower bound is its negative. ``only`` lists the names of the bounded coordinates.
    """

    quantity = "v"
    limit = "velocity_limit"


@dataclass(frozen=True, eq=False, kw_only=True)
class Accelerations(_Limits):
    """Bounds on accelerations of the coordinates (rad/s^2, m/s^2), as in ``Velocities``, but without default values."""

    quantity = "a"


@dataclass(frozen=True, eq=False, kw_only=True)
class Jerks(_Limits):
    """Bounds on jerks of the coordinates (rad/s^3, m/s^3), as in ``Velocities``, but without default values."""

    quantity = "j"


@dataclass(frozen=True, eq=False, kw_only=True)
class Torques(_Limits):
    """Bounds on forces of the coordinates (N m, N), by default the robot's ``effort_limit``.

    For ``lower``, ``upper`` and ``only``, see ``Velocities``. For a robot with closed loops, these are the forces of
    its active coordinates. Unactuated coordinates, such as the link of an elastic joint, have a limit of 0 and, by
    default, no row; use ``Unactuated`` for them.
    """

    quantity = "tau"
    limit = "effort_limit"

    def _own(self, robot: Robot, names: Sequence[str]) -> tuple[Array, Array]:
        most = super()._own(robot, names)[1]
        driven = np.where(most > 0, most, np.inf)
        return -driven, driven

    def _values(self, node: Node) -> tuple[ca.SX, Sequence[str]]:
        return getattr(node, self.quantity), node.force_names


@dataclass(frozen=True, eq=False, kw_only=True)
class TorqueRates(Torques):
    """Bounds on force rates (N m/s, N/s), as in ``Torques``, but without default values."""

    quantity = "tau_rate"
    limit = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Powers(_Limits):
    """Bounds on the mechanical powers tau v of the drives (W), as in ``Velocities``, but without default values."""

    quantity = "power"

    def _values(self, node: Node) -> tuple[ca.SX, Sequence[str]]:
        return node.tau * node.force_velocities, node.force_names


@dataclass(frozen=True, eq=False, kw_only=True)
class Unactuated(Constraint):
    """Zero forces at unactuated coordinates.

    ``names`` are the coordinates; None means the links of all elastic joints. Forces are zero at the Greville abscissae
    of the acceleration, a spline of degree - 2. For profiles with M control points, these are M - 2 times, one per
    control point of the acceleration, so there is one equation per degree of freedom. Between these times, forces are
    small, and decrease with more control points. They are much smaller if ``Phase.own`` assigns splines with the same
    knots and a degree lower by two to the motors of elastic joints. ``at`` selects different times.

    Example:
        >>> Unactuated(names=["joint1"]).moments(Phase(1.0, points=6)).tolist()  # the knots of a linear spline
        [0.0, 0.3333333333333333, 0.6666666666666666, 1.0]
    """

    names: Sequence[str] | None = None

    def moments(self, phase: Phase) -> Array:
        """Return the collocation points within ``during``."""
        if self.at is not None:
            return super().moments(phase)
        first, last = self.during
        spline = phase.spline
        inner, degree = spline.knots[2:-2], spline.degree - 2
        abscissae = np.array([inner[k + 1 : k + 1 + degree].mean() for k in range(spline.count - 2)])  # Greville
        kept = abscissae[(abscissae >= first) & (abscissae <= last)]
        if not kept.size:
            fix = "use a longer during, more control points, or at"
            message = f"there is no collocation point during {self.during!r}"
            raise ModelError(message, value=self.during, where=self.title, fix=fix)
        return kept

    def rows(self, node: Node) -> Rows:
        """Return the forces of the coordinates."""
        names = [joint.name for joint in node.robot.elastic] if self.names is None else self.names
        if self.names is None and not names:
            where = f"{node.robot.name}: {self.title}"
            raise ModelError("no joint is elastic", where=where, fix="name the coordinates")
        kept = indices_of(names, node.force_names, self.title)
        if not kept:
            raise ModelError("is empty", argument="names", where=self.title, allowed=", ".join(node.force_names))
        zero = np.zeros(len(kept))
        return Rows(node.tau[kept], zero, zero, tuple(node.force_names[k] for k in kept))
