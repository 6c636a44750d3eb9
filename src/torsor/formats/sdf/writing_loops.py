"""Loops in SDF: joints to a link that has a parent already. They are closed where all joints are at zero."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.formats.writing import short_rpy
from torsor.formats.xml import add_element, numbers
from torsor.mechanism import Joint, Link, Loop, Mechanism
from torsor.mechanism.loops import CutJoint
from torsor.mechanism.names import claim_name
from torsor.spatial import inverse_pose

_JOINTS = {"weld": "fixed", "revolute": "revolute", "prismatic": "prismatic", "universal": "universal"}
_JOINTS |= {"spherical": "ball"}
_CLOSED = 1e-9  # largest error of a loop at zero, in m and rad


def write_loops(
    model: ET.Element,
    mechanism: Mechanism,
    loops: Sequence[CutJoint],
    moving: Sequence[tuple[Link, Joint]],
    name_of: Callable[[str], str],
    taken: set[str],
    source: str,
) -> None:
    """Add a joint for each loop; ``name_of`` gives the name of a link in the file, ``taken`` are the names in use.

    SDF has one pose for both ends of a joint, where all positions are zero: a loop that is open there is refused.
    """
    poses = {mechanism.base.name: np.eye(4)}
    for link, joint in moving:
        poses[link.name] = poses[joint.parent] @ joint.placement
    frames = {frame.name: (frame.link, frame.pose) for frame in mechanism.frames}
    for loop in loops:
        if not isinstance(loop, Loop) or loop.kind not in _JOINTS:
            kind = getattr(loop, "kind", "")
            found, allowed = f"loop {loop.name!r} is {kind}", f"{', '.join(_JOINTS)} in SDF"
            raise ModelError(describe(found, where=source, allowed=allowed, fix="save as .toml"))
        ends = [frames.get(end, (end, np.eye(4))) for end in (loop.a, loop.b)]
        a, b = (poses[link] @ pose for link, pose in ends)
        between = inverse_pose(a) @ b
        error = np.array(ca.DM(ca.evalf(loop.error(ca.SX(between[:3, :3]), ca.SX(between[:3, 3])))))
        if np.abs(error).max() > _CLOSED:
            found = f"loop {loop.name!r} is open where all joints are at zero, where SDF has its poses"
            raise ModelError(describe(found, where=source, fix="save as .toml or .xml (MJCF)"))
        if ends[1][0] == mechanism.base.name:  # the child of a joint that closes a loop has a parent already
            ends, between = ends[::-1], inverse_pose(between)
        _add_joint(model, loop, ends, between, name_of, taken)


def _add_joint(
    model: ET.Element,
    loop: Loop,
    ends: list[tuple[str, Array]],
    between: Array,
    name_of: Callable[[str], str],
    taken: set[str],
) -> None:
    """Add the joint of a loop at the second end; ``between`` is the pose of that end in the first."""
    (parent, _), (child, pose) = ends
    element = add_element(model, "joint", name=claim_name(loop.name, taken), type=_JOINTS[loop.kind])
    add_element(element, "parent").text = name_of(parent)
    add_element(element, "child").text = name_of(child)
    add_element(element, "pose").text = f"{numbers(pose[:3, 3])} {numbers(short_rpy(pose[:3, :3]))}"
    if loop.kind in ("revolute", "prismatic", "universal"):
        axis = between[2, :3] if loop.kind == "universal" else np.array([0.0, 0.0, 1.0])
        add_element(add_element(element, "axis"), "xyz").text = numbers(axis)
    if loop.kind == "universal":
        add_element(add_element(element, "axis2"), "xyz").text = "0 0 1"
