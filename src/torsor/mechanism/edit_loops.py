"""Edits of loops, wheels and active coordinates; each returns a new mechanism."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Maybe
from torsor.base.checks import direction, frozen_array
from torsor.base.errors import ModelError, listing
from torsor.mechanism.loops import Coupling, Loop, Wheel
from torsor.mechanism.mechanism import Mechanism, carrier, check_unique, ends_of, lineage
from torsor.mechanism.names import unused_name
from torsor.mechanism.parts import Frame, Joint
from torsor.spatial import axis_frame, make_pose

M = TypeVar("M", bound=Mechanism)
_PARALLEL_TOLERANCE = 1e-3  # sine of the angle between parallel axes; larger values are not rounding errors in files


def with_loop(
    robot: M, name: str, frame_a: str, frame_b: str, kind: str = "revolute", length: float = 0.0, axis: Maybe = None
) -> M:
    """Return a copy with a loop: a cut joint between two links or frames.

    A joint name refers to the frame of the link that it moves, with the origin at the joint. ``kind`` is weld,
    revolute, prismatic, cylindrical, universal, spherical, planar or rod (massless, with two ball joints ``length``
    apart, in m). The joint axes are the z axes of the frames. For a revolute joint they must point in the same
    direction, and the origins must coincide. ``axis`` (3) selects another axis, in the axes of each of the two frames:
    frames "name/a" and "name/b" are created with that axis as z.

    Example:
        >>> chain = torsor.library.planar_chain(3).with_frame("tip", "link3", torsor.spatial.make_pose(p=[1, 0, 0]))
        >>> chain.with_loop("hinge", "tip", "base", axis=(0, 1, 0)).loops[0].a
        'hinge/a'
    """
    loop = Loop(name, frame_a, frame_b, kind, length)
    if any(end not in robot.places for end in (frame_a, frame_b)):
        robot, loop = with_joint_ends(robot, loop, robot.joints)
        frame_a, frame_b = loop.a, loop.b
    if axis is None:
        closed = replace(robot, loops=(*robot.loops, loop))  # raises ModelError for unknown ends
        _check_hinges(closed, loop)
        return closed
    along = direction(axis, f"{robot.name}: loop {name!r}", "axis")
    turn, frames = make_pose(axis_frame(along)), list(robot.frames)
    for end, side in ((frame_a, "a"), (frame_b, "b")):
        place = robot.place(end)
        frames.append(Frame(f"{name}/{side}", carrier(robot, place).name, place.pose @ turn))
    loop = Loop(name, f"{name}/a", f"{name}/b", kind, length)
    return replace(robot, frames=tuple(frames), loops=(*robot.loops, loop))


def _check_hinges(robot: Mechanism, loop: Loop) -> None:
    """Raise ModelError if the z axes of a revolute loop are not along its parallel hinges, which welds its ends."""
    # Hinges that are parallel in one position are parallel in all, so they are compared with all joints at zero.
    ends, turns = [robot.place(end) for end in (loop.a, loop.b)], [np.eye(3)]
    for parent, joint in zip(robot.parents, robot.joints, strict=True):
        turns.append(turns[parent + 1] @ joint.placement[:3, :3])
    sides = [set(lineage(robot, place.link)) for place in ends]
    around = sorted(k for k in sides[0] ^ sides[1] if any(robot.joints[k].kind.turns))
    if loop.kind != "revolute" or len(around) < 2 or any(sum(robot.joints[k].kind.turns) > 1 for k in around):
        return
    axes = [turns[k + 1] @ robot.joints[k].axis for k in around]
    if any(np.linalg.norm(np.cross(axes[0], axis)) > _PARALLEL_TOLERANCE for axis in axes):
        return
    seen = [(turns[place.link + 1] @ place.pose[:3, :3]).T @ axes[0] for place in ends]
    if all(np.linalg.norm(item[:2]) <= _PARALLEL_TOLERANCE for item in seen):
        return
    along = tuple((seen[0] * np.sign(seen[0][np.abs(seen[0]).argmax()])).round(6).tolist())
    names = listing([robot.joints[k].name for k in around], most=4)
    message = f"the z axes of {loop.a!r} and {loop.b!r}, about which it turns, are not along the hinges {names}"
    same = np.abs(seen[0] - seen[1]).max() <= _PARALLEL_TOLERANCE
    fix = f"axis={along}" if same else "use frames whose z axes are along the hinges"
    where = f"{robot.name}: loop {loop.name!r}"
    raise ModelError(message, where=where, allowed="z axes along the hinges, or axis=", fix=fix)


def with_joint_ends(robot: M, loop: Loop, joints: Iterable[Joint]) -> tuple[M, Loop]:
    """Return the robot with a frame for each joint that is an end of a loop, and the loop between links and frames.

    A joint name refers to the frame of the link that it moves, with the origin at the joint's point.
    """
    by_name, ends = {joint.name: joint for joint in joints}, {"a": loop.a, "b": loop.b}
    for side, end in ends.items():
        if end in robot.places or end not in by_name:  # the robot raises ModelError for unknown names
            continue
        joint, place = by_name[end], robot.place(by_name[end].child)
        ends[side] = joint.child
        if joint.point.any():
            ends[side] = unused_name(f"{loop.name}/{side}", robot.places)
            frame = Frame(ends[side], carrier(robot, place).name, place.pose @ make_pose(p=joint.point))
            robot = replace(robot, frames=(*robot.frames, frame))
    return robot, replace(loop, a=ends["a"], b=ends["b"])


def with_wheel(
    robot: M,
    name: str,
    link: str,
    radius: float = 0.0,
    kind: str = "wheel",
    axis: Maybe = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
    roller: float = 0.0,
    ground: str = "",
) -> M:
    """Return a copy with a wheel: a link or frame in rolling contact with the ground, the plane z = 0 of the base.

    ``kind`` is wheel, omni, edge, ball or skid (see ``torsor.Wheel``), and ``radius`` is in m. ``point`` (3), in m, is
    the centre and ``axis`` (3) the axle, both in link axes; the defaults are the origin and the z axis. If either is
    given, they define the new frame "name/axle". ``roller`` (rad) is the roller angle of an omni wheel. ``ground`` is
    the ground frame if it is not the base.

    Example:
        >>> torsor.library.eel(3).with_wheel("keel", "link3", kind="edge", axis=(0, 1, 0)).closed.mobility().dof
        6
    """
    wheel, where = Wheel(name, link, kind, radius, roller, ground), f"{robot.name}: wheel {name!r}"
    centre = frozen_array(point, (3,), where, "point")
    check_unique((*(loop.name for loop in robot.loops), name), "loops", robot.name)
    if all(end in robot.places for end in (link, ground or robot.base.name)):  # unknown names raise ModelError below
        on = robot.place(ground or robot.base.name).link
        if robot.place(link).link == on:
            message = f"{link!r} and its ground are parts of one body, {carrier(robot, robot.place(link)).name!r}"
            fix = "name the link that rolls; joints, or a free base, must let it move on its ground"
            raise ModelError(message, where=where, allowed="two bodies", fix=fix)
    if axis is None and not centre.any():
        return replace(robot, loops=(*robot.loops, wheel))
    place, along = robot.place(link), np.array([0.0, 0.0, 1.0]) if axis is None else direction(axis, where, "axis")
    axle = Frame(f"{name}/axle", carrier(robot, place).name, place.pose @ make_pose(axis_frame(along), centre))
    return replace(robot, frames=(*robot.frames, axle), loops=(*robot.loops, replace(wheel, frame=axle.name)))


def without_loop(robot: M, name: str) -> M:
    """Return a copy without a loop or coupling.

    Example:
        >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0})
        >>> robot.without_loop("belt").loops
        ()
    """
    rest = tuple(loop for loop in robot.loops if loop.name != name)
    if len(rest) == len(robot.loops):
        allowed = ", ".join(repr(loop.name) for loop in robot.loops) or "none: it has no loops"
        raise ModelError(f"no loop {name!r}", value=name, where=robot.name, allowed=allowed)
    return replace(robot, loops=rest)


def with_active(robot: M, names: Sequence[str]) -> M:
    """Return a copy whose active (driven) coordinates are ``names``, in that order.

    A joint name refers to all coordinates of the joint. For forces and accelerations of the closed mechanism,
    coordinates that move without a drive, such as a floating base, must be included.

    Example:
        >>> torsor.library.two_link().with_active(["joint2"]).active
        ('joint2',)
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ModelError(f"active is {names!r}", value=names, where=robot.name, allowed="a list of coordinates")
    coordinates = {joint.name: joint.velocity_names for joint in robot.joints if joint.nv > 1}
    return replace(robot, active=tuple(item for name in names for item in coordinates.get(name, (name,))))


