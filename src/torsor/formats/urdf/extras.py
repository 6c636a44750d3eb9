"""Elements of URDF beyond links and joints: Drake's frames and loop joints are read, and what is not read is named.

An element that this file does not know may act on the motion (a spring, a cable, an included file), so it is never
dropped without a word. Elements without influence (collision, sensors, settings of Gazebo and controllers) are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import direction
from torsor.base.errors import ModelError, describe, listing
from torsor.base.faults import refuse_or_warn
from torsor.formats.decimals import number_in
from torsor.formats.xml import Element
from torsor.mechanism import Frame, Joint, Link, Loop
from torsor.mechanism.names import claim_name
from torsor.spatial import axis_frame, from_rpy, make_pose

# By element: the children that are read, or that have no influence on the motion.
_KNOWN = {
    "robot": """link joint material transmission frame loop_joint gazebo sensor ros2_control mujoco camera plugin
        controller actuator drake:collision_filter_group collision_filter_group disable_collisions enable_collisions
        disable_default_collisions group group_state end_effector virtual_joint passive_joint author version
        description metadata""",
    "link": """inertial visual collision contact material sensor gazebo gravity kinematic surface self_filter
        self_collision_checking collision_checking drake:proximity_properties""",
    "inertial": "origin mass inertia",
    "joint": "parent child origin axis limit dynamics mimic safety_controller calibration gazebo hardwareInterface",
}
_DYNAMICS = ("damping", "friction", "spring_stiffness", "spring_reference")
_REVOLUTE = ("revolute", "continuous", None)  # the types of a loop joint whose meaning is clear


class Extras(NamedTuple):
    """What a file has besides its tree."""

    frames: list[Frame]
    loops: list[Loop]
    active: list[str]


def read_extras(root: Element, links: list[Link], joints: list[Joint], source: str, strict: bool) -> Extras:
    """Return Drake's <frame> and <loop_joint> elements; warn of all that is not read, or raise if ``strict``.

    A loop joint is a hinge about ``axis`` between a frame on ``link1`` and one on ``link2``. While loops are closed,
    the joints of transmissions are the active ones.
    """
    taken, loops = {link.name for link in links}, list[Loop]()
    on, frames = set(taken), list[Frame]()
    for element in root:
        where = f"{source}: line {element.line}: <{element.tag} name={element.get('name', '')!r}>"  # type: ignore[attr-defined]
        try:
            if element.tag == "frame":
                name = element.get("name") or ""
                if name in taken:
                    raise ModelError(describe("it has the name of another link or frame", where=where))
                frames.append(Frame(name, _link(element, on, where), _pose(element, where)))
                taken.add(name)
            elif element.tag == "loop_joint":
                ends = _loop_frames(element, on, where)
                made = [
                    Frame(claim_name(f"{element.get('name')}/{end}", taken), *at)
                    for end, at in zip("ab", ends, strict=True)
                ]
                loops.append(Loop(element.get("name") or "", made[0].name, made[1].name, source=where))
                frames += made
        except ModelError as error:
            refuse_or_warn(str(error) if strict else f"{error}; it is ignored", strict)
    unread = _unread(root)
    if unread:
        names = [f"<{tag}> ({len(lines)}, line {lines[0]})" for tag, lines in unread.items()]
        found = f"elements that are not read: {listing(names, most=8)}"
        fix = "if they act on the motion, the robot here is not the one that the file describes"
        refuse_or_warn(describe(found, where=source, fix=fix), strict)
    moving = [joint.name for joint in joints if not joint.is_fixed and not joint.follows]
    driven = {each.get("name") for transmission in root.findall("transmission") for each in transmission.iter("joint")}
    return Extras(frames, loops, [name for name in moving if name in driven] if loops else [])


def _loop_frames(element: Any, links: set[str], where: str) -> list[tuple[str, Array]]:
    """Return (link, pose) of both frames of a loop joint, whose z axes are its axis."""
    if element.get("type") not in _REVOLUTE:
        allowed = ", ".join(kind for kind in _REVOLUTE if kind)
        raise ModelError(describe(f"type is {element.get('type')!r}", where=where, allowed=allowed))
    turned = make_pose(axis_frame(_direction(element.find("axis"), where)))
    ends = []
    for role in ("link1", "link2"):
        end = element.find(role)
        if end is None:
            raise ModelError(describe(f"no <{role}>", where=where, fix=f'add <{role} link="..." xyz="..."/>'))
        ends.append((_link(end, links, where), _pose(end, where) @ turned))
    return ends


def _link(element: Any, links: set[str], where: str) -> str:
    link = element.get("link")
    if link not in links:
        raise ModelError(describe(f"its link is {link!r}", where=where, allowed="a link of this file"))
    return str(link)


def _direction(element: Any, where: str) -> Array:
    return direction(_numbers(element, "xyz", "1 0 0", where), where, "axis")


def _pose(element: Any, where: str) -> Array:
    """Return the pose of the attributes ``xyz`` and ``rpy``; Drake has no <origin> there."""
    return make_pose(from_rpy(_numbers(element, "rpy", "0 0 0", where)), _numbers(element, "xyz", "0 0 0", where))


def _numbers(element: Any, attribute: str, default: str, where: str) -> Array:
    text = default if element is None else element.get(attribute, default)
    try:
        values = np.array([number_in(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ModelError(describe(f"{attribute} is {text!r}", where=where, allowed="3 finite numbers"))
    return values


def _unread(root: Element) -> dict[str, list[int]]:
    """Return the lines of the elements that are not read, by tag."""
    found: dict[str, list[int]] = {}
    for tag, element in _strangers(root):
        found.setdefault(tag, []).append(element.line)
    return found


def _strangers(root: Element) -> Iterator[tuple[str, Any]]:
    places = {tag: frozenset(names.split()) for tag, names in _KNOWN.items()}
    parents = [root, *root.findall("link"), *root.findall("link/inertial"), *root.findall("joint")]
    for parent in parents:
        for element in parent:
            if "xacro" in element.tag:
                continue  # the reader has its own words for it
            if element.tag not in places[parent.tag]:
                yield element.tag, element
            elif parent.tag == "link" and element.tag in ("gravity", "kinematic"):
                # Gazebo's switches: without gravity, or moved without forces.
                if (element.text or "").strip().lower() in (
                    ("0", "false") if element.tag == "gravity" else ("1", "true")
                ):
                    yield element.tag, element
            elif parent.tag == "joint" and element.tag == "dynamics":
                yield from ((f"dynamics {key}=", element) for key in element.attrib if key not in _DYNAMICS)
            elif parent.tag == "robot" and element.tag == "frame":
                yield from ((f"frame><{child.tag}", child) for child in element)
