"""Inertial and friction parameters of a parallel robot, which are those of the robot with loops from ``as_robot``."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from torsor.base.arrays import Array
from torsor.robot.parallel.kernels import Assembled
from torsor.robot.robot import Robot

P = TypeVar("P", bound=Assembled)


def start_of(robot: Assembled) -> Array:
    """Return the home positions (nq,) of the robot with loops: the platform pose, then the leg positions."""
    return np.concatenate([robot.home, robot.leg_home])


def spinning(robot: Assembled) -> str:
    """Return the name of the first leg that can spin about its line, with the platform fixed, or ""."""
    return next((limb.name for limb in robot._parts.limbs if len(limb.idle)), "")


def carriers(robot: Assembled) -> tuple[str, ...]:
    """Return parameter patterns of auxiliary links that only guide the platform and are not bodies."""
    if isinstance(robot.platform, Robot):
        return ()
    return tuple(f"{link.name}.*" for link in robot.carriage.links[:-1])


def with_parameters(robot: P, whole: Robot) -> P:
    """Return a parallel robot with the links and joints of ``whole``, its robot with loops after a parameter change."""
    platform = _of_part(robot.carriage, whole, "")
    legs = [replace(leg, robot=_of_part(leg.robot, whole, f"{leg.name}/")) for leg in robot.legs]
    replaced = platform if isinstance(robot.platform, Robot) else platform.links[-1]
    return replace(robot, platform=replaced, legs=tuple(legs))


def _of_part(part: Robot, whole: Robot, prefix: str) -> Robot:
    """Return a leg or the platform with the parameters from ``whole``, where its names have a prefix."""
    bodies, joints = {link.name: link for link in whole.links}, {joint.name: joint for joint in whole.joints}
    links = [replace(bodies[prefix + link.name], name=link.name) for link in part.links]
    moved = []
    for joint in part.joints:
        new = joints[prefix + joint.name]
        changed = replace(joint, rotor_inertia=new.rotor_inertia, coulomb=new.coulomb, viscous=new.viscous)
        moved.append(replace(changed, friction_model=new.friction_model))
    return replace(part, links=tuple(links), joints=tuple(moved))
