"""Decomposition of joints for formats with fewer joint types, or without a ratio and offset of a joint's coordinate.

A helical joint becomes a revolute joint and a prismatic joint that follows it. A planar joint becomes two prismatic
joints and a revolute one, and a free joint becomes three prismatic joints and a spherical one. Massless links are
inserted between them. Positions keep their meaning.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.writing import Omissions
from torsor.mechanism import Coupling, Joint, Link, Mechanism
from torsor.mechanism.build import fixed_at
from torsor.mechanism.curves import Cam
from torsor.mechanism.loops import Closure
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import PER_VELOCITY
from torsor.spatial import inverse_pose

# For formats without loops, a coupling of two coordinates becomes a joint that follows another, with the same motion.
#
# c1 q1 + c2 q2 = offset is q2 = k q1 + c with k = -c1 / c2 and c = offset / c2. The equation is substituted wherever q2
# occurs: in the joints that move with it, and in the other couplings.


def without_couplings(mechanism: Mechanism, source: str, format: str) -> Mechanism:
    """Return a mechanism in which followers replace couplings. Loops and unsuitable couplings raise ModelError.

    The passive joint without a motor follows the other joint. If both joints qualify, the later one follows.
    """
    joints, couplings = list(mechanism.joints), list(mechanism.loops)
    while couplings:
        coupling = couplings.pop(0)
        if not isinstance(coupling, Coupling):
            message = f"{coupling.name!r} closes a loop, which is not written to {format}"
            fix = "save as .xml (MJCF) or .toml, or open it: robot.without_loop(name)"
            raise ModelError(message, value=coupling.name, where=source, fix=fix)
        pair = _pair(coupling, joints, mechanism.active)
        if pair is None:
            message = f"the coupling {coupling.name!r} cannot be a joint that follows another, as {format} requires"
            allowed = "a linear coupling of two joints with one degree of freedom, one of them without a motor"
            fix = "save as .toml, or as .xml (MJCF), or remove it: robot.without_loop(name)"
            raise ModelError(message, value=coupling.name, where=source, allowed=allowed, fix=fix)
        leader, follower = pair
        factors = _factors(coupling)
        k, c = -factors[leader] / factors[follower], coupling.offset / factors[follower]
        for i, item in enumerate(joints):
            if item.coordinate == follower:
                offset = item.ratio * c + item.offset
                joints[i] = replace(item, coordinate=leader, ratio=item.ratio * k, offset=offset)
        couplings = [_substituted(entry, follower, leader, k, c) for entry in couplings]
    return replace(mechanism, joints=tuple(joints), loops=(), active=())


def _factors(coupling: Coupling) -> dict[str, float]:
    """Return the factor of each coordinate of a linear coupling."""
    return {name: factors[0] for name, factors in coupling.polynomials.items()}


def _pair(coupling: Coupling, joints: list[Joint], active: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (leader, follower) of a coupling of two joints, or None if there is no such pair."""
    named = [joint for joint in joints if joint.name in coupling.coefficients and not joint.follows]
    two = len(coupling.coefficients) == len(named) == 2
    if not coupling.is_linear or not two or any(joint.nv != 1 for joint in named):
        return None
    for follower in sorted(named, key=lambda joint: (joint.name in active, -named.index(joint))):
        if follower.motor is None:
            return next(joint.name for joint in named if joint is not follower), follower.name
    return None


def _substituted(coupling: Closure, follower: str, leader: str, k: float, c: float) -> Closure:
    """Return a coupling with q(follower) replaced by k q(leader) + c. Loops and polynomials are rejected later."""
    if not isinstance(coupling, Coupling) or follower not in coupling.coefficients or not coupling.is_linear:
        return coupling
    coefficients = _factors(coupling)
    factor = coefficients.pop(follower)
    total = coefficients.pop(leader, 0.0) + factor * k
    if total:
        coefficients[leader] = total
    if not coefficients:
        message = f"the coupling {coupling.name!r} repeats or contradicts others"
        raise ModelError(message, value=coupling.name, fix="remove it: robot.without_loop(name)")
    return replace(coupling, coefficients=coefficients, offset=coupling.offset - factor * c)


