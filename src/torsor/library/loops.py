"""Mechanisms with closed loops: planar linkages, a palletising arm, and legs with rod-driven knees."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.library.shapes import (
    BAR_COLOURS,
    ball,
    bar,
    block,
    check_positive,
    cylinder,
    disc,
    plate,
    tube,
    with_visuals,
)
from torsor.mechanism import Frame, Joint, Link, Visual
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, make_pose

DOWN = (0.0, -9.81, 0.0)  # planar linkages have y up
# A frame whose z axis is the y axis of its link, for a cut hinge of a mechanism in the x-z plane.
ACROSS = from_rpy([-math.pi / 2, 0.0, 0.0])


def _masses(where: str, masses: Sequence[float], *names: str) -> list[float]:
    values = list(masses)
    if len(values) != len(names):
        problem = f"has {len(values)} values"
        raise ModelError(problem, argument="masses", where=where, allowed=f"the masses of {', '.join(names)}")
    check_positive(where, **{f"mass of the {name}": value for name, value in zip(names, values, strict=True)})
    return values


def _plates(lengths: Mapping[str, float], width: float, levels: Sequence[int] = (0, 1, 2)) -> dict[str, list[Visual]]:
    """Return flat bars along x, one above the other, by link name."""
    bars = zip(lengths.items(), BAR_COLOURS, levels, strict=False)
    return {name: plate((0, 0, 0), (x, 0, 0), width, colour, level=level) for (name, x), colour, level in bars}


def _pedestals(width: float, *places: float) -> list[Visual]:
    """Return the ground bearings of a linkage, at positions along x."""
    discs = [disc((x, 0, -0.45 * width), 2, 0.7 * width, 0.5 * width, "dark") for x in places]
    sizes = 1.4 * width, 1.8 * width, 0.5 * width
    return discs + [block((x, -0.9 * width, -0.45 * width), sizes, "grey") for x in places]


def four_bar(
    ground: float = 1.0,
    crank: float = 0.4,
    coupler: float = 0.9,
    rocker: float = 0.8,
    masses: Sequence[float] = (1.0, 2.0, 1.5),
    gravity: ArrayLike = DOWN,
) -> Robot:
    """Return a four-bar linkage of round bars in the x-y plane, driven at the crank.

    Lengths are in m, ``masses`` (crank, coupler, rocker) in kg, ``gravity`` (3,) in m/s^2 (by default along -y). Crank
    and rocker rotate about z at the origin and at (ground, 0, 0). The coupler is hinged to the crank, and a cut joint
    pins it to the rocker. The crank makes full turns if it or the ground is the shortest bar, and the sum of the
    shortest and longest bars does not exceed the sum of the other two (Grashof).

    Example:
        >>> robot = four_bar()
        >>> robot.active, robot.closed.mobility().dof
        (('crank_joint',), 1)
        >>> robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5]).round(3).tolist()
        [0.5, 0.242, 1.553]
    """
    check_positive("four_bar", ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    m = _masses("four_bar", masses, "crank", "coupler", "rocker")
    links = [Link("ground"), bar("crank", crank, m[0]), bar("coupler", coupler, m[1]), bar("rocker", rocker, m[2])]
    joints = [
        Joint("crank_joint", "revolute", "ground", "crank"),
        Joint("coupler_joint", "revolute", "crank", "coupler", make_pose(p=[crank, 0, 0])),
        Joint("rocker_joint", "revolute", "ground", "rocker", make_pose(p=[ground, 0, 0])),
    ]
    frames = [
        Frame("coupler_end", "coupler", make_pose(p=[coupler, 0, 0])),
        Frame("rocker_end", "rocker", make_pose(p=[rocker, 0, 0])),
    ]
    lengths, width = {"crank": crank, "coupler": coupler, "rocker": rocker}, 0.08 * max(ground, crank, coupler, rocker)
    visuals = _plates(lengths, width) | {"ground": _pedestals(width, 0.0, ground)}
    robot = with_visuals(build("four_bar", links, joints, frames, gravity), visuals)
    return robot.with_loop("pin", "coupler_end", "rocker_end").with_active(["crank_joint"])


def slider_crank(
    crank: float = 0.045,
    rod: float = 0.145,
    offset: float = 0.0,
    masses: Sequence[float] = (1.8, 0.6, 0.45),
    gravity: ArrayLike = DOWN,
) -> Robot:
    """Return a slider-crank mechanism with the dimensions of an engine; lengths are in m, masses in kg.

    The ``masses`` are those of crank, rod and piston. The driven crank rotates about z at the origin. The piston slides
    along x on the line y = ``offset``. At the crank angle q, its position is
    crank cos q + sqrt(rod^2 - (crank sin q - offset)^2). For ``gravity`` see ``four_bar``.

    Example:
        >>> robot = slider_crank()
        >>> q = robot.closed.assemble([0.5], guess=[0.5, -0.6, 0.18])
        >>> bool(np.isclose(q[2], 0.045 * np.cos(0.5) + np.sqrt(0.145**2 - (0.045 * np.sin(0.5)) ** 2)))
        True
    """
    check_positive("slider_crank", crank=crank, rod=rod)
    m = _masses("slider_crank", masses, "crank", "rod", "piston")
    side = rod / 4
    links = [
        Link("ground"),
        bar("crank", crank, m[0]),
        bar("rod", rod, m[1]),
        Link("piston", m[2], np.zeros(3), cylinder(m[2], side, 2 * side, 0)),
    ]
    joints = [
        Joint("crank_joint", "revolute", "ground", "crank"),
        Joint("rod_joint", "revolute", "crank", "rod", make_pose(p=[crank, 0, 0])),
        Joint("slide", "prismatic", "ground", "piston", make_pose(p=[0, offset, 0]), np.array([1.0, 0, 0])),
    ]
    frames = [Frame("rod_end", "rod", make_pose(p=[rod, 0, 0]))]
    width = 0.15 * rod
    visuals = _plates({"crank": crank, "rod": rod}, width) | {
        "ground": _pedestals(width, 0.0),
        "piston": [
            disc((side / 2, 0, 0), 0, 0.9 * side, 1.6 * side, "silver"),
            disc((side, 0, 0), 0, 0.92 * side, 0.1 * side, "dark"),
        ],
    }
    robot = with_visuals(build("slider_crank", links, joints, frames, gravity), visuals)
    return robot.with_loop("pin", "rod_end", "piston").with_active(["crank_joint"])


# Links of the five-bar: centre of mass over length, principal moments, and mass times length squared.
_FIVE_BAR = (
    ((0.14 / 0.3, 0.01 / 0.3), (1e-3, 10e-3, 11e-3), 1.2 * 0.3**2),
    ((0.19 / 0.4, -0.02 / 0.4), (1e-3, 12e-3, 13e-3), 0.8 * 0.4**2),
    ((0.15 / 0.3, 0.015 / 0.3), (1e-3, 9e-3, 10e-3), 1.1 * 0.3**2),
    ((0.2 / 0.4, 0.01 / 0.4), (1e-3, 14e-3, 15e-3), 0.9 * 0.4**2),
)


def five_bar(
    base: float = 0.35,
    proximal: float = 0.3,
    distal: float = 0.4,
    masses: Sequence[float] = (1.2, 0.8, 1.1, 0.9),
    rotors: Sequence[float] = (0.01, 0.02),
    gravity: ArrayLike = DOWN,
) -> Robot:
    """Return a planar five-bar linkage with two drives at its base: lengths in m, masses in kg.

    Two arms, each with a proximal and a distal bar, rotate about z at the origin and at (base, 0, 0), and their ends
    are pinned together. ``masses`` are the masses of the proximal and distal bars of the first arm, then of the second.
    ``rotors`` are the rotor inertias (kg m^2). The centres of mass are not on the lines between the joints. The robot
    illustrates Khalil 2010, section 4, which gives no values. Inertias scale with lengths and masses. For ``gravity``
    see ``four_bar``.

    Example:
        >>> robot = five_bar()
        >>> robot.active, robot.closed.mobility().dof, robot.closed.mobility().redundant
        (('joint1', 'joint3'), 2, 3)
    """
    check_positive("five_bar", base=base, proximal=proximal, distal=distal)
    m = _masses("five_bar", masses, "first proximal", "first distal", "second proximal", "second distal")
    lengths, links = (proximal, distal, proximal, distal), [Link("base")]
    for k, ((x, y), moments, reference) in enumerate(_FIVE_BAR):
        inertia = np.diag(moments) * (m[k] * lengths[k] ** 2 / reference)
        links.append(Link(f"link{k + 1}", m[k], lengths[k] * np.array([x, y, 0.0]), inertia))
    table = [("base", 0.0, rotors[0]), ("link1", proximal, 0.0), ("base", base, rotors[1]), ("link3", proximal, 0.0)]
    joints = [
        Joint(f"joint{k}", "revolute", parent, f"link{k}", make_pose(p=[x, 0, 0]), rotor_inertia=rotor)
        for k, (parent, x, rotor) in enumerate(table, start=1)
    ]
    frames = [Frame(f"link{k}_tip", f"link{k}", make_pose(p=[distal, 0, 0])) for k in (2, 4)]
    width = 0.12 * max(proximal, distal)
    names = {f"link{k + 1}": length for k, length in enumerate(lengths)}
    visuals = _plates(names, width, levels=(0, 1, 0, 2)) | {"base": _pedestals(width, 0.0, base)}
    robot = with_visuals(build("five_bar", links, joints, frames, gravity), visuals)
    return robot.with_loop("tip", "link2_tip", "link4_tip").with_active(["joint1", "joint3"])


def palletiser(
    lower: float = 0.95, upper: float = 1.05, crank: float = 0.25, lever: float = 0.2, payload: float = 0.0
) -> Robot:
    """Return a palletising arm with four drives and three parallelograms that keep the wrist level.

    x points forward and z up; lengths are in m. The column rotates about z (``yaw``). The lower arm (``shoulder``) and
    a ``crank``, both on the column, rotate about y. The crank moves the upper arm through a rod along the lower arm.
    Two more rods and a plate at the elbow keep the wrist parallel to the column, so that the flange (``roll``, about z)
    always points down. ``lever`` is the distance of these rods from the adjacent joints, and ``payload`` is a mass (kg)
    on the flange. With all coordinates at zero, the lower arm is vertical, the upper arm is horizontal, and the loops
    are closed. The values are those of an arm for 110 kg. The mechanism is singular where an arm is parallel to a lever
    (68 degrees backwards for the lower arm, 58 degrees upwards for the upper arm), and where the arms are aligned.

    Example:
        >>> robot = palletiser()
        >>> robot.nv, robot.closed.mobility().dof, robot.active
        (10, 4, ('yaw', 'shoulder', 'crank', 'roll'))
        >>> q = robot.closed.assemble([0.3, 0.4, 0.2, 0.0])
        >>> bool(np.allclose(robot.pose(q, "flange")[:3, 2], [0, 0, 1]))  # still upright
        True
    """
    check_positive("palletiser", lower=lower, upper=upper, crank=crank, lever=lever)
    number(payload, "palletiser", "payload", least=0.0)
    back, ahead = math.radians(68), math.radians(58)
    behind = lever * np.array([-math.sin(back), 0.0, math.cos(back)])
    above = lever * np.array([math.cos(ahead), 0.0, math.sin(ahead)])
    shoulder, below = np.array([0.26, 0.0, 0.74]), np.array([0.15, 0.0, -0.2])
    links = [
        Link("base"),
        Link("column", 260.0, np.array([0.1, 0, 0.5]), np.diag([30.0, 32.0, 22.0])),
        bar("lower_arm", lower, 110.0, 2),
        bar("upper_arm", upper + crank, 95.0, 0, -crank),
        Link("wrist", 18.0, below / 2, np.diag([0.25, 0.35, 0.25])),
        Link("flange", 6.0 + payload, np.array([0, 0, -0.1]), np.diag([0.05, 0.05, 0.04]) * (1 + payload / 3)),
        bar("crank_arm", crank, 22.0, 0, -crank),
        bar("rod", lower, 14.0, 2),
        Link("plate", 9.0, (behind + above) / 3, np.diag([0.08, 0.15, 0.08])),
        bar("lower_rod", lower, 7.0, 2),
        bar("upper_rod", upper, 7.0, 0),
    ]

    def hinge(name: str, parent: str, child: str, at: ArrayLike, **settings: Any) -> Joint:
        return Joint(name, "revolute", parent, child, make_pose(p=at), np.array([0.0, 1.0, 0.0]), **settings)

    up, along = np.array([0.0, 0.0, lower]), np.array([upper, 0.0, 0.0])
    joints = [
        Joint("yaw", "revolute", "base", "column", rotor_inertia=60.0, effort_limit=4000.0),
        hinge("shoulder", "column", "lower_arm", shoulder, rotor_inertia=45.0, effort_limit=5000.0),
        hinge("elbow", "lower_arm", "upper_arm", up),
        hinge("pitch", "upper_arm", "wrist", along),
        Joint("roll", "revolute", "wrist", "flange", make_pose(p=below), rotor_inertia=1.5, effort_limit=400.0),
        hinge("crank", "column", "crank_arm", shoulder, rotor_inertia=45.0, effort_limit=5000.0),
        hinge("rod_joint", "crank_arm", "rod", [-crank, 0, 0]),
        hinge("plate_joint", "lower_arm", "plate", up),
        hinge("lower_rod_joint", "column", "lower_rod", shoulder + behind),
        hinge("upper_rod_joint", "plate", "upper_rod", above),
    ]
    ends: list[tuple[str, str, ArrayLike]] = [
        ("rod_end", "rod", up),
        ("upper_arm_tail", "upper_arm", [-crank, 0, 0]),
        ("lower_rod_end", "lower_rod", up),
        ("plate_behind", "plate", behind),
        ("upper_rod_end", "upper_rod", along),
        ("wrist_above", "wrist", above),
    ]
    frames = [Frame(name, link, make_pose(ACROSS, at)) for name, link, at in ends]
    rods = {
        "rod": plate((0, 0, 0), up, 0.07, "dark", 1, -5.5),
        "lower_rod": plate((0, 0, 0), up, 0.06, "dark", 1, 6.5),
        "upper_rod": plate((0, 0, 0), along, 0.06, "dark", 1, 6.5),
        "plate": [*plate((0, 0, 0), behind, 0.08, "grey", 1, 5), *plate((0, 0, 0), above, 0.08, "grey", 1, 5)],
        "crank_arm": plate((0, 0, 0), (-crank, 0, 0), 0.14, "grey", 1, -3),
    }
    visuals = rods | {
        "base": [disc((0, 0, 0.06), 2, 0.4, 0.12, "dark")],
        "column": [
            disc((0.0, 0, 0.2), 2, 0.33, 0.16, "orange"),
            block((0.14, 0, 0.45), (0.42, 0.34, 0.4), "orange"),
            disc(shoulder, 1, 0.2, 0.34, "orange"),
            tube(shoulder, shoulder + behind, 0.04, "orange"),
        ],
        "lower_arm": [
            disc((0, 0, 0), 1, 0.15, 0.4, "dark"),
            block((0, 0, lower / 2), (0.17, 0.14, lower), "orange"),
            disc(up, 1, 0.12, 0.2, "dark"),
        ],
        "upper_arm": [
            block(((upper - crank) / 2, 0, 0), (upper + crank, 0.13, 0.14), "orange"),
            disc((-crank, 0, 0), 1, 0.07, 0.26, "orange"),
            disc(along, 1, 0.09, 0.18, "dark"),
        ],
        "wrist": [
            tube((0, 0, 0), above, 0.035, "grey"),
            block(below / 2 + np.array([0.02, 0, 0.02]), (0.22, 0.14, 0.16), "orange"),
            disc(below + np.array([0, 0, 0.03]), 2, 0.08, 0.1, "orange"),
        ],
        "flange": [disc((0, 0, -0.05), 2, 0.07, 0.06, "dark"), block((0, 0, -0.1), (0.4, 0.3, 0.04), "steel")],
    }
    robot = with_visuals(build("palletiser", links, joints, frames), visuals)
    for (a, _, _), (b, _, _) in zip(ends[::2], ends[1::2], strict=True):
        robot = robot.with_loop(f"{a}_pin", a, b)
    return robot.with_active(["yaw", "shoulder", "crank", "roll"])


def closed_leg(
    legs: int = 2, thigh: float = 0.25, shank: float = 0.25, lever: float = 0.05, torso_mass: float = 8.0
) -> Robot:
    """Return a floating-base torso on one or two legs whose knees are driven from the hips by rods.

    x points forward, y to the left and z up; lengths are in m, and ``torso_mass`` is in kg. Each leg (``left``,
    ``right``; a single leg is ``leg``) has the driven coordinates ``abduct`` (about x), ``hip`` and ``drive`` (about y,
    at the hip), and the passive coordinates ``knee`` and ``rod``. The drive turns a crank of length ``lever``, which
    moves the shank through a rod along the thigh, so that the leg does not carry the knee motor. The foot is a frame.
    With all coordinates at zero, the legs hang straight down and the loops are closed. The torso has no drives.

    Example:
        >>> robot = closed_leg()
        >>> robot.nv, robot.closed.mobility().dof, len(robot.active)
        (16, 12, 6)
        >>> bool(np.abs(robot.closed.error(robot.neutral())).max() < 1e-15)
        True
    """
    check_positive("closed_leg", thigh=thigh, shank=shank, lever=lever, torso_mass=torso_mass)
    if legs not in (1, 2):
        raise ModelError(argument="legs", value=legs, where="closed_leg", allowed="1 or 2")
    box = np.array([0.2, 0.25, 0.3])
    moments = torso_mass / 12 * (box @ box - box**2)
    links = [Link("torso", torso_mass, np.array([0, 0, 0.15]), np.diag(moments))]
    joints, frames = list[Joint](), list[Frame]()
    named = {"left": 1.0, "right": -1.0} if legs == 2 else {"leg": 0.0}
    for name, side in named.items():
        links += [
            Link(f"{name}_hip", 0.9, np.zeros(3), np.diag([1e-3, 1.2e-3, 1e-3])),
            bar(f"{name}_thigh", thigh, 1.1, 2, -thigh),
            bar(f"{name}_shank", shank, 0.35, 2, -shank),
            bar(f"{name}_crank", lever, 0.08, 0, -lever),
            bar(f"{name}_rod", thigh, 0.09, 2, -thigh),
        ]
        hung = ["torso", *(link.name for link in links[-5:])]
        table: list[tuple[str, int, int, list[float], list[float], float]] = [
            ("abduct", 0, 1, [0, 0.1 * side, 0], [1.0, 0, 0], 0.01),
            ("hip", 1, 2, [0, 0, 0], [0, 1.0, 0], 0.01),
            ("knee", 2, 3, [0, 0, -thigh], [0, 1.0, 0], 0.0),
            ("drive", 1, 4, [0, 0, 0], [0, 1.0, 0], 0.01),
            ("rod", 4, 5, [-lever, 0, 0], [0, 1.0, 0], 0.0),
        ]
        for what, parent, child, at, axis, rotor in table:
            settings: Any = {"rotor_inertia": rotor, "effort_limit": 25.0} if rotor else {}
            place = make_pose(p=at), np.array(axis)
            joints.append(Joint(f"{name}_{what}", "revolute", hung[parent], hung[child], *place, **settings))
        frames += [
            Frame(f"{name}_foot", f"{name}_shank", make_pose(p=[0, 0, -shank])),
            Frame(f"{name}_rod_end", f"{name}_rod", make_pose(ACROSS, [0, 0, -thigh])),
            Frame(f"{name}_lever", f"{name}_shank", make_pose(ACROSS, [-lever, 0, 0])),
        ]
    visuals: dict[str, list[Visual]] = {
        "torso": [
            block((0, 0, 0.17), (0.18, 0.22, 0.24), "silver"),
            block((0, 0, 0.31), (0.14, 0.18, 0.05), "dark"),
            block((0.092, 0, 0.2), (0.01, 0.14, 0.08), "blue"),
            block((0, 0, 0.03), (0.1, 0.26, 0.06), "dark"),
        ]
    }
    for name in named:
        visuals |= {
            f"{name}_hip": [disc((0, 0, 0), 0, 0.045, 0.1, "dark"), disc((0, 0, 0), 1, 0.05, 0.08, "grey")],
            f"{name}_thigh": [tube((0, 0, 0), (0, 0, -thigh), 0.03, "silver", "capsule")],
            f"{name}_shank": [
                *plate((0, 0, 0), (-lever, 0, 0), 0.03, "grey", 1, 3.5),
                tube((0, 0, 0), (0, 0, 0.02 - shank), 0.019, "dark", "capsule"),
                ball((0, 0, 0.022 - shank), 0.022, "steel"),
            ],
            f"{name}_crank": plate((0, 0, 0), (-lever, 0, 0), 0.035, "orange", 1, 3.5),
            f"{name}_rod": [tube((0, 0.042, 0), (0, 0.042, -thigh), 0.008, "orange")],
        }
    robot = with_visuals(build("closed_leg", links, joints, frames, base="floating"), visuals)
    for name in named:
        robot = robot.with_loop(f"{name}_pin", f"{name}_rod_end", f"{name}_lever")
    return robot.with_active([f"{name}_{what}" for name in named for what in ("abduct", "hip", "drive")])
