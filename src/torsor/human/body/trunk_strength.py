"""Trunk strength: the largest voluntary moment of the back as a function of spine flexion, for men and women.

With the body weight times height m g h, and the spine flexion theta (sum of its joint angles, 0 upright), the mean
isometric strength is

    extension   m g h (c0 + (c1 - c0) theta / 72 degrees)      (constant outside -20 to 72 degrees)
    flexion     m g h c2

Extension strength increases as the trunk flexes. Keller and Roy (2002) found that it is greatest at the largest flexion
of their range (-20 to 50 degrees), that flexion strength is greatest at 20 to 30 degrees, and that sex differences are
much smaller after division by height times weight. Kocjan and Sarabon (2014) measured 504 N standing and 911 N sitting
at the upper back (60 people, on average 72.7 kg and 1.70 m). With a moment arm of 0.375 m above L5/S1, these forces
correspond to 0.16 and 0.28 m g h. McKune (2012) found extension almost independent of the angle between 0 and 92
degrees. In Chaffin's tables, the combined strength of hip and torso decreases with the angle.

c0 and c1 are rounded from published ranges of lumbar extension with a fixed pelvis (men: 200 N m upright, and 330 to
350 N m at 72 degrees). c2 is 0.7 c0. The factor for women, 0.81, is the median of three values: 1 (Keller and Roy),
0.81 (Chaffin, 160 of 234 N m) and 0.69 (lumbar extension machines). These ranges come from reviews. The accuracy of the
curves is about 25 %, which is also the standard deviation between people. Velocity dependence is not included.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, one_of
from torsor.human.body.person import Person
from torsor.human.body.strength import SEXES, smooth_ramp

UPRIGHT_EXTENSION, FLEXED_EXTENSION, FLEXION_STRENGTH = 0.16, 0.27, 0.11  # c0, c1, c2 for men
WOMEN_FACTOR = 0.81  # factor for women
MIN_FLEXION, MAX_FLEXION = np.radians(-20.0), np.radians(72.0)  # flexion range in which the strength varies
VARIATION = 0.25  # standard deviation among people of one sex, relative to the mean
SPINE = ("spine1_flexion", "spine2_flexion", "spine3_flexion", "spine4_flexion")  # coordinates with the sum theta


@dataclass(frozen=True)
class TrunkStrength:
    """Trunk strength of a ``person``: the mean, or ``deviations`` standard deviations above it.

    ``extend`` and ``flex`` return moments (N m) for spine flexions (rad), which may be numbers, arrays or symbols. The
    strength includes the age factor and the person's ``strength`` factor for "spine1_flexion".

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
        """Coefficients (3,): upright extension (N m), its slope (N m/rad) and flexion (N m)."""
        factor = (1.0 if self.person.sex == "male" else WOMEN_FACTOR) * self.person.factor(SPINE[0])
        unit = self.person.weight_times_height * factor * (1 + VARIATION * self.deviations)
        return unit * np.array(
            [UPRIGHT_EXTENSION, (FLEXED_EXTENSION - UPRIGHT_EXTENSION) / MAX_FLEXION, FLEXION_STRENGTH]
        )

    def extend(self, flexion: Any) -> Any:
        """Return the largest extension moment (N m) at a spine flexion (rad)."""
        return extension(self.coefficients, flexion)

    def flex(self, flexion: Any) -> Any:
        """Return the largest flexion moment (N m) at a spine flexion (rad)."""
        return float(self.coefficients[2]) + 0 * flexion


def extension(coefficients: Any, flexion: Any) -> Any:
    """Return the largest extension moment for ``coefficients`` of ``TrunkStrength`` (numbers or symbols)."""
    within = MIN_FLEXION + smooth_ramp(flexion - MIN_FLEXION) - smooth_ramp(flexion - MAX_FLEXION)
    return coefficients[0] + coefficients[1] * within
