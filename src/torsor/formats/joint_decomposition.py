"""Joints for formats with fewer kinds of joints, and without the ratio and offset of a joint's own coordinate.

A helical joint becomes a revolute joint and a prismatic joint that follows it, a planar joint two prismatic joints and
a revolute one, a free joint three prismatic joints and a spherical one, with massless links between them. The positions
keep their meaning.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.formats.writing import Omissions
from torsor.mechanism import Joint, Link, Mechanism
from torsor.mechanism.build import fixed_at
from torsor.mechanism.cams import Cam
from torsor.mechanism.names import claim_name

_PER_VELOCITY = ("velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")
_PER_POSITION = ("lower", "upper")


def decomposed_joints(
    mechanism: Mechanism, supported: Callable[[Joint], bool], source: str, omissions: Omissions
) -> Iterator[tuple[Link, Joint]]:
    """Yield each moving link with its joint, parents first; joints that are not ``supported`` are decomposed."""
    links, names = set(mechanism.places), set(mechanism.joint_names)
    bent = next((joint for joint in mechanism.joints if joint.flexible is not None), None)
    if bent is not None:
        what = "moves by a curve of its coordinate" if isinstance(bent.flexible, Cam) else "is a flexible link"
        found = f"joint {bent.name!r} {what}, which the format does not have"
        raise ModelError(describe(found, where=source, fix="save as .toml"))
    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        joint = _without_offset(joint, source)
        if supported(joint):
            yield link, joint
            continue
        if joint.type not in _CHAINS:
            fix = "use three revolute joints, one after the other; or save as .toml"
            found = f"joint {joint.name!r} is {joint.type}, which the format does not have"
            raise ModelError(describe(found, where=source, fix=fix))
        chain = _CHAINS[joint.type](joint, names, omissions)
        parent, placement = joint.parent, joint.placement
        for k, each in enumerate(chain):
            last = k == len(chain) - 1
            child = link if last else Link(claim_name(f"{joint.child}/{k + 1}", links))
            yield child, replace(each, parent=parent, child=child.name, placement=placement)
            parent, placement = child.name, np.eye(4)


def has_position_limits(joint: Joint) -> bool:
    """Whether any position of a joint has a finite limit."""
    return bool(np.isfinite(np.concatenate([np.ravel(joint.lower), np.ravel(joint.upper)])).any())


def _without_offset(joint: Joint, source: str) -> Joint:
    """Return the joint whose position is its coordinate itself: the offset is moved into the placement."""
    if joint.follows or (joint.ratio, joint.offset) == (1.0, 0.0):
        return joint
    if abs(joint.ratio) != 1 or joint.is_elastic:
        allowed = "ratio 1 or -1; ratio 1 and offset 0 if the joint is elastic"
        found = f"joint {joint.name!r} has the position {joint.ratio} q + {joint.offset} at its own coordinate q"
        raise ModelError(describe(found, where=source, allowed=allowed, fix="save as .toml"))
    sign, changes = joint.ratio, dict[str, Any]()
    if joint.spring is not None:
        if sign < 0 and isinstance(joint.spring.stiffness, str):
            changes["spring"] = joint.spring  # only TOML has stiffness laws: the writer will omit it
        else:
            changes["spring"] = replace(joint.spring, rest=sign * (joint.spring.rest - joint.offset))
    if joint.motor is not None:
        changes["motor"] = replace(joint.motor, ratio=sign * joint.motor.ratio)
    at_zero = fixed_at(joint, np.array([joint.offset])).placement
    return replace(joint, placement=at_zero, axis=sign * joint.axis, ratio=1.0, offset=0.0, **changes)


def _helical(joint: Joint, names: set[str], omissions: Omissions) -> list[Joint]:
    turn = replace(joint, type="revolute", pitch=0.0)
    if not joint.pitch:
        return [turn]
    ratio, offset = (joint.ratio, joint.offset) if joint.follows else (1.0, 0.0)
    settings: dict[str, Any] = {"ratio": joint.pitch * ratio, "offset": joint.pitch * offset}
    name = claim_name(f"{joint.name}/advance", names)
    return [turn, Joint(name, "prismatic", "", "", axis=joint.axis, coordinate=joint.coordinate, **settings)]


def _planar(joint: Joint, names: set[str], omissions: Omissions) -> list[Joint]:
    chain = []
    kinds = (("x", "prismatic"), ("y", "prismatic"), ("angle", "revolute"))
    for k, (suffix, kind) in enumerate(kinds):
        name, settings = claim_name(f"{joint.name}/{suffix}", names), _settings_of(joint, k, k)
        axis = joint.frame[:3, k]
        chain.append(Joint(name, kind, "", "", axis=axis, point=joint.point, smooth=joint.smooth, **settings))
    return chain


def _free(joint: Joint, names: set[str], omissions: Omissions) -> list[Joint]:
    what = "velocities of free joints in link axes, written as three slides and a ball"
    omissions.note(what, joint.name)
    chain = []
    for k, (suffix, axis) in enumerate(zip("xyz", np.eye(3), strict=True)):
        settings = _settings_of(joint, k, 3 + k)  # positions have the origin first, velocities have it last
        for key in _PER_VELOCITY:  # these are along the axes of the link: only equal ones hold in other axes
            values = getattr(joint, key)[3:]
            if (values != values[0]).any():
                omissions.note(f"{key} of free joints that differs between directions", joint.name)
                del settings[key]
        name = claim_name(f"{joint.name}/{suffix}", names)
        chain.append(Joint(name, "prismatic", "", "", axis=axis, smooth=joint.smooth, **settings))
    rest: dict[str, Any] = {key: getattr(joint, key)[:3] for key in _PER_VELOCITY}
    rest |= {key: getattr(joint, key)[3:] for key in _PER_POSITION}
    return [*chain, Joint(joint.name, "spherical", "", "", smooth=joint.smooth, **rest)]


def _settings_of(joint: Joint, q: int, v: int) -> dict[str, Any]:
    """Return the limits, friction and rotor inertia of one position and one velocity of a joint."""
    settings = {key: getattr(joint, key)[v] for key in _PER_VELOCITY}
    return settings | {key: getattr(joint, key)[q] for key in _PER_POSITION}


_CHAINS = {"helical": _helical, "planar": _planar, "free": _free}
