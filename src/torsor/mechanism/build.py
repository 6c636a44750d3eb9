"""Construction of mechanisms from links and joints: check and sort the tree, resolve followers, merge fixed joints."""

import heapq
import math
import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import MAX_NUMBER, frozen_pose, name_of, number, one_of
from torsor.base.errors import ModelError, warn
from torsor.mechanism.edit_loops import with_joint_ends
from torsor.mechanism.loops import Closure, Loop
from torsor.mechanism.mechanism import Mechanism, check_unique, checked_postures
from torsor.mechanism.names import unused_name
from torsor.mechanism.part import changed
from torsor.mechanism.parts import Frame, Joint, Link, Shape, Visual
from torsor.spatial import composite, from_rpy, inverse_pose, make_pose, move_inertia, to_rpy

# Rounded angles in files become exact: 1.5708 becomes pi/2, so that products with its cosine vanish.
#
# Only directions change: rotations of joints and frames, axes, offset angles, and inertias whose principal axes are
# nearly parallel to the link's axes. Lengths, masses and limits are unchanged.

STEP = math.pi / 12  # 15 degrees


def snapped_parts(
    links: Iterable[Link], joints: Iterable[Joint], frames: Iterable[Frame], within: float
) -> tuple[list[Link], list[Joint], list[Frame]]:
    """Return the parts with angles rounded to multiples of pi/12 that are at most ``within`` (rad) away."""
    exact = list[Joint]()
    for joint in joints:
        motor = joint.motor and replace(joint.motor, axis=_direction(joint.motor.axis, within))
        offset = _angle(joint.offset, within) if joint.kind.turns == (True,) else joint.offset
        placement, axis = _pose(joint.placement, within), _direction(joint.axis, within)
        exact.append(replace(joint, placement=placement, axis=axis, offset=offset, motor=motor))
    bodies = [replace(link, inertia=_inertia(link.inertia, within)) for link in links]
    return bodies, exact, [replace(frame, pose=_pose(frame.pose, within)) for frame in frames]


def _angle(angle: float, within: float) -> float:
    nearest = round(angle / STEP) * STEP
    return nearest if abs(angle - nearest) <= within else float(angle)


def _pose(T: Array, within: float) -> Array:
    """Return a pose in which roll, pitch and yaw that are nearly multiples of pi/12 are exact."""
    R = T[:3, :3]
    angles = to_rpy(R)
    roll, pitch, yaw = (_angle(angle, within) for angle in angles)
    if abs(abs(pitch) - math.pi / 2) < 1e-12:  # gimbal lock: only the difference or the sum of roll and yaw matters
        roll, yaw = _angle(float(angles[0] - math.copysign(1.0, pitch) * angles[2]), within), 0.0
    exact = from_rpy([roll, pitch, yaw])
    return make_pose(exact if np.abs(exact - R).max() <= 4 * within else R, T[:3, 3])


def _direction(axis: Array, within: float) -> Array:
    """Return a unit vector with near-zero components set to zero, and an exact angle in a coordinate plane."""
    kept, exact = np.flatnonzero(np.abs(axis) > within), np.zeros(3)
    if len(kept) == 1:
        exact[kept] = np.sign(axis[kept])
    elif len(kept) == 2:
        angle = _angle(math.atan2(axis[kept[1]], axis[kept[0]]), within)
        exact[kept] = math.cos(angle), math.sin(angle)
    return exact if len(kept) in (1, 2) else axis


def _inertia(inertia: Array, within: float) -> Array:
    """Return an inertia without products of inertia due to a rotation of less than ``within`` (rad) about an axis."""
    moments = np.diag(inertia)
    small = np.abs(inertia) <= within * np.abs(moments[:, None] - moments[None, :])
    return np.where(small & ~np.eye(3, dtype=bool), 0.0, inertia)


P = TypeVar("P", Link, Joint)
LARGEST_SNAP = 1e-2  # rad; larger differences are not rounding errors


