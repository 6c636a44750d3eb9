"""Edits of loads, friction, drives, postures, frames and attachments; each returns a new mechanism."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Maybe, real_numbers
from torsor.base.checks import frozen_array, frozen_pose, name_of, number, one_of, positive_vector
from torsor.base.errors import ModelError, shortened, warn
from torsor.mechanism.build import build, fixed_at
from torsor.mechanism.drives import Motor, Spring, stiffness_at
from torsor.mechanism.edit_loops import coupling_of, loops_of, without_coordinates
from torsor.mechanism.flexible import Modes
from torsor.mechanism.joints import KINDS
from torsor.mechanism.loops import renamed
from torsor.mechanism.mechanism import Mechanism, Place, carrier, lineage
from torsor.mechanism.mechanism import carrier as carrier_of
from torsor.mechanism.names import unused_name
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.spatial import axis_frame, composite, make_pose, move_inertia

M = TypeVar("M", bound=Mechanism)
ROUNDING = 1e-9  # relative tolerance for comparing the inertia of a motor with that of its rotor


def with_payload(robot: M, link: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: Maybe = None) -> M:
    """Return a copy with a payload on a link or frame: mass (kg), centre of mass (m), inertia about it (kg m^2).

    ``com`` (3,) and ``inertia`` (3 x 3) are in the axes of the link or frame. The default is a point mass at its
    origin.

    Example:
        >>> torsor.library.two_link().with_payload("link2", 1.5).links[1].mass
        2.0
    """
    load = Link("payload", mass, com, np.zeros((3, 3)) if inertia is None else inertia)  # type: ignore[arg-type]
    place = robot.place(link)
    return _with_body(robot, place.link, move_inertia(place.pose, *load.body))


def _with_body(robot: M, link: int, body: tuple[float, Array, Array]) -> M:
    """Return a copy with a body (mass, centre of mass, inertia about it) welded to a link (-1: the base)."""
    owner = carrier(robot, Place(link, np.eye(4)))
    mass, com, inertia = composite(owner.body, body)
    loaded = replace(owner, mass=mass, com=com, inertia=inertia, source="")
    if link < 0:
        return replace(robot, base=loaded)
    return replace(robot, links=(*robot.links[:link], loaded, *robot.links[link + 1 :]))


class MotorBody:
    """The body of a motor whose rotor does not spin, from checked arguments of ``with_motor``.

    ``mass`` (kg) is the mass of stator and rotor. ``place``, in the carrier's axes, is the centre of mass (3,) or the
    pose (4 x 4) of the motor frame, whose z axis is the spin axis. ``moments`` (kg m^2) are 3 principal moments of
    inertia about the centre of mass in the motor frame, or the inertia (3 x 3) in that frame (in the carrier's axes if
    ``place`` is a point).
    """

    def __init__(self, where: str, mass: float, place: Maybe, moments: Maybe):
        self.where, self.mass = where, number(mass, where, "mass", least=0)
        if not self.mass and not (place is None and moments is None):
            message = f"a motor with {'a place' if moments is None else 'moments'} needs a mass"
            raise ModelError(message, where=where, fix="pass `mass=`, the total mass of stator and rotor")
        numbers = real_numbers(() if place is None else place)
        self.has_axis = numbers is not None and numbers.ndim == 2
        if self.has_axis:
            self.pose = frozen_pose(place, where, "place")  # type: ignore[arg-type]
        else:
            centre: Any = (0.0, 0.0, 0.0) if place is None else place
            self.pose = make_pose(p=frozen_array(centre, (3,), where, "place"))
        numbers = real_numbers(() if moments is None else moments)
        principal = numbers is not None and numbers.ndim == 1 and numbers.size > 0
        shape = (3,) if principal else (3, 3)
        self.moments = None if moments is None else frozen_array(moments, shape, where, "moments")

    def added_to(self, robot: M, place: Place, motor: Motor) -> M:
        """Return a copy of the robot with the body added to the motor's carrier; ``place`` is in its axes."""
        if not self.mass:
            return robot
        # By default, the rotor is a disc and the rest a point mass.
        moments = motor.inertia * np.array([0.5, 0.5, 1.0]) if self.moments is None else self.moments
        at, inertia = place.pose @ self.pose, np.diag(moments) if moments.ndim == 1 else moments
        if self.moments is None or (moments.ndim == 1 and not self.has_axis):  # in axes with the spin axis as z
            if abs(moments[0] - moments[1]) > ROUNDING * max(moments[:2]):
                message = f"the moments {shortened(moments)} about two axes normal to the spin axis differ"
                fix = "pass place as a pose (4 x 4) with these axes and z as the spin axis, or moments as 3 x 3"
                raise ModelError(message, where=self.where, allowed="equal moments if place is a point", fix=fix)
            at = make_pose(axis_frame(motor.axis), at[:3, 3])
        body = Link("motor", self.mass, np.zeros(3), inertia, source=self.where)
        axis = at[:3, :3].T @ motor.axis  # ``motor.axis`` is in link axes
        whole = float(axis @ inertia @ axis)
        if motor.inertia > whole * (1 + ROUNDING):
            rotor = f"but its rotor alone has {motor.inertia:.6g}"
            message = f"the motor has {whole:.6g} kg m^2 about its spin axis, {rotor}"
            fix = "pass the moments of stator and rotor together"
            raise ModelError(message, where=self.where, allowed="moments no smaller than those of the rotor", fix=fix)
        return _with_body(robot, place.link, move_inertia(at, *body.body))


