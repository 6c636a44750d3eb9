"""Robots with flexible links; each function returns a new robot."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from torsor.base.checks import instance_of, name_of
from torsor.base.errors import ModelError, describe, listing
from torsor.mechanism.edit import rebuilt
from torsor.mechanism.edit_bodies import with_payload
from torsor.mechanism.flexible import Modes
from torsor.mechanism.mechanism import Mechanism, carrier
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.spatial import make_pose, move_inertia

M = TypeVar("M", bound=Mechanism)
# Distance from the tip (relative to the length of the link) at which joints and frames are at the tip.
AT_TIP = 1e-6


def with_beam(robot: M, at: str, modes: Modes, name: str = "beam") -> M:
    """Return the robot with a beam that is clamped at a link or frame, along its x axis.

    The joint ``name`` has the modes as coordinates. It moves the new link ``name/end``, the end of the beam in the axes
    of its root, which carries ``name/tip``, the section there: other links, frames and loads can be attached to it.
    The mass of the beam is added to the link that it is clamped to. On the base, the beam gets a link of its own,
    ``name``. Nothing drives the modes: their effort limit is 0.

    Example:
        >>> import torsor
        >>> modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=0.5, bending=20.0, modes=(2, 0))
        >>> robot = torsor.mechanism.flexible_links.with_beam(torsor.library.planar_chain(1), "link1", modes)
        >>> robot.coordinate_names, robot.links[-1].name
        (('joint1', 'beam/1', 'beam/2'), 'beam/tip')
    """
    instance_of(robot, Mechanism, "with_beam", "robot")
    instance_of(
        modes, Modes, robot.name, "modes", allowed="Modes, such as torsor.mechanism.flexible_links.beam(...) returns"
    )
    name_of(name, "beam", robot.name)
    place, end, tip = robot.place(at), f"{name}/end", f"{name}/tip"
    taken = {*robot.places, *robot.joint_names} & {name, end, tip, f"{name}/clamp", f"{name}/turn"}
    if taken:
        fix = "give another name="
        raise ModelError(describe(f"the robot has {sorted(taken)[0]!r} already", where=robot.name, fix=fix))
    links, joints, pose = [robot.base, *robot.links], list(robot.joints), place.pose
    owner = carrier(robot, place).name
    if place.link < 0:
        links.append(Link(name))
        joints.append(Joint(f"{name}/clamp", "fixed", owner, name, pose))
        owner, pose = name, np.eye(4)
    links += [Link(end), Link(tip)]
    turn, axis = modes.turn()
    place_of_end = pose @ make_pose(p=modes.positions[-1])
    joints.append(Joint(name, "flexible", owner, end, place_of_end, effort_limit=0.0, flexible=modes))
    joints.append(Joint(f"{name}/turn", "flexible", end, tip, axis=axis, coordinate=name, flexible=turn))
    bent = rebuilt(robot, links, joints, list(robot.frames))
    mass, com, inertia = move_inertia(pose, *modes.body)
    return with_payload(bent, owner, mass, com, inertia)


def with_flexible_link(robot: M, link: str, modes: Modes, carried: Sequence[str] | None = None) -> M:
    """Return the robot with a moving link that bends: modes replace its mass and inertia.

    The link is clamped at its own frame and extends along its x axis. ``carried`` are the names of the joints and
    frames that move with its tip; by default those that are at the tip. The joint ``link/modes`` has the modes as
    coordinates.

    Example:
        >>> import torsor
        >>> modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=100.0, modes=(2, 0))
        >>> robot = torsor.mechanism.flexible_links.with_flexible_link(torsor.library.planar_chain(2), "link1", modes)
        >>> robot.coordinate_names, robot.joint("joint2").parent
        (('joint1', 'link1/modes/1', 'link1/modes/2', 'joint2'), 'link1/modes/tip')
    """
    instance_of(robot, Mechanism, "with_flexible_link", "robot")
    place = robot.place(link)
    if place.link < 0 or link not in robot.link_names:
        fix = "torsor.mechanism.flexible_links.with_beam clamps a beam to the base or to a frame"
        raise ModelError(describe(f"{link!r} is not a moving link", where=robot.name, fix=fix))
    if f"{link}/modes" in robot.joint_names:
        raise ModelError(describe(f"link {link!r} is flexible already", where=robot.name))
    bare: dict[str, Any] = {"mass": 0.0, "com": np.zeros(3), "inertia": np.zeros((3, 3)), "strict": True, "source": ""}
    links = tuple(replace(each, **bare) if each.name == link else each for each in robot.links)
    bent = with_beam(replace(robot, links=links), link, modes, f"{link}/modes")
    tip = make_pose(p=modes.positions[-1])
    near = AT_TIP * float(np.linalg.norm(modes.positions[-1]))
    there = [(joint.name, joint.placement) for joint in robot.joints if joint.parent == link]
    there += [(frame.name, frame.pose) for frame in robot.frames if frame.link == link]
    names = {name for name, pose in there if np.linalg.norm(pose[:3, 3] - tip[:3, 3]) <= near}
    if carried is not None:
        if isinstance(carried, str):
            raise ModelError(describe(f"carried is {carried!r}", where=robot.name, allowed="a list of names"))
        names = set(carried)
        missing = sorted(names - {name for name, _ in there})
        if missing:
            found = f"the tip carries {missing[0]!r}, which is no joint or frame of link {link!r}"
            raise ModelError(describe(found, where=robot.name, allowed=listing(repr(name) for name, _ in there)))

    def moved(part: Any, pose: str, on: str) -> Any:
        if getattr(part, on) != link or part.name not in names:
            return part
        return replace(part, **{on: f"{link}/modes/tip", pose: make_pose(p=-tip[:3, 3]) @ getattr(part, pose)})

    joints: list[Joint] = [moved(joint, "placement", "parent") for joint in bent.joints]
    frames: list[Frame] = [moved(frame, "pose", "link") for frame in bent.frames]
    return rebuilt(bent, [bent.base, *bent.links], joints, frames)