def build(
    name: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    frames: Iterable[Frame] = (),
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    source: str = "",
    base: str = "fixed",
    loops: Sequence[Closure] = (),
    active: Sequence[str] = (),
    posture_table: Mapping[str, Mapping[str, float]] | None = None,
    snap: float = 0.0,
    allowed_collisions: Sequence[tuple[str, str, str]] = (),
) -> Mechanism:
    """Return a mechanism with these links, joints and frames.

    The root is the only link that is not the child of a joint. ``base="floating"`` adds a free joint named ``root``
    between the world and the root link. It raises ModelError if the robot already floats, that is, if the root link has
    no mass and all its joints are free. Child links of fixed joints are merged into their parents and remain as frames.
    Joints keep the given order, except that parents come before children.

    ``gravity`` (3,) is in m/s^2, in base axes. ``loops`` are the loop closures, ``active`` the names of the driven
    coordinates, and ``posture_table`` the positions of named postures. ``source`` is the file name for messages. Angles
    within ``snap`` (rad) of multiples of pi/12 become exact. ``allowed_collisions`` are (link or frame, link or frame,
    reason) for pairs that may touch.

    Example:
        >>> arm = Link("arm", mass=1.0, com=(0.5, 0, 0))
        >>> tip = Link("tip", mass=1.0)
        >>> hinge = Joint("hinge", "revolute", "ground", "arm")
        >>> weld = Joint("weld", "fixed", "arm", "tip", make_pose(p=[1, 0, 0]))
        >>> robot = build("pendulum", [Link("ground"), arm, tip], [weld, hinge])
        >>> robot.links[0].mass, robot.links[0].com.tolist(), [frame.name for frame in robot.frames]
        (2.0, [0.75, 0.0, 0.0], ['tip'])
    """
    where = source or name_of(name, "robot")
    links, joints = _parts_of(links, Link, where), _parts_of(joints, Joint, where)
    check_unique((link.name for link in links), "links", where)
    check_unique((joint.name for joint in joints), "joints", where)
    if number(snap, where, "snap", least=0, most=LARGEST_SNAP):
        links, joints, frames = snapped_parts(links, joints, frames, snap)
    by_name = {link.name: link for link in links}
    if not by_name:
        raise ModelError("there is no link", where=where, allowed="at least a base")
    root = _root(by_name, joints, where)
    if one_of(base, ("fixed", "floating"), where, "base") == "floating":
        ground = unused_name("world", by_name)
        by_name = {ground: Link(ground)} | by_name
        floating = Joint(unused_name("root", {joint.name for joint in joints}), "free", ground, root)
        joints, root = [floating, *joints], ground
    ordered = _with_resolved_followers(_parents_first(root, joints, where), where)
    mechanism, closures = _merge(name, by_name, root, ordered, list(frames), gravity, where), list[Closure]()
    if base == "floating":
        _check_floats_once(mechanism, where)
    for loop in loops:
        if isinstance(loop, Loop):  # its ends may be joints, even fixed ones, whose links are now frames
            mechanism, loop = with_joint_ends(mechanism, loop, joints)
        closures.append(loop)
    if closures or active or posture_table or allowed_collisions:
        table = {} if posture_table is None else posture_table
        postures = checked_postures(table, mechanism.joints, mechanism.position_names, where)
        closed: dict[str, Any] = {"loops": tuple(closures), "active": tuple(active), "posture_table": postures}
        mechanism = replace(mechanism, **closed, allowed_collisions=tuple(allowed_collisions))
    _warn_if_singular(mechanism, where)
    inertias = {link.name: link.inertia for link in mechanism.links}
    for joint in mechanism.joints:
        if joint.motor is not None and joint.motor.carrier in inertias:
            joint.motor.warn_if_too_heavy(joint.name, inertias[joint.motor.carrier])
    return mechanism


def _check_floats_once(mechanism: Mechanism, where: str) -> None:
    """Raise ModelError for a floating base if the root link is a world: it has no mass, and all its joints are free."""
    root = mechanism.links[0]
    held = [joint for joint in mechanism.joints[1:] if joint.parent == root.name]
    if not root.mass and held and all(joint.type == "free" for joint in held):
        found = f"is 'floating', but {held[0].child!r} already floats on the free joint {held[0].name!r}"
        raise ModelError(found, argument="base", value="floating", where=where, allowed="'fixed'", fix="omit `base`")


def _parts_of(values: Any, kind: type[P], where: str) -> list[P]:
    """Return links or joints as a list; raise ModelError for objects of other types."""
    parts = list(values) if isinstance(values, Iterable) else [values]
    for part in parts:
        if not isinstance(part, kind):
            message = f"the {kind.__name__.lower()}s contain {reprlib.repr(part)}"
            raise ModelError(message, where=where, allowed=f"a list of {kind.__name__} objects")
    return parts


def _root(links: dict[str, Link], joints: Sequence[Joint], where: str) -> str:
    """Return the only link that is not the child of a joint; all other links must have one parent joint."""
    moved_by: dict[str, str] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                message = f"joint {joint.name!r} has the {role} {link!r}, which does not exist"
                fix = "add the link or correct the name"
                raise ModelError(message, where=where, allowed=", ".join(list(links)[:12]), fix=fix)
        if joint.child in moved_by:
            message = f"link {joint.child!r} has two parents: joints {moved_by[joint.child]!r} and {joint.name!r}"
            fix = "remove one of the joints and close the loop with robot.with_loop; a link has one parent joint"
            raise ModelError(message, where=where, fix=fix)
        moved_by[joint.child] = joint.name
    roots = [link for link in links if link not in moved_by]
    if not roots:
        message = f"the joints {', '.join(list(moved_by.values())[:6])} form a cycle, so no link is the root"
        raise ModelError(message, where=where, fix="one link must not be the child of any joint")
    if len(roots) > 1:
        message = f"{len(roots)} links have no parent: {', '.join(map(repr, roots[:6]))}"
        raise ModelError(message, where=where, allowed="one root", fix="connect the pieces with fixed joints")
    return roots[0]