PARALLEL_TOLERANCE = 1e-12  # rounding error of the cosine of the angle between two axes
SAME_INERTIA = 1e-6  # relative difference above which two reflected inertias are not equal up to rounding


def _with_joint(robot: M, name: str, change: Callable[[Joint], Joint]) -> M:
    robot.joint(name)
    return replace(robot, joints=tuple(change(joint) if joint.name == name else joint for joint in robot.joints))


def with_friction(
    robot: M,
    joint: str | None = None,
    coulomb: Maybe = None,
    viscous: Maybe = None,
    smooth: float | None = None,
    friction_model: str | None = None,
) -> M:
    """Return a copy with friction at a joint: Coulomb (N m or N), viscous (N m s/rad or N s/m).

    If no joint is given, the friction applies to all joints. A single number applies to all except free joints, because
    a floating base has no bearing. An array has one entry per joint velocity; it does not include the motors of elastic
    joints, and joints that follow others keep their friction. None leaves a value unchanged. If ``smooth`` (rad/s or
    m/s) is not 0, tanh(v / smooth) replaces sign(v). ``friction_model`` is text that defines an additional friction
    force as a function of the joint velocity v; "" removes it. The joint name "joint/motor" selects the friction of the
    joint's motor, at the gear output.

    Example:
        >>> robot = torsor.library.two_link().with_friction("joint1", coulomb=2.0, viscous=0.5)
        >>> robot.friction_force([3.0, 0.0]).tolist()
        [3.5, 0.0]
        >>> torsor.library.two_link().with_friction(viscous=[0.5, 0.25]).friction_force([2.0, 2.0]).tolist()
        [1.0, 0.5]
        >>> robot = torsor.library.two_link().with_friction("joint1", friction_model="2 * sign(v) * exp(-(v / 0.1)**2)")
        >>> robot.friction_force([0.1, 0.0]).round(3).tolist()
        [0.736, 0.0]
    """
    friction = {"coulomb": coulomb, "viscous": viscous, "smooth": smooth, "friction_model": friction_model}
    changes: dict[str, Any] = {name: value for name, value in friction.items() if value is not None}
    if joint is None:
        return _with_friction_everywhere(robot, changes)
    motors = {f"{item.name}/motor": (item.name, item.motor) for item in robot.joints if item.motor is not None}
    if isinstance(joint, str) and joint in motors:
        name, motor = motors[joint]
        if friction_model is not None:
            where = f"{robot.name}: {joint}"
            raise ModelError("a motor cannot have a friction_model", where=where, fix=f"give it to {name!r}")
        return _with_joint(robot, name, lambda old: replace(old, motor=replace(motor, **changes)))
    return _with_joint(robot, joint, lambda old: replace(old, **changes))


