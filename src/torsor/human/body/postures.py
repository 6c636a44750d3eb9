"""Flat-footed postures, symmetric about the sagittal plane: standing, sitting and crouching.

Tasks use them as start or end postures, and as initial guesses. A posture is {coordinate: angle (rad) or position (m)}.
``landmark`` computes positions from joint placements without compilation.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.robot.robot import Robot

HANGING_ARMS = {"shoulder_adduction": -0.15, "elbow_flexion": 0.35}  # arm angles (rad)
HIP_HEIGHT_ON_SEAT = 0.085  # height of the hips above the seat (m)
SHANK_INCLINATION = 18.0  # forward inclination of the shanks while sitting (degrees)
MAX_HIP_FLEXION, MAX_SPINE_FLEXION = 115.0, 24.0  # largest flexion of the hips, and of each spine joint (degrees)


def landmark(body: Robot, place: str) -> Array:
    """Return the position (3,) (m) of a link or frame in base axes, with all coordinates at 0."""
    instance_of(body, Robot, "body", "it", allowed="a torsor.library.human()")
    link, within = body.place(place)
    at = within[:3, 3]
    while link >= 0:
        joint = body.joints[link]
        if joint.offset:  # at 0, such a joint is not at its placement
            return np.asarray(body.pose(body.neutral(), place)[:3, 3])
        at = joint.placement[:3, :3] @ at + joint.placement[:3, 3]
        link = body.parents[link]
    return at


def both(angles: Mapping[str, float]) -> dict[str, float]:
    """Return angles for both sides."""
    return {f"{side}_{name}": angle for side in SIDES for name, angle in angles.items()}


def hips_apart(body: Robot) -> float:
    """Return the distance between the hips (m)."""
    return float(landmark(body, "left_thigh")[0] - landmark(body, "right_thigh")[0])


def standing(body: Robot) -> dict[str, float]:
    """Return the standing posture: upright, with hanging arms and the heels at z = 0."""
    return both(HANGING_ARMS) | {"tz": _heights(body).ahead}


def sitting(body: Robot, seat: float, where: str) -> dict[str, float]:
    """Return the upright posture on a seat with the height ``seat`` (m); raise ModelError if it is too low or high."""
    size, lean = _heights(body), math.radians(SHANK_INCLINATION)
    knees = size.ankle + size.shank * math.cos(lean)
    least, most = knees - 0.5 * size.thigh - HIP_HEIGHT_ON_SEAT, knees + 0.9 * size.thigh - HIP_HEIGHT_ON_SEAT
    if not least <= seat <= most:
        allowed = f"from {least:.2f} to {most:.2f} m for a body of this size"
        raise ModelError(argument="seat", value=seat, where=where, allowed=allowed)
    return _legs(size, seat + HIP_HEIGHT_ON_SEAT, lean, 0.0)


def crouching(body: Robot, height: float, ahead: float, lean: float) -> dict[str, float]:
    """Return the posture with legs and back bent just enough for the hands to reach ``height`` (m).

    ``ahead`` (m) is the distance of the hands in front of the heels. The chest leans forward by ``lean`` (rad) if the
    hips are at half their standing height, and by less if they are higher. If the point is out of reach, the arms point
    towards it.
    """
    size = _heights(body)
    shoulder, elbow, hand = (float(landmark(body, f"right_{at}")[1]) for at in ("upper_arm", "forearm", "knuckles"))
    trunk, upper, fore = shoulder - size.hip, shoulder - elbow, elbow - hand
    for down in np.linspace(0.0, 0.6, 25).tolist():  # lowering of the hips, as a fraction of their height
        bent = lean * min(2 * down, 1.0)
        legs = _legs(size, (1 - down) * size.hip, math.radians(25) * min(3 * down, 1.0), bent)
        y = height - (1 - down) * size.hip - trunk * math.cos(bent)
        z = ahead - legs["tz"] - trunk * math.sin(bent)
        way = math.hypot(y, z)
        if way < 0.98 * (upper + fore):
            break
    inner = (upper**2 + fore**2 - way**2) / (2 * upper * fore)
    turned = math.pi - math.acos(min(max(inner, -1.0), 1.0))
    off = math.atan2(fore * math.sin(turned), upper + fore * math.cos(turned))
    arms = {"shoulder_flexion": math.atan2(z, -y) - off + bent, "elbow_flexion": turned}
    return legs | both(arms)


class _Sizes(NamedTuple):
    """Heights of hips and ankles, lengths of thigh and shank, and distance of the ankles in front of the heels (m)."""

    hip: float
    ankle: float
    thigh: float
    shank: float
    ahead: float


def _heights(body: Robot) -> _Sizes:
    hip, knee, foot, heel = (landmark(body, f"right_{name}") for name in ("thigh", "shank", "foot", "heel"))
    values = hip[1] - heel[1], foot[1] - heel[1], hip[1] - knee[1], knee[1] - foot[1], foot[2] - heel[2]
    return _Sizes(*(float(value) for value in values))


def _legs(size: _Sizes, hips: float, lean: float, bent: float) -> dict[str, float]:
    """Return angles of legs, pelvis and spine for a hip height (m) and inclinations of chest and shanks (rad)."""
    knees = size.ankle + size.shank * math.cos(lean)
    up = math.asin(min(max((knees - hips) / size.thigh, -1.0), 1.0))  # elevation of the thigh above the horizontal
    tilt = min(bent, max(math.radians(MAX_HIP_FLEXION) - math.pi / 2 - up, 0.0))
    spine = min((bent - tilt) / 3, math.radians(MAX_SPINE_FLEXION))
    angles = {"hip_flexion": math.pi / 2 + up + tilt, "knee_flexion": math.pi / 2 + up + lean, "ankle_flexion": lean}
    back = size.thigh * math.cos(up) - size.shank * math.sin(lean) - size.ahead
    globals_ = {"ty": hips - size.hip, "tz": -back, "tilt": tilt}
    return both(angles) | globals_ | {f"spine{k}_flexion": spine for k in (1, 2, 3)}
