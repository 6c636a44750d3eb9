"""Edits that add flexible links; each function returns a new robot."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, instance_of, name_of, number, positive, positive_vector, whole_number
from torsor.base.errors import ModelError, listing
from torsor.mechanism.edit import rebuilt, with_payload
from torsor.mechanism.flexible import Modes, RodSection
from torsor.mechanism.flexible_links.beams import mode_counts
from torsor.mechanism.flexible_links.modes import ALLOWED_MODES
from torsor.mechanism.mechanism import Mechanism, carrier
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.spatial import make_pose, move_inertia

# Rods: slender bodies with large deflections and strain modes, as in eel-like and continuum robots.

M = TypeVar("M", bound=Mechanism)
MAX_SECTIONS = 100


def with_rod(
    robot: M,
    at: str,
    length: float,
    mass: float,
    bending: ArrayLike,
    modes: Any = (3, 0),
    torsion: float | None = None,
    stretch: float | None = None,
    radius: float = 0.0,
    damping: float = 0.0,
    curvature: ArrayLike = (0.0, 0.0, 0.0),
    sections: int = 10,
    name: str = "rod",
) -> M:
    """Return a copy with a uniform rod that is clamped at a link or frame, along its x axis.

    - ``length`` in m, ``mass`` in kg.
    - ``bending``: the stiffness EI (N m^2), one number, or two for bending along y (about z) and along z (about y).
    - ``torsion``: the stiffness GJ (N m^2). ``stretch``: the stiffness EA (N).
    - ``modes``: the number of polynomials per strain (bending along y, along z, torsion, stretch); the last numbers may
      be omitted.
    - ``radius`` (m): radius of a round rod, which determines the inertia of its sections.
    - ``damping`` (s): ratio of damping to stiffness.
    - ``curvature`` (3,), in rad/m: curvature of the rod at rest, about x, y, z.
    - ``sections``: the number of small bodies at the points of a Gauss quadrature, which are the links ``name/1`` to
      ``name/N``; the link ``name/tip`` is at the end.

    Coordinates are angles (rad), except that stretch is in m: ``name/y1`` is the angle by which the whole rod bends
    about z, ``name/y2`` is the amplitude of a curvature that increases linearly from one end to the other, and so on.
    The strain is the sum of P_j(s) q_j / length with Legendre polynomials P_j.

    Example:
        >>> import torsor
        >>> base = torsor.build("rod", [torsor.Link("ground")], [])
        >>> robot = with_rod(base, "ground", length=1.0, mass=0.1, bending=1.0, modes=(1, 0), sections=3)
        >>> tip = robot.pose([np.pi / 2], "rod/tip")[:3, 3]  # a quarter of a circle
        >>> (np.pi * tip).round(9).tolist()
        [2.0, 2.0, 0.0]
    """
    instance_of(robot, Mechanism, "with_rod", "robot")
    where = f"{robot.name}: rod {name_of(name, 'rod', robot.name)!r}"
    length, mass = positive(length, where, "length"), positive(mass, where, "mass")
    allowed = "one to four numbers: bending along y, along z, torsion, stretch"
    counts = tuple(mode_counts(modes, 1, (1, 2, 3, 4), allowed, where))
    EI = positive_vector(bending, 2, where, "bending").tolist()
    optional = {"torsion": torsion, "stretch": stretch}
    for (what, value), count in zip(optional.items(), counts[2:], strict=True):
        if count and value is None:
            raise ModelError(f"of {what} needs a stiffness", argument="modes", where=where, fix=f"pass {what}=")
    rest = [0.0 if value is None else positive(value, where, what) for what, value in optional.items()]
    N = whole_number(sections, where, "sections", most=MAX_SECTIONS)
    if max(counts) > N:
        message, fix = f"there are {max(counts)} modes at {N} sections", "pass more sections="
        raise ModelError(message, where=where, allowed="no more modes of a strain than sections", fix=fix)
    place = robot.place(at)
    names = [*(f"{name}/{k + 1}" for k in range(N)), f"{name}/tip"]
    taken = {*robot.places, *robot.joint_names} & {name, *names}
    if taken:
        raise ModelError(f"the robot already has {sorted(taken)[0]!r}", where=where, fix="pass another `name=`")
    kappa = frozen_array(curvature, (3,), where, "curvature")
    strain: dict[str, Any] = {"length": length, "counts": counts, "rest": np.array([*kappa, 1.0, 0.0, 0.0])}
    strain |= {"stiffness": np.array([*EI, *rest]), "damping": number(damping, where, "damping", least=0)}
    r = number(radius, where, "radius", least=0)
    nodes, weights = leggauss(N)
    s: Array = np.concatenate([[0.0], (nodes + 1) / 2 * length, [length]])
    links, joints = [robot.base, *robot.links], list(robot.joints)
    parent, pose = carrier(robot, place).name, place.pose
    for k, link in enumerate(names):
        m = mass * float(weights[k]) / 2 if k < N else 0.0
        links.append(Link(link, m, inertia=m * r**2 * np.diag([0.5, 0.25, 0.25])))
        part = RodSection(float(s[k]), float(s[k + 1]), **strain)
        section_name = name if k == 0 else f"{name}/{k + 1}"
        joints.append(Joint(section_name, "flexible", parent, link, pose, coordinate=name, flexible=part))
        parent, pose = link, make_pose()
    return rebuilt(robot, links, joints, list(robot.frames))


# Distance from the tip, relative to the length of the link, within which joints and frames are at the tip.
AT_TIP = 1e-6


def with_beam(robot: M, at: str, modes: Modes, name: str = "beam") -> M:
    """Return a copy with a beam that is clamped at a link or frame, along its x axis.

    The coordinates of the joint ``name`` are the modes. It moves the new link ``name/end``, which is at the end of the
    beam with the axes of its root. This link carries ``name/tip``, which rotates with the end section. Other links,
    frames and loads can be attached to the tip. The mass of the beam is added to the link to which it is clamped. A
    beam on the base gets its own link, ``name``. Modes have no drive, so their effort limit is 0.

    Example:
        >>> import torsor
        >>> modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=0.5, bending=20.0, modes=(2, 0))
        >>> robot = torsor.mechanism.flexible_links.with_beam(torsor.library.planar_chain(1), "link1", modes)
        >>> robot.coordinate_names, robot.links[-1].name
        (('joint1', 'beam/1', 'beam/2'), 'beam/tip')
    """
    instance_of(robot, Mechanism, "with_beam", "robot")
    instance_of(modes, Modes, robot.name, "modes", allowed=ALLOWED_MODES)
    name_of(name, "beam", robot.name)
    place, end, tip = robot.place(at), f"{name}/end", f"{name}/tip"
    taken = {*robot.places, *robot.joint_names} & {name, end, tip, f"{name}/clamp", f"{name}/turn"}
    if taken:
        raise ModelError(f"the robot already has {sorted(taken)[0]!r}", where=robot.name, fix="pass another `name=`")
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
    """Return a copy in which a moving link is flexible; the modes replace its mass and inertia.

    The link is clamped at its own frame and extends along its x axis. ``carried`` names the joints and frames that move
    with its tip; by default, they are those at the tip. The coordinates of the joint ``link/modes`` are the modes.

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
        fix = "use torsor.mechanism.flexible_links.with_beam to clamp a beam to the base or to a frame"
        raise ModelError(f"{link!r} is not a moving link", value=link, where=robot.name, fix=fix)
    if f"{link}/modes" in robot.joint_names:
        raise ModelError(f"{link!r} is already flexible", argument="link", value=link, where=robot.name)
    bare: dict[str, Any] = {"mass": 0.0, "com": np.zeros(3), "inertia": np.zeros((3, 3)), "strict": True, "source": ""}
    links = tuple(replace(item, **bare) if item.name == link else item for item in robot.links)
    bent = with_beam(replace(robot, links=links), link, modes, f"{link}/modes")
    tip = make_pose(p=modes.positions[-1])
    near = AT_TIP * float(np.linalg.norm(modes.positions[-1]))
    there = [(joint.name, joint.placement) for joint in robot.joints if joint.parent == link]
    there += [(frame.name, frame.pose) for frame in robot.frames if frame.link == link]
    names = {name for name, pose in there if np.linalg.norm(pose[:3, 3] - tip[:3, 3]) <= near}
    if carried is not None:
        if isinstance(carried, str):
            raise ModelError(argument="carried", value=carried, where=robot.name, allowed="a list of names")
        names = set(carried)
        missing = sorted(names - {name for name, _ in there})
        if missing:
            message = f"the tip carries {missing[0]!r}, which is not a joint or frame of link {link!r}"
            raise ModelError(message, where=robot.name, allowed=listing(repr(name) for name, _ in there))

    def moved(part: Any, pose: str, on: str) -> Any:
        if getattr(part, on) != link or part.name not in names:
            return part
        return replace(part, **{on: f"{link}/modes/tip", pose: make_pose(p=-tip[:3, 3]) @ getattr(part, pose)})

    joints: list[Joint] = [moved(joint, "placement", "parent") for joint in bent.joints]
    frames: list[Frame] = [moved(frame, "pose", "link") for frame in bent.frames]
    return rebuilt(bent, [bent.base, *bent.links], joints, frames)