def _with_friction_everywhere(robot: M, changes: dict[str, Any]) -> M:
    """Return a copy with friction at all joints; a single number skips free joints, which have no bearing."""
    count, where = sum(joint.nv for joint in robot.joints if not joint.follows), f"{robot.name}: with_friction"
    friction = {name: value for name, value in changes.items() if name not in ("smooth", "friction_model")}
    split = {name: positive_vector(value, count, where, name, or_zero=True) for name, value in friction.items()}
    joints, start = [], 0
    for joint in robot.joints:
        if not joint.follows:
            changed = {name: values[start : start + joint.nv] for name, values in split.items()}
            single = {name: float(values[0]) if joint.nv == 1 else values for name, values in changed.items()}
            friction = {name: value for name, value in changes.items() if joint.type != "free" or np.ndim(value)}
            joint = replace(joint, **{name: single.get(name, value) for name, value in friction.items()})
            start += joint.nv
        joints.append(joint)
    return replace(robot, joints=tuple(joints))


def without_friction(robot: M) -> M:
    """Return a copy without friction; springs keep their damping.

    Example:
        >>> bool(torsor.library.six_axis_arm().without_friction().friction_force(np.ones(6)).any())
        False
    """
    none: dict[str, Any] = {"coulomb": 0.0, "viscous": 0.0}
    without = ((joint, joint.motor and replace(joint.motor, **none)) for joint in robot.joints)
    joints = (replace(joint, motor=motor, friction_model="", **none) for joint, motor in without)
    return replace(robot, joints=tuple(joints))


def with_spring(robot: M, joint: str, stiffness: Any, damping: float = 0.0, rest: float = 0.0) -> M:
    """Return a copy with a spring on a joint, which pulls it back with K(x) x + D x', where x = q - rest.

    ``stiffness`` K (N m/rad or N/m) is a number or a function: a CasADi expression of one symbol, the deflection, or
    text in x. ``damping`` D is in N m s/rad or N s/m, and ``rest`` is in rad or m. If stiffness and damping are zero,
    the spring is removed. See Khalil 2010, section 6.

    Example:
        >>> robot = torsor.library.two_link().with_spring("joint2", 100.0, rest=0.1)
        >>> robot.spring_force([0.0, 0.3]).round(12).tolist()
        [0.0, 20.0]
        >>> import casadi
        >>> x = casadi.SX.sym("x")
        >>> robot.with_spring("joint2", 100 + 500 * x**2).spring_force([0.0, 0.1]).round(12).tolist()
        [0.0, 10.5]
    """
    if joint in (f"{item.name}/motor" for item in robot.joints if item.motor is not None):
        fix = f"put it on {joint.removesuffix('/motor')!r}, or give the motor a stiffness: with_motor(...)"
        message = f"the driven coordinate {joint!r} cannot have a spring"
        raise ModelError(message, value=joint, where=robot.name, fix=fix)
    spring = Spring(stiffness, damping, rest)
    kept = spring if spring.stiffness or spring.damping else None
    return _with_joint(robot, joint, lambda old: replace(old, spring=kept))


