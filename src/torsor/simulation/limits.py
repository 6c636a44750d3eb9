"""Limits that a simulation enforces: stops at the position limits of joints, and saturation at effort limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import flag, instance_of, number, positive
from torsor.base.errors import ModelError, listing, warn
from torsor.robot.robot import Robot
from torsor.simulation.contact import STABLE, warn_of_long_step

_WHERE = "limits"


@dataclass(frozen=True)
class Limits:
    """Limits that a simulation enforces: ``efforts`` of drives, and ``stops`` at the position limits of joints.

    Drive forces saturate at ``effort_limit``. If a joint is x (rad or m) beyond a position limit and moves further at
    the rate x', a stop pushes it back with the force k x max(0, 1 + d x'). Here k is the ``stiffness`` (N m/rad, N/m)
    and d the ``dissipation`` (s/rad, s/m). As in the model of Hunt and Crossley (1975), this never adds energy.
    ``simulate`` raises ModelError if the robot has none of the limits to enforce.

    Example:
        >>> Limits(stops=False).efforts
        True
        >>> Limits(stiffness=-1.0)
        Traceback (most recent call last):
        torsor.ModelError: limits: stiffness is -1.0; allowed: a finite number, above 0
    """

    efforts: bool = True
    stops: bool = True
    stiffness: float = 1e4
    dissipation: float = 10.0

    def __post_init__(self) -> None:
        for name in ("efforts", "stops"):
            flag(getattr(self, name), _WHERE, name)
        object.__setattr__(self, "stiffness", positive(self.stiffness, _WHERE, "stiffness"))
        object.__setattr__(self, "dissipation", number(self.dissipation, _WHERE, "dissipation", least=0.0))

    def effort(self, robot: Robot) -> Array | None:
        """Return the maximum force of each coordinate (nv,), inf without a limit, or None if efforts are not enforced.

        A limit of 0 marks a coordinate without a drive, which is not limited.
        """
        return np.where(robot.effort_limit > 0, robot.effort_limit, np.inf) if self.efforts else None

    def saturated(self, robot: Robot, tau: Array) -> NDArray[np.bool_]:
        """Return a mask of the forces (..., nv) that reach the limits of the drives.

        Example:
            >>> arm = torsor.library.quadruped()
            >>> Limits().saturated(arm, np.full(18, 25.0))[[0, 6]].tolist()
            [False, True]
        """
        effort = self.effort(robot)
        return np.zeros(tau.shape, dtype=bool) if effort is None else np.abs(tau) >= effort

    def stop_forces(self, robot: Robot, q: Any, v: Any) -> Array:
        """Return the stop forces (..., nv) at positions q (..., nq) and velocities v (..., nv).

        Example:
            >>> arm = torsor.library.two_link()
            >>> Limits().stop_forces(arm, np.zeros(2), np.ones(2)).tolist()
            [0.0, 0.0]
        """
        forces = np.zeros(v.shape)
        for i, k, lower, upper in stopped(robot) if self.stops else ():
            forces[..., k] = self._push(q[..., i], v[..., k], lower, upper, np.maximum)
        return forces

    def function(self, robot: Robot) -> ca.Function | None:
        """Return the function (t, q, v) -> stop forces (nv x 1), or None if there are no stops."""
        limits = stopped(robot) if self.stops else []
        if not limits:
            return None
        t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        forces = ca.SX.zeros(robot.nv, 1)
        for i, k, lower, upper in limits:
            forces[k] = self._push(q[i], v[k], lower, upper, ca.fmax)
        return ca.Function("stops", [t, q, v], [forces], ["t", "q", "v"], ["stops"])

    def _push(self, q: Any, v: Any, lower: float, upper: float, largest: Callable[[Any, Any], Any]) -> Any:
        """Return the force of both stops of a coordinate."""
        force = 0.0 * q
        for limit, side in ((lower, -1.0), (upper, 1.0)):
            if np.isfinite(limit):
                beyond, rate = largest(side * (q - limit), 0), largest(1 + self.dissipation * side * v, 0)
                force = force - side * self.stiffness * beyond * rate
        return force


def stopped(robot: Robot) -> list[tuple[int, int, float, float]]:
    """Return (index in q, index in v, lower, upper) of the coordinates with a position limit, except quaternions."""
    found = dict[int, tuple[int, int, float, float]]()
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq != joint.nv:
            continue
        for i, k in zip(range(slices.q.start, slices.q.stop), range(slices.v.start, slices.v.stop), strict=True):
            if np.isfinite(robot.lower[i]) or np.isfinite(robot.upper[i]):
                found[i] = (i, k, float(robot.lower[i]), float(robot.upper[i]))
    return list(found.values())


def limits_of(settings: Mapping[str, Any]) -> Limits | None:
    """Return the limits in the settings of a trajectory, or None if there are none."""
    given = settings.get("limits")
    return Limits(**given) if isinstance(given, Mapping) else None


def check_limits(robot: Robot, limits: Limits, q: Array, step: float | None) -> Limits:
    """Return the limits; warn if joints exceed them at q (..., nq), or if ``step`` (s) is too long for the stops."""
    limits = instance_of(limits, Limits, robot.name, "limits", allowed="a torsor.simulation.Limits")
    both = stopped(robot) if limits.stops else []
    efforts = limits.efforts and bool(((robot.effort_limit > 0) & np.isfinite(robot.effort_limit)).any())
    if not both and not efforts:
        what = "the robot has no position limits and no effort limits to enforce"
        raise ModelError(what, where=robot.name, fix="set them in the description, or omit `limits`")
    beyond = [(float(np.maximum(lower - q[..., i], q[..., i] - upper).max()), i) for i, _, lower, upper in both]
    deep = [f"{robot.position_names[i]} by {depth:.3g}" for depth, i in beyond if depth > 0]
    if deep:
        text = f"the initial positions exceed position limits: {listing(deep, most=4)}"
        warn(text, where=robot.name, fix="start within the limits; the stops push the joint back")
    if both and step is not None:
        M = robot.mass_matrix(q.reshape(-1, robot.nq)[:1], loops="open")[0]
        mobility = np.diag(np.linalg.inv(M))[[k for _, k, _, _ in both]].max()
        longest = STABLE / np.sqrt(limits.stiffness * mobility)
        if step > longest:
            fix = "use a shorter step, or a smaller stiffness in `limits`"
            warn_of_long_step(robot, step, longest, "the stiffness of the joint stops", fix)
    return limits
