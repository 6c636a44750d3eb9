"""Edits of joints: another type."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from torsor.base.checks import one_of
from torsor.base.errors import ModelError, describe, warn
from torsor.mechanism.edit_loops import coupling_of
from torsor.mechanism.joints import KINDS
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Joint

M = TypeVar("M", bound=Mechanism)

# What a joint of another type cannot keep, because its numbers have other units or another length.
_LOST = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
_LOST |= {
    "coulomb": 0.0,
    "viscous": 0.0,
    "rotor_inertia": 0.0,
    "smooth": 0.0,
    "offset": 0.0,
    "ratio": 1.0,
    "pitch": 0.0,
}


def with_joint_type(robot: M, name: str, type: str) -> M:
    """Return the robot with a joint of another type, at the same place and with the same axis."""
    joint, where = robot.joint(name), f"{robot.name}: joint {name!r}"
    if type == "fixed":
        fix = f"robot.fix({name!r}, value) fixes a joint at a position"
        raise ModelError(describe("the joint type is 'fixed'", where=where, fix=fix))
    one_of(type, tuple(each for each in KINDS if each != "fixed"), where, "joint type")
    if joint.type == type:
        return robot
    others = [each.name for each in robot.joints if each.coordinate == joint.coordinate and each is not joint]
    if joint.follows or others:
        found = f"it shares its coordinate with {joint.coordinate if joint.follows else others[0]!r}"
        raise ModelError(describe(found, where=where, allowed="a joint with a coordinate of its own"))
    for part in ("spring", "motor"):
        if getattr(joint, part) is not None:
            fix = "remove it first: robot.without_motor(...)" if part == "motor" else "remove it from the joint first"
            raise ModelError(describe(f"it has a {part}", where=where, allowed="a joint without", fix=fix))
    coupling = coupling_of(robot, joint)
    if coupling is not None:
        fix = f"open it first: robot.without_loop({coupling!r})"
        raise ModelError(describe(f"it is coupled by {coupling!r}", where=where, fix=fix))
    new = _changed(joint, type, where)
    active = [each for old in robot.active for each in _renamed(old, joint, new)]
    joints = tuple(new if each is joint else each for each in robot.joints)
    postures = robot.posture_table
    if {joint.type, type} != {"revolute", "continuous"}:  # the positions have another meaning
        own = set(joint.position_names)
        postures = {name: {key: x for key, x in q.items() if key not in own} for name, q in postures.items()}
        if postures != robot.posture_table:
            warn(describe("its positions in postures become neutral", where=where))
    return replace(robot, joints=joints, active=tuple(dict.fromkeys(active)), posture_table=postures)


def _changed(joint: Joint, type: str, where: str) -> Joint:
    """Return the joint with another type; a warning names the numbers that it loses."""
    if {joint.type, type} == {"revolute", "continuous"}:  # the same motion
        return replace(joint, type=type)
    lost = [key for key, plain in _LOST.items() if np.any(np.asarray(getattr(joint, key)) != plain)]
    if lost:
        warn(describe(f"a {type} joint does not keep {', '.join(lost)} of the {joint.type} joint", where=where))
    plain: dict[str, Any] = dict(_LOST)
    return replace(joint, type=type, **plain)


def _renamed(name: str, old: Joint, new: Joint) -> tuple[str, ...]:
    """Return the names of active coordinates after the change of a joint."""
    return new.velocity_names if name in old.velocity_names else (name,)