def with_motor(
    robot: M,
    joint: str,
    inertia: float,
    ratio: float = 1.0,
    carrier: str | None = None,
    axis: Maybe = None,
    stiffness: Any = None,
    damping: float = 0.0,
    mass: float = 0.0,
    place: Maybe = None,
    moments: Maybe = None,
) -> M:
    """Return a copy with a motor on a joint: a rotor that spins ``ratio`` times as fast as the joint.

    - ``inertia`` (kg m^2): inertia of the rotor about its spin axis. The mass of the rotor, and its inertia when it
      does not spin, belong to the link that carries it.
    - ``mass`` (kg): the mass of stator and rotor, which is added to the carrier at ``place``. Omit it if the carrier
      already includes the motor.
    - ``place``: the motor's centre of mass (3,) in the carrier's axes, or the pose (4 x 4) of a frame at this point
      whose z axis is the spin axis. The default is the carrier's origin.
    - ``moments`` (kg m^2): inertia about the centre of mass of the motor at rest: two moments normal to the spin axis
      and one about it, or 3 x 3 in the axes of ``place``. The two are equal unless ``place`` is a pose. The default is
      that of a disc with the rotor's inertia.
    - ``carrier``: the link (or a frame on it, or the base) that carries the motor; the default is the parent link of
      the joint.
    - ``axis``: the spin axis in the carrier's axes; the default is the axis of the joint.
    - ``stiffness`` (a number or a function, as in ``with_spring``): makes the joint elastic. The motor gets its own
      coordinate "joint/motor", its angle theta at the gear output, and pulls the joint with K(x) x + D x', where
      x = theta - q and D is the ``damping`` (N m s/rad or N s/m).

    All gyroscopic terms are exact (Hua et al. 2022). The motor replaces the joint's ``rotor_inertia``.

    Example:
        >>> robot = torsor.library.two_link().with_motor("joint2", 1e-4, ratio=50, carrier="link1", stiffness=1e3)
        >>> robot.coordinate_names
        ('joint1', 'joint2', 'joint2/motor')
        >>> robot.forward_dynamics(np.zeros(3), np.zeros(3), [0, 0, 1.0]).round(4).tolist()
        [-0.1072, 0.1429, 4.0021]
    """
    at = robot.place(robot.joint(joint).parent if carrier is None else carrier)
    where = f"{robot.name}: motor of {joint!r}"
    body = MotorBody(where, mass, place, moments)
    if axis is not None and body.has_axis:
        message = "axis and a pose as place, whose z is the spin axis, are mutually exclusive"
        raise ModelError(message, where=where, allowed="one of them", fix="omit axis")
    if axis is not None or body.has_axis:
        spin_axis = body.pose[:3, 2] if axis is None else frozen_array(axis, (3,), where, "axis")
        direction = at.pose[:3, :3] @ spin_axis
    else:
        direction = _axis_seen_from(robot, robot.joint(joint), at.link)
    motor = Motor(carrier_of(robot, at).name, inertia, ratio, direction, stiffness, damping)
    robot = body.added_to(robot, at, motor)
    if body.mass and robot.joint(joint).motor is not None:
        message = "the joint already has a motor, whose mass would remain in its carrier when the new one is added"
        fix = "start from the robot before it had a motor"
        fix += f", or, if that motor was added without a mass, from robot.without_motor({joint!r})"
        raise ModelError(message, where=where, allowed="mass for the first motor of a joint only", fix=fix)
    if at.link >= 0:
        motor.warn_if_too_heavy(joint, robot.links[at.link].inertia)
    old_motor, where = robot.joint(joint).motor, f"{robot.name}: joint {joint!r}"
    if old_motor is not None:
        message = f"the new motor replaces the one on {old_motor.carrier!r}, including its friction"
        fix = f"remove it first: robot.without_motor({joint!r}).with_motor({joint!r}, ...)"
        warn(message, where=where, fix=fix)
    before, reflected = float(np.sum(robot.joint(joint).rotor_inertia)), motor.ratio**2 * motor.inertia
    if before and abs(reflected - before) > SAME_INERTIA * before:
        message = f"the motor replaces its rotor_inertia {before:.6g} by inertia * ratio^2 = {reflected:.6g}"
        fix = f"pass inertia={before / motor.ratio**2:.6g} to keep it, or define the joint without rotor_inertia"
        warn(message, where=where, fix=fix)
    return _with_joint(robot, joint, lambda old: replace(old, motor=motor, rotor_inertia=0.0))


