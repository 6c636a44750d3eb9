"""Objective terms: time, forces and their rates, energy and jerk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import casadi as ca
import numpy as np

from torsor.base.checks import by_name, one_of, positive
from torsor.base.errors import ModelError
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node


@dataclass(frozen=True, eq=False, kw_only=True)
class Time(Cost):
    """The duration of the motion (s)."""

    is_even = True

    def integrand(self, node: Node) -> ca.SX:
        """Return 1."""
        return ca.SX(1)


def _divide_by_scales(node: Node, values: ca.SX, scale: Any, names: Sequence[str], where: str) -> ca.SX:
    """Return values divided by their scales, without those that have infinite scales."""
    sizes = by_name(scale, names, np.inf, where)
    if not (sizes > 0).all() or not np.isfinite(sizes).any():
        raise ModelError(argument="scale", value=scale, where=where, allowed="positive numbers, not all infinite")
    kept = np.flatnonzero(np.isfinite(sizes))
    return values[kept.tolist()] * (1 if (sizes == 1).all() else node.given(1 / sizes[kept]))


def _magnitude(x: ca.SX, width: ca.SX | float) -> ca.SX:
    """Return |x| smoothed near 0: sqrt(x^2 + width^2) - width, which is at most ``width`` below |x|."""
    return ca.sqrt(x * x + width**2) - width


SMOOTHING = 3e-2  # default width of smoothed powers, relative to their mean
SMOOTHER_FACTOR = 10.0  # factor of the default width in the problem that provides the warm start
EXACT_POINTS = 2000  # integration points for unsmoothed powers, which have kinks
DEFAULT_POWER = 3.0  # W; assumed mean power until a motion is known
# Decrease of the mean power at which the width is adapted, and the largest decrease per step, because solvers would
# chatter at much narrower kinks.
MIN_RESCALING, MAX_RESCALING = 2.0, 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class _SmoothedPower(Cost):
    """Magnitudes of powers, smoothed with ``width`` (W), by default 3 % of the mean ``power`` (W)."""

    width: float | None = None
    power: float | None = None

    def check(self) -> None:
        """Raise ModelError if the width or the power is not positive."""
        super().check()
        for what, value in (("width", self.width), ("power", self.power)):
            if value is not None:
                positive(value, self.title, what)

    def exact(self) -> Self:
        """Return the term without smoothing."""
        return replace(self, width=0.0)

    def fewest(self, model: MotionModel) -> int:
        """Return the smallest number of integration points, which is larger for unsmoothed kinks."""
        return max(super().fewest(model), EXACT_POINTS if self.width == 0 else 0)

    def scaled(self, power: float) -> Self:
        """Return the term with the mean ``power`` (W) that scales its width.

        It is unchanged if ``width`` is given or if the power is more than half the previous one. In one call, the power
        decreases to a quarter of the previous one at most.
        """
        if self.width is not None or not power > 0 or power * MIN_RESCALING > (self.power or np.inf):
            return self
        return replace(self, power=power if self.power is None else max(power, self.power / MAX_RESCALING))

    def smoother(self) -> Self:
        """Return the term with wider smoothing, unless its width is specified."""
        if self.width is not None or self.power is None:
            return self
        return replace(self, power=SMOOTHER_FACTOR * self.power)

    def _size(self, node: Node, power: ca.SX) -> ca.SX:
        scaled = SMOOTHING * (self.power or DEFAULT_POWER)
        return _magnitude(power, node.given(scaled if self.width is None else self.width))


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Cost):
    """The integral of forces, each divided by its ``scale`` (one number, one per force, or {name: number}).

    ``kind`` is "squared", "normalised" (squared, scaled by the robot's ``effort_limit``) or "absolute" (magnitudes
    sqrt(x^2 + width^2) - width, which differ from |x| by at most ``width``, relative to the scale). Coordinates with an
    infinite scale, or that a dict omits, are ignored.
    """

    kind: str = "squared"
    scale: Any = 1.0
    width: float = 0.01

    def check(self) -> None:
        """Raise ModelError if the width is not positive."""
        super().check()
        positive(self.width, self.title, "width")

    def exact(self) -> Self:
        """Return the term without smoothing."""
        return replace(self, width=0.0) if self.kind == "absolute" else self

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squared or absolute forces."""
        one_of(self.kind, ("squared", "normalised", "absolute"), self.title, "kind")
        tau, names, scale = node.tau, node.force_names, self.scale
        if self.kind == "normalised":
            if np.ndim(scale) or isinstance(scale, Mapping) or scale != 1:
                message, fix = (
                    f"is {scale!r}, but kind='normalised' uses the robot's limits",
                    "omit scale, or use `kind='squared'`",
                )
                raise ModelError(message, value=scale, argument="scale", where=self.title, fix=fix)
            limits = dict(zip(node.robot.coordinate_names, node.robot.effort_limit.tolist(), strict=True))
            scale = [limits[name] or np.inf for name in names]  # unactuated coordinates have a limit of 0
            if not np.isfinite(scale).any():
                fix = "give the robot effort limits, or use `kind='squared'` with a scale"
                raise ModelError("no force has a limit", where=f"{node.robot.name}: {self.title}", fix=fix)
        x = _divide_by_scales(node, tau, scale, names, self.title)
        if self.kind == "absolute":
            return ca.sum1(_magnitude(x, node.given(self.width)))
        return ca.sumsqr(x)


