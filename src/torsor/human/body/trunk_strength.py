"""Strength of the trunk: the largest voluntary moment of the back by the flexion of the spine, for men and women.

With m g h the weight times the height of the body and theta the flexion of the spine (sum of its joints, 0 upright),
the mean isometric strength is

    extension   m g h (c0 + (c1 - c0) theta / 72 degrees)      held constant outside of -20 to 72 degrees
    flexion     m g h c2

Extension becomes stronger as the trunk flexes: Keller and Roy (2002) found it greatest at the largest flexion of their
range (-20 to 50 degrees), flexion at 20 to 30 degrees, and differences between the sexes markedly smaller after
division by height times weight. Kocjan and Sarabon (2014) measured 504 N standing and 911 N sitting at the upper back
(60 people of 72.7 kg and 1.70 m): 0.16 and 0.28 m g h with a lever arm of 0.375 m above L5/S1. McKune (2012) found
extension hardly dependent on the angle between 0 and 92 degrees; tables of Chaffin for hip and torso together fall with
it.

c0 and c1 are rounded from published ranges of lumbar extension with a fixed pelvis (men 200 N m upright to 330 to 350
N m at 72 degrees), c2 is 0.7 of c0, and the factor of women, 0.81, is the middle one of three: 1 (Keller and Roy), 0.81
(Chaffin: 160 of 234 N m), 0.69 (lumbar extension machines). These ranges are handed down in reviews: take the curves as
good to a quarter, which is also the standard deviation between people. Torques that change with velocity are left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, one_of
from torsor.human.body.person import Person
from torsor.human.body.strength import SEXES, smooth_ramp

UPRIGHT, FLEXED, FORWARD = 0.16, 0.27, 0.11  # c0, c1, c2 of men
WOMEN = 0.81  # factor of women
MIN_FLEXION, MAX_FLEXION = np.radians(-20.0), np.radians(72.0)  # flexion between which the strength changes
VARIATION = 0.25  # standard deviation between people of one sex, divided by the mean
SPINE = ("spine1_flexion", "spine2_flexion", "spine3_flexion", "spine4_flexion")  # coordinates whose sum is the flexion


@dataclass(frozen=True)
class TrunkStrength:
    """The strength of the trunk of a ``person``, of mean strength or ``deviations`` standard deviations from it.

    ``extend`` and ``flex`` return moments (N m) for the flexion of the spine (rad): numbers, arrays or symbols. Older
    people, and people whose ``strength`` of "spine1_flexion" differs, have that factor of it.

    Example:
        >>> man = TrunkStrength(Person(1.741, 73.0, "male"))
        >>> [round(float(man.extend(np.radians(angle)))) for angle in (0, 40, 72)], round(man.flex(0.0))
        ([199, 276, 336], 137)
        >>> round(float(TrunkStrength(Person(1.62, 58.0, "female")).extend(0.0)))
        119
    """

    person: Person
    deviations: float = 0.0

    def __post_init__(self) -> None:
        instance_of(self.person, Person, "trunk strength", "person", allowed="a torsor.human.Person")
        one_of(self.person.sex, SEXES, "trunk strength", "sex")
        number(self.deviations, "trunk strength", "deviations", least=-3.0, most=3.0)

    @property
    def coefficients(self) -> Array:
        """Extension upright, its slope (1/rad) and flexion (N m): the numbers of ``extension`` and ``flexion`` (3,)."""
        factor = (1.0 if self.person.sex == "male" else WOMEN) * self.person.factor(SPINE[0])
        unit = self.person.weight_times_height * factor * (1 + VARIATION * self.deviations)
        return unit * np.array([UPRIGHT, (FLEXED - UPRIGHT) / MAX_FLEXION, FORWARD])

    def extend(self, flexion: Any) -> Any:
        """Return the largest moment (N m) that extends the trunk, at a flexion of the spine (rad)."""
        return extension(self.coefficients, flexion)

    def flex(self, flexion: Any) -> Any:
        """Return the largest moment (N m) that flexes the trunk, at a flexion of the spine (rad)."""
        return float(self.coefficients[2]) + 0 * flexion


def extension(coefficients: Any, flexion: Any) -> Any:
    """Return the largest extension moment for ``coefficients`` of ``TrunkStrength``, numbers or symbols."""
    within = MIN_FLEXION + smooth_ramp(flexion - MIN_FLEXION) - smooth_ramp(flexion - MAX_FLEXION)
    return coefficients[0] + coefficients[1] * within
