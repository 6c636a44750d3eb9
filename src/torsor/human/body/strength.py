"""Strength curves of hips, knees and ankles: the largest voluntary torque as a function of joint angle and velocity.

At the angle q (flexion and dorsiflexion positive) and the velocity v in the direction of the torque, the largest torque
is

    C1 m g h cos(C2 (q - C3)) f(v)      f(v) = r(v)                  if v >= 0 (concentric)
                                        f(v) = r(-v) (1 - C6 v)      if v < 0 (eccentric)
    r(v) = (2 C4 C5 + v (C5 - 3 C4)) / (2 C4 C5 + v (2 C5 - 4 C4))

for a body with mass m and height h, where g = 9.81 m/s^2. It follows that r(C4) = 3/4 and r(C5) = 1/2. The model is
from Anderson, Madigan and Nussbaum, "Maximum voluntary joint torque as a function of joint angle and angular velocity",
J. Biomechanics 40 (2007) 3105-3113. Its table 3 (means of 34 active people) is taken from RBDL (addons/muscle,
Millard2016TorqueMuscle). Passive torques are not included. Nobody between 26 and 54 years was measured; for these ages,
the curves of the nearer group are used. For children, the curves of young adults are used, which are proportional to
weight times height.

The model has a kink at v = 0, is negative at high velocities, and grows without bound for some eccentric velocities.
Here it is made twice differentiable: its branches are blended where |v| < BLEND_VELOCITY, with f(0) = 1. Both factors
have a smooth lower limit, and the second also has a smooth upper limit. Elsewhere, the model is unchanged, even where
it is untypical of muscles. For example, the knee extensors of young adults are weaker in eccentric than in isometric
contraction. The limits, the blend and the hip angle (between thigh and pelvis) are choices of this library.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor import library
from torsor.base.arrays import Array
from torsor.base.checks import arrays, common_shape, indices_of, instance_of, number, one_of, positive, table
from torsor.base.errors import ModelError, listing
from torsor.base.files import data_of
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.robot.robot import Robot
from torsor.spatial.vectors import is_symbolic

# Strength inputs of a person: factors or torques of single joints, of one side, or of the whole body.

ALL = "all"
MAX_FACTOR = 5.0  # larger factors indicate wrong units


def coordinates_of(name: str, names: tuple[str, ...], where: str) -> list[str]:
    """Return the coordinates for a name: "all", a side, a coordinate, or a coordinate of both sides."""
    joints = names[len(GLOBAL) :]
    if names[: len(GLOBAL)] != GLOBAL:
        allowed = "a body with the coordinates of torsor.library.human()"
        what = f"the coordinates are not those of the human body: {listing(names)}"
        raise ModelError(what, where=where, allowed=allowed)
    sides = tuple(f"{side}_{name}" for side in SIDES)
    coordinates = [joint for joint in joints if name in (ALL, joint) or joint.startswith(f"{name}_") * (name in SIDES)]
    coordinates = coordinates or [joint for joint in joints if joint in sides]
    if not coordinates:
        known = [*dict.fromkeys(joint.removeprefix("right_").removeprefix("left_") for joint in joints)]
        allowed = f"{ALL}, {', '.join(SIDES)}, or {listing(known, like=name)}, prefixed by right_ or left_ for one side"
        raise ModelError(f"there is no joint {name!r}", value=name, where=where, allowed=allowed)
    return coordinates


def strength_factors(strength: Mapping[str, float], names: tuple[str, ...], where: str) -> dict[str, float]:
    """Return the factor of each coordinate, which is the product over all names that include it."""
    factors: dict[str, float] = {}
    for word, value in table(strength, where, "strength").items():
        factor = number(value, where, f"strength of {word}", above=0.0, most=MAX_FACTOR)
        for name in coordinates_of(word, names, where):
            factors[name] = factors.get(name, 1.0) * factor
    return factors


def largest_torques(largest: Mapping[str, float] | None, names: tuple[str, ...], where: str) -> dict[str, float]:
    """Return the torque limits (N m) by coordinate."""
    torques: dict[str, float] = {}
    for word, value in table(largest, where, "largest_torque").items():
        torque = positive(value, where, f"largest torque of {word} (N m)")
        for name in coordinates_of(word, names, where):
            if name in torques:
                raise ModelError(f"{name} has two largest torques", where=where, allowed="one")
            torques[name] = torque
    return torques


def with_strength(
    body: Robot,
    factors: Mapping[str, float] | None = None,
    torques: Mapping[str, float] | None = None,
    where: str = "strength",
) -> Robot:
    """Return a body (``library.human``) with different strengths (``effort_limit``).

    ``factors`` {joint: factor} multiply strengths, and ``torques`` {joint: N m} replace them. A joint is a coordinate
    ("left_knee_flexion"), a coordinate of both sides ("knee_flexion") or, for factors, "left", "right" or "all".

    Example:
        >>> body = with_strength(torsor.library.human(), {"left": 0.5}, {"elbow_flexion": 60.0})
        >>> names = ("right_knee_flexion", "left_knee_flexion", "left_elbow_flexion")
        >>> [float(body.effort_limit[body.coordinate_names.index(name)]) for name in names]
        [200.0, 100.0, 60.0]
    """
    instance_of(body, Robot, where, "body", allowed="a torsor.library.human()")
    usual = dict(zip(body.coordinate_names, body.effort_limit.tolist(), strict=True))
    scaled = {name: usual[name] * x for name, x in strength_factors(factors or {}, tuple(usual), where).items()}
    limits = usual | scaled | largest_torques(torques, tuple(usual), where)
    joints = [
        joint if limits[joint.name] == usual[joint.name] else replace(joint, effort_limit=limits[joint.name])
        for joint in body.joints
    ]
    return replace(body, joints=tuple(joints))


# Passive torques of ligaments, tendons and inactive muscles.
#
# Hips, knees and ankles follow Riener and Edrich, "Identification of passive elastic joint moments in the lower
# extremities", J. Biomechanics 32 (1999) 539-544: with hip flexion h, knee flexion k and dorsiflexion a, in degrees,
#
#     hip     exp(1.4655 - 0.0034 k - 0.0750 h) - exp(1.3403 - 0.0226 k + 0.0305 h) + 8.072
#     knee    exp(1.800 + 0.0460 a - 0.0352 k + 0.0217 h) - exp(-3.971 + 0.0004 a + 0.0495 k - 0.0128 h)
#             - 4.820 + exp(2.220 - 0.150 k)
#     ankle   exp(-7.9763 - 0.1949 a + 0.0008 k) - exp(2.1016 + 0.0843 a - 0.0176 k) + 1.792
#
# in N m, in the direction of flexion. They were fitted to men of average size and are not scaled here. Toes have a
# linear spring of 25 N m/rad and a damper of 1.9 N m s/rad. All other joints have a damper of 0.1 N m s/rad. Ligaments
# of hip adduction and rotation, of ankle inversion, and of the sums of the spine joints about each axis exert the
# torques
#
#     K (exp(k (lower - q)) - exp(k (q - upper)))
#
# (Anderson 1999), which are small except near the ends of the range. All values are those of the simulations of Falisse
# et al., J. R. Soc. Interface 16 (2019) 20190402.

DAMPING, TOE_STIFFNESS, TOE_DAMPING = 0.1, 25.0, 1.9  # N m s/rad, N m/rad, N m s/rad
CURVED_JOINTS = ("hip_flexion", "knee_flexion", "ankle_flexion")  # joints that also have elastic torques


class Ligaments(NamedTuple):
    """Ligament torques: ``lower`` and ``upper`` angles (rad), each with a torque K (N m) and a steepness k (1/rad)."""

    lower: float
    upper: float
    torques: tuple[float, float]
    steepness: tuple[float, float]

    def torque(self, q: Any) -> Any:
        """Return the torque (N m) at angles (rad), as a number, an array or a symbol."""
        e, (K, L), (k, m) = ca.exp if is_symbolic(q) else np.exp, self.torques, self.steepness
        return K * e(k * (self.lower - q)) - L * e(m * (q - self.upper))


LIGAMENTS = {
    "hip_adduction": Ligaments(-0.5, 0.5, (0.03, 0.03), (14.94, 14.94)),
    "hip_rotation": Ligaments(-0.92, 0.92, (0.03, 0.03), (14.94, 14.94)),
    "ankle_inversion": Ligaments(-0.65, 0.65, (60.21, 60.21), (16.32, 16.32)),
}
SPINE_LIGAMENTS = {
    "flexion": Ligaments(-0.17, math.radians(30), (0.35, 0.25), (30.72, 20.36)),
    "lateral": Ligaments(-math.radians(20), math.radians(20), (0.25, 0.25), (20.36, 20.36)),
    "axial": Ligaments(-math.radians(20), math.radians(20), (0.25, 0.25), (20.36, 20.36)),
}


def leg_torques(hip: Any, knee: Any, ankle: Any) -> tuple[Any, Any, Any]:
    """Return the elastic torques (N m) of hip, knee and ankle at angles (rad), as numbers, arrays or symbols."""
    h, k, a = (angle * (180 / math.pi) for angle in (hip, knee, ankle))
    e = ca.exp if is_symbolic(h) or is_symbolic(k) or is_symbolic(a) else np.exp
    at_hip = e(1.4655 - 0.0034 * k - 0.0750 * h) - e(1.3403 - 0.0226 * k + 0.0305 * h) + 8.072
    at_knee = e(1.800 + 0.0460 * a - 0.0352 * k + 0.0217 * h) - e(-3.971 + 0.0004 * a + 0.0495 * k - 0.0128 * h)
    at_ankle = e(-7.9763 - 0.1949 * a + 0.0008 * k) - e(2.1016 + 0.0843 * a - 0.0176 * k) + 1.792
    return at_hip, at_knee - 4.820 + e(2.220 - 0.150 * k), at_ankle


def torques_by_coordinate(names: tuple[str, ...], q: Any, v: Any) -> Any:
    """Return the passive torques of all coordinates except the six global ones, as an array or symbols.

    q and v are indexed by coordinate.
    """
    torques = -DAMPING * v
    legs = [[names.index(f"{side}_{joint}") for side in SIDES] for joint in CURVED_JOINTS]
    for joint, torque in zip(legs, leg_torques(*(q[joint] for joint in legs)), strict=True):
        torques[joint] += torque
    for name, ligaments in LIGAMENTS.items():
        joint = [names.index(f"{side}_{name}") for side in SIDES]
        torques[joint] += ligaments.torque(q[joint])
    for axis, ligaments in SPINE_LIGAMENTS.items():  # joints in series transmit the same torque
        spine = [k for k, name in enumerate(names) if name.startswith("spine") and name.endswith(axis)]
        torque = ligaments.torque(sum(q[k] for k in spine))
        for k in spine:
            torques[k] += torque
    toes = [names.index(f"{side}_toe_extension") for side in SIDES]
    torques[toes] = -TOE_STIFFNESS * q[toes] - TOE_DAMPING * v[toes]
    return torques[len(GLOBAL) :]


def passive_torques(body: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the passive torques (..., 55) (N m) of a body (``library.human``) at q and v (..., 55), 0 for the pelvis.

    The muscle torque is the torque from inverse dynamics minus the passive torque.

    Example:
        >>> body, still = torsor.library.human(), np.zeros(55)
        >>> torque = passive_torques(body, still, still)
        >>> round(float(torque[body.coordinate_names.index("right_ankle_flexion")]), 2)
        -6.39
    """
    instance_of(body, Robot, "passive torques", "body", allowed="a torsor.library.human()")
    q, v = (arrays(value, (body.nv,), "passive torques", name) for value, name in ((q, "q"), (v, "v")))
    common_shape("passive torques", q=q.shape, v=v.shape)
    q, v = np.broadcast_arrays(q, v)
    torques = torques_by_coordinate(body.coordinate_names, np.moveaxis(q, -1, 0), np.moveaxis(v, -1, 0))
    return np.moveaxis(np.concatenate([np.zeros((len(GLOBAL), *q.shape[:-1])), torques]), 0, -1)


