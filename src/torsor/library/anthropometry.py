"""Body segment sizes and masses from de Leva's tables (1996), for a man or woman of a given height and mass.

Lengths are measured between joints or landmarks of the mean subject. Masses are fractions of the body mass. Centres of
mass (from the upper end) and radii of gyration are fractions of the segment length. The axes through the centre of mass
point forward, sideways and along the segment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import number, one_of
from torsor.base.files import data_of

# Mass fractions of children's body segments (Jensen 1986, 1989, from photographs of boys aged 4 to 20 years).
# The boundaries of Jensen's segments differ from those of de Leva (1996), so only the change with age is used: de
# Leva's adult fraction is multiplied by the ratio of Jensen's fraction at that age to his fraction at 18 years. All
# fractions are then scaled to a sum of 1. They are interpolated linearly between the ages below, and constant below 6
# years. The end of Jensen's 1986 fit, at 15 years, is omitted because it contradicts his 1989 fit (the head has 6.7 %
# of the mass at 15 years and 7.0 % at 18 years). Girls are assumed to grow like boys, because Jensen measured only
# boys.

YOUNGEST, OLDEST = 4.0, 110.0  # years
AGES = (6.0, 12.0, 18.0)  # years: Jensen 1989, 1986, 1989
# Mass of each segment (% of the body mass) at these ages; limb masses are for one side.
JENSEN: Mapping[str, tuple[float, float, float]] = {
    "head": (18.2, 10.1, 7.0),
    "trunk": (43.0, 41.7, 44.6),
    "upper arm": (2.4, 3.2, 3.6),
    "forearm": (1.3, 1.7, 1.9),
    "hand": (0.8, 0.9, 0.9),
    "thigh": (8.5, 11.0, 11.4),
    "shank": (4.6, 5.3, 4.8),
    "foot": (1.9, 2.1, 1.7),
}


def growth_factor(segment: str, age: float | None) -> float:
    """Return a segment's mass fraction at ``age`` (years) relative to adults; it is 1 from age 18 or for None."""
    if age is None:
        return 1.0
    row = JENSEN[segment if segment in JENSEN else "trunk"]
    return float(np.interp(number(age, "human", "age (years)", least=YOUNGEST, most=OLDEST), AGES, row)) / row[-1]


class _Row(NamedTuple):
    length: float  # mm
    mass: float  # %
    centre: float  # %
    forward: float  # %
    sideways: float  # %
    long: float  # %


class _Table(NamedTuple):
    stature: float  # mm
    rows: dict[str, _Row]


BODY_TABLES = {
    sex: _Table(table["stature"], {name: _Row(*row) for name, row in table["rows"].items()})
    for sex, table in data_of(__name__).items()
}

HEIGHTS, MASSES = (0.8, 2.5), (10.0, 300.0)  # m, kg: ranges to which the tables may be scaled


@dataclass(frozen=True)
class Segment:
    """A segment: length (m), mass (kg), centre of mass from the upper end (m), central moments of inertia (kg m^2).

    The moments are about principal axes that point ``forward``, ``sideways`` and along the segment (``long``).
    """

    length: float
    mass: float
    centre: float
    forward: float
    sideways: float
    long: float

    @property
    def inertia(self) -> Array:
        """Inertia (3 x 3) about the centre of mass, with x sideways, y along the segment and z forward."""
        return np.diag([self.sideways, self.long, self.forward])


class Body:
    """The segments, by name, of a person with a given ``height`` (m), ``mass`` (kg) and ``sex``.

    Below an ``age`` of 18 years, masses are distributed as in children (Jensen 1986, 1989), but lengths as in adults.

    Example:
        >>> thigh = Body(1.741, 73.0, "male")["thigh"]
        >>> round(thigh.length, 4), round(thigh.mass, 3), round(thigh.centre, 4), round(thigh.long, 5)
        (0.4222, 10.337, 0.1729, 0.04091)
    """

    def __init__(self, height: float, mass: float, sex: str, age: float | None = None):
        one_of(sex, tuple(BODY_TABLES), "human", "sex")
        height = number(height, "human", "height", least=HEIGHTS[0], most=HEIGHTS[1])
        self.mass = number(mass, "human", "mass", least=MASSES[0], most=MASSES[1])
        self.scale = 1000.0 * height / BODY_TABLES[sex].stature
        self._rows = BODY_TABLES[sex].rows
        self._shares = {name: row.mass * growth_factor(name, age) for name, row in self._rows.items()}
        self._whole = sum(share * (1 if name in _ONCE else 2) for name, share in self._shares.items())

    def __getitem__(self, name: str) -> Segment:
        row = self._rows[name]
        length, mass = row.length / 1000.0 * self.scale, self._shares[name] / self._whole * self.mass
        moments = (mass * (radius / 100.0 * length) ** 2 for radius in (row.forward, row.sideways, row.long))
        return Segment(length, mass, row.centre / 100.0 * length, *moments)


_ONCE = ("head", "upper trunk", "middle trunk", "lower trunk")
