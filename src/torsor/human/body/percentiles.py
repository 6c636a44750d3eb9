"""Percentiles of stature and mass: which height and mass a given part of a population does not exceed.

"NHANES": adults of the United States, August 2021 to August 2023, by decades of age (Fryar et al. 2025, tables 3 and 7,
weighted). "ANSUR II": personnel of the US Army, 2012, 17 to 58 years (Gordon et al. 2014), computed from the public
data of 4,082 men and 1,986 women. "CDC": children and youths of 2 to 20 years (``growth_charts``). Between tabled
percentiles, stature and the logarithm of the mass are linear in the standard normal deviate.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from torsor.base.checks import number, one_of
from torsor.base.errors import ModelError, describe
from torsor.human.body.growth_charts import OLDEST, YOUNGEST, growth_curves
from torsor.library.anthropometry import BODY_TABLES

NHANES, ANSUR, CDC = "NHANES", "ANSUR II", "CDC"
POPULATIONS = (NHANES, ANSUR, CDC)
ARMY = (17.0, 58.0)  # years of age of the soldiers
CHILDREN = (1.0, 99.0)  # percentiles for which growth charts are used
DECADES = (20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)  # youngest age of each group of adults
DEVIATE = NormalDist().inv_cdf


class Sizes(NamedTuple):
    """Percentiles of the stature (cm) and of the mass (kg) of a group of people."""

    stature: tuple[float, ...]
    mass: tuple[float, ...]


_CIVIL = (5, 10, 15, 25, 50, 75, 85, 90, 95)
_SOLDIERS = (1, 5, 10, 15, 25, 50, 75, 85, 90, 95, 99)
# All adults, then the decades; the survey does not give the 95th percentile of the stature from 80 years.
_ADULTS: Mapping[str, tuple[Sizes, ...]] = {
    "male": (
        Sizes(
            (162.2, 165.2, 167.5, 170.0, 175.2, 180.1, 183.0, 184.8, 187.2),
            (60.9, 66.6, 70.0, 75.4, 86.6, 100.6, 111.0, 118.8, 131.8),
        ),
        Sizes(
            (162.0, 167.7, 169.3, 171.3, 176.1, 181.0, 184.7, 185.9, 188.1),
            (57.0, 60.5, 64.2, 72.2, 83.7, 98.2, 108.1, 114.7, 128.3),
        ),
        Sizes(
            (163.6, 166.6, 168.0, 171.3, 176.4, 180.9, 183.4, 185.1, 187.1),
            (63.6, 69.8, 71.1, 77.1, 87.1, 101.5, 110.0, 121.0, 132.5),
        ),
        Sizes(
            (162.3, 166.9, 169.5, 171.1, 176.2, 182.6, 185.0, 186.8, 189.9),
            (66.0, 69.7, 73.2, 78.5, 88.4, 107.7, 119.7, 125.1, 141.9),
        ),
        Sizes(
            (163.0, 164.7, 167.2, 169.0, 174.5, 179.0, 181.3, 183.6, 185.6),
            (61.0, 68.1, 71.2, 76.8, 87.8, 102.0, 113.6, 119.8, 138.7),
        ),
        Sizes(
            (161.8, 165.2, 167.0, 169.7, 175.0, 179.8, 182.5, 184.1, 186.6),
            (62.6, 67.1, 69.9, 76.0, 86.9, 99.0, 108.3, 114.0, 123.9),
        ),
        Sizes(
            (159.5, 162.6, 164.6, 167.5, 172.7, 176.9, 179.8, 181.6, 184.1),
            (60.8, 66.2, 68.8, 74.5, 86.6, 96.5, 106.8, 111.7, 121.3),
        ),
        Sizes(
            (158.3, 160.1, 162.8, 166.1, 169.9, 175.0, 177.9, 179.3),
            (58.0, 63.3, 66.7, 70.8, 79.9, 90.0, 96.5, 99.6, 108.5),
        ),
    ),
    "female": (
        Sizes(
            (149.6, 152.0, 153.9, 156.4, 161.2, 166.1, 168.6, 170.4, 172.5),
            (50.7, 54.7, 57.8, 62.6, 73.5, 89.2, 99.9, 107.2, 119.2),
        ),
        Sizes(
            (153.2, 155.1, 156.1, 158.4, 163.3, 168.2, 170.8, 171.9, 174.6),
            (47.6, 52.9, 54.9, 59.4, 68.9, 82.9, 98.2, 107.3, 121.3),
        ),
        Sizes(
            (150.1, 152.8, 154.8, 158.2, 162.8, 167.4, 169.5, 170.8, 172.9),
            (51.4, 55.4, 58.9, 63.1, 75.0, 93.3, 107.9, 114.6, 125.9),
        ),
        Sizes(
            (149.8, 152.3, 153.7, 157.2, 162.0, 166.3, 169.0, 170.4, 172.1),
            (52.8, 56.0, 58.7, 63.9, 74.8, 90.6, 101.1, 111.5, 123.7),
        ),
        Sizes(
            (150.4, 152.6, 154.4, 156.4, 160.8, 166.2, 168.4, 170.4, 172.4),
            (53.1, 57.9, 60.2, 65.2, 78.5, 95.5, 105.0, 111.5, 121.4),
        ),
        Sizes(
            (149.6, 151.6, 153.4, 155.6, 160.4, 165.1, 167.6, 169.4, 171.2),
            (51.6, 55.5, 58.9, 63.3, 74.3, 89.9, 98.4, 104.5, 109.3),
        ),
        Sizes(
            (148.6, 150.7, 152.2, 154.4, 157.9, 162.3, 164.4, 166.2, 168.2),
            (49.8, 54.6, 56.8, 62.0, 71.7, 82.4, 91.4, 96.3, 103.5),
        ),
        Sizes(
            (143.7, 145.9, 149.6, 151.2, 156.9, 161.9, 164.6, 165.5),
            (46.8, 50.6, 52.9, 57.9, 65.7, 75.2, 83.0, 87.3, 94.2),
        ),
    ),
}
_ARMY: Mapping[str, Sizes] = {
    "male": Sizes(
        (160.2, 164.8, 166.9, 168.5, 171.0, 175.5, 180.2, 182.7, 184.4, 187.0, 192.7),
        (57.8, 64.4, 68.2, 70.8, 75.6, 84.6, 94.4, 100.0, 104.4, 110.7, 124.2),
    ),
    "female": Sizes(
        (148.3, 152.5, 154.7, 156.3, 158.6, 162.6, 167.2, 169.6, 171.3, 174.0, 177.8),
        (46.7, 51.3, 54.6, 56.7, 60.1, 66.8, 74.6, 78.8, 82.4, 87.1, 97.5),
    ),
}


def size_of_percentile(
    stature: float = 50.0,
    mass: float = 50.0,
    sex: str = "male",
    age: float | None = None,
    population: str | None = None,
) -> tuple[float, float]:
    """Return height (m) and mass (kg) of given percentiles (%) of a population.

    ``age`` (years) chooses the group of adults, or the children; without it, the percentiles are those of all adults.
    By default the population is "CDC" below 20 years, else "NHANES".

    Example:
        >>> [round(each, 3) for each in size_of_percentile(95, 50)]
        [1.872, 86.6]
        >>> [round(each, 3) for each in size_of_percentile(5, 50, "female", age=8)]
        [1.183, 25.627]
    """
    where = "percentiles"
    one_of(sex, tuple(BODY_TABLES), where, "sex")
    years = None if age is None else number(age, where, "age (years)", least=YOUNGEST)
    child = years is not None and years < OLDEST
    population = (CDC if child else NHANES) if population is None else population
    one_of(population, POPULATIONS, where, "population")
    if population == CDC:
        if years is None or not years <= OLDEST:
            found = f"age is {age!r} for the population 'CDC'"
            allowed = f"children and youths of {YOUNGEST:g} to {OLDEST:g} years"
            raise ModelError(describe(found, where=where, allowed=allowed, fix="population='NHANES' for adults"))
        charts = growth_curves(years, sex)
        deviates = [
            DEVIATE(_percentile(each, CHILDREN, name) / 100) for each, name in ((stature, "stature"), (mass, "mass"))
        ]
        cm, kg = (chart.at(z) for chart, z in zip(charts, deviates, strict=True))
        return cm / 100, kg
    group, levels = _adults(sex, years, population)
    cm = _between(stature, levels, group.stature, "stature")
    return cm / 100, math.exp(_between(mass, levels, [math.log(each) for each in group.mass], "mass"))


def _adults(sex: str, years: float | None, population: str) -> tuple[Sizes, tuple[int, ...]]:
    """Return the percentiles of a group of adults, and for which parts of the people they are (%)."""
    least, most = ARMY if population == ANSUR else (DECADES[0], math.inf)
    if years is not None and not least <= years <= most:
        people = f"people of {least:g} to {most:g} years" if most < math.inf else f"people of {least:g} years and more"
        found = f"age is {years:g} for the population {population!r}"
        raise ModelError(describe(found, where="percentiles", allowed=people, fix="leave out population, or the age"))
    if population == ANSUR:
        return _ARMY[sex], _SOLDIERS
    return _ADULTS[sex][0 if years is None else int(np.searchsorted(DECADES, years, side="right"))], _CIVIL


def _percentile(value: float, bounds: tuple[float, float], name: str) -> float:
    """Return a percentile (%) that the table of a population has."""
    found = number(value, "percentiles", f"percentile of the {name} (%)", above=0.0, below=100.0)
    if not bounds[0] <= found <= bounds[1]:
        allowed = f"{bounds[0]:g} to {bounds[1]:g}, where the table of this population ends"
        fix = (
            f"give the size itself, or for adults population={ANSUR!r} (soldiers, {_SOLDIERS[0]} to {_SOLDIERS[-1]} %)"
        )
        what = f"percentile of the {name} is {found:g} %"
        raise ModelError(describe(what, where="percentiles", allowed=allowed, fix=fix))
    return found


def _between(value: float, levels: tuple[int, ...], row: tuple[float, ...] | list[float], name: str) -> float:
    """Return the measure at a percentile, linear in the normal deviate between those of the table."""
    known = levels[: len(row)]
    z = DEVIATE(_percentile(value, (known[0], known[-1]), name) / 100)
    return float(np.interp(z, [DEVIATE(each / 100) for each in known], row))
