"""Percentiles of stature and mass: the height and mass that a percentage of a population does not exceed.

"NHANES" covers adults in the United States from August 2021 to August 2023, by age decade (Fryar et al. 2025, tables 3
and 7, weighted). "ANSUR II" covers US Army personnel aged 17 to 58 years in 2012 (Gordon et al. 2014); it is computed
from the public data of 4,082 men and 1,986 women. "CDC" covers children and adolescents from 2 to 20 years
(``growth_curves``). Between tabulated percentiles, stature and the logarithm of the mass are linear in the standard
normal deviate.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from torsor.base.checks import number, one_of
from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.library.anthropometry import BODY_TABLES

# Stature and mass of children and youths from 2 to 20 years: the CDC growth charts (Kuczmarski et al. 2002).
#
# The charts contain curves L, M and S over age, by sex. A measure at a percentile with the standard normal deviate z is
#
#     M (1 + L S z)^(1/L)
#
# where M is the median. The published tables have one row per month. Every sixth row is stored here, rounded. Between
# rows, a cubic through the four nearest rows reproduces all published percentiles to 0.1 cm and 0.02 kg.

MIN_CHART_AGE, MAX_CHART_AGE = 2.0, 20.0  # years
MONTHS = 12.0  # per year

_DATA = data_of(__name__)


class Growth(NamedTuple):
    """Growth-curve values of a measure at an age: ``power`` L, ``median`` M and ``variation`` S."""

    power: float
    median: float
    variation: float

    def at(self, z: float) -> float:
        """Return the measure at a standard normal deviate, which is 0 for the median."""
        return float(self.median * (1 + self.power * self.variation * z) ** (1 / self.power))


def growth_curves(age: float, sex: str) -> tuple[Growth, Growth]:
    """Return the growth curves of stature (cm) and mass (kg) at an age (2 to 20 years), for a sex."""
    table = np.array([(row[0], *(row[1:7] if sex == "male" else row[7:])) for row in _DATA["growth"]])
    first = int(np.clip(np.searchsorted(table[:, 0], MONTHS * age) - 2, 0, len(table) - 4))
    near = table[first : first + 4]
    apart = near[:, None, 0] - near[None, :, 0] + np.eye(4)
    ahead = np.where(np.eye(4, dtype=bool), 1.0, MONTHS * age - near[:, 0])
    values = (ahead / apart).prod(axis=1) @ near[:, 1:]  # Lagrange polynomials
    return Growth(*values[:3].tolist()), Growth(*values[3:].tolist())


NHANES, ANSUR, CDC = "NHANES", "ANSUR II", "CDC"
POPULATIONS = (NHANES, ANSUR, CDC)
ARMY_AGES = (17.0, 58.0)  # age range of the soldiers (years)
CHILD_PERCENTILES = (1.0, 99.0)  # percentile range of the growth charts
DECADES = (20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)  # youngest age of each adult group (years)
normal_deviate = NormalDist().inv_cdf


class Sizes(NamedTuple):
    """Stature (cm) and mass (kg) of a group of people at the percentiles ``levels`` (%)."""

    stature: list[float]
    mass: list[float]
    levels: list[int]


def size_of_percentile(
    stature: float = 50.0,
    mass: float = 50.0,
    sex: str = "male",
    age: float | None = None,
    population: str | None = None,
) -> tuple[float, float]:
    """Return the height (m) and mass (kg) at percentiles (%) of a population.

    ``age`` (years) selects the decade in "NHANES" and the growth curve values in "CDC". Without it, percentiles are of
    all adults. The ``population`` is "NHANES", "ANSUR II" or "CDC" (see ``Person.of_percentile``), by default "CDC"
    below 20 years, otherwise "NHANES". Percentiles and ages outside the population's table raise ModelError.

    Example:
        >>> [round(each, 3) for each in size_of_percentile(95, 50)]
        [1.872, 86.6]
        >>> [round(each, 3) for each in size_of_percentile(5, 50, "female", age=8)]
        [1.183, 25.627]
    """
    where = "percentiles"
    one_of(sex, tuple(BODY_TABLES), where, "sex")
    years = None if age is None else number(age, where, "age (years)", least=MIN_CHART_AGE)
    child = years is not None and years < MAX_CHART_AGE
    population = (CDC if child else NHANES) if population is None else population
    one_of(population, POPULATIONS, where, "population")
    if population == CDC:
        if years is None or not years <= MAX_CHART_AGE:
            what = f"is {age!r}, which the population 'CDC' does not cover"
            allowed = f"{MIN_CHART_AGE:g} to {MAX_CHART_AGE:g} years"
            fix = "use `population='NHANES'` for adults"
            raise ModelError(what, value=age, argument="age", where=where, allowed=allowed, fix=fix)
        tall, heavy = growth_curves(years, sex)
        deviates = [_deviate(value, CHILD_PERCENTILES, name) for value, name in ((stature, "stature"), (mass, "mass"))]
        return tall.at(deviates[0]) / 100, heavy.at(deviates[1])
    group = _adults(sex, years, population)
    cm = _between(stature, group.levels, group.stature, "stature")
    return cm / 100, math.exp(_between(mass, group.levels, [math.log(value) for value in group.mass], "mass"))


def _adults(sex: str, years: float | None, population: str) -> Sizes:
    """Return the percentile table of an adult group."""
    least, most = ARMY_AGES if population == ANSUR else (DECADES[0], math.inf)
    if years is not None and not least <= years <= most:
        people = f"{least:g} to {most:g} years" if most < math.inf else f"{least:g} years or older"
        what = f"age is {years:g}, which the population {population!r} does not cover"
        fix = "omit population or age"
        raise ModelError(what, value=population, where="percentiles", allowed=people, fix=fix)
    group = 0 if years is None or population == ANSUR else int(np.searchsorted(DECADES, years, side="right"))
    table = _DATA[population][sex]
    return Sizes(table["stature"][group], table["mass"][group], _DATA["levels"][population])


def _deviate(value: float, bounds: tuple[float, float], name: str) -> float:
    """Return the standard normal deviate of a percentile (%); raise ModelError if it is out of ``bounds``."""
    percentile = number(value, "percentiles", f"percentile of the {name} (%)", above=0.0, below=100.0)
    if not bounds[0] <= percentile <= bounds[1]:
        allowed = f"{bounds[0]:g} to {bounds[1]:g} %, the range of this population's table"
        soldiers = _DATA["levels"][ANSUR]
        fix = f"give the size, or for adults `population={ANSUR!r}` (soldiers, {soldiers[0]} to {soldiers[-1]} %)"
        raise ModelError(f"the {name} percentile is {percentile:g} %", where="percentiles", allowed=allowed, fix=fix)
    return normal_deviate(percentile / 100)


def _between(value: float, levels: Sequence[int], row: Sequence[float], name: str) -> float:
    """Return the measure at a percentile, interpolated linearly in the standard normal deviate."""
    known = levels[: len(row)]
    z = _deviate(value, (known[0], known[-1]), name)
    return float(np.interp(z, [normal_deviate(level / 100) for level in known], row))