SEXES, AGES = ("male", "female"), ("young", "middle", "old")
MAX_AGE = 120.0  # years
GRAVITY, HEIGHT, MASS = 9.81, 1.741, 73.0  # m/s^2 in the model, and m and kg of the default body
MIDDLE_AGE, OLD_AGE = 40.0, 65.0  # years; midpoint between the two younger groups, and start of the oldest group
BLEND_VELOCITY = 0.25  # rad/s; the branches are blended below this velocity
# Limits of the factors, and half-width of smooth transitions.
MIN_CURVE_FACTOR, MAX_CURVE_FACTOR, TRANSITION_HALF_WIDTH = 0.05, 1.4, 0.05

_TABLE = data_of(__name__)
"""C1 to C6 by joint and direction: men, then women, of 18 to 25, 55 to 65, and above 65 years."""


def age_group(age: float | str | None) -> str:
    """Return the age group: "young" below 40 years or for None, "middle" up to 65 years, otherwise "old"."""
    if isinstance(age, str):
        return one_of(age, AGES, "strength", "age")
    years = 0.0 if age is None else number(age, "strength", "age (years)", least=0.0, most=MAX_AGE)
    return "young" if years < MIDDLE_AGE else "middle" if years <= OLD_AGE else "old"


@cache
def age_ratio(name: str, sex: str, age: str) -> float:
    """Return the strength of an age group at a coordinate relative to that of young people of the same sex.

    For hip, knee and ankle flexion, the result is the mean ratio of the largest torques C1 in extension and flexion.
    For other joints, which were not measured, it is the mean of these three.
    """
    column, young = (SEXES.index(sex) * len(AGES) + AGES.index(group) for group in (age, "young"))
    joints = [joint for joint in CURVED_JOINTS if name.endswith(joint)] or CURVED_JOINTS
    rows = [_TABLE[joint][way] for joint in joints for way in JointStrength._fields]
    return float(np.mean([row[column][0] / row[young][0] for row in rows]))


