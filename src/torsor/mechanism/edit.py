"""Edits of a mechanism, each of which returns a new one: gravity, frames, fixed joints, attachments."""

import reprlib
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import frozen_array, name_of
from torsor.base.errors import ModelError, describe, shortened
from torsor.mechanism.build import build, fixed_at
from torsor.mechanism.edit_drives import with_motor_held
from torsor.mechanism.edit_loops import loops_of, without_coordinates
from torsor.mechanism.flexible import Modes
from torsor.mechanism.loops import renamed
from torsor.mechanism.mechanism import Mechanism, carrier
from torsor.mechanism.names import unused_name
from torsor.mechanism.parts import Frame, Joint, Link

M = TypeVar("M", bound=Mechanism)


def rebuilt(robot: M, links: list[Link], joints: list[Joint], frames: list[Frame], **changes: Any) -> M:
    """Return the robot with other links, joints and frames, sorted and merged by ``build``."""
    kept = {key: getattr(robot, key) for key in ("loops", "active", "posture_table", "allowed_collisions")}
    settings: dict[str, Any] = {"name": robot.name, "gravity": robot.gravity, **kept} | changes
    built = build(links=links, joints=joints, frames=frames, **settings)
    # Other fields of the object, such as the target of a Robot, stay.
    return replace(robot, **{each.name: getattr(built, each.name) for each in fields(Mechanism)})


def with_gravity(robot: M, gravity: ArrayLike) -> M:
    """Return the robot under another gravity (3,), m/s^2, in base axes."""
    return replace(robot, gravity=frozen_array(gravity, (3,), robot.name, "gravity"))


def with_frame(robot: M, name: str, link: str, pose: ArrayLike) -> M:
    """Return the robot with a named frame: ``pose`` (4 x 4) in the axes of a link or of another frame."""
    if name_of(name, "frame", robot.name) in robot.places:
        raise ModelError(describe(f"there is a link or frame {name!r} already", where=robot.name))
    place = robot.place(link)
    pose = frozen_array(pose, (4, 4), f"{robot.name}: frame {name!r}", "pose")
    return replace(robot, frames=(*robot.frames, Frame(name, carrier(robot, place).name, place.pose @ pose)))


def fix(robot: M, joint: str, value: ArrayLike = 0.0) -> M:
    """Return the robot with a joint fixed at ``value``: (nq,) numbers, or one for a joint with one coordinate."""
    if joint in (f"{each.name}/motor" for each in robot.elastic):
        return with_motor_held(robot, joint, value)
    leader = robot.joint(joint)
    if leader.follows:
        found = f"joint {joint!r} follows {leader.coordinate!r}"
        raise ModelError(describe(found, where=robot.name, fix="fix that one instead"))
    where = f"{robot.name}: joint {joint!r}"
    single = leader.nq == 1 and (np.isscalar(value) or getattr(value, "ndim", 1) == 0)
    q = frozen_array(np.array([value]) if single else value, (leader.nq,), where, "value")
    if leader.nq > leader.nv and not np.any(q[-4:]):
        raise ModelError(describe("the quaternion is 0", where=where, allowed="any other", fix="identity: 0 0 0 1"))
    if np.any(q) and any(isinstance(each.flexible, Modes) for each in robot.joints if each.coordinate == joint):
        found, allowed = f"a flexible link is fixed at {shortened(q)}", "0: its mass has the shape at rest"
        raise ModelError(describe(found, where=where, allowed=allowed))
    joints = [
        fixed_at(each, each.ratio * q + each.offset) if each.coordinate == joint else each for each in robot.joints
    ]
    return rebuilt(robot, [robot.base, *robot.links], joints, list(robot.frames), **without_coordinates(robot, leader))