def joint_chain(
    steps: Sequence[Joint | Array], parent: str, child: str, before: Array, after: Array, unused: Callable[[str], str]
) -> tuple[list[Link], list[Joint]]:
    """Return the massless links and the joints of a chain from a frame on ``parent`` to one on ``child``.

    ``before`` and ``after`` (4 x 4) are the poses of the two frames on their links. The frames coincide if all
    ``steps`` are at zero. The axes of the steps are expressed in these frames; the parents and children of the steps
    are ignored. A step may be a fixed pose (4 x 4), but at least one is a joint. ``unused`` makes link names unique.
    """
    last = max(k for k, step in enumerate(steps) if isinstance(step, Joint))
    links, joints = list[Link](), list[Joint]()
    for pose in (step for step in reversed(steps[last + 1 :]) if not isinstance(step, Joint)):
        after = after @ inverse_pose(pose)  # fixed poses after the last joint are part of its child
    for step in steps[: last + 1]:
        if not isinstance(step, Joint):
            before = before @ step
        elif step is not steps[last]:
            links.append(Link(unused(f"{child}/{len(links) + 1}")))
            joints.append(replace(step, parent=parent, child=links[-1].name, placement=before))
            parent, before = links[-1].name, np.eye(4)
        else:
            moved = replace(step, parent=parent, child=child, placement=before @ inverse_pose(after))
            joints.append(replace(moved, axis=after[:3, :3] @ step.axis, point=after[:3, 3]))
    return links, joints


_PER_POSITION = ("lower", "upper")


def decomposed_joints(
    mechanism: Mechanism, supported: Callable[[Joint], bool], source: str, omissions: Omissions
) -> Iterator[tuple[Link, Joint]]:
    """Yield each moving link with its joint, parents first. Joints whose type is not ``supported`` are decomposed."""
    links, names = set(mechanism.places), set(mechanism.joint_names)
    bent = next((joint for joint in mechanism.joints if joint.flexible is not None), None)
    if bent is not None:
        what = "moves along a curve" if isinstance(bent.flexible, Cam) else "is a flexible link"
        message = f"joint {bent.name!r} {what}, which the format does not support"
        raise ModelError(message, value=bent.name, where=source, fix="save as .toml")
    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        joint = _without_offset(joint, source)
        if supported(joint):
            yield link, joint
            continue
        if joint.type not in _CHAINS:
            fix = "use three consecutive revolute joints, or save as .toml"
            message = f"joint {joint.name!r} is {joint.type}, which the format does not support"
            raise ModelError(message, value=joint.name, where=source, fix=fix)
        chain = _CHAINS[joint.type](joint, names, omissions)
        parent, placement = joint.parent, joint.placement
        for k, item in enumerate(chain):
            last = k == len(chain) - 1
            child = link if last else Link(claim_name(f"{joint.child}/{k + 1}", links))
            yield child, replace(item, parent=parent, child=child.name, placement=placement)
            parent, placement = child.name, np.eye(4)


def has_position_limits(joint: Joint) -> bool:
    """Return whether any position of a joint has a finite limit."""
    return bool(np.isfinite(np.concatenate([np.ravel(joint.lower), np.ravel(joint.upper)])).any())


def _without_offset(joint: Joint, source: str) -> Joint:
    """Return a joint whose position equals its coordinate, with the offset moved into the placement."""
    if joint.follows or (joint.ratio, joint.offset) == (1.0, 0.0):
        return joint
    if abs(joint.ratio) != 1 or joint.is_elastic:
        message = f"{joint.name!r} has the position {joint.ratio} q + {joint.offset} for its own coordinate q"
        allowed, fix = "ratio 1 or -1; ratio 1 and offset 0 if the joint is elastic", "save as .toml"
        raise ModelError(message, argument="joint", value=joint.name, where=source, allowed=allowed, fix=fix)
    sign, changes = joint.ratio, dict[str, Any]()
    if joint.spring is not None:
        if sign < 0 and isinstance(joint.spring.stiffness, str):
            changes["spring"] = joint.spring  # only TOML supports stiffness functions: the writer will omit it
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
    what = "velocities of free joints in link axes, written as three prismatic joints and a ball joint"
    omissions.note(what, joint.name)
    chain = []
    for k, (suffix, axis) in enumerate(zip("xyz", np.eye(3), strict=True)):
        settings = _settings_of(joint, k, 3 + k)  # positions have the origin first, velocities have it last
        for key in PER_VELOCITY:  # these are along the axes of the link, so only equal values hold in other axes
            values = getattr(joint, key)[3:]
            if (values != values[0]).any():
                omissions.note(f"{key} of free joints that differs between directions", joint.name)
                del settings[key]
        name = claim_name(f"{joint.name}/{suffix}", names)
        chain.append(Joint(name, "prismatic", "", "", axis=axis, smooth=joint.smooth, **settings))
    rest: dict[str, Any] = {key: getattr(joint, key)[:3] for key in PER_VELOCITY}
    rest |= {key: getattr(joint, key)[3:] for key in _PER_POSITION}
    return [*chain, Joint(joint.name, "spherical", "", "", smooth=joint.smooth, **rest)]


def _settings_of(joint: Joint, q: int, v: int) -> dict[str, Any]:
    """Return the limits, friction and rotor inertia of one position and one velocity of a joint."""
    settings = {key: getattr(joint, key)[v] for key in PER_VELOCITY}
    return settings | {key: getattr(joint, key)[q] for key in _PER_POSITION}


_CHAINS = {"helical": _helical, "planar": _planar, "free": _free}