def _axis_seen_from(robot: Mechanism, joint: Joint, carrier: int) -> NDArray[np.float64]:
    """Return the axis (3,) of a joint in the axes of a link; raise ModelError if it is not constant in these axes.

    The base (-1) does not rotate, so the axis of a rotor on it does not affect forces, and the axis in the neutral
    position is used.
    """
    start = robot.joints.index(joint)
    direction = joint.axis  # in the child's axes; the joint's rotation does not change it
    rising, falling = lineage(robot, start), lineage(robot, carrier)
    up = [link for link in rising if link not in falling]
    for k in [*up, *reversed([link for link in falling if link not in rising])]:
        item, moves = robot.joints[k], k not in up or (k != start and carrier >= 0)
        before = direction if k in up else item.placement[:3, :3].T @ direction
        parallel = abs(abs(float(before @ item.axis)) - 1.0) <= PARALLEL_TOLERANCE
        along = parallel and item.type not in ("free", "spherical")
        if moves and not along and item.type not in ("prismatic", "fixed"):
            message = f"seen from the carrier {robot.links[carrier].name!r}, the joint axis turns with {item.name!r}"
            fix = "pass axis=, the spin axis of the rotor in the carrier's axes"
            raise ModelError(message, where=f"{robot.name}: motor of {joint.name!r}", fix=fix)
        direction = item.placement[:3, :3] @ before if k in up else before
    return direction


def without_motor(robot: M, joint: str) -> M:
    """Return a copy without the motor of a joint, which is then driven directly; the carrier keeps its mass.

    Example:
        >>> arm = torsor.library.two_link()
        >>> arm.with_motor("joint2", 1e-4, stiffness=1e3).without_motor("joint2") == arm
        True
    """
    return _with_joint(robot, joint, lambda old: replace(old, motor=None))


def with_motor_held(robot: M, name: str, value: ArrayLike) -> M:
    """Return a copy with the motor of an elastic joint fixed at an angle: its spring becomes a spring of the joint."""
    joint = robot.joint(name.removesuffix("/motor"))
    motor = joint.motor
    if motor is None or motor.stiffness is None or joint.spring is not None:
        message = f"joint {joint.name!r} has a spring in addition to that of its motor"
        raise ModelError(message, value=joint.name, where=robot.name, fix="fix the joint itself")
    at = np.asarray(value, dtype=object)
    angle = float(frozen_array(at.item() if at.size == 1 else value, (), f"{robot.name}: {name!r}", "value"))
    # The stiffness of a motor is a function of theta - q, that of a joint's spring a function of q - rest.
    spring = Spring(stiffness_at(motor.stiffness, -ca.SX.sym("x")), motor.damping, angle)
    return _with_joint(robot, joint.name, lambda old: replace(old, motor=None, spring=spring))


# Fields that a joint of another type cannot keep, because their values have different units or lengths.
_LOST_LIMITS: dict[str, Any] = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
_LOST_LIMITS |= dict.fromkeys(("coulomb", "viscous", "rotor_inertia", "kp", "kd", "smooth", "offset", "pitch"), 0.0)
_LOST_LIMITS |= {"ratio": 1.0, "friction_model": ""}


