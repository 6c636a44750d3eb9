"""Percent capable: the fraction of a population that is strong enough for the moments of a task.

Strengths are assumed to be normally distributed. The fraction Phi((mean - M) / deviation) of people can exert a moment
M, where the mean and the standard deviation are those of the isometric joint strength in the same direction and at the
same joint angle. The value for the task is the minimum over joints and time. Isometric strengths are usual in
ergonomics, because people who are too weak for a fast motion may still perform it slowly.

The strengths of hips, knees and ankles are the means and standard deviations of Anderson, Madigan and Nussbaum (2007)
by sex and age, with the angle dependence of ``StrengthCurves``, held constant beyond 100 degrees of flexion. The trunk
strength is ``TrunkStrength`` at the spine flexion. The strengths of elbows and shoulders are the isometric means and
standard deviations of industrial workers from Stobbe (1982), quoted from secondary sources and rounded. They are used
at all angles and are the least certain. For the arms and trunk of older people, they are multiplied by the mean
strength ratio of older to young legs (``age_ratio``).
"""

import math
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import arrays, instance_of, number, positive
from torsor.base.files import data_of
from torsor.human.body.coordinates import SIDES
from torsor.human.body.kernels import checked_body
from torsor.human.body.person import Person
from torsor.human.body.strength import AGES, CURVED_JOINTS, SEXES, StrengthCurves, age_group, age_ratio
from torsor.human.body.trunk_strength import MAX_FLEXION, MIN_FLEXION, SPINE, VARIATION, TrunkStrength
from torsor.human.terms.population import Strength
from torsor.robot.robot import Robot

# Standard deviations of leg strength (Anderson et al. 2007), and means and standard deviations of arm strength.
_DATA = data_of(__name__)
WAYS = {"hip": "extension", "knee": "extension", "ankle": "plantarflexion"}  # names of negative torques
TRUNK = "trunk"
MAX_LEG_FLEXION = math.radians(100.0)  # largest measured flexion of the leg curves


class Capability(NamedTuple):
    """The most demanding moment of a joint in one direction, and the fraction of people who can exert it.

    ``moment`` is the required moment (N m) at the sample with index ``instant``, where the fewest people can exert it.
    ``mean`` and ``deviation`` (N m) are the mean and standard deviation of the strength there, and ``capable`` is the
    fraction of people. ``extrapolated`` is True if the strength was not measured at this joint angle.
    """

    name: str
    moment: float
    mean: float
    deviation: float
    capable: float
    instant: int
    extrapolated: bool


def capable(moment: float, mean: float, deviation: float) -> float:
    """Return the fraction of people who can exert a moment if strength is normally distributed.

    Example:
        >>> capable(200.0, 200.0, 50.0), round(capable(100.0, 200.0, 50.0), 4)
        (0.5, 0.9772)
    """
    moment, mean = (number(value, "percent capable", what) for value, what in ((moment, "moment"), (mean, "mean")))
    deviation = positive(deviation, "percent capable", "deviation")
    return 0.5 * math.erfc((moment - mean) / (deviation * math.sqrt(2)))


def capabilities(
    body: Robot,
    person: Person,
    q: Array,
    torques: Array,
    back: Array,
    age: float | str = "young",
) -> list[Capability]:
    """Return the most demanding joint and trunk moments, sorted by the fraction of capable people.

    ``q`` and ``torques`` (K, 55) are postures and their joint torques (``joint_torques``), and ``back`` (K,) (N m) is
    the extension moment at L5/S1. ``age`` is "young" (18 to 25 years), "middle" (55 to 65), "old", or a number of
    years.

    Example:
        >>> body, still = torsor.library.human(), np.zeros((1, 55))
        >>> torques = np.zeros((1, 55))
        >>> torques[0, body.coordinate_names.index("right_elbow_flexion")] = 77.0
        >>> found = capabilities(body, Person(1.741, 73.0, "male"), still, torques, np.zeros(1))
        >>> found[0].name, found[0].capable
        ('right elbow flexion', 0.5)
    """
    instance_of(person, Person, "percent capable", "person", allowed="a torsor.human.Person")
    names, hardest, years = checked_body(body, "percent capable").coordinate_names, list[Capability](), age_group(age)
    q = np.atleast_2d(arrays(q, (len(names),), "percent capable", "q"))
    torques = arrays(torques, q.shape, "percent capable", "torques")
    back = arrays(back, (len(q),), "percent capable", "back")
    usual = Person(person.height, person.mass, person.sex)
    for strength in limb_strengths(person, years):
        k = names.index(strength.coordinate)
        mean, most = strength.at(q[:, k]), strength.most
        moments = strength.sign * torques[:, k]
        hardest.append(_hardest(_label(strength), moments, mean, strength.variation * mean, q[:, k] > most))
    flexion, trunk = sum(q[:, names.index(name)] for name in SPINE), TrunkStrength(usual)
    for way, sign, mean in (("extension", 1.0, trunk.extend(flexion)), ("flexion", -1.0, trunk.flex(flexion))):
        aged = age_ratio(SPINE[0], person.sex, years) * np.asarray(mean)
        beyond = np.abs(flexion - (MAX_FLEXION + MIN_FLEXION) / 2) > (MAX_FLEXION - MIN_FLEXION) / 2
        hardest.append(_hardest(f"{TRUNK} {way}", sign * back, aged, VARIATION * aged, beyond))
    return sorted((demand for demand in hardest if demand.moment > 0), key=lambda demand: demand.capable)


def limb_strengths(person: Person, years: str) -> tuple[Strength, ...]:
    """Return the leg and arm strengths of people like this one; individual strength factors are ignored.

    Example:
        >>> knee = limb_strengths(Person(1.741, 73.0, "male"), "young")[2]
        >>> knee.coordinate, knee.sign, round(knee.curve.peak), round(knee.variation, 3)
        ('right_knee_flexion', -1.0, 203, 0.245)
    """
    curves, group = StrengthCurves(person.sex, years), SEXES.index(person.sex) * len(AGES) + AGES.index(years)
    strengths, unit = list[Strength](), person.weight_times_height
    for side in SIDES:
        for joint in CURVED_JOINTS:
            for sign, curve in zip((-1.0, 1.0), curves.at(joint, unit), strict=True):
                variation = _DATA["legs"][joint][group][sign > 0] * unit / curve.peak
                strengths.append(Strength(f"{side}_{joint}", sign, variation, curve=curve, most=MAX_LEG_FLEXION))
        for joint, ways in _DATA["arms"].items():
            for sign, table in zip((1.0, -1.0), ways, strict=True):
                if table:
                    mean, deviation = table[SEXES.index(person.sex)]
                    aged = age_ratio(joint, person.sex, years) * mean
                    strengths.append(Strength(f"{side}_{joint}", sign, deviation / mean, aged))
    return tuple(strengths)


def _label(strength: Strength) -> str:
    """Return the side, joint and direction as text, such as "right knee extension"."""
    side, joint, motion = strength.coordinate.split("_")
    opposite = WAYS.get(joint, {"adduction": "abduction"}.get(motion, "extension"))
    return f"{side} {joint} {motion if strength.sign > 0 else opposite}"


def _hardest(name: str, moment: Array, mean: Array, deviation: Array, beyond: Flags) -> Capability:
    """Return the capability at the instant at which the fewest people are strong enough."""
    k = int(np.argmax((moment - mean) / deviation))
    values = float(moment[k]), float(mean[k]), float(deviation[k])
    return Capability(name, *values, capable(*values), k, bool(beyond[k]))
