"""Strengths of a person as inputs: factors or torques of single joints, of a side, or of the whole body."""

from collections.abc import Mapping
from dataclasses import replace

from torsor.base.checks import instance_of, number, positive, table
from torsor.base.errors import ModelError, describe, listing
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.robot.robot import Robot

ALL = "all"
MOST = 5.0  # largest factor: more is a mistake in the units


def coordinates_of(name: str, names: tuple[str, ...], where: str) -> list[str]:
    """Return the coordinates that a word stands for: "all", a side, a coordinate, or one of both sides.

    Example:
        >>> names = torsor.library.human().coordinate_names
        >>> coordinates_of("knee_flexion", names, "person"), len(coordinates_of("left", names, "person"))
        (['right_knee_flexion', 'left_knee_flexion'], 16)
    """
    joints = names[len(GLOBAL) :]
    if names[: len(GLOBAL)] != GLOBAL:
        allowed = "a body with the coordinates of torsor.library.human()"
        raise ModelError(describe(f"coordinates {listing(names)}", where=where, allowed=allowed))
    sides = tuple(f"{side}_{name}" for side in SIDES)
    found = [each for each in joints if name in (ALL, each) or each.startswith(f"{name}_") * (name in SIDES)]
    found = found or [each for each in joints if each in sides]
    if not found:
        known = [*dict.fromkeys(each.removeprefix("right_").removeprefix("left_") for each in joints)]
        allowed = f"{ALL}, {', '.join(SIDES)}, or {listing(known, like=name)}, for one side with right_ or left_ before"
        raise ModelError(describe(f"no joint {name!r}", where=where, allowed=allowed))
    return found


def strength_factors(given: Mapping[str, float], names: tuple[str, ...], where: str) -> dict[str, float]:
    """Return the factor of each coordinate; where several words name one, their factors are multiplied.

    Example:
        >>> names = torsor.library.human().coordinate_names
        >>> found = strength_factors({"left": 0.5, "knee_flexion": 0.8}, names, "person")
        >>> found["left_knee_flexion"], found["right_knee_flexion"], found["left_elbow_flexion"]
        (0.4, 0.8, 0.5)
    """
    found: dict[str, float] = {}
    for word, value in table(given, where, "strength").items():
        factor = number(value, where, f"strength of {word}", above=0.0, most=MOST)
        for name in coordinates_of(word, names, where):
            found[name] = found.get(name, 1.0) * factor
    return found


def largest_torques(given: Mapping[str, float] | None, names: tuple[str, ...], where: str) -> dict[str, float]:
    """Return the torque (N m) of each coordinate that is given one.

    Example:
        >>> largest_torques({"neck_axial": 15}, torsor.library.human().coordinate_names, "person")
        {'neck_axial': 15.0}
    """
    found: dict[str, float] = {}
    for word, value in table(given, where, "largest_torque").items():
        torque = positive(value, where, f"largest torque of {word} (N m)")
        for name in coordinates_of(word, names, where):
            if name in found:
                raise ModelError(describe(f"two largest torques of {name}", where=where, allowed="one"))
            found[name] = torque
    return found


def with_strength(
    body: Robot,
    factors: Mapping[str, float] | None = None,
    torques: Mapping[str, float] | None = None,
    where: str = "strength",
) -> Robot:
    """Return a body (``library.human``) with other strengths, its ``effort_limit``.

    ``factors`` are {joint: factor of the own strength}, ``torques`` {joint: N m}, which replace it. A joint is a
    coordinate ("left_knee_flexion"), one of both sides ("knee_flexion"), or, for factors, "left", "right" or "all".

    Example:
        >>> body = with_strength(torsor.library.human(), {"left": 0.5}, {"elbow_flexion": 60.0})
        >>> names = ("right_knee_flexion", "left_knee_flexion", "left_elbow_flexion")
        >>> [float(body.effort_limit[body.coordinate_names.index(name)]) for name in names]
        [200.0, 100.0, 60.0]
    """
    instance_of(body, Robot, where, "body", allowed="a torsor.library.human()")
    own = dict(zip(body.coordinate_names, body.effort_limit.tolist(), strict=True))
    limits = dict(own)
    for name, factor in strength_factors(factors or {}, body.coordinate_names, where).items():
        limits[name] *= factor
    limits |= largest_torques(torques, body.coordinate_names, where)
    joints = [
        joint if limits[joint.name] == own[joint.name] else replace(joint, effort_limit=limits[joint.name])
        for joint in body.joints
    ]
    return replace(body, joints=tuple(joints))
