"""Coordinate names of the human body: sides, mirror image, and joints that are frozen by default."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, number, table
from torsor.robot.robot import Robot

GLOBAL = ("tx", "ty", "tz", "yaw", "tilt", "list")  # coordinates of the whole body, which come first
SIDES = ("right", "left")
# Coordinates of a leg and an arm, with their names in OpenSim's gait models.
OSIM_NAMES = {
    **{name: name for name in ("hip_flexion", "hip_adduction", "hip_rotation")},
    "knee_flexion": "knee_angle",
    "ankle_flexion": "ankle_angle",
    "ankle_inversion": "subtalar_angle",
    "shoulder_flexion": "arm_flex",
    "elbow_flexion": "elbow_flex",
}
# The axes of each leg joint, whose powers are summed to the joint power.
JOINT_AXES = {
    "hip": ("hip_flexion", "hip_adduction", "hip_rotation"),
    "knee": ("knee_flexion",),
    "ankle": ("ankle_flexion", "ankle_inversion"),
}
FROZEN = ("clavicle", "wrist", "neck", "head", "spine4", "spine3_axial")  # substrings of coordinate names

# Signs of a force and of a moment after reflection in the plane x = 0.
FLIP, TURN = np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, -1.0])


def other_side(name: str) -> str:
    """Return the name of the corresponding coordinate or link on the other side; trunk names are unchanged."""
    side, separator, rest = name.partition("_")
    return f"{SIDES[1 - SIDES.index(side)]}{separator}{rest}" if side in SIDES else name


def is_odd(name: str) -> bool:
    """Return whether a coordinate changes sign in the mirror image."""
    return name in ("tx", "yaw", "list") or name.endswith(("lateral", "axial"))


@lru_cache(maxsize=8)
def mirror(names: tuple[str, ...]) -> tuple[list[int], Array]:
    """Return the order and signs of mirrored coordinates, which are q[order] * signs."""
    return [names.index(other_side(name)) for name in names], np.where([is_odd(name) for name in names], -1.0, 1.0)


def frozen_joints(body: Robot, frozen: Mapping[str, float] | None, where: str) -> dict[str, float]:
    """Return the frozen joints as {coordinate: angle (rad)}: the default ones at 0, and those set by the user."""
    angles = table(frozen, where, "frozen")
    indices_of(list(angles), body.coordinate_names[len(GLOBAL) :], f"{where}: frozen")
    for k, name in enumerate(body.coordinate_names):
        if name in angles:
            low, high = float(body.lower[k]), float(body.upper[k])
            angles[name] = number(angles[name], where, f"frozen {name}", least=low, most=high)
    usual = {name for part in FROZEN for name in body.coordinate_names if part in name}
    return {name: 0.0 for name in body.coordinate_names if name in usual} | angles
