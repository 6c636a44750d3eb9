"""Edits of springs, motors and friction; each returns a new mechanism."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.checks import frozen_array, positive_vector
from torsor.base.errors import ModelError, describe, warn
from torsor.mechanism.drives import Motor, Spring
from torsor.mechanism.edit_bodies import MotorBody
from torsor.mechanism.laws import stiffness_at
from torsor.mechanism.mechanism import Mechanism, lineage
from torsor.mechanism.mechanism import carrier as carrier_of
from torsor.mechanism.parts import Joint

M = TypeVar("M", bound=Mechanism)
PARALLEL = 1e-12  # of the cosine of the angle between two axes: rounding
SAME_INERTIA = 1e-6  # of reflected inertias: larger differences are other numbers, not rounding


def _with_joint(robot: M, name: str, change: Callable[[Joint], Joint]) -> M:
    robot.joint(name)
    joints = tuple(change(joint) if joint.name == name else joint for joint in robot.joints)
    return replace(robot, joints=joints)


def with_friction(
    robot: M,
    joint: str | None = None,
    coulomb: ArrayLike | None = None,
    viscous: ArrayLike | None = None,
    smooth: float | None = None,
) -> M:
    """Return the robot with friction at a joint: Coulomb (N m or N), viscous (N m s/rad or N s/m)."""
    given = {"coulomb": coulomb, "viscous": viscous, "smooth": smooth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if joint is None:
        return _with_friction_everywhere(robot, changes)
    motors = {f"{each.name}/motor": (each.name, each.motor) for each in robot.joints if each.motor is not None}
    if isinstance(joint, str) and joint in motors:
        name, motor = motors[joint]
        return _with_joint(robot, name, lambda old: replace(old, motor=replace(motor, **changes)))
    return _with_joint(robot, joint, lambda old: replace(old, **changes))


def _with_friction_everywhere(robot: M, changes: dict[str, Any]) -> M:
    """Return the robot with friction at all joints that have velocities of their own.

    A number for all leaves out free joints: a floating base has no bearing.
    """
    count = sum(joint.nv for joint in robot.joints if not joint.follows)
    split = {
        name: positive_vector(value, count, f"{robot.name}: with_friction", name, or_zero=True)
        for name, value in changes.items()
        if name != "smooth"
    }
    joints, start = [], 0
    for joint in robot.joints:
        if not joint.follows:
            own = {name: values[start : start + joint.nv] for name, values in split.items()}
            single = {name: float(values[0]) if joint.nv == 1 else values for name, values in own.items()}
            given = {name: value for name, value in changes.items() if joint.type != "free" or np.ndim(value)}
            joint = replace(joint, **{name: single.get(name, value) for name, value in given.items()})
            start += joint.nv
        joints.append(joint)
    return replace(robot, joints=tuple(joints))


def without_friction(robot: M) -> M:
    """Return the robot without friction; springs keep their damping."""
    none: dict[str, Any] = {"coulomb": 0.0, "viscous": 0.0}
    joints = (replace(each, motor=each.motor and replace(each.motor, **none), **none) for each in robot.joints)
    return replace(robot, joints=tuple(joints))


def with_spring(robot: M, joint: str, stiffness: Any, damping: float = 0.0, rest: float = 0.0) -> M:
    """Return the robot with a spring on a joint: it pulls it back with K(x) x + D x', where x = q - rest."""
    if joint in (f"{each.name}/motor" for each in robot.joints if each.motor is not None):
        fix = f"put it on {joint.removesuffix('/motor')!r}, or give the motor a stiffness: with_motor(...)"
        raise ModelError(describe(f"a spring on the driven coordinate {joint!r}", where=robot.name, fix=fix))
    spring = Spring(stiffness, damping, rest)
    kept = spring if spring.stiffness or spring.damping else None
    return _with_joint(robot, joint, lambda old: replace(old, spring=kept))


def with_motor(
    robot: M,
    joint: str,
    inertia: float,
    ratio: float = 1.0,
    carrier: str | None = None,
    axis: ArrayLike | None = None,
    stiffness: Any = None,
    damping: float = 0.0,
    mass: float = 0.0,
    place: ArrayLike | None = None,
    moments: ArrayLike | None = None,
) -> M:
    """Return the robot with a motor that drives a joint: a rotor that spins ``ratio`` times as fast as the joint."""
    at = robot.place(robot.joint(joint).parent if carrier is None else carrier)
    where = f"{robot.name}: motor of {joint!r}"
    body = MotorBody(where, mass, place, moments)
    if axis is not None and body.has_axis:
        found = "axis, and a pose as place, whose z is the spin axis"
        raise ModelError(describe(found, where=where, allowed="one of them", fix="leave axis out"))
    if axis is not None or body.has_axis:
        own = body.pose[:3, 2] if axis is None else frozen_array(axis, (3,), where, "axis")
        direction = at.pose[:3, :3] @ own
    else:
        direction = _axis_seen_from(robot, robot.joint(joint), at.link)
    motor = Motor(carrier_of(robot, at).name, inertia, ratio, direction, stiffness, damping)
    robot = body.added_to(robot, at, motor)
    if body.mass and robot.joint(joint).motor is not None:
        found = "the joint has a motor already, whose mass would stay in its carrier beside that of the new one"
        fix = "begin with the robot before it had a motor"
        fix += f", or, if that motor came without a mass, with robot.without_motor({joint!r})"
        raise ModelError(describe(found, where=where, allowed="mass of the first motor of a joint", fix=fix))
    if at.link >= 0:
        motor.warn_if_too_heavy(joint, robot.links[at.link].inertia)
    _warn_of_replaced(robot, robot.joint(joint), motor)
    return _with_joint(robot, joint, lambda old: replace(old, motor=motor, rotor_inertia=0.0))