def _parents_first(root: str, joints: Sequence[Joint], where: str) -> list[Joint]:
    """Return the joints with parents before children, otherwise in the given order; raise ModelError for a cycle."""
    below: dict[str, list[int]] = defaultdict(list)
    for index, joint in enumerate(joints):
        below[joint.parent].append(index)
    ready = list(below[root])
    heapq.heapify(ready)
    ordered = []
    while ready:
        joint = joints[heapq.heappop(ready)]
        ordered.append(joint)
        for index in below[joint.child]:
            heapq.heappush(ready, index)
    if len(ordered) < len(joints):
        reached = {joint.name for joint in ordered}
        cycle = [joint.name for joint in joints if joint.name not in reached]
        message, fix = f"{', '.join(map(repr, cycle[:6]))} form a cycle", "remove one of them"
        raise ModelError(message, argument="joints", where=where, fix=fix)
    return ordered


def _with_resolved_followers(joints: list[Joint], where: str) -> list[Joint]:
    """Return the joints with resolved chains of followers: each names its leader directly, with the overall ratio."""
    by_name = {joint.name: joint for joint in joints}
    known: dict[str, tuple[Joint, float, float]] = {}  # {joint: (leader, ratio, offset)}, position = ratio q + offset
    for joint in joints:
        chain: dict[str, Joint] = {}
        while joint.follows and joint.name not in known:
            if joint.coordinate not in by_name:
                fix = "name a joint of the same mechanism"
                message = f"joint {joint.name!r} follows {joint.coordinate!r}, which does not exist"
                raise ModelError(message, where=where, fix=fix)
            chain[joint.name] = joint
            joint = by_name[joint.coordinate]
            if joint.name in chain:
                raise ModelError(f"{', '.join(chain)} follow each other in a cycle", argument="joints", where=where)
        leader, ratio, offset = known.setdefault(joint.name, (joint, 1.0, 0.0))
        if chain and leader.nv != 1 and not leader.is_fixed and leader.flexible is None:
            message = f"joint {next(iter(chain))!r} follows the {leader.type} joint {leader.name!r}"
            raise ModelError(message, where=where, allowed="leaders with one degree of freedom")
        for follower in reversed(chain.values()):
            ratio, offset = follower.ratio * ratio, follower.ratio * offset + follower.offset
            known[follower.name] = leader, ratio, offset
    resolved = []
    for joint in joints:
        leader, ratio, offset = known[joint.name]
        if leader is not joint and leader.is_fixed:  # a follower of a fixed joint does not move either
            joint = fixed_at(joint, np.array([offset]))
        elif leader is not joint:
            joint = replace(joint, coordinate=leader.name, ratio=ratio, offset=offset)
        resolved.append(joint)
    return resolved


def fixed_at(joint: Joint, position: np.ndarray) -> Joint:
    """Return a fixed joint that replaces ``joint`` at a constant position (nq,)."""
    R, p = joint.kind.transform(position, joint.pitch)
    moved = joint.placement @ joint.frame @ make_pose(R, p) @ inverse_pose(joint.frame)
    return Joint(joint.name, "fixed", joint.parent, joint.child, moved, source=joint.source)


