"""Who a body is: height, mass and sex, read from its segments, and what of them is outside of the tables."""

from dataclasses import dataclass

import numpy as np

from torsor.errors import describe, warn
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
from torsor.library.anthropometry import SEXES
from torsor.robot.robot import Robot

GRAVITY = 9.81  # m/s^2, of the products m g h by which strengths are scaled
STATURES, BODY_MASS_INDICES = (
    (1.45, 2.00),
    (17.0, 35.0),
)  # m, kg/m^2: de Leva's subjects were students of 19 to 25 years


@dataclass(frozen=True)
class Person:
    """Height (m), mass (kg, without a load) and sex of a body.

    Example:
        >>> Person(1.75, 80.0, "male").weight_times_height.__round__(1)
        1373.4
    """

    height: float
    mass: float
    sex: str

    @property
    def weight_times_height(self) -> float:
        """Weight times height, m g h (N m): strengths of the trunk and of the legs are proportional to it."""
        return GRAVITY * self.mass * self.height

    def warn_outside_of_tables(self, where: str) -> None:
        """Warn of a person for whom the tables of segments and strengths were not made.

        Example:
            >>> import warnings
            >>> with warnings.catch_warnings(record=True, action="always") as found:
            ...     Person(1.2, 30.0, "male").warn_outside_of_tables("lift")
            >>> str(found[0].message).split(";")[0]
            'lift: the height is 1.2 m'
        """
        index = self.mass / self.height**2
        found = [
            f"the {name} is {value:.3g} {unit}"
            for name, value, unit, (least, most) in (
                ("height", self.height, "m", STATURES),
                ("body mass index", index, "kg/m^2", BODY_MASS_INDICES),
            )
            if not least <= value <= most
        ]
        if found:
            allowed = (
                f"adults of {STATURES[0]:g} to {STATURES[1]:g} m and {BODY_MASS_INDICES[0]:g} to "
                f"{BODY_MASS_INDICES[1]:g} kg/m^2, for whom the tables were measured"
            )
            fix = "take the results as a trend, or give segments and strengths of your own"
            warn(describe(" and ".join(found), where=where, allowed=allowed, fix=fix))


def person_of(body: Robot, carried: float = 0.0) -> Person:
    """Return height, mass and sex of a body (``library.human``) that carries a mass (kg) in addition to its own.

    The sex is that of the table whose thighs and shanks have the proportion of the body's, and the height is that of
    the table scaled to the body's legs.

    Example:
        >>> person = person_of(torsor.library.human(1.62, 58.0, "female"))
        >>> round(person.height, 9), round(person.mass, 9), person.sex
        (1.62, 58.0, 'female')
    """
    hip, knee, ankle = (landmark(body, f"{SIDES[0]}_{link}")[1] for link in ("thigh", "shank", "foot"))
    thigh, shank = float(hip - knee), float(knee - ankle)
    proportion = {sex: table.rows["thigh"].length / table.rows["shank"].length for sex, table in SEXES.items()}
    sex = min(SEXES, key=lambda each: abs(np.log(thigh / shank / proportion[each])))
    rows = SEXES[sex].rows
    scale = 1000 * (thigh + shank) / (rows["thigh"].length + rows["shank"].length)
    return Person(scale * SEXES[sex].stature / 1000, body.mass - carried, sex)