def _functions(x: Any) -> Any:
    """Return the module that provides cos, fmin and fmax for numbers or symbols."""
    return ca if is_symbolic(x) else np


def _within(x: Any, least: float, most: float) -> Any:
    of = _functions(x)
    return of.fmin(of.fmax(x, least), most)


def smooth_ramp(x: Any) -> Any:
    """Return a twice differentiable max(x, 0), exact where |x| > TRANSITION_HALF_WIDTH."""
    u = _within((x + TRANSITION_HALF_WIDTH) / (2 * TRANSITION_HALF_WIDTH), 0.0, 1.0)
    return TRANSITION_HALF_WIDTH * u * u * u * (2 - u) + _functions(x).fmax(x - TRANSITION_HALF_WIDTH, 0.0)


class Curve(NamedTuple):
    """The largest torque in one direction of a joint; fields are numbers or symbols.

    ``peak`` (N m) is the largest isometric torque (C1 times weight times height), which occurs at the ``angle`` C3
    (rad). ``width`` is C2 (1/rad). ``slow`` C4 and ``fast`` C5 (rad/s) are the velocities at which 75 % and 50 % of
    ``peak`` remain. ``stretched`` C6 (s/rad) is the coefficient for eccentric velocities.

    Example:
        >>> knee = StrengthCurves().of(library.human(), "knee_flexion").extend
        >>> round(knee.peak), round(float(knee.torque(knee.angle, knee.fast) / knee.peak), 12)
        (203, 0.5)
    """

    peak: Any
    width: Any
    angle: Any
    slow: Any
    fast: Any
    stretched: Any

    def at_angle(self, q: Any) -> Any:
        """Return the factor for angles q (rad), which may be numbers, arrays or symbols."""
        turn = _within(self.width * (q - self.angle), -2.0, 2.0)  # beyond this range the factor is MIN_CURVE_FACTOR
        return MIN_CURVE_FACTOR + smooth_ramp(_functions(turn).cos(turn) - MIN_CURVE_FACTOR)

    def at_speed(self, v: Any) -> Any:
        """Return the factor for velocities v (rad/s) in the torque direction, as numbers, arrays or symbols."""
        u, of = _within((v + BLEND_VELOCITY) / (2 * BLEND_VELOCITY), 0.0, 1.0), _functions(v)
        weight = u * u * u * (10 - 15 * u + 6 * u * u)
        concentric, eccentric = of.fmax(v, -BLEND_VELOCITY), of.fmin(v, BLEND_VELOCITY)
        factor = weight * self._r(concentric)
        factor += (1 - weight) * self._r(-eccentric) * (1 - self.stretched * eccentric)
        return MAX_CURVE_FACTOR - smooth_ramp(
            MAX_CURVE_FACTOR - MIN_CURVE_FACTOR - smooth_ramp(factor - MIN_CURVE_FACTOR)
        )

    def _r(self, v: Any) -> Any:
        both = 2 * self.slow * self.fast
        return (both + v * (self.fast - 3 * self.slow)) / (both + v * (2 * self.fast - 4 * self.slow))

    def torque(self, q: Any, v: Any) -> Any:
        """Return the largest torque (N m) for angles q (rad) and velocities v (rad/s) in its direction."""
        return self.peak * self.at_angle(q) * self.at_speed(v)