def _merge(
    name: str,
    links: dict[str, Link],
    root: str,
    joints: list[Joint],
    frames: list[Frame],
    gravity: ArrayLike,
    where: str,
) -> Mechanism:
    """Merge each link on a fixed joint into the moving link (or base) that carries it, and keep it as a frame."""
    carrier = {root: (root, IDENTITY)}  # {link: (link into which it is merged, its pose there)}
    members: dict[str, list[str]] = {root: [root]}
    moving = []
    clamps = {joint.parent for joint in joints if joint.flexible is not None}
    for joint in joints:
        owner, pose = carrier[joint.parent]
        placement = pose @ joint.placement if owner != joint.parent else joint.placement
        # A flexible link that is clamped to the base remains a link: its mass moves, and its clamp has a reaction.
        if joint.is_fixed and not (owner == root and joint.child in clamps):
            carrier[joint.child] = owner, placement
            members[owner].append(joint.child)
        else:
            carrier[joint.child] = joint.child, IDENTITY
            members[joint.child] = [joint.child]
            if owner != joint.parent:
                at = frozen_pose(placement, f"{where}: joint {joint.name!r}", "placement", most=MAX_NUMBER)
                joint = changed(joint, parent=owner, placement=at)
            moving.append(joint)
    for k, joint in enumerate(moving):  # a motor is on the link into which its carrier was merged
        motor = joint.motor
        if motor is not None and motor.carrier not in carrier:
            message = f"the motor of joint {joint.name!r} is on {motor.carrier!r}, which does not exist"
            raise ModelError(message, where=where, allowed=", ".join(list(carrier)[:12]))
        if motor is not None and carrier[motor.carrier][0] != motor.carrier:
            owner, pose = carrier[motor.carrier]
            moving[k] = replace(joint, motor=replace(motor, carrier=owner, axis=pose[:3, :3] @ motor.axis))
    by_child = {joint.child: joint.name for joint in joints}
    named = [Frame(link, *carrier[link], by_child[link]) for link in links if carrier[link][0] != link]
    for frame in frames:
        if frame.link not in carrier:
            raise ModelError(f"frame {frame.name!r} is on the missing link {frame.link!r}", where=where)
        owner, pose = carrier[frame.link]
        at = pose @ frame.pose if owner != frame.link else frame.pose
        named.append(Frame(frame.name, owner, at, frame.joint))
    names = Counter([link for link in links if carrier[link][0] == link] + [frame.name for frame in named])
    double = next((frame.name for frame in named if names[frame.name] > 1), None)
    if double is not None:
        raise ModelError(f"frame {double!r} has the name of another link or frame", value=double, where=where)
    merged = {owner: _merge_group(owner, [links[m] for m in group], carrier) for owner, group in members.items()}
    title, bodies = re.sub(r"\s+", " ", name).strip() or "robot", tuple(merged[joint.child] for joint in moving)
    # Mechanism checks and converts gravity.
    return Mechanism(title, merged[root], bodies, tuple(moving), tuple(named), gravity)  # type: ignore[arg-type]


def _merge_group(owner: str, group: list[Link], carrier: dict[str, tuple[str, np.ndarray]]) -> Link:
    if len(group) == 1:
        return group[0]
    bodies = [link for link in group if link.mass or link.inertia.any()]
    mass, com, inertia = composite(*(move_inertia(carrier[link.name][1], *link.body) for link in bodies))
    visuals, shapes = list[Visual](), list[Shape]()
    for link in group:
        pose = carrier[link.name][1]
        if link.name == owner:
            visuals += link.visuals
            shapes += link.shapes
        else:
            visuals += (changed(item, pose=_moved(pose, item, link)) for item in link.visuals)
            # Shapes keep the name of their link, which is now a frame.
            for item in link.shapes:
                shapes.append(changed(item, pose=_moved(pose, item, link), link=item.link or link.name))
    # All links were checked, and a sum of physical inertias is physical.
    strict = all(link.strict for link in group)
    return Link(owner, mass, com, inertia, tuple(visuals), strict, group[0].source, tuple(shapes))


def _moved(pose: np.ndarray, item: Visual | Shape, link: Link) -> np.ndarray:
    """Return the pose of a visual or shape in the axes of the link into which its own link is merged."""
    return frozen_pose(pose @ item.pose, f"link {link.name!r}", "pose", most=MAX_NUMBER)


def _warn_if_singular(mechanism: Mechanism, where: str) -> None:
    """Warn if moving tip links without inertia make the mass matrix and forward dynamics singular."""
    moving = list(zip(mechanism.links, mechanism.joints, strict=True))
    if len(moving) > 1 and all(_is_massless(*item) for item in moving):
        effect = "inertial and gravity forces are 0 and forward dynamics is singular"
        fix = "give the links mass (<inertial> in URDF), or use the robot for kinematics only"
        warn(f"no moving link has mass or inertia, so {effect}", where=where, fix=fix)
        return
    carriers = {joint.parent for joint in mechanism.joints}
    for link, joint in moving:
        if _is_massless(link, joint) and link.name not in carriers and not joint.follows:
            message = f"link {link.name!r} moves, carries nothing and has no inertia"
            effect = "the mass matrix is singular, and so is forward dynamics"
            fix = f"give it a mass, or fix the joint: robot.fix({joint.name!r}, 0)"
            warn(f"{message}: {effect}", where=where, fix=fix)


def _is_massless(link: Link, joint: Joint) -> bool:
    """Return whether a link has no inertia, and no rigidly geared motor adds inertia to its joint."""
    driven = joint.motor is not None and not joint.is_elastic
    return not (link.mass or link.inertia.any() or np.any(joint.rotor_inertia) or driven or joint.flexible)