def with_joint_type(robot: M, name: str, type: str) -> M:
    """Return a copy with a joint of another type, at the same place and with the same axis.

    Limits, friction and rotor inertia would have other units, so they are dropped with a warning, except between
    revolute and continuous joints. If the new joint has several coordinates, they are named ``name/wx`` and so on.

    Example:
        >>> robot = torsor.library.planar_chain(2).with_joint_type("joint2", "spherical")
        >>> robot.nv, robot.coordinate_names[1]
        (4, 'joint2/wx')
    """
    joint, where = robot.joint(name), f"{robot.name}: joint {name!r}"
    if type == "fixed":
        fix = f"use robot.fix({name!r}, value) to fix a joint at a position"
        raise ModelError("the joint type cannot be 'fixed'", where=where, fix=fix)
    one_of(type, tuple(item for item in KINDS if item != "fixed"), where, "joint type")
    if joint.type == type:
        return robot
    others = [item.name for item in robot.joints if item.coordinate == joint.coordinate and item is not joint]
    if joint.follows or others:
        message = f"it shares its coordinate with {joint.coordinate if joint.follows else others[0]!r}"
        raise ModelError(message, where=where, allowed="a joint with its own coordinate")
    for part in ("spring", "motor"):
        if getattr(joint, part) is not None:
            fix = "remove it first: robot.without_motor(...)" if part == "motor" else "remove it from the joint first"
            raise ModelError(f"it has a {part}", where=where, allowed="a joint without one", fix=fix)
    coupling = coupling_of(robot, joint)
    if coupling is not None:
        fix = f"open it first: robot.without_loop({coupling!r})"
        raise ModelError(f"it is coupled by {coupling!r}", value=coupling, where=where, fix=fix)
    new = _changed(joint, type, where)
    coordinates = {*joint.velocity_names}
    active = [item for old in robot.active for item in (new.velocity_names if old in coordinates else (old,))]
    joints = tuple(new if item is joint else item for item in robot.joints)
    postures = robot.posture_table
    if {joint.type, type} != {"revolute", "continuous"}:  # positions then have a different meaning
        coordinates = set(joint.position_names)
        postures = {name: {key: x for key, x in q.items() if key not in coordinates} for name, q in postures.items()}
        if postures != robot.posture_table:
            warn("its positions in postures become neutral", where=where)
    return replace(robot, joints=joints, active=tuple(dict.fromkeys(active)), posture_table=postures)


def _changed(joint: Joint, type: str, where: str) -> Joint:
    """Return the joint with another type, and warn of fields that are lost."""
    if {joint.type, type} == {"revolute", "continuous"}:  # both have the same motion
        return replace(joint, type=type)
    lost = [key for key, plain in _LOST_LIMITS.items() if np.any(np.asarray(getattr(joint, key)) != plain)]
    if lost:
        warn(f"a {type} joint does not keep {', '.join(lost)} of the {joint.type} joint", where=where)
    plain: dict[str, Any] = dict(_LOST_LIMITS)
    return replace(joint, type=type, **plain)


def with_posture(robot: M, name: str, q: ArrayLike) -> M:
    """Return a copy with a named configuration q (nq,), which appears in ``robot.postures`` and in TOML and MJCF files.

    Positions are stored by name. After an edit, remaining positions of a posture are kept, and new ones are neutral.

    Example:
        >>> robot = torsor.library.two_link().with_posture("home", [0.3, -1.2])
        >>> robot.postures["home"].tolist(), robot.fix("joint2", -1.2).postures["home"].tolist()
        ([0.3, -1.2], [0.3])
    """
    name_of(name, "posture", robot.name)
    values = frozen_array(q, (robot.nq,), f"{robot.name}: posture {name!r}", "q")
    positions = dict(zip(robot.position_names, values.tolist(), strict=True))
    return replace(robot, posture_table={**robot.posture_table, name: positions})


def without_posture(robot: M, name: str) -> M:
    """Return a copy without a named configuration.

    Example:
        >>> dict(torsor.library.two_link().with_posture("home", [0.3, -1.2]).without_posture("home").postures)
        {}
    """
    if not isinstance(name, str) or name not in robot.posture_table:
        allowed = ", ".join(map(repr, robot.posture_table)) or "none: it has no postures"
        raise ModelError(f"no posture {name!r}", value=name, where=robot.name, allowed=allowed)
    return replace(robot, posture_table={key: q for key, q in robot.posture_table.items() if key != name})


def rebuilt(robot: M, links: list[Link], joints: list[Joint], frames: list[Frame], **changes: Any) -> M:
    """Return a copy with other links, joints and frames, which ``build`` sorts and merges."""
    kept = {key: getattr(robot, key) for key in ("loops", "active", "posture_table", "allowed_collisions")}
    settings: dict[str, Any] = {"name": robot.name, "gravity": robot.gravity, **kept} | changes
    built = build(links=links, joints=joints, frames=frames, **settings)
    # Other fields of the object, such as the target of a Robot, are unchanged.
    return replace(robot, **{field.name: getattr(built, field.name) for field in fields(Mechanism)})


