"""Joints in the words of other formats: no offset, no ratio of their own, and only the kinds that a format has.

A helical joint is a hinge and a slide that follows it, a planar joint two slides and a hinge, and a free joint three
slides and a ball, with massless links between them. Positions stay what they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.formats.xml_writing import LeftOut
from torsor.mechanism import Joint, Link, Mechanism
from torsor.mechanism.assemble import free_name, held

__all__ = ["limited", "plain_joints"]

Array = NDArray[np.float64]

_EACH = ("velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")  # one for each velocity


def plain_joints(
    mechanism: Mechanism, has: Callable[[Joint], bool], source: str, left_out: LeftOut
) -> Iterator[tuple[Link, Joint]]:
    """Give each moving link with its joint, parents first; ``has`` tells whether the format has such a joint."""
    links, names = set(mechanism.places), set(mechanism.joint_names)

    def between(joint: Joint, suffix: str) -> Link:
        name = free_name(f"{joint.child}/{suffix}", links)
        links.add(name)
        return Link(name)

    def named(joint: Joint, suffix: str) -> str:
        name = free_name(f"{joint.name}/{suffix}", names)
        names.add(name)
        return name

    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        joint = _counted_from_zero(joint, source)
        if has(joint):
            yield link, joint
            continue
        if joint.type not in _ROWS:
            fix = "three hinges, one after the other, come near it; or save as .toml"
            found = f"joint {joint.name!r} is {joint.type}, which the format does not have"
            raise ModelError(describe(found, where=source, fix=fix))
        row = _ROWS[joint.type](joint, named, left_out)
        parent, placement = joint.parent, joint.placement
        for k, each in enumerate(row):
            last = k == len(row) - 1
            child = link if last else between(joint, str(k + 1))
            yield child, replace(each, parent=parent, child=child.name, placement=placement)
            parent, placement = child.name, np.eye(4)


def limited(joint: Joint) -> bool:
    """Whether a joint has a limit of its positions."""
    return bool(np.isfinite(np.concatenate([np.ravel(joint.lower), np.ravel(joint.upper)])).any())


def _counted_from_zero(joint: Joint, source: str) -> Joint:
    """Return the joint whose position is its coordinate itself: the offset goes into the placement."""
    if joint.follows or (joint.ratio, joint.offset) == (1.0, 0.0):
        return joint
    if abs(joint.ratio) != 1 or joint.is_elastic:
        allowed = "1 or -1, and 1 without an offset where the joint is elastic"
        found = f"joint {joint.name!r} moves by {joint.ratio} q + {joint.offset} of its own coordinate q"
        raise ModelError(describe(found, where=source, allowed=allowed, fix="save as .toml"))
    sign, changes = joint.ratio, dict[str, Any]()
    if joint.spring is not None:
        if sign < 0 and isinstance(joint.spring.stiffness, str):
            changes["spring"] = joint.spring  # no format has laws: it will be left out
        else:
            changes["spring"] = replace(joint.spring, rest=sign * (joint.spring.rest - joint.offset))
    if joint.motor is not None:
        changes["motor"] = replace(joint.motor, ratio=sign * joint.motor.ratio)
    at = held(joint, np.array([joint.offset])).placement
    return replace(joint, placement=at, axis=sign * joint.axis, ratio=1.0, offset=0.0, **changes)


def _helical(joint: Joint, named: Callable[[Joint, str], str], left_out: LeftOut) -> list[Joint]:
    turn = replace(joint, type="revolute", pitch=0.0)
    if not joint.pitch:
        return [turn]
    ratio, offset = (joint.ratio, joint.offset) if joint.follows else (1.0, 0.0)
    settings: dict[str, Any] = {"ratio": joint.pitch * ratio, "offset": joint.pitch * offset}
    slide = Joint(
        named(joint, "advance"), "prismatic", "", "", axis=joint.axis, coordinate=joint.coordinate, **settings
    )
    return [turn, slide]


def _planar(joint: Joint, named: Callable[[Joint, str], str], left_out: LeftOut) -> list[Joint]:
    axes = joint.frame[:3, :3].T
    return [
        Joint(name, kind, "", "", axis=axis, point=joint.point, smooth=joint.smooth, **_share(joint, k, k))
        for k, (name, kind, axis) in enumerate(
            zip((named(joint, "x"), named(joint, "y"), named(joint, "angle")), _SLIDE_SLIDE_TURN, axes, strict=True)
        )
    ]


def _free(joint: Joint, named: Callable[[Joint, str], str], left_out: LeftOut) -> list[Joint]:
    left_out.note("velocities of free joints in the axes of their link; those of three slides and a ball", joint.name)
    row = []
    for k, (word, axis) in enumerate(zip("xyz", np.eye(3), strict=True)):
        each = _share(joint, k, 3 + k)  # positions have the origin first, velocities have it last
        for key in _EACH:  # along the axes of the link, which are others unless all three are the same
            values = getattr(joint, key)[3:]
            if (values != values[0]).any():
                left_out.note(f"{key} of free joints that differs between directions", joint.name)
                del each[key]
        row.append(Joint(named(joint, word), "prismatic", "", "", axis=axis, smooth=joint.smooth, **each))
    settings: dict[str, Any] = {key: getattr(joint, key)[:3] for key in _EACH}
    settings |= {key: getattr(joint, key)[3:] for key in ("lower", "upper")}
    return [*row, Joint(joint.name, "spherical", "", "", smooth=joint.smooth, **settings)]


def _share(joint: Joint, q: int, v: int) -> dict[str, Any]:
    """Return what one position and one velocity of a joint have for themselves."""
    each = {key: getattr(joint, key)[v] for key in _EACH}
    return each | {key: getattr(joint, key)[q] for key in ("lower", "upper")}


_SLIDE_SLIDE_TURN = ("prismatic", "prismatic", "revolute")
_ROWS = {"helical": _helical, "planar": _planar, "free": _free}
