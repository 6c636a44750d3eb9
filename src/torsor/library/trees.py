"""Chains of any length, and random trees with all joint types."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.formats import MDHLink
from torsor.mechanism import Joint, Link
from torsor.robot.load import build, from_mdh
from torsor.robot.robot import Robot
from torsor.spatial import from_pseudo_inertia, from_quaternion, make_pose

MOVING = ("revolute", "continuous", "prismatic", "helical", "planar", "spherical", "free")


def planar_chain(
    n: int, length: float = 1.0, mass: float = 1.0, gravity: ArrayLike = (0.0, -9.81, 0.0), name: str = "planar_chain"
) -> Robot:
    """Return n thin rods joined end to end by revolute joints about z, each of the given length (m) and mass (kg).

    The frame of a rod is at its joint, with x along the rod. At q = 0, the chain is straight along x.

    Example:
        >>> planar_chain(3).center_of_mass([0.0, 0.0, 0.0]).round(9).tolist()
        [1.5, 0.0, 0.0]
    """
    slender = mass * length**2 / 12
    whole_number(n, name, "n", least=0)
    rod: dict[str, Any] = {"mass": mass, "com": (length / 2, 0.0, 0.0), "inertia": np.diag([0.0, slender, slender])}
    rows = [MDHLink(i - 1, d=length if i else 0.0, **rod) for i in range(n)]
    return from_mdh(rows, gravity, name)


def random_tree(
    n: int, seed: int = 0, types: tuple[str, ...] = MOVING, branching: float = 0.3, extras: bool = True
) -> Robot:
    """Return a reproducible random tree with n moving links and the given joint types.

    ``branching`` is the probability that the parent of a link is drawn at random instead of being the preceding link.
    Inertias are computed from random point masses, so they are physically consistent. ``extras`` adds friction, rotor
    inertia, mimic joints, joint axes that do not pass through link origins, springs, and rigid and elastic motors on
    any link. If n >= len(types), all types occur.

    Example:
        >>> robot = random_tree(9, seed=1)
        >>> robot.nq - robot.nv >= 2, sorted({joint.type for joint in robot.joints})[:3]
        (True, ['continuous', 'free', 'helical'])
    """
    rng = np.random.default_rng(seed)
    kinds = [types[i] if i < len(types) else str(rng.choice(types)) for i in range(n)]
    rng.shuffle(kinds)
    links: list[Link] = [Link("base")]
    joints: list[Joint] = []
    for i, kind in enumerate(kinds):
        parent = int(rng.integers(-1, i)) if rng.random() < branching else i - 1
        links.append(Link(f"link{i + 1}", *_random_inertia(rng)))
        settings = _random_extras(rng, kind, joints) if extras else {}
        pose = make_pose(from_quaternion(rng.normal(size=4)), rng.normal(size=3) * 0.4)
        axis = rng.normal(size=3)
        joints.append(Joint(f"joint{i + 1}", kind, links[parent + 1].name, links[-1].name, pose, axis, **settings))
    robot = build(f"random_tree_{n}_{seed}", links, joints, gravity=rng.normal(size=3) * 5)
    return _with_random_drives(robot, rng) if extras else robot


def _random_inertia(rng: np.random.Generator) -> tuple[float, Array, Array]:
    points = rng.normal(size=(6, 3)) * 0.15 + rng.normal(size=3) * 0.2
    masses = rng.uniform(0.1, 0.6, size=6)
    homogeneous = np.column_stack([points, np.ones(6)])
    return from_pseudo_inertia(homogeneous.T * masses @ homogeneous)


def _random_extras(rng: np.random.Generator, kind: str, before: list[Joint]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "point": rng.normal(size=3) * 0.2,
        "pitch": float(rng.normal()) * 0.1 if kind == "helical" else 0.0,
        "viscous": float(rng.uniform(0, 0.5)),
        "coulomb": float(rng.uniform(0, 0.5)),
        "smooth": float(rng.choice([0.0, 0.1])),
        "rotor_inertia": float(rng.uniform(0, 0.2)),
    }
    leaders = [joint.name for joint in before if joint.nv == 1 and not joint.follows]
    if kind in ("revolute", "prismatic", "helical") and leaders and rng.random() < 0.2:
        settings["coordinate"] = str(rng.choice(leaders))
        settings["ratio"], settings["offset"] = float(rng.normal()), float(rng.normal())
    return settings


def _with_random_drives(robot: Robot, rng: np.random.Generator) -> Robot:
    rotors = [joint.rotor_inertia for joint in robot.joints]
    robot = _with_rotors(robot, [0.0] * len(rotors))  # a motor replaces the rotor inertia, but here joints have both
    for joint in robot.joints:
        if joint.nv == 1 and rng.random() < 0.3:
            robot = robot.with_spring(joint.name, "3 + 2 * x**2", float(rng.uniform(0, 0.2)), float(rng.normal()))
        if joint.nv == 1 and not joint.follows and rng.random() < 0.6:
            # The inertia of a rotor is part of its carrier's inertia and must not exceed it.
            inertia, ratio = float(rng.uniform(1e-4, 1e-3)), float(rng.uniform(5, 20))
            carrier = str(rng.choice([robot.base.name, *robot.link_names]))
            spring = {"stiffness": float(rng.uniform(5, 20)), "damping": 0.1} if rng.random() < 0.5 else {}
            robot = robot.with_motor(joint.name, inertia, ratio, carrier, rng.normal(size=3), **spring)
            robot = robot.with_friction(f"{joint.name}/motor", coulomb=0.1, viscous=0.2)
    return _with_rotors(robot, rotors)


def _with_rotors(robot: Robot, inertias: Sequence[ArrayLike]) -> Robot:
    pairs = zip(robot.joints, inertias, strict=True)
    return replace(robot, joints=tuple(replace(joint, rotor_inertia=inertia) for joint, inertia in pairs))