class JointStrength(NamedTuple):
    """The two directions of a joint: ``extend`` (negative torques) and ``flex`` (positive torques)."""

    extend: Curve
    flex: Curve

    def limits(self, q: Any, v: Any) -> tuple[Any, Any]:
        """Return the lower and upper torque limits (N m) for angles q (rad) and velocities v (rad/s)."""
        return -self.extend.torque(q, -v), self.flex.torque(q, v)


@dataclass(frozen=True)
class StrengthCurves:
    """Strength curves of a group of people: ``sex`` is "male" or "female", and ``age`` is "young", "middle" or "old".

    The age groups are 18 to 25, 55 to 65, and above 65 years. Hip flexion, knee flexion and ankle flexion
    (dorsiflexion) have curves. Plantarflexion is limited to 118 N m for 73 kg and 1.741 m, which walking may use in
    full. ``age_of_body`` is the age group on which the ``effort_limit`` of the body is based, as set by
    ``Person.body()``.

    Example:
        >>> [round(each.peak) for each in StrengthCurves().of(library.human(), "ankle_flexion")]
        [118, 41]
        >>> [round(each.peak) for each in StrengthCurves("female", "old").of(library.human(1.6, 60.0), "hip_flexion")]
        [130, 76]
    """

    sex: str = "male"
    age: str = "young"
    age_of_body: str = "young"

    def __post_init__(self) -> None:
        one_of(self.sex, SEXES, "strength curves", "sex")
        one_of(self.age, AGES, "strength curves", "age")
        one_of(self.age_of_body, AGES, "strength curves", "age_of_body")

    def of(self, body: Robot, name: str) -> JointStrength:
        """Return the curves of a coordinate of a body (``library.human``): "knee_flexion" with or without a side.

        Weight times height is computed from ``effort_limit``, which does not depend on carried loads.
        """
        joint = next((candidate for candidate in CURVED_JOINTS if name.endswith(candidate)), None)
        coordinate = f"right_{name}" if name == joint else name
        if joint is None or coordinate not in body.coordinate_names:
            allowed = ", ".join(f"{side}_{candidate}" for side in SIDES for candidate in CURVED_JOINTS)
            what = f"{name!r} has no strength curve"
            raise ModelError(what, value=name, where=f"robot {body.name!r}", allowed=allowed)
        limit = body.effort_limit[body.coordinate_names.index(coordinate)]
        times = MASS * GRAVITY * HEIGHT * float(limit / default_strengths()[coordinate])
        return self.at(joint, times / age_ratio(joint, self.sex, self.age_of_body))

    def at(self, joint: str, weight_times_height: float) -> JointStrength:
        """Return the curves of a joint, such as "knee_flexion", for a weight times height (N m).

        Example:
            >>> round(StrengthCurves("female", "old").at("knee_flexion", 1000.0).extend.peak, 9)
            124.0
        """
        group = SEXES.index(self.sex) * len(AGES) + AGES.index(self.age)
        rows = (_TABLE[joint][way][group] for way in JointStrength._fields)
        return JointStrength(*(Curve(row[0] * weight_times_height, *row[1:]) for row in rows))


