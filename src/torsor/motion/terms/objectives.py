"""Terms of the objective: time, forces and their rates, energy, jerk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import by_name, one_of, positive
from torsor.base.errors import ModelError
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.node import Node


@dataclass(frozen=True, eq=False, kw_only=True)
class Time(Cost):
    """The duration of the motion (s)."""

    is_even = True

    def integrand(self, node: Node) -> ca.SX:
        """Return 1."""
        return ca.SX(1)


def _divide_by_scales(values: ca.SX, scale: Any, names: Sequence[str], where: str) -> ca.SX:
    """Return values divided by their scales, leaving out those with infinite scales."""
    sizes = by_name(scale, names, np.inf, where)
    if not (sizes > 0).all() or not np.isfinite(sizes).any():
        raise ModelError(argument="scale", value=scale, where=where, allowed="above 0, not all infinite")
    kept = np.flatnonzero(np.isfinite(sizes))
    return values[kept.tolist()] / ca.SX(sizes[kept])


def _magnitude(x: ca.SX, width: float) -> ca.SX:
    """Return |x| smoothed near 0: sqrt(x^2 + width^2) - width, which is at most ``width`` below |x|."""
    return ca.sqrt(x * x + width**2) - width


@dataclass(frozen=True, eq=False, kw_only=True)
class Effort(Cost):
    """The integral of forces, each divided by its entry of ``scale`` (a number, one for each, or {coordinate: number}).

    ``kind`` is "squared"; "normalised", squared with the robot's ``effort_limit`` as scale; or "absolute", their
    magnitudes sqrt(x^2 + width^2) - width, which differ from |x| by at most ``width`` (relative to the scale).
    Coordinates with an infinite scale, or that a table leaves out, do not count.
    """

    kind: str = "squared"
    scale: Any = 1.0
    width: float = 0.01

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum over forces."""
        one_of(self.kind, ("squared", "normalised", "absolute"), self.title, "kind")
        tau, names, scale = node.tau, node.force_names, self.scale
        if self.kind == "normalised":
            if np.ndim(scale) or isinstance(scale, Mapping) or scale != 1:
                text, fix = f"is {scale!r} besides the robot's limits", "leave scale out, or use `kind='squared'`"
                raise ModelError(text, value=scale, argument="scale", where=self.title, fix=fix)
            limits = dict(zip(node.robot.coordinate_names, node.robot.effort_limit.tolist(), strict=True))
            scale = [limits[name] or np.inf for name in names]  # unactuated coordinates have the limit 0
            if not np.isfinite(scale).any():
                fix = "give the robot effort limits, or `kind='squared'` with a scale"
                raise ModelError("no force has a limit", where=f"{node.robot.name}: {self.title}", fix=fix)
        x = _divide_by_scales(tau, scale, names, self.title)
        if self.kind == "absolute":
            return ca.sum1(_magnitude(x, positive(self.width, self.title, "width")))
        return ca.sumsqr(x)


@dataclass(frozen=True, eq=False, kw_only=True)
class TorqueRate(Cost):
    """The integral of squared rates of forces, each divided by its entry of ``scale`` (N m/s, N/s)."""

    scale: Any = 1.0

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of (tau' / scale)^2."""
        return ca.sumsqr(_divide_by_scales(node.tau_rate, self.scale, node.force_names, self.title))


@dataclass(frozen=True, eq=False, kw_only=True)
class MechanicalEnergy(Cost):
    """The work of the forces (J): the integral of the magnitude of each power P = tau v, or of its positive part.

    ``kind`` is "absolute", sqrt(P^2 + width^2) - width; or "positive", (P + sqrt(P^2 + width^2) - width) / 2: no energy
    is recovered. Both are smooth and at most ``width`` (W) below the exact values.
    """

    kind: str = "absolute"
    width: float = 0.1

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum over coordinates (W)."""
        one_of(self.kind, ("absolute", "positive"), self.title, "kind")
        power, width = node.tau * node.force_velocities, positive(self.width, self.title, "width")
        size = _magnitude(power, width)
        return ca.sum1(size if self.kind == "absolute" else (power + size) / 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class ElectricalEnergy(Cost):
    """The electrical energy of the motors (J): the integral of tau^2 / k^2 + tau v, copper loss and mechanical power.

    ``motor_constant`` k (N m / sqrt(W), seen from the joint; a number, one for each, or {coordinate: number}) is the
    force per square root of copper loss: gear ratio times torque constant divided by the root of the resistance. For a
    coordinate that a table leaves out only the mechanical power counts. Negative power is recovered, unless
    ``recovers`` is false: then only the positive part counts, smoothed with ``width`` (W) as in ``MechanicalEnergy``.
    """

    motor_constant: Any
    recovers: bool = True
    width: float = 0.1

    def integrand(self, node: Node) -> ca.SX:
        """Return the electrical power (W)."""
        k = by_name(self.motor_constant, node.force_names, np.inf, self.title)
        if not (k > 0).all():
            raise ModelError(argument="motor_constant", value=self.motor_constant, where=self.title, allowed="above 0")
        power = (node.tau / ca.SX(k)) ** 2 + node.tau * node.force_velocities
        if self.recovers:
            return ca.sum1(power)
        return ca.sum1(power + _magnitude(power, positive(self.width, self.title, "width"))) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Jerk(Cost):
    """The integral of squared jerks of the coordinates, or of the origin of a ``frame`` or link (m^2/s^5).

    Those of coordinates are divided by ``scale``, a number, one for each, or {coordinate: number}.
    """

    frame: str | None = None
    scale: Any = 1.0

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squares."""
        if self.frame is not None:
            node.robot.place(self.frame)
            return ca.sumsqr(node.jerk(self.frame)[3:] / positive(self.scale, self.title, "scale"))
        return ca.sumsqr(_divide_by_scales(node.j, self.scale, node.robot.coordinate_names, self.title))


@dataclass(frozen=True, eq=False, kw_only=True)
class Rates(Cost):
    """The mean over time of the squared rates of the rows of a constraint, named by ``of``, between its nodes.

    The constraint has to hold at all nodes of a phase. ``only`` limits it to rows whose labels end with one of these.
    ``per`` names a shared number by which it is divided, such as a speed.
    """

    of: str
    only: Sequence[str] | None = None
    per: str = ""

    @property
    def has_rows(self) -> bool:
        """It is evaluated from the rows of the constraint."""
        return False