def attach(robot: M, other: Mechanism, at: str, prefix: str = "") -> M:
    """Return this robot carrying another one, whose base is welded to a link or frame of this one."""
    if not isinstance(other, Mechanism):
        raise ModelError(describe(f"{reprlib.repr(other)} is attached", where=robot.name, allowed="a robot"))
    place = robot.place(at)

    def own(name: str) -> str:
        return prefix + name

    mine = {*robot.places, *robot.joint_names}
    clash = sorted(mine & {own(name) for name in (*other.places, *other.joint_names)})
    if clash:
        fix = "give a prefix for its names, for example prefix='tool/'"
        raise ModelError(describe(f"both robots have {', '.join(map(repr, clash[:6]))}", where=robot.name, fix=fix))
    links = [robot.base, *robot.links, *(replace(x, name=own(x.name)) for x in (other.base, *other.links))]
    name = unused_name(own(f"{other.base.name}/weld"), {*robot.joint_names, *map(own, other.joint_names)})
    weld = Joint(name, "fixed", carrier(robot, place).name, own(other.base.name), place.pose)
    joints = []
    for x in other.joints:
        names: dict[str, Any] = {key: own(getattr(x, key)) for key in ("name", "parent", "child", "coordinate")}
        motor = x.motor and replace(x.motor, carrier=own(x.motor.carrier))
        joints.append(replace(x, motor=motor, **names))
    frames = [*robot.frames, *(Frame(own(x.name), own(x.link), x.pose) for x in other.frames)]
    loops = [*robot.loops, *(renamed(loop, own) for loop in other.loops)]
    active = [*robot.active, *map(own, other.active)]
    postures = dict(robot.posture_table)
    for posture, q in other.posture_table.items():  # where both have it, one posture has the positions of both
        postures[own(posture)] = {**postures.get(own(posture), {}), **{own(key): x for key, x in q.items()}}
    theirs = ((own(a), own(b), reason) for a, b, reason in other.allowed_collisions)
    kept: dict[str, Any] = {"loops": loops, "active": active, "posture_table": postures}
    kept["allowed_collisions"] = (*robot.allowed_collisions, *theirs)
    return rebuilt(robot, links, [*robot.joints, weld, *joints], frames, **kept)


def subtree(robot: M, link: str | int) -> M:
    """Return the part of the robot that a moving link carries, itself and its joint included."""
    place = robot.place(link)
    if link == robot.base.name:
        return robot
    if isinstance(link, str) and link not in robot.link_names:
        fix = f"name the link that carries it, {carrier(robot, place).name!r}"
        raise ModelError(describe(f"{link!r} is a frame, not a moving link", where=robot.name, fix=fix))
    kept = {place.link}
    for i, parent in enumerate(robot.parents):
        if parent in kept:
            kept.add(i)
    names = {robot.joints[i].name for i in kept}
    for joint in robot.joints:
        if (joint.name in names) != (joint.coordinate in names):
            found = f"joint {joint.name!r} follows {joint.coordinate!r}, and one of them is not in the subtree"
            raise ModelError(describe(found, where=robot.name, fix="fix it first: robot.fix(...)"))
    root = robot.joints[place.link].parent
    carriers = {root, *(robot.links[i].name for i in kept)}
    for i in sorted(kept):
        motor = robot.joints[i].motor
        if motor is not None and motor.carrier not in carriers:
            found = f"the motor of joint {robot.joints[i].name!r} is on {motor.carrier!r}, which is not in the subtree"
            raise ModelError(describe(found, where=robot.name, fix="remove it first: robot.without_motor(...)"))
    links = [Link(root), *(robot.links[i] for i in sorted(kept))]
    frames = [frame for frame in robot.frames if frame.link in {robot.links[i].name for i in kept}]
    joints = [robot.joints[i] for i in sorted(kept)]
    places = {*carriers, *(frame.name for frame in frames)}
    parts = loops_of(robot, places - {root}, joints)
    parts["allowed_collisions"] = tuple(each for each in robot.allowed_collisions if {*each[:2]} <= places)
    return rebuilt(robot, links, joints, frames, name=f"{robot.name}/{robot.links[place.link].name}", **parts)