@cache
def default_strengths() -> dict[str, float]:
    """Return the strengths (N m) of the default body."""
    body = library.human(HEIGHT, MASS)
    return dict(zip(body.coordinate_names, body.effort_limit.tolist(), strict=True))


def joint_strength(
    body: Robot, name: str, q: ArrayLike, v: ArrayLike, curves: StrengthCurves | None = None
) -> tuple[Array, Array]:
    """Return the lower and upper torque limits (N m) of a coordinate for angles q (rad) and velocities v (rad/s).

    q and v are broadcast. The default ``curves`` are those of young men. For a coordinate without curves, the limit is
    its ``effort_limit`` at all angles and velocities.

    Example:
        >>> body = library.human()
        >>> lower, upper = joint_strength(body, "right_ankle_flexion", [0.0, 0.2], 0.0)
        >>> lower.round().tolist(), upper.round().tolist()
        ([-100.0, -114.0], [40.0, 34.0])
        >>> joint_strength(body, "left_hip_rotation", 0.0, 0.0)
        (array(-60.), array(60.))
    """
    instance_of(body, Robot, "joint strength", "body", allowed="a torsor.library.human()")
    (index,) = indices_of(name, body.coordinate_names, f"robot {body.name!r}")
    angle, velocity = arrays(q, (), name, "q"), arrays(v, (), name, "v")
    common_shape(name, q=angle.shape, v=velocity.shape)
    angle, velocity = np.broadcast_arrays(angle, velocity)
    if name.endswith(CURVED_JOINTS):
        lower, upper = (curves or StrengthCurves()).of(body, name).limits(angle, velocity)
        return np.asarray(lower), np.asarray(upper)
    limit = body.effort_limit[index]
    return np.full(angle.shape, -limit), np.full(angle.shape, limit)
