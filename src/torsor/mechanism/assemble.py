"""From a heap of links and joints to a mechanism: the graph is checked and sorted, and fixed joints are merged."""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from torsor.errors import ModelError, describe, warn
from torsor.mechanism.loops import Closure
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.mechanism.values import checked_name
from torsor.spatial import composite, inverse_pose, make_pose, move_inertia

__all__ = ["assemble", "free_name", "held"]


def assemble(
    name: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    frames: Iterable[Frame] = (),
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    source: str = "",
    base: str = "fixed",
    loops: Sequence[Closure] = (),
    active: Sequence[str] = (),
) -> Mechanism:
    """Return the mechanism that these parts make.

    The root is the one link that is no joint's child; ``base="floating"`` puts a free joint named ``root`` under it.
    Links of fixed joints are merged into their parents and stay as frames. Joints keep the order in which they are
    given, except that a parent always comes before its children. ``loops`` close the tree, ``active`` names the
    coordinates that are driven.

    Example:
        >>> arm = Link("arm", mass=1.0, com=(0.5, 0, 0))
        >>> tip = Link("tip", mass=1.0)
        >>> hinge = Joint("hinge", "revolute", "ground", "arm")
        >>> weld = Joint("weld", "fixed", "arm", "tip", make_pose(p=[1, 0, 0]))
        >>> robot = assemble("pendulum", [Link("ground"), arm, tip], [weld, hinge])
        >>> robot.links[0].mass, robot.links[0].com.tolist(), [frame.name for frame in robot.frames]
        (2.0, [0.75, 0.0, 0.0], ['tip'])
    """
    where = source or checked_name(name, "robot")
    links, joints = list(links), list(joints)
    _refuse_doubles([link.name for link in links], "link", where)
    _refuse_doubles([joint.name for joint in joints], "joint", where)
    by_name = {link.name: link for link in links}
    if not by_name:
        raise ModelError(describe("no link at all", where=where, allowed="at least a base"))
    root = _root(by_name, joints, where)
    if base == "floating":
        ground = free_name("world", by_name)
        by_name = {ground: Link(ground)} | by_name
        floating = Joint(free_name("root", {joint.name for joint in joints}), "free", ground, root)
        joints, root = [floating, *joints], ground
    elif base != "fixed":
        raise ModelError(describe(f"base is {base!r}", where=where, allowed="'fixed' or 'floating'"))
    ordered = _sorted(by_name, root, joints, where)
    ordered = _follow(ordered, where)
    mechanism = replace(
        _merge(name, by_name, root, ordered, list(frames), gravity, where), loops=tuple(loops), active=tuple(active)
    )
    _warn_of_singular_leaves(mechanism, where)
    inertias = {link.name: link.inertia for link in mechanism.links}
    for joint in mechanism.joints:
        if joint.motor is not None and joint.motor.carrier in inertias:
            joint.motor.warn_if_too_heavy(joint.name, inertias[joint.motor.carrier])
    return mechanism