def with_frame(robot: M, name: str, link: str, pose: ArrayLike) -> M:
    """Return a copy with a named frame: ``pose`` (4 x 4) in the axes of a link or of another frame.

    Example:
        >>> robot = torsor.library.two_link().with_frame("tip", "link2", np.eye(4))
        >>> robot.place("tip").link
        1
    """
    if name_of(name, "frame", robot.name) in robot.places:
        raise ModelError(f"there is already a link or frame {name!r}", value=name, where=robot.name)
    place = robot.place(link)
    pose = frozen_array(pose, (4, 4), f"{robot.name}: frame {name!r}", "pose")
    return replace(robot, frames=(*robot.frames, Frame(name, carrier(robot, place).name, place.pose @ pose)))


def fix(robot: M, joint: str, value: ArrayLike = 0.0) -> M:
    """Return a copy with a joint fixed at ``value`` (nq,), in rad and m.

    For a joint with one coordinate, ``value`` may be a number; for other joints, it is required. Joints that follow the
    joint are fixed too. The links that they moved are merged into their parents and remain as frames. A motor is fixed
    with its joint. If only the motor of an elastic joint is fixed ("elbow/motor"), the joint still moves on its spring.

    Example:
        >>> robot = torsor.library.two_link().fix("joint2", 0.5)
        >>> robot.nv, robot.link_names, [frame.name for frame in robot.frames]
        (1, ('link1',), ['link2'])
    """
    if joint in (f"{item.name}/motor" for item in robot.elastic):
        return with_motor_held(robot, joint, value)
    leader = robot.joint(joint)
    if leader.follows:
        message = f"{joint!r} follows {leader.coordinate!r}"
        raise ModelError(message, argument="joint", where=robot.name, fix="fix that one instead")
    where = f"{robot.name}: joint {joint!r}"
    single = leader.nq == 1 and (np.isscalar(value) or getattr(value, "ndim", 1) == 0)
    q = frozen_array(np.array([value]) if single else value, (leader.nq,), where, "value")
    if leader.nq > leader.nv and not np.any(q[-4:]):
        allowed, fix = "a nonzero quaternion", "the identity is 0 0 0 1"
        raise ModelError("the quaternion is 0", where=where, allowed=allowed, fix=fix)
    if np.any(q) and any(isinstance(item.flexible, Modes) for item in robot.joints if item.coordinate == joint):
        message = f"a flexible link cannot be fixed at {shortened(q)}"
        raise ModelError(message, where=where, allowed="0, because its mass has the shape at rest")
    joints = [fixed_at(x, x.ratio * q + x.offset) if x.coordinate == joint else x for x in robot.joints]
    return rebuilt(robot, [robot.base, *robot.links], joints, list(robot.frames), **without_coordinates(robot, leader))