def _warn_of_replaced(robot: Mechanism, joint: Joint, motor: Motor) -> None:
    """Warn if a motor takes the place of another motor, or of a rotor inertia with another number."""
    where = f"{robot.name}: joint {joint.name!r}"
    if joint.motor is not None:
        found = f"it has a motor on {joint.motor.carrier!r}, which the new one replaces, with its friction"
        fix = f"remove it first: robot.without_motor({joint.name!r}).with_motor({joint.name!r}, ...)"
        warn(describe(found, where=where, fix=fix))
    own, reflected = float(np.sum(joint.rotor_inertia)), motor.ratio**2 * motor.inertia
    if own and abs(reflected - own) > SAME_INERTIA * own:
        found = f"the motor replaces its rotor_inertia {own:.6g} by inertia * ratio^2 = {reflected:.6g}"
        fix = f"give inertia={own / motor.ratio**2:.6g} to keep it, or describe the joint without rotor_inertia"
        warn(describe(found, where=where, fix=fix))


def _axis_seen_from(robot: Mechanism, joint: Joint, carrier: int) -> NDArray[np.float64]:
    """Return the axis (3,) of a joint in the axes of a link, or raise ModelError if it turns there.

    On the base (-1), which does not turn itself, the axis of a rotor has no influence on forces: it is the one in the
    neutral position.
    """
    start = robot.joints.index(joint)
    direction = joint.axis  # in the child's axes, and the same before the joint's own rotation
    rising, falling = lineage(robot, start), lineage(robot, carrier)
    for k in [link for link in rising if link not in falling]:
        each = robot.joints[k]
        _check_still(robot, joint, each, direction, carrier, moves=k != start and carrier >= 0)
        direction = each.placement[:3, :3] @ direction
    for k in reversed([link for link in falling if link not in rising]):
        each = robot.joints[k]
        direction = each.placement[:3, :3].T @ direction
        _check_still(robot, joint, each, direction, carrier, moves=True)
    return direction


def _check_still(
    robot: Mechanism, driven: Joint, between: Joint, direction: NDArray[np.float64], carrier: int, moves: bool
) -> None:
    """Raise ModelError if a joint between a driven joint and the carrier of its motor turns the driven joint's axis."""
    along = abs(abs(float(direction @ between.axis)) - 1.0) <= PARALLEL and between.type not in ("free", "spherical")
    if moves and not along and between.type not in ("prismatic", "fixed"):
        found = (
            f"seen from the carrier {robot.links[carrier].name!r}, the axis of the joint turns with {between.name!r}"
        )
        fix = "give axis=, the spin axis of the rotor in the carrier's axes"
        raise ModelError(describe(found, where=f"{robot.name}: motor of {driven.name!r}", fix=fix))


def without_motor(robot: M, joint: str) -> M:
    """Return the robot without the motor of a joint, which is then driven directly; the carrier keeps its mass."""
    return _with_joint(robot, joint, lambda old: replace(old, motor=None))


def with_motor_held(robot: M, name: str, value: ArrayLike) -> M:
    """Return the robot with the motor of an elastic joint fixed at an angle: its spring becomes one of the joint."""
    joint = robot.joint(name.removesuffix("/motor"))
    motor = joint.motor
    if motor is None or motor.stiffness is None or joint.spring is not None:
        found = f"joint {joint.name!r} has a spring in addition to that of its motor"
        raise ModelError(describe(found, where=robot.name, fix="fix the joint itself"))
    at = np.asarray(value, dtype=object)
    angle = float(frozen_array(at.item() if at.size == 1 else value, (), f"{robot.name}: {name!r}", "value"))
    # The law of a motor is in theta - q, that of a joint's spring in q - rest.
    spring = Spring(stiffness_at(motor.stiffness, -ca.SX.sym("x")), motor.damping, angle)
    return _with_joint(robot, joint.name, lambda old: replace(old, motor=None, spring=spring))
