"""Joints of USD that close loops: cut joints between two frames, with the z axes of the house."""

from collections.abc import Mapping

import numpy as np

from torsor.formats.usd.joints import UsdJoint, frame_along, limits_of
from torsor.formats.usd.scene import Scene
from torsor.formats.usd.stage import AGREE, own_data
from torsor.mechanism import Frame, Loop

_TURNS = {"rotX", "rotY", "rotZ"}


def loop_of(
    scene: Scene, joint: UsdJoint, names: Mapping[str, str], frames: list[Frame]
) -> tuple[list[Frame], Loop | None]:
    """Return a joint as a loop with the frames that it needs; no loop if no cut joint has its free axes.

    ``names`` are those of the bodies by path; ends that Torsor wrote are links, or among the ``frames`` already.
    """
    kind, axis = cut_kind(joint)
    if kind is None:
        scene.left_out.note(f"loops with the free axes {', '.join(joint.free)}", joint.name)
        return [], None
    limited = any(np.isfinite(limits_of(scene, joint.prim, each)).any() for each in joint.free)
    scene.left_out.note("limits of joints that close loops", joint.name, limited)
    poses = [frame_along(end.pose, axis) for end in joint.ends]
    found, ends = list[Frame](), list[str]()
    for letter, end, pose in zip("ab", joint.ends, poses, strict=True):
        own, link = str(own_data(joint.prim).get(letter, "")), names[end.body]
        known = next((each for each in frames if each.name == own and each.link == link), None)
        at = known.pose if known is not None else np.eye(4) if own == link else None
        if at is None or not np.allclose(at, pose, rtol=0, atol=AGREE * max(1.0, np.abs(pose).max())):
            own = scene.unused(f"{joint.name}/{letter}", "link")
            found.append(Frame(own, link, pose))
        ends.append(own)
    return found, Loop(joint.name, ends[0], ends[1], kind, joint.length or 0.0, scene.source)


def cut_kind(joint: UsdJoint) -> tuple[str | None, str]:
    """Return the kind of a cut joint with the free axes of a joint, and the axis that is z of its frames."""
    free = set(joint.free)
    slides, turns = sorted(free - _TURNS), sorted(free & _TURNS)
    if joint.length is not None:
        return "rod", "rotZ"
    if not free:
        return "weld", "rotZ"
    if free == _TURNS:
        return "spherical", "rotZ"
    if len(slides) + len(turns) == 1:
        return ("prismatic", slides[0]) if slides else ("revolute", turns[0])
    letters = {each[-1] for each in slides}
    if len(turns) == 1 and len(slides) == 1 and letters == {turns[0][-1]}:
        return "cylindrical", turns[0]
    if len(turns) == 1 and len(slides) == 2 and turns[0][-1] not in letters:
        return "planar", turns[0]
    return None, "rotZ"