def attach(robot: M, other: Mechanism, at: str, prefix: str = "") -> M:
    """Return a copy with another robot attached, whose base is welded to a link or frame.

    ``prefix`` is prepended to the names of the other robot's links, joints, frames and postures to avoid clashes.
    Postures with the same name are merged and contain the positions of both robots.

    Example:
        >>> arm = torsor.library.two_link()
        >>> arm.attach(arm, at="link2", prefix="second/").joint_names
        ('joint1', 'joint2', 'second/joint1', 'second/joint2')
    """
    if not isinstance(other, Mechanism):
        raise ModelError(f"{reprlib.repr(other)} cannot be attached", where=robot.name, allowed="a robot")
    place = robot.place(at)

    def prefixed(name: str) -> str:
        return prefix + name

    mine = {*robot.places, *robot.joint_names}
    clash = sorted(mine & {prefixed(name) for name in (*other.places, *other.joint_names)})
    if clash:
        fix = "pass a prefix for its names, for example `prefix='tool/'`"
        raise ModelError(f"both robots have {', '.join(map(repr, clash[:6]))}", where=robot.name, fix=fix)
    links = [robot.base, *robot.links, *(replace(x, name=prefixed(x.name)) for x in (other.base, *other.links))]
    name = unused_name(prefixed(f"{other.base.name}/weld"), {*robot.joint_names, *map(prefixed, other.joint_names)})
    weld = Joint(name, "fixed", carrier(robot, place).name, prefixed(other.base.name), place.pose)
    joints = []
    for x in other.joints:
        names: dict[str, Any] = {key: prefixed(getattr(x, key)) for key in ("name", "parent", "child", "coordinate")}
        motor = x.motor and replace(x.motor, carrier=prefixed(x.motor.carrier))
        joints.append(replace(x, motor=motor, **names))
    theirs = ((prefixed(x.name), prefixed(x.link), x.pose, x.joint and prefixed(x.joint)) for x in other.frames)
    frames = [*robot.frames, *(Frame(*each) for each in theirs)]
    loops = [*robot.loops, *(renamed(loop, prefixed) for loop in other.loops)]
    active = [*robot.active, *map(prefixed, other.active)]
    postures = dict(robot.posture_table)
    for posture, q in other.posture_table.items():  # postures with the same name are merged
        added = {prefixed(key): x for key, x in q.items()}
        postures[prefixed(posture)] = {**postures.get(prefixed(posture), {}), **added}
    allowed = ((prefixed(a), prefixed(b), reason) for a, b, reason in other.allowed_collisions)
    kept: dict[str, Any] = {"loops": loops, "active": active, "posture_table": postures}
    kept["allowed_collisions"] = (*robot.allowed_collisions, *allowed)
    return rebuilt(robot, links, [*robot.joints, weld, *joints], frames, **kept)


def subtree(robot: M, link: str | int) -> M:
    """Return the part of the robot that a moving link carries, including the link and its joint.

    The base of the new robot is an empty link in place of the old parent. The components of gravity are unchanged.
    ModelError is raised if a loop, a motor or a joint that follows another connects this part to the rest.

    Example:
        >>> torsor.library.stanford().subtree("link4").joint_names
        ('joint4', 'joint5', 'joint6')
    """
    place = robot.place(link)
    if link == robot.base.name:
        return robot
    if isinstance(link, str) and link not in robot.link_names:
        fix = f"name the link that carries it, {carrier(robot, place).name!r}"
        raise ModelError(f"{link!r} is a frame, not a moving link", value=link, where=robot.name, fix=fix)
    kept = {place.link}
    for i, parent in enumerate(robot.parents):
        if parent in kept:
            kept.add(i)
    names = {robot.joints[i].name for i in kept}
    for joint in robot.joints:
        if (joint.name in names) != (joint.coordinate in names):
            message = f"joint {joint.name!r} follows {joint.coordinate!r}, and one of them is not in the subtree"
            raise ModelError(message, where=robot.name, fix="fix it first: robot.fix(...)")
    root = robot.joints[place.link].parent
    carriers = {root, *(robot.links[i].name for i in kept)}
    for i in sorted(kept):
        motor = robot.joints[i].motor
        if motor is not None and motor.carrier not in carriers:
            name = robot.joints[i].name
            message = f"the motor of joint {name!r} is on {motor.carrier!r}, which is not in the subtree"
            raise ModelError(message, where=robot.name, fix="remove it first: robot.without_motor(...)")
    links = [Link(root), *(robot.links[i] for i in sorted(kept))]
    frames = [frame for frame in robot.frames if frame.link in {robot.links[i].name for i in kept}]
    joints = [robot.joints[i] for i in sorted(kept)]
    places = {*carriers, *(frame.name for frame in frames)}
    parts = loops_of(robot, places - {root}, joints)
    parts["allowed_collisions"] = tuple(entry for entry in robot.allowed_collisions if {*entry[:2]} <= places)
    return rebuilt(robot, links, joints, frames, name=f"{robot.name}/{robot.links[place.link].name}", **parts)
