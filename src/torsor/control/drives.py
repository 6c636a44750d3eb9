"""PD drives of joints, which a simulation with fixed steps treats implicitly."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Maybe, real_numbers
from torsor.base.checks import common_shape, real_array
from torsor.base.errors import ModelError
from torsor.control.controller import Controller, JointReference, Reference, force_limits, joint_reference
from torsor.control.partition import check_rigid, check_tree
from torsor.mechanism.drives import saturated_force
from torsor.mechanism.mechanism import places_in_q
from torsor.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class Drives(Controller):
    """PD drives of a robot (``control.drives``): a controller whose gains are data of a simulation.

    ``law`` is the function (t, q, v, [window], gains) -> tau, which does not apply the force ``limit`` (nv) or None.
    ``gains`` (..., n) contains kp and kd of each drive and, if the reference is constant, its positions.
    ``function`` is the law with these gains and limits; if the gains have leading axes, they are its last input.
    """

    law: ca.Function
    gains: Array
    limit: Array | None = None

    @property
    def _data(self) -> list[Array]:
        return [self.gains] if self.gains.ndim > 1 else []

    def saturated(self, limit: Maybe = None) -> Drives:
        """Return the drives with forces limited to [-limit, limit] (N m, N), by default the robot's effort limits.

        ``limit`` is one number, or one per coordinate (nv), and replaces an earlier limit. In fixed-step simulations, a
        saturated drive applies exactly its limit and has no impedance.

        Example:
            >>> arm = torsor.library.two_link()
            >>> drives(arm, [0.0, 1.0], kp=100.0, kd=1.0).saturated(5.0)(0.0, [0.0, 0.0], [0.0, 0.0]).tolist()
            [0.0, 5.0]
        """
        return _with_gains(self.law, self.robot, self.reference, self.gains, force_limits(self.robot, limit))


def drives(robot: Robot, reference: JointReference | Reference, kp: Maybe = None, kd: Maybe = None) -> Drives:
    """Return PD drives of the joints: tau = kp (q_d - q) + kd (v_d - v), for robots without elastic joints.

    ``reference`` is a constant q_d (..., nq), a motion, samples or a function of time (see ``control.reference``); the
    pose of a floating base in it is ignored. ``kp`` (N m/rad or N/m) and ``kd`` (N m s/rad or N s/m) are one number for
    all drives, or one number per coordinate (..., nv), where 0 means no drive. The defaults are ``robot.kp`` and
    ``robot.kd``, the gains of the model's actuators. Coordinates of joints with quaternions, those with an
    ``effort_limit`` of 0 and, in closed loops, those that are not active have no drive.

    Fixed-step simulations treat drives implicitly, so that stiff drives are stable: ``simulate`` and ``rollout``
    use ``method="linearly_implicit"`` in place of "rk4" (see docs/theory/integrators.md). Gains and constant
    references are data: new values need no compilation, and in ``rollout`` each motion may have its own.

    Example:
        >>> arm = torsor.library.planar_chain(2)
        >>> stiff = drives(arm, [0.5, -0.5], kp=1e6, kd=10.0)
        >>> held = torsor.simulate(arm, duration=0.1, step=2e-3, controller=stiff)
        >>> held.q[-1].round(3).tolist()  # without limits, any drive holds it
        [0.5, -0.5]
    """
    check_tree(robot, "drives", loops=True)
    check_rigid(robot, "drives", "use gravity_pd" if robot.nq == robot.nv else "use a robot with rigid joints")
    own = _driven(robot)
    gains = [_gain(robot, list(own), value, name) for name, value in (("kp", kp), ("kd", kd))]
    constant = _constant(robot, reference)
    law = None if constant is not None else joint_reference(robot, reference)
    if constant is not None:
        gains.append(constant[..., list(own.values())])
    shapes = zip(("kp", "kd", "reference"), (each.shape[:-1] for each in gains), strict=False)
    batch = common_shape(robot.name, **dict(shapes))
    if 0 in batch:
        raise ModelError(f"the batch is empty: its axes are {batch}", where=robot.name, allowed="1 or more")
    data = np.concatenate([np.broadcast_to(each, (*batch, len(own))) for each in gains], axis=-1)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    numbers, parts = ca.SX.sym("gains", data.shape[-1]), [] if law is None else law.inputs
    P, D, *desired = ca.vertsplit(numbers, len(own))
    if law is None:
        desired.append(ca.SX.zeros(len(own), 1))
    else:
        desired = [each[list(own.values())] for each in law.rates(t, 1)]
    tau = ca.SX.zeros(robot.nv, 1)
    tau[list(own)] = P * (desired[0] - q[list(own.values())]) + D * (desired[1] - v[list(own)])
    names = ["t", "q", "v", *["window"] * len(parts), "gains"]
    function = ca.Function("drives", [t, q, v, *parts, numbers], [ca.densify(tau)], names, ["tau"])
    return _with_gains(function, robot, law, data)


def _with_gains(
    law: ca.Function, robot: Robot, reference: Reference | None, gains: Array, limit: Array | None = None
) -> Drives:
    """Return drives whose function is the saturated law with these gains, unless they have leading axes."""
    inputs, names = law.sx_in(), law.name_in()
    tau = law.call(inputs if gains.ndim > 1 else [*inputs[:-1], ca.SX(gains)])[0]
    count = len(inputs) - (gains.ndim == 1)
    tau = tau if limit is None else saturated_force(tau, limit)
    function = ca.Function("drives", inputs[:count], [tau], names[:count], ["tau"])
    return Drives(function, robot, reference, law=law, gains=gains, limit=limit)


def _driven(robot: Robot) -> dict[int, int]:
    """Return the index in q of each coordinate that has a drive, by its index in v."""
    places = places_in_q(robot.joints, robot.coordinates)
    idle = set(robot.coordinate_names) - set(robot.active) if robot.loops else set()
    own = {k: i for k, i in places.items() if robot.effort_limit[k] > 0 and robot.coordinate_names[k] not in idle}
    if not own:
        allowed = "joints with one coordinate and an effort limit above 0"
        raise ModelError("drives needs a joint with a drive", where=robot.name, allowed=allowed)
    return own


def _gain(robot: Robot, driven: list[int], value: Maybe, name: str) -> Array:
    """Return gains (..., n) of the drives, by default those of the robot."""
    if value is None:
        if not (robot.kp.any() or robot.kd.any()):
            raise ModelError("the actuators of the model have no gains", where=robot.name, fix="pass `kp=` and `kd=`")
        return np.asarray(getattr(robot, name)[driven])
    gain, where = real_array(value, robot.name, name), robot.name
    if gain.ndim == 0:
        gain = np.full(robot.nv, gain) * np.isin(np.arange(robot.nv), driven)
    if gain.shape[-1] != robot.nv or not np.isfinite(gain).all() or (gain < 0).any():
        allowed = f"one number of 0 or more, or an array (..., {robot.nv}) of them"
        raise ModelError(argument=name, value=reprlib.repr(value), where=where, allowed=allowed)
    others = np.delete(gain, driven, axis=-1)
    if others.any():
        missing = [k for k in range(robot.nv) if k not in driven and gain[..., k].any()]
        found = f"is not 0 for {robot.coordinate_names[missing[0]]!r}, which has no drive"
        raise ModelError(found, argument=name, where=where, allowed="0, or a joint with an effort limit above 0")
    return gain[..., driven]


def _constant(robot: Robot, reference: Any) -> Array | None:
    """Return a constant reference (..., nq), or None for any other."""
    nested = isinstance(reference, (tuple, list)) and any(np.ndim(each) for each in reference)  # samples
    if nested or hasattr(reference, "at") or callable(reference) or real_numbers(reference) is None:
        return None
    constant = real_array(reference, robot.name, "reference")
    if constant.shape[-1:] != (robot.nq,) or not np.isfinite(constant).all():
        allowed = f"finite positions (..., {robot.nq})"
        raise ModelError(f"has shape {constant.shape}", argument="reference", where=robot.name, allowed=allowed)
    return constant
