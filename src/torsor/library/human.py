"""A human skeleton with 55 degrees of freedom: free base, spine, neck, arms and legs (Barman 2020, chapter V).

x points to the left, y up and z forward. In the standing posture with hanging arms, all links have these axes. Joints
with several axes are successive revolute joints with massless links between them. Segments are those of de Leva (1996).
Where the skeleton has more joints, they are split so that their mass and centre of mass are preserved.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import instance_of, table
from torsor.base.errors import ModelError
from torsor.library.anthropometry import Body, Segment
from torsor.library.shapes import ball, block, disc, tube, with_visuals
from torsor.mechanism import Frame, Joint, Link, Visual
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, make_pose

SIDES = {"right": -1.0, "left": 1.0}  # signs of x
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# Distances (m) for a man of 1.741 m that do not follow from de Leva's lengths: hips and clavicles from the midline,
# length of a clavicle, height of its joint above that of the upper trunk, length of the neck; height of the ankle, heel
# behind it, ball in front of it, toe in front of the ball, and half-width of the foot.
HIP, CLAVICLE, SHOULDER, LIFT, NECK = 0.085, 0.03, 0.14, 0.0333, 0.08
ANKLE, HEEL, BALL, TOE, WIDTH = 0.08, 0.05, 0.13, 0.075, 0.045


class _Axis(NamedTuple):
    """A revolute joint: name, axis for the right side or the trunk, range (degrees) and strength (N·m)."""

    name: str
    axis: tuple[float, float, float]
    lower: float
    upper: float
    strength: float


def _minus(axis: tuple[float, float, float]) -> tuple[float, float, float]:
    return (-axis[0], -axis[1], -axis[2])


# Ranges are those of healthy adults. Strengths are for 73 kg and 1.741 m, and scale with mass times height.
_HIP = (
    _Axis("hip_flexion", _minus(X), -30, 120, 200.0),
    _Axis("hip_adduction", Z, -45, 30, 150.0),
    _Axis("hip_rotation", Y, -40, 40, 60.0),
)
_KNEE = (_Axis("knee_flexion", X, 0, 135, 200.0),)
_ANKLE = (_Axis("ankle_flexion", _minus(X), -50, 30, 160.0), _Axis("ankle_inversion", Z, -35, 35, 40.0))
_BALL = (_Axis("toe_extension", _minus(X), -10, 60, 40.0),)
_SPINE = (_Axis("flexion", X, -10, 25, 200.0), _Axis("lateral", Z, -10, 10, 150.0), _Axis("axial", Y, -10, 10, 80.0))
_CLAVICLE = (_Axis("clavicle_elevation", _minus(Z), -5, 45, 60.0), _Axis("clavicle_protraction", Y, -15, 15, 60.0))
_SHOULDER = (
    _Axis("shoulder_flexion", _minus(X), -60, 180, 100.0),
    _Axis("shoulder_adduction", Z, -120, 45, 90.0),
    _Axis("shoulder_rotation", Y, -90, 90, 50.0),
)
_ELBOW = (_Axis("elbow_flexion", _minus(X), 0, 145, 80.0), _Axis("pronation", Y, -90, 85, 20.0))
_WRIST = (_Axis("wrist_flexion", Z, -50, 60, 20.0), _Axis("wrist_deviation", X, -20, 30, 20.0))
_NECK = (
    _Axis("neck_flexion", X, -55, 60, 50.0),
    _Axis("neck_lateral", Z, -35, 35, 40.0),
    _Axis("neck_axial", Y, -70, 70, 20.0),
)
_HEAD = (_Axis("head_flexion", X, -25, 10, 30.0), _Axis("head_lateral", Z, -15, 15, 30.0))


class _Builder:
    """The links, joints and frames of a body under construction; ``strength`` scales all strengths."""

    def __init__(self, strength: float) -> None:
        self.links, self.joints, self.frames = [Link("ground")], list[Joint](), list[Frame]()
        self.strength = strength

    def chain(self, side: str, axes: tuple[_Axis, ...], parent: str, link: Link, at: ArrayLike) -> None:
        """Add a link with successive revolute joints to its parent; axes other than x are reversed on the left side."""
        before, where = parent, make_pose(p=at)
        for k, hinge in enumerate(axes):
            name = f"{side}_{hinge.name}" if side else hinge.name
            after = link if k == len(axes) - 1 else Link(f"{link.name}/{hinge.name}")
            axis = _minus(hinge.axis) if side == "left" and hinge.axis[0] == 0 else hinge.axis
            limits: dict[str, Any] = {"lower": math.radians(hinge.lower), "upper": math.radians(hinge.upper)}
            limits["effort_limit"] = hinge.strength * self.strength
            self.joints.append(Joint(name, "revolute", before, after.name, where, np.array(axis), **limits))
            self.links.append(after)
            before, where = after.name, np.eye(4)

    def mark(self, name: str, link: str, at: ArrayLike) -> None:
        self.frames.append(Frame(name, link, make_pose(p=at)))


def _link(name: str, segment: Segment, down: bool = True) -> Link:
    """Return the link of a segment that extends below (``down``) or above its joint."""
    centre = -segment.centre if down else segment.length - segment.centre
    return Link(name, segment.mass, np.array([0.0, centre, 0.0]), segment.inertia)


def _halves(names: tuple[str, str], segment: Segment, mass: float) -> tuple[Link, Link]:
    """Return a trunk segment as two links of half its length, with a total ``mass``.

    Centre of mass and moments of inertia are preserved. The centres of mass of the two links are half the segment
    length apart, or less if their moments of inertia would otherwise not be physically consistent.
    """
    fraction, apart = mass / segment.mass, segment.length / 2
    x, y, z = (fraction * moment for moment in (segment.sideways, segment.long, segment.forward))
    across = min(mass * (apart / 2) ** 2, 0.45 * (x + z - y))
    half, centre = math.sqrt(across / mass), segment.length - segment.centre
    inertia = np.diag([x - across, y, z - across]) / 2
    low, high = (np.array([0.0, at, 0.0]) for at in (centre - half, centre + half - apart))
    return Link(names[0], mass / 2, low, inertia), Link(names[1], mass / 2, high, inertia)


def human(
    height: float = 1.741,
    mass: float = 73.0,
    sex: str = "male",
    segments: Mapping[str, Link] | None = None,
    gravity: ArrayLike = (0.0, -9.81, 0.0),
    age: float | None = None,
) -> Robot:
    """Return a human with 55 degrees of freedom, for a height (m), mass (kg) and sex ("male" or "female").

    The global coordinates are ``tx, ty, tz`` (the displacement, in m, of the midpoint of the hips from the standing
    posture at the origin) and ``yaw, tilt, list`` (rad, about y, x, z). Each leg has seven coordinates, the spine
    twelve, each arm nine, and the neck and head five. They are named after their positive direction and are zero in the
    standing posture. ``lower`` and ``upper`` are the ranges of motion of healthy adults. ``effort_limit`` contains
    strengths, which are proportional to mass times height. ``segments`` replaces links by name. For an ``age`` below 18
    years, masses are distributed as in children. For strengths by age, percentiles and lengths, see
    ``torsor.human.Person``.

    Landmarks are frames: ``right_heel``, ``right_ball``, ``right_ball_medial``, ``right_toe``, ``right_toe_medial``,
    ``right_wrist``, ``right_knuckles``, the same for the left side, and ``vertex``. Segments are those of de Leva
    (1996). The division of neck and foot, the positions of hips, shoulders and foot points, and ranges and strengths
    have no single source (docs/people/constants.md).

    Example:
        >>> body = human(1.80, 80.0)
        >>> body.nv, round(body.mass, 9)
        (55, 80.0)
        >>> body.coordinate_names[6:9]
        ('right_hip_flexion', 'right_hip_adduction', 'right_hip_rotation')
    """
    body = Body(height, mass, sex, age)
    replaced = table(segments, "human", "segments")
    s, made = body.scale, _Builder(mass * height / (73.0 * 1.741))
    legs = body["thigh"].length + body["shank"].length + ANKLE * s
    lower, middle, upper, head = (body[name] for name in ("lower trunk", "middle trunk", "upper trunk", "head"))
    _whole(made, legs, _link("pelvis", lower, down=False))
    for side, sign in SIDES.items():
        _leg(made, side, sign, body, s)
    _spine(made, lower, middle, upper)
    for side, sign in SIDES.items():
        _arm(made, side, sign, body, s)
    _head(made, upper, head, s)
    names = [link.name for link in made.links]
    for name, link in replaced.items():
        if name not in names:
            allowed = ", ".join(segment for segment in names if "/" not in segment)
            raise ModelError(f"there is no segment {name!r}", value=name, where="human", allowed=allowed)
        instance_of(link, Link, "human", f"segment {name!r}", allowed="a Link of that name")
        if link.name != name:
            raise ModelError(f"segment {name!r} is {link!r}", where="human", allowed="a Link of that name")
    links = [replaced.get(link.name, link) for link in made.links]
    drawn = {link.name for link in links if link.visuals}
    visuals = {name: parts for name, parts in _visuals(body, s).items() if name not in drawn}
    return with_visuals(build("human", links, made.joints, made.frames, gravity), visuals)


# Colours of the drawn body; the trouser legs differ, so that the two sides can be told apart.
SKIN, HAIR, SHIRT = (0.87, 0.68, 0.55), (0.26, 0.18, 0.13), (0.30, 0.53, 0.56)
SHOE, SOLE = (0.20, 0.21, 0.24), (0.30, 0.31, 0.34)
TROUSERS = {"right": (0.19, 0.27, 0.42), "left": (0.28, 0.38, 0.56)}


def _visuals(body: Body, s: float) -> dict[str, tuple[Visual, ...]]:
    """Return the visuals of the links: ellipsoids as long as the segments, with a girth that increases with mass."""
    g = math.sqrt(body.mass / 73.0 / s)  # girth relative to that of a man of 73 kg and 1.741 m
    middle, upper, head = (body[name].length for name in ("middle trunk", "upper trunk", "head"))
    lower = body["lower trunk"].length

    def part(centre: tuple[float, float, float], radii: tuple[float, float, float], colour: Any) -> Visual:
        return ball(centre, (radii[0] * g, radii[1], radii[2] * g), colour)

    def trunk(low: tuple[float, float], high: tuple[float, float]) -> tuple[Visual, ...]:
        """Return three capsules side by side between two pairs (distance from the middle, height)."""
        ends = [[(side * x * g, y, 0.0) for x, y in (low, high)] for side in (-1, 0, 1)]
        return tuple(tube(start, end, 0.108 * g, SHIRT, "capsule") for start, end in ends)

    face = ball((0, 0, 0), (0.072 * s, head - 0.137 * s, 0.086 * s), SKIN)
    parts: dict[str, tuple[Visual, ...]] = {
        "pelvis": (part((0, 0.3 * lower, -0.012 * g), (0.165, 0.9 * lower, 0.115), TROUSERS["right"]),),
        "spine1": trunk((0.043, -0.05 * middle), (0.048, 0.65 * middle)),
        "spine2": (part((0, 0.25 * middle, 0), (0.145, 0.4 * middle, 0.1), SHIRT),),
        "spine3": trunk((0.048, -0.3 * middle), (0.058, 0.5 * upper)),
        "spine4": (part((0, 0.06 * upper, -0.006 * g), (0.16, 0.5 * upper, 0.104), SHIRT),),
        "neck": (tube((0, -0.03 * s, -0.012 * s), (0, 0.09 * s, 0.004 * s), 0.05 * g, SKIN, "capsule"),),
        "head": (
            replace(face, pose=make_pose(from_rpy([-0.35, 0, 0]), [0, 0.044 * s, 0.018 * s])),  # the chin is in front
            ball((0, 0.003 * s, 0.103 * s), (0.011 * s, 0.02 * s, 0.013 * s), SKIN),
            ball((0, head - 0.155 * s, -0.004 * s), (0.077 * s, 0.075 * s, 0.096 * s), HAIR),
        ),
    }  # fmt: skip
    for side, sign in SIDES.items():
        parts |= _limbs(side, sign, body, s, part)
    return parts


def _limbs(side: str, sign: float, body: Body, s: float, part: Callable[..., Visual]) -> dict[str, tuple[Visual, ...]]:
    names = ("thigh", "shank", "upper arm", "forearm", "hand")
    thigh, shank, arm, forearm, hand = (body[name].length for name in names)
    cloth, inner = TROUSERS[side], -0.008 * s * sign  # feet are wider on their inner side
    return {
        f"{side}_thigh": (
            part((0, -0.4 * thigh, 0), (0.083, 0.6 * thigh, 0.088), cloth),
            part((0, -0.78 * thigh, 0.004), (0.058, 0.38 * thigh, 0.062), cloth),
        ),
        f"{side}_shank": (
            part((0, -0.28 * shank, -0.012), (0.056, 0.42 * shank, 0.062), cloth),
            part((0, -0.6 * shank, -0.004), (0.045, 0.46 * shank, 0.047), cloth),
        ),
        f"{side}_foot": (
            disc((0, -0.068 * s, -0.014 * s), 1, 0.036 * s, 0.024 * s, SOLE),
            block((0.5 * inner, -0.068 * s, 0.058 * s), (0.076 * s, 0.024 * s, 0.144 * s), SOLE),
            ball((0, -0.043 * s, -0.012 * s), (0.036 * s, 0.036 * s, 0.04 * s), SHOE),
            ball((inner, -0.047 * s, 0.055 * s), (0.041 * s, 0.033 * s, 0.1 * s), SHOE),
            ball((0, -0.02 * s, 0.01 * s), (0.034 * s, 0.045 * s, 0.044 * s), SHOE),
        ),
        f"{side}_toes": (
            block((0.5 * inner, 0.012 * s, 0.018 * s), (0.076 * s, 0.024 * s, 0.036 * s), SOLE),
            disc((0.5 * inner, 0.012 * s, 0.036 * s), 1, 0.038 * s, 0.024 * s, SOLE),
            ball((inner, 0.026 * s, 0.012 * s), (0.041 * s, 0.024 * s, 0.062 * s), SHOE),
        ),
        f"{side}_clavicle": (
            tube((0.02 * s * sign, 0.02 * s, 0), (SHOULDER * s * sign, -0.004 * s, 0), 0.046 * s, SHIRT, "capsule"),
        ),
        f"{side}_upper_arm": (
            part((0, -0.02 * s, 0), (0.056, 0.06 * s, 0.06), SHIRT),
            part((0, -0.34 * arm, 0), (0.05, 0.4 * arm, 0.054), SHIRT),
            part((0, -0.62 * arm, 0), (0.041, 0.44 * arm, 0.043), SKIN),
        ),
        f"{side}_forearm": (
            part((0, -0.3 * forearm, 0), (0.04, 0.42 * forearm, 0.042), SKIN),
            part((0, -0.62 * forearm, 0), (0.029, 0.42 * forearm, 0.032), SKIN),
        ),
        f"{side}_hand": (
            part((0, -0.6 * hand, 0), (0.018, 0.7 * hand, 0.042), SKIN),
            part((0, -1.35 * hand, 0.005), (0.015, 0.75 * hand, 0.034), SKIN),
            part((-0.004 * sign, -0.65 * hand, 0.042), (0.013, 0.5 * hand, 0.015), SKIN),
        ),
    }


def _whole(made: _Builder, height: float, pelvis: Link) -> None:
    """Add the six global coordinates."""
    before, at = "ground", make_pose(p=[0.0, height, 0.0])
    for name, axis in {"tx": X, "ty": Y, "tz": Z, "yaw": Y, "tilt": X, "list": Z}.items():
        after = pelvis if name == "list" else Link(f"pelvis/{name}")
        kind = "prismatic" if name in ("tx", "ty", "tz") else "revolute"
        made.joints.append(Joint(name, kind, before, after.name, at, np.array(axis)))
        made.links.append(after)
        before, at = after.name, np.eye(4)


# Mass fractions of parts of de Leva's segments: a clavicle (of the upper trunk), the neck (of the head), the forefoot.
CLAVICLES, NECKS, FOREFEET = 0.730 / 11.651, 1.20 / 5.066, 0.13


def _spine(made: _Builder, lower: Segment, middle: Segment, upper: Segment) -> None:
    rest = upper.mass * (1 - 2 * CLAVICLES)
    spine = *_halves(("spine1", "spine2"), middle, middle.mass), *_halves(("spine3", "spine4"), upper, rest)
    ways = lower.length, middle.length / 2, middle.length / 2, upper.length / 2
    before = "pelvis"
    for k, (link, way) in enumerate(zip(spine, ways, strict=True), start=1):
        axes = tuple(axis._replace(name=f"spine{k}_{axis.name}") for axis in _SPINE)
        made.chain("", axes, before, link, [0.0, way, 0.0])
        before = link.name


def _head(made: _Builder, upper: Segment, head: Segment, s: float) -> None:
    neck_mass = head.mass * NECKS
    centre = head.length - head.centre  # height of the centre of head and neck above the seventh vertebra
    low, high = 0.04 * s, (head.mass * centre - neck_mass * 0.04 * s) / (head.mass - neck_mass)
    neck = Link("neck", neck_mass, np.array([0.0, low, 0.0]), neck_mass * (0.04 * s) ** 2 * np.diag([1.0, 0.94, 1.0]))
    skull_mass, above = head.mass - neck_mass, np.array([0.0, high - NECK * s, 0.0])
    moments = np.array([head.sideways, head.long, head.forward]) - np.diag(neck.inertia)
    apart = neck_mass * (centre - low) ** 2 + skull_mass * (high - centre) ** 2
    skull = Link("head", skull_mass, above, np.diag(moments - apart * np.array([1.0, 0.0, 1.0])))
    made.chain("", _NECK, "spine4", neck, [0.0, upper.length / 2, 0.0])
    made.chain("", _HEAD, "neck", skull, [0.0, NECK * s, 0.0])
    made.mark("vertex", "head", [0.0, head.length - NECK * s, 0.0])


def _leg(made: _Builder, side: str, sign: float, body: Body, s: float) -> None:
    thigh, shank, foot = (body[name] for name in ("thigh", "shank", "foot"))
    made.chain(side, _HIP, "pelvis", _link(f"{side}_thigh", thigh), [sign * HIP * s, 0.0, 0.0])
    made.chain(side, _KNEE, f"{side}_thigh", _link(f"{side}_shank", shank), [0.0, -thigh.length, 0.0])
    fore = foot.mass * FOREFEET
    rear = foot.mass - fore
    ahead = foot.centre - HEEL * s  # centre of the foot in front of the ankle; tables give it from the heel
    ball = np.array([0.0, -ANKLE * s, BALL * s])
    front = np.array([0.0, -0.005 * s, 0.03 * s])
    behind = np.array([0.0, -0.045 * s, (foot.mass * ahead - fore * (ball + front)[2]) / rear])
    heel_part = Link(f"{side}_foot", rear, behind, np.diag([0.0027, 0.0029, 0.0008]) * rear / 0.870 * s**2)
    toe_part = Link(f"{side}_toes", fore, front, np.diag([0.7, 1.3, 0.8]) * 1e-4 * fore / 0.130 * s**2)
    made.chain(side, _ANKLE, f"{side}_shank", heel_part, [0.0, -shank.length, 0.0])
    made.chain(side, _BALL, f"{side}_foot", toe_part, ball)
    made.mark(f"{side}_heel", f"{side}_foot", [0.0, -ANKLE * s, -HEEL * s])
    made.mark(f"{side}_ball", f"{side}_foot", ball)
    made.mark(f"{side}_ball_medial", f"{side}_foot", ball - np.array([sign * WIDTH * s, 0.0, 0.0]))
    made.mark(f"{side}_toe", f"{side}_toes", [0.0, 0.0, TOE * s])
    made.mark(f"{side}_toe_medial", f"{side}_toes", [-sign * WIDTH * s, 0.0, 0.0])


def _arm(made: _Builder, side: str, sign: float, body: Body, s: float) -> None:
    upper, arm, forearm, hand = (body[name] for name in ("upper trunk", "upper arm", "forearm", "hand"))
    clavicle = upper.mass * CLAVICLES
    along = clavicle * (SHOULDER * s) ** 2 / 12
    middle = np.array([sign * SHOULDER * s / 2, 0.0, 0.0])
    bone = Link(f"{side}_clavicle", clavicle, middle, np.diag([along / 5, along, along]))
    made.chain(side, _CLAVICLE, "spine4", bone, [sign * CLAVICLE * s, LIFT * s, 0.0])
    made.chain(side, _SHOULDER, f"{side}_clavicle", _link(f"{side}_upper_arm", arm), [sign * SHOULDER * s, 0.0, 0.0])
    made.chain(side, _ELBOW, f"{side}_upper_arm", _link(f"{side}_forearm", forearm), [0.0, -arm.length, 0.0])
    made.chain(side, _WRIST, f"{side}_forearm", _link(f"{side}_hand", hand), [0.0, -forearm.length, 0.0])
    made.mark(f"{side}_wrist", f"{side}_forearm", [0.0, -forearm.length, 0.0])
    made.mark(f"{side}_knuckles", f"{side}_hand", [0.0, -hand.length, 0.0])