@dataclass(frozen=True, eq=False, kw_only=True)
class TorqueRate(Cost):
    """The integral of squared force rates, each divided by its ``scale`` (N m/s, N/s), as in ``Effort``."""

    scale: Any = 1.0

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of (tau' / scale)^2."""
        return ca.sumsqr(_divide_by_scales(node, node.tau_rate, self.scale, node.force_names, self.title))


@dataclass(frozen=True, eq=False, kw_only=True)
class MechanicalEnergy(_SmoothedPower):
    """The mechanical work (J): the integral of the magnitude of each power P = tau v, or of its positive part.

    ``kind`` is "absolute", for sqrt(P^2 + width^2) - width, or "positive" (without energy recovery), for (P + sqrt(P^2
    + width^2) - width) / 2. Both are smooth and at most ``width`` (W) below the exact values. By default, the width is
    3 % of ``power`` (W), the mean magnitude of the powers, which ``solve`` computes. ``MotionResult.parts`` contains
    exact values.
    """

    kind: str = "absolute"

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum over coordinates (W)."""
        one_of(self.kind, ("absolute", "positive"), self.title, "kind")
        power = node.tau * node.force_velocities
        size = self._size(node, power)
        return ca.sum1(size if self.kind == "absolute" else (power + size) / 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class ElectricalEnergy(_SmoothedPower):
    """The electrical energy of the motors (J): the integral of copper loss and mechanical power, tau^2 / k^2 + tau v.

    ``motor_constant`` k (N m / sqrt(W), at the joint; one number, one per coordinate, or {coordinate: number}) is the
    force per square root of copper loss: gear ratio times torque constant divided by the square root of the resistance.
    If a dict omits a coordinate, only its mechanical power counts. Negative power is recovered unless ``recovers`` is
    False. Otherwise, only the positive part counts, smoothed with ``width`` (W) as in ``MechanicalEnergy``.
    """

    motor_constant: Any
    recovers: bool = True

    def exact(self) -> Self:
        """Return the term without smoothing."""
        return self if self.recovers else super().exact()

    def scaled(self, power: float) -> Self:
        """Return the term with a width scaled by the mean power (W), unless its width is specified or not used."""
        return self if self.recovers else super().scaled(power)

    def integrand(self, node: Node) -> ca.SX:
        """Return the electrical power (W)."""
        k = by_name(self.motor_constant, node.force_names, np.inf, self.title)
        if not (k > 0).all():
            raise ModelError(
                argument="motor_constant", value=self.motor_constant, where=self.title, allowed="positive numbers"
            )
        power = (node.tau * node.given(1 / k, keep_zeros=True)) ** 2 + node.tau * node.force_velocities
        if self.recovers:
            return ca.sum1(power)
        return ca.sum1(power + self._size(node, power)) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Jerk(Cost):
    """The integral of squared jerks of the coordinates, or of the origin of a ``frame`` or link (m^2/s^5).

    Jerks are divided by ``scale``: one number or, without ``frame``, one per coordinate, or {coordinate: number}.
    """

    frame: str | None = None
    scale: Any = 1.0

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of the squared jerks, divided by ``scale``."""
        if self.frame is not None:
            node.robot.place(self.frame)
            return ca.sumsqr(node.jerk(self.frame)[3:]) * node.given(1 / positive(self.scale, self.title, "scale") ** 2)
        return ca.sumsqr(_divide_by_scales(node, node.j, self.scale, node.robot.coordinate_names, self.title))


@dataclass(frozen=True, eq=False, kw_only=True)
class Rates(Cost):
    """The time average of the squared row rates between the nodes of the constraint ``of``.

    The constraint must apply at all nodes of a phase. ``only`` restricts the cost to rows whose labels end with one of
    its strings. ``per`` names a shared number by which the cost is divided, such as a speed.
    """

    of: str
    only: Sequence[str] | None = None
    per: str = ""

    @property
    def has_rows(self) -> bool:
        """False, because the cost uses the rows of the constraint."""
        return False