def _refuse_doubles(names: list[str], what: str, where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            found = f"two {what}s are named {name!r}" if name else f"a {what} has no name"
            raise ModelError(describe(found, where=where, fix="give each its own name"))
        seen.add(name)


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: the wanted one, with as many underscores behind it as it needs."""
    taken = set(taken)
    while wanted in taken:
        wanted += "_"
    return wanted


def _root(links: dict[str, Link], joints: Sequence[Joint], where: str) -> str:
    moved_by: dict[str, str] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                found = f"joint {joint.name!r} has the {role} {link!r}, which does not exist"
                fix = "add the link or correct the name"
                raise ModelError(describe(found, where=where, allowed=", ".join(list(links)[:12]), fix=fix))
        if joint.child in moved_by:
            found = f"link {joint.child!r} has two parents: joints {moved_by[joint.child]!r} and {joint.name!r}"
            fix = "cut the loop at one of them; a tree gives each link one parent joint"
            raise ModelError(describe(found, where=where, fix=fix))
        moved_by[joint.child] = joint.name
    roots = [link for link in links if link not in moved_by]
    if not roots:
        found = f"the joints {', '.join(list(moved_by.values())[:6])} form a cycle: no link is the root"
        raise ModelError(describe(found, where=where, fix="let one link be no joint's child"))
    if len(roots) > 1:
        found = f"{len(roots)} links have no parent: {', '.join(map(repr, roots[:6]))}"
        raise ModelError(describe(found, where=where, allowed="one root", fix="join the pieces with fixed joints"))
    return roots[0]


def _sorted(links: dict[str, Link], root: str, joints: Sequence[Joint], where: str) -> list[Joint]:
    """Parents before children, otherwise as listed; what cannot be reached from the root hangs on a cycle."""
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
        raise ModelError(
            describe(f"joints {', '.join(map(repr, cycle[:6]))} form a cycle", where=where, fix="cut it at one joint")
        )
    return ordered


def _follow(joints: list[Joint], where: str) -> list[Joint]:
    """Resolve joints that follow joints that follow: each names its leader, with the ratios multiplied."""
    by_name = {joint.name: joint for joint in joints}
    known: dict[str, tuple[Joint, float, float]] = {}  # of each joint: its leader, and position = ratio q + offset
    for joint in joints:
        chain: dict[str, Joint] = {}
        while joint.follows and joint.name not in known:
            if joint.coordinate not in by_name:
                fix = "name a joint of the same mechanism"
                found = f"joint {joint.name!r} follows {joint.coordinate!r}, which does not exist"
                raise ModelError(describe(found, where=where, fix=fix))
            chain[joint.name] = joint
            joint = by_name[joint.coordinate]
            if joint.name in chain:
                raise ModelError(describe(f"joints {', '.join(chain)} follow each other in a circle", where=where))
        leader, ratio, offset = known.setdefault(joint.name, (joint, 1.0, 0.0))
        if chain and leader.nv != 1 and not leader.is_fixed:
            found = f"joint {next(iter(chain))!r} follows the {leader.type} joint {leader.name!r}"
            raise ModelError(describe(found, where=where, allowed="leaders with one degree of freedom"))
        for follower in reversed(chain.values()):
            ratio, offset = follower.ratio * ratio, follower.ratio * offset + follower.offset
            known[follower.name] = leader, ratio, offset
    return [_resolved(joint, *known[joint.name]) for joint in joints]


def _resolved(joint: Joint, leader: Joint, ratio: float, offset: float) -> Joint:
    if leader is joint:
        return joint
    if leader.is_fixed:  # it stands still where its leader does
        return held(joint, np.array([offset]))
    return replace(joint, coordinate=leader.name, ratio=ratio, offset=offset)


def held(joint: Joint, position: np.ndarray) -> Joint:
    """Return the fixed joint that a joint is when it stands at its own position (nq,)."""
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
    """Give each link of a fixed joint to the moving link (or base) that carries it; it stays as a frame."""
    carrier = {root: (root, np.eye(4))}  # of each link: the link that it belongs to and its pose there
    members: dict[str, list[str]] = {root: [root]}
    moving = []
    for joint in joints:
        owner, pose = carrier[joint.parent]
        placement = pose @ joint.placement if owner != joint.parent else joint.placement
        if joint.is_fixed:
            carrier[joint.child] = owner, placement
            members[owner].append(joint.child)
        else:
            carrier[joint.child] = joint.child, np.eye(4)
            members[joint.child] = [joint.child]
            moving.append(replace(joint, parent=owner, placement=placement))
    moving = [_carried(joint, carrier, where) for joint in moving]
    named = [Frame(link, *carrier[link]) for link in links if carrier[link][0] != link]
    for frame in frames:
        if frame.link not in carrier:
            raise ModelError(describe(f"frame {frame.name!r} is on the missing link {frame.link!r}", where=where))
        owner, pose = carrier[frame.link]
        named.append(Frame(frame.name, owner, pose @ frame.pose if owner != frame.link else frame.pose))
    taken = {link for link in links if carrier[link][0] == link}
    for frame in named:
        if frame.name in taken:
            raise ModelError(describe(f"frame {frame.name!r} has the name of another link or frame", where=where))
        taken.add(frame.name)
    merged = {owner: _merged(owner, [links[m] for m in group], carrier) for owner, group in members.items()}
    return Mechanism(
        re.sub(r"\s+", " ", name).strip() or "robot",
        merged[root],
        tuple(merged[joint.child] for joint in moving),
        tuple(moving),
        tuple(named),
        gravity,  # type: ignore[arg-type]  # checked and converted there
    )


def _carried(joint: Joint, carrier: dict[str, tuple[str, np.ndarray]], where: str) -> Joint:
    """Return the joint with its motor, if it has one, on the link that its carrier belongs to."""
    if joint.motor is None:
        return joint
    if joint.motor.carrier not in carrier:
        found = f"the motor of joint {joint.name!r} is on {joint.motor.carrier!r}, which does not exist"
        raise ModelError(describe(found, where=where, allowed=", ".join(list(carrier)[:12])))
    owner, pose = carrier[joint.motor.carrier]
    if owner == joint.motor.carrier:
        return joint
    return replace(joint, motor=replace(joint.motor, carrier=owner, axis=pose[:3, :3] @ joint.motor.axis))


def _merged(owner: str, group: list[Link], carrier: dict[str, tuple[str, np.ndarray]]) -> Link:
    if len(group) == 1:
        return group[0]
    mass, com, inertia = composite(*(move_inertia(carrier[link.name][1], *link.body) for link in group))
    visuals = tuple(
        replace(visual, pose=carrier[link.name][1] @ visual.pose) for link in group for visual in link.visuals
    )
    # Each member was checked by itself; their sum is as sound as they are.
    strict = all(link.strict for link in group)
    return Link(owner, mass, com, inertia, visuals, strict, group[0].source)


def _warn_of_singular_leaves(mechanism: Mechanism, where: str) -> None:
    """Warn of moving leaves without inertia: no force is needed to accelerate them, so direct dynamics is singular."""
    carriers = {joint.parent for joint in mechanism.joints}
    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        driven = joint.motor is not None and not joint.is_elastic
        empty = link.mass == 0 and not link.inertia.any() and not np.any(joint.rotor_inertia) and not driven
        if empty and link.name not in carriers and not joint.follows:
            found = (
                f"link {link.name!r} moves, carries nothing and has no inertia: its joint needs no force, "
                "and direct dynamics is singular"
            )
            fix = f"give it a mass, or hold the joint: robot.fix({joint.name!r}, 0)"
            warn(describe(found, where=where, fix=fix))
