"""Reading SDFormat, the format of Gazebo, from version 1.4 on.

A model is a graph of links at poses, with joints between them; its positions are zero where the file puts the links.
"""

from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.formats.sdf.frames import THE_WORLD, WORLD, relative_pose
from torsor.formats.sdf.joints import Joints, read_joints
from torsor.formats.sdf.links import read_link
from torsor.formats.sdf.models import Model, Part, read_model
from torsor.formats.sdf.unread import Unread
from torsor.formats.xml import Element, parse_xml
from torsor.mechanism import Frame, Joint, Link, Mechanism, build
from torsor.mechanism.names import claim_name


def read_sdf(
    path: Path,
    base: str = "fixed",
    strict: bool = False,
    root: Element | None = None,
    snap: float = 0.0,
    model: str = "",
) -> Mechanism:
    """Return the mechanism of a model in an SDF file; ``root`` is its root element if it is parsed already.

    ``model`` names one of several models; by default the first that is not static is read. Parts of nested models are
    named ``model::part``. A joint with two axes (universal, revolute2) becomes two joints ``name/axis`` and
    ``name/axis2``, a link with a second parent joint closes a loop, a gearbox is a coupling, <frame>s are frames. The
    base is ``world`` where joints hold the model to the world, or where its root link is not at the origin of the
    world; otherwise it is the root link, also where that is welded to the world. With ``base="floating"`` the root link
    is free, as it is in Gazebo without a joint to the world. Gravity is that of the world around the model, and
    (0, 0, -9.81) without one. A ``ModelWarning`` names what is not read.
    """
    root = parse_xml(path, strict) if root is None else root
    found, unread = read_model(path, root, model), Unread(path.name, strict)
    masked = _is_masked(found)
    links = [read_link(part, strict, masked, unread) for part in found.links]
    taken = {link.name for link in links} | {part.frame.name for part in found.frames} | {WORLD}
    frames = [Frame(part.frame.name, *_placed(part)) for part in found.frames]
    if found.static:
        names, made = {part.frame.name for part in found.joints}, Joints([], [], [], [])
        for part in found.links:
            name = claim_name(f"{part.frame.name}/fixed", names)
            made.joints.append(Joint(name, "fixed", WORLD, part.frame.name, part.frame.in_world()))
    else:
        made = read_joints(found.joints, strict, unread, taken)
        for each in found.resting:
            unread.note("<static> of a nested model", each)
    unread.children(found.roots)
    unread.report()
    links, joints, frames = [*links, *made.links], made.joints, [*frames, *made.frames]
    links, joints = _on_world(found, links, joints, frames, base)
    return build(found.name, links, joints, frames, found.gravity, path.name, base, made.loops, snap=snap)


def _is_masked(model: Model) -> bool:
    """Whether any collision shape says which others it touches."""
    tag = "collision/surface/contact/collide_bitmask"
    return any(part.element.find(tag) is not None for part in model.links)


def _placed(part: Part) -> tuple[str, Array]:
    """Return the link that a <frame> is attached to, and its pose there."""
    carrier = part.frame.carrier()
    return carrier.name, relative_pose(carrier, part.frame)


def _on_world(
    model: Model, links: list[Link], joints: list[Joint], frames: list[Frame], base: str
) -> tuple[list[Link], list[Joint]]:
    """Return links and joints with the world as the base, where the file has the model on it."""
    held = [joint for joint in joints if joint.parent == WORLD]
    on_world = any(frame.link == WORLD for frame in frames)
    children = {joint.child for joint in joints if joint.parent != WORLD}
    roots = [part for part in model.links if part.frame.name not in children]
    if len(roots) > 1 or on_world or (held and not (len(held) == 1 and held[0].is_fixed)):
        if base == "floating" and (held or on_world):
            found = f"the base cannot float: {len(held)} joints hold the model to the world"
            raise ModelError(describe(found, where=model.scope.source, allowed="one fixed joint, or none"))
        return ([Link(WORLD), *links] if held or on_world else links), joints
    at = relative_pose(THE_WORLD, roots[0].frame) if roots else np.eye(4)
    if base == "floating" or np.array_equal(at, np.eye(4)):  # the weld of the root link says no more than ``base``
        return links, [joint for joint in joints if joint not in held]
    name = claim_name(f"{roots[0].frame.name}/fixed", {joint.name for joint in joints})
    weld = held or [Joint(name, "fixed", WORLD, roots[0].frame.name, at)]
    return [Link(WORLD), *links], [*weld, *(joint for joint in joints if joint not in held)]