def without_coordinates(robot: M, joint: Joint) -> dict[str, Any]:
    """Return {"active": coordinates} of a robot after fixing a joint; raise ModelError if a coupling involves it."""
    coupling = coupling_of(robot, joint)
    if coupling is not None:
        fix = f"open it first: robot.without_loop({coupling!r})"
        raise ModelError(f"{joint.name!r} is coupled by {coupling!r}", argument="joint", where=robot.name, fix=fix)
    return {"active": [name for name in robot.active if name not in _names(joint)]}


def coupling_of(robot: Mechanism, joint: Joint) -> str | None:
    """Return the name of a coupling that involves a coordinate of the joint, or None."""
    couplings = (loop for loop in robot.loops if isinstance(loop, Coupling))
    return next((coupling.name for coupling in couplings if {*_names(joint)} & {*coupling.coefficients}), None)


def loops_of(robot: M, places: Collection[str], joints: Sequence[Joint]) -> dict[str, Any]:
    """Return the loops and active coordinates of a subtree; raise ModelError if a loop connects it to the rest."""
    names = {name for joint in joints for name in _names(joint)}
    loops = []
    for loop in robot.loops:
        ends, within = (loop.coefficients, names) if isinstance(loop, Coupling) else (ends_of(robot, loop), places)
        inside = [end in within for end in ends]
        if any(inside) and not all(inside):
            fix = f"open it first: robot.without_loop({loop.name!r})"
            raise ModelError(f"loop {loop.name!r} leaves the subtree", value=loop.name, where=robot.name, fix=fix)
        if all(inside):
            loops.append(loop)
    return {"loops": loops, "active": [name for name in robot.active if name in names]}


def _names(joint: Joint) -> tuple[str, ...]:
    """Return the names of all coordinates of a joint, including its motor coordinate."""
    return (*joint.velocity_names, *([f"{joint.name}/motor"] if joint.is_elastic else []))
