"""Percentiles of stature and mass: the height and mass that a given share of a population does not exceed.

"NHANES": adults in the United States, August 2021 to August 2023, by decade of age (Fryar et al. 2025, tables 3 and 7,
weighted). "ANSUR II": US Army personnel, 2012, 17 to 58 years (Gordon et al. 2014), computed from the public data of
4,082 men and 1,986 women. "CDC": children and youths from 2 to 20 years (``growth_curves``). Between tabulated
percentiles, stature and the logarithm of the mass are linear in the standard normal deviate.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from torsor.base.checks import number, one_of
from torsor.base.errors import ModelError
from torsor.library.anthropometry import BODY_TABLES

# Stature and mass of children and youths from 2 to 20 years: the CDC growth charts (Kuczmarski et al. 2002).
#
# The charts are curves L, M and S of age, by sex. With z the standard normal deviate of a percentile, a measure is
#
#     M (1 + L S z)^(1/L)
#
# M is the median. The published tables have one row per month. Every sixth row is stored here, rounded, with a cubic
# through the four rows around an age in between. It reproduces all published percentiles to 0.1 cm and 0.02 kg.

MIN_CHART_AGE, MAX_CHART_AGE = 2.0, 20.0  # years
MONTHS = 12.0

# Age (months); L, M (cm), S of stature and L, M (kg), S of mass for boys; the same six numbers for girls.
_ROWS: tuple[tuple[float, ...], ...] = (
    (24, 0.9415, 86.452, 0.04032, -0.2062, 12.6708, 0.10813, 1.0724, 84.976, 0.04079, -0.7353, 12.0550, 0.10740),
    (30.5, 0.1745, 91.332, 0.04097, -0.3976, 13.5609, 0.10938, 0.8145, 90.333, 0.04175, -0.9147, 13.0436, 0.11302),
    (36.5, -0.3909, 95.274, 0.04053, -0.6213, 14.4026, 0.11187, 0.5420, 94.213, 0.04202, -1.0245, 13.9411, 0.11949),
    (42.5, 0.3265, 99.003, 0.04085, -0.8045, 15.3194, 0.11549, 0.3779, 97.648, 0.04262, -1.1070, 14.8812, 0.12597),
    (48.5, 0.8276, 102.510, 0.04134, -0.9152, 16.3168, 0.11996, 0.2257, 101.034, 0.04326, -1.1770, 15.8782, 0.13180),
    (54.5, 1.1337, 105.881, 0.04196, -0.9696, 17.3791, 0.12488, 0.0757, 104.463, 0.04382, -1.2383, 16.9283, 0.13681),
    (60.5, 1.2664, 109.175, 0.04259, -1.0005, 18.4859, 0.12988, -0.0577, 107.957, 0.04428, -1.2877, 18.0231, 0.14119),
    (66.5, 1.2554, 112.430, 0.04318, -1.0350, 19.6214, 0.13468, -0.1592, 111.488, 0.04465, -1.3190, 19.1583, 0.14532),
    (72.5, 1.1374, 115.661, 0.04367, -1.0875, 20.7777, 0.13914, -0.2191, 115.005, 0.04496, -1.3268, 20.3364, 0.14959),
    (78.5, 0.9549, 118.867, 0.04407, -1.1581, 21.9564, 0.14331, -0.2348, 118.450, 0.04523, -1.3085, 21.5675, 0.15433),
    (84.5, 0.7532, 122.031, 0.04440, -1.2365, 23.1674, 0.14734, -0.2102, 121.762, 0.04546, -1.2655, 22.8680, 0.15969),
    (90.5, 0.5759, 125.126, 0.04474, -1.3063, 24.4265, 0.15147, -0.1544, 124.896, 0.04569, -1.2029, 24.2579, 0.16569),
    (96.5, 0.4553, 128.124, 0.04513, -1.3518, 25.7526, 0.15597, -0.0793, 127.826, 0.04597, -1.1277, 25.7570, 0.17215),
    (102.5, 0.4048, 130.998, 0.04562, -1.3635, 27.1649, 0.16103, 0.0027, 130.557, 0.04634, -1.0478, 27.3820, 0.17877),
    (108.5, 0.4157, 133.734, 0.04622, -1.3394, 28.6813, 0.16666, 0.0841, 133.130, 0.04688, -0.9707, 29.1429, 0.18520),
    (114.5, 0.4610, 136.334, 0.04690, -1.2844, 30.3177, 0.17273, 0.1698, 135.634, 0.04767, -0.9022, 31.0403, 0.19104),
    (120.5, 0.5056, 138.823, 0.04761, -1.2067, 32.0880, 0.17893, 0.2847, 138.211, 0.04870, -0.8469, 33.0639, 0.19595),
    (126.5, 0.5186, 141.258, 0.04830, -1.1155, 34.0036, 0.18485, 0.4692, 141.040, 0.04981, -0.8079, 35.1918, 0.19965),
    (132.5, 0.4879, 143.730, 0.04894, -1.0193, 36.0726, 0.19003, 0.7443, 144.261, 0.05052, -0.7874, 37.3909, 0.20197),
    (138.5, 0.4346, 146.367, 0.04949, -0.9247, 38.2978, 0.19405, 1.0625, 147.842, 0.05021, -0.7869, 39.6191, 0.20285),
    (144.5, 0.4209, 149.309, 0.04995, -0.8370, 40.6744, 0.19659, 1.3030, 151.487, 0.04860, -0.8076, 41.8280, 0.20230),
    (150.5, 0.5320, 152.662, 0.05027, -0.7603, 43.1883, 0.19746, 1.3582, 154.756, 0.04620, -0.8503, 43.9661, 0.20042),
    (156.5, 0.8162, 156.410, 0.05033, -0.6982, 45.8134, 0.19666, 1.2430, 157.344, 0.04386, -0.9155, 45.9837, 0.19736),
    (162.5, 1.2328, 160.349, 0.04993, -0.6541, 48.5111, 0.19434, 1.0770, 159.207, 0.04211, -1.0031, 47.8366, 0.19333),
    (168.5, 1.6704, 164.142, 0.04895, -0.6319, 51.2310, 0.19081, 0.9566, 160.478, 0.04102, -1.1116, 49.4908, 0.18856),
    (174.5, 2.0168, 167.464, 0.04751, -0.6349, 53.9126, 0.18644, 0.9025, 161.327, 0.04041, -1.2380, 50.9254, 0.18333),
    (180.5, 2.2052, 170.139, 0.04589, -0.6656, 56.4910, 0.18167, 0.8956, 161.898, 0.04008, -1.3765, 52.1357, 0.17795),
    (186.5, 2.2253, 172.156, 0.04436, -0.7232, 58.9029, 0.17689, 0.9134, 162.291, 0.03991, -1.5182, 53.1333, 0.17276),
    (192.5, 2.1130, 173.610, 0.04309, -0.8020, 61.0954, 0.17246, 0.9411, 162.569, 0.03982, -1.6512, 53.9454, 0.16812),
    (198.5, 1.9273, 174.631, 0.04211, -0.8904, 63.0323, 0.16865, 0.9710, 162.772, 0.03977, -1.7622, 54.6122, 0.16437),
    (204.5, 1.7247, 175.341, 0.04141, -0.9732, 64.6996, 0.16564, 0.9995, 162.924, 0.03973, -1.8381, 55.1822, 0.16175),
    (210.5, 1.5433, 175.836, 0.04094, -1.0354, 66.1075, 0.16344, 1.0251, 163.040, 0.03971, -1.8690, 55.7062, 0.16042),
    (216.5, 1.4000, 176.185, 0.04064, -1.0662, 67.2899, 0.16192, 1.0476, 163.131, 0.03969, -1.8509, 56.2297, 0.16037),
    (222.5, 1.2971, 176.435, 0.04047, -1.0613, 68.3000, 0.16087, 1.0669, 163.202, 0.03967, -1.7880, 56.7803, 0.16140),
    (228.5, 1.2292, 176.618, 0.04039, -1.0233, 69.1947, 0.16014, 1.0833, 163.259, 0.03966, -1.6933, 57.3518, 0.16314),
    (234.5, 1.1880, 176.754, 0.04036, -0.9644, 69.9987, 0.16001, 1.0972, 163.304, 0.03965, -1.5895, 57.8833, 0.16509),
    (240, 1.1673, 176.849, 0.04037, -0.9165, 70.5976, 0.16148, 1.1080, 163.338, 0.03964, -1.5134, 58.2190, 0.16664),
)


class Growth(NamedTuple):
    """The growth curves of a measure at an age: ``power`` L, ``median`` M and ``variation`` S."""

    power: float
    median: float
    variation: float

    def at(self, z: float) -> float:
        """Return the measure at a standard normal deviate; 0 is the median."""
        return float(self.median * (1 + self.power * self.variation * z) ** (1 / self.power))


def growth_curves(age: float, sex: str) -> tuple[Growth, Growth]:
    """Return the growth curves of stature (cm) and mass (kg) for an age (years, 2 to 20) and a sex."""
    table = np.array([(row[0], *(row[1:7] if sex == "male" else row[7:])) for row in _ROWS])
    first = int(np.clip(np.searchsorted(table[:, 0], MONTHS * age) - 2, 0, len(table) - 4))
    near = table[first : first + 4]
    apart = near[:, None, 0] - near[None, :, 0] + np.eye(4)
    ahead = np.where(np.eye(4, dtype=bool), 1.0, MONTHS * age - near[:, 0])
    values = (ahead / apart).prod(axis=1) @ near[:, 1:]  # Lagrange polynomials
    return Growth(*values[:3].tolist()), Growth(*values[3:].tolist())


NHANES, ANSUR, CDC = "NHANES", "ANSUR II", "CDC"
POPULATIONS = (NHANES, ANSUR, CDC)
ARMY_AGES = (17.0, 58.0)  # age range of the soldiers (years)
CHILD_PERCENTILES = (1.0, 99.0)  # percentile range in which growth charts are used
DECADES = (20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)  # youngest age of each adult group
normal_deviate = NormalDist().inv_cdf


class Sizes(NamedTuple):
    """Percentiles of stature (cm) and mass (kg) of a group of people."""

    stature: tuple[float, ...]
    mass: tuple[float, ...]


_CIVIL = (5, 10, 15, 25, 50, 75, 85, 90, 95)
_SOLDIERS = (1, 5, 10, 15, 25, 50, 75, 85, 90, 95, 99)
# All adults, then the decades. The survey does not report the 95th percentile of stature from 80 years.
_ADULTS: Mapping[str, tuple[Sizes, ...]] = {
    "male": (
        Sizes((162.2, 165.2, 167.5, 170.0, 175.2, 180.1, 183.0, 184.8, 187.2),
              (60.9, 66.6, 70.0, 75.4, 86.6, 100.6, 111.0, 118.8, 131.8)),
        Sizes((162.0, 167.7, 169.3, 171.3, 176.1, 181.0, 184.7, 185.9, 188.1),
              (57.0, 60.5, 64.2, 72.2, 83.7, 98.2, 108.1, 114.7, 128.3)),
        Sizes((163.6, 166.6, 168.0, 171.3, 176.4, 180.9, 183.4, 185.1, 187.1),
              (63.6, 69.8, 71.1, 77.1, 87.1, 101.5, 110.0, 121.0, 132.5)),
        Sizes((162.3, 166.9, 169.5, 171.1, 176.2, 182.6, 185.0, 186.8, 189.9),
              (66.0, 69.7, 73.2, 78.5, 88.4, 107.7, 119.7, 125.1, 141.9)),
        Sizes((163.0, 164.7, 167.2, 169.0, 174.5, 179.0, 181.3, 183.6, 185.6),
              (61.0, 68.1, 71.2, 76.8, 87.8, 102.0, 113.6, 119.8, 138.7)),
        Sizes((161.8, 165.2, 167.0, 169.7, 175.0, 179.8, 182.5, 184.1, 186.6),
              (62.6, 67.1, 69.9, 76.0, 86.9, 99.0, 108.3, 114.0, 123.9)),
        Sizes((159.5, 162.6, 164.6, 167.5, 172.7, 176.9, 179.8, 181.6, 184.1),
              (60.8, 66.2, 68.8, 74.5, 86.6, 96.5, 106.8, 111.7, 121.3)),
        Sizes((158.3, 160.1, 162.8, 166.1, 169.9, 175.0, 177.9, 179.3),
              (58.0, 63.3, 66.7, 70.8, 79.9, 90.0, 96.5, 99.6, 108.5)),
    ),
    "female": (
        Sizes((149.6, 152.0, 153.9, 156.4, 161.2, 166.1, 168.6, 170.4, 172.5),
              (50.7, 54.7, 57.8, 62.6, 73.5, 89.2, 99.9, 107.2, 119.2)),
        Sizes((153.2, 155.1, 156.1, 158.4, 163.3, 168.2, 170.8, 171.9, 174.6),
              (47.6, 52.9, 54.9, 59.4, 68.9, 82.9, 98.2, 107.3, 121.3)),
        Sizes((150.1, 152.8, 154.8, 158.2, 162.8, 167.4, 169.5, 170.8, 172.9),
              (51.4, 55.4, 58.9, 63.1, 75.0, 93.3, 107.9, 114.6, 125.9)),
        Sizes((149.8, 152.3, 153.7, 157.2, 162.0, 166.3, 169.0, 170.4, 172.1),
              (52.8, 56.0, 58.7, 63.9, 74.8, 90.6, 101.1, 111.5, 123.7)),
        Sizes((150.4, 152.6, 154.4, 156.4, 160.8, 166.2, 168.4, 170.4, 172.4),
              (53.1, 57.9, 60.2, 65.2, 78.5, 95.5, 105.0, 111.5, 121.4)),
        Sizes((149.6, 151.6, 153.4, 155.6, 160.4, 165.1, 167.6, 169.4, 171.2),
              (51.6, 55.5, 58.9, 63.3, 74.3, 89.9, 98.4, 104.5, 109.3)),
        Sizes((148.6, 150.7, 152.2, 154.4, 157.9, 162.3, 164.4, 166.2, 168.2),
              (49.8, 54.6, 56.8, 62.0, 71.7, 82.4, 91.4, 96.3, 103.5)),
        Sizes((143.7, 145.9, 149.6, 151.2, 156.9, 161.9, 164.6, 165.5),
              (46.8, 50.6, 52.9, 57.9, 65.7, 75.2, 83.0, 87.3, 94.2)),
    ),
}  # fmt: skip
_ARMY: Mapping[str, Sizes] = {
    "male": Sizes((160.2, 164.8, 166.9, 168.5, 171.0, 175.5, 180.2, 182.7, 184.4, 187.0, 192.7),
        (57.8, 64.4, 68.2, 70.8, 75.6, 84.6, 94.4, 100.0, 104.4, 110.7, 124.2)),
    "female": Sizes((148.3, 152.5, 154.7, 156.3, 158.6, 162.6, 167.2, 169.6, 171.3, 174.0, 177.8),
        (46.7, 51.3, 54.6, 56.7, 60.1, 66.8, 74.6, 78.8, 82.4, 87.1, 97.5)),
}  # fmt: skip


def size_of_percentile(
    stature: float = 50.0,
    mass: float = 50.0,
    sex: str = "male",
    age: float | None = None,
    population: str | None = None,
) -> tuple[float, float]:
    """Return height (m) and mass (kg) at given percentiles (%) of a population.

    ``age`` (years) selects the group of adults, or the children. Without it, the percentiles are those of all adults.
    The default population is "CDC" below 20 years, otherwise "NHANES".

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
    group, levels = _adults(sex, years, population)
    cm = _between(stature, levels, group.stature, "stature")
    return cm / 100, math.exp(_between(mass, levels, [math.log(value) for value in group.mass], "mass"))


def _adults(sex: str, years: float | None, population: str) -> tuple[Sizes, tuple[int, ...]]:
    """Return the percentile table of a group of adults, and its percentiles (%)."""
    least, most = ARMY_AGES if population == ANSUR else (DECADES[0], math.inf)
    if years is not None and not least <= years <= most:
        people = f"{least:g} to {most:g} years" if most < math.inf else f"{least:g} years and more"
        what = f"age is {years:g}, which the population {population!r} does not cover"
        fix = "omit population or age"
        raise ModelError(what, value=population, where="percentiles", allowed=people, fix=fix)
    if population == ANSUR:
        return _ARMY[sex], _SOLDIERS
    return _ADULTS[sex][0 if years is None else int(np.searchsorted(DECADES, years, side="right"))], _CIVIL


def _deviate(value: float, bounds: tuple[float, float], name: str) -> float:
    """Return the standard normal deviate of a percentile (%) within the table of a population."""
    percentile = number(value, "percentiles", f"percentile of the {name} (%)", above=0.0, below=100.0)
    if not bounds[0] <= percentile <= bounds[1]:
        allowed = f"{bounds[0]:g} to {bounds[1]:g} %, the range of this population's table"
        fix = f"give the size, or for adults `population={ANSUR!r}` (soldiers, {_SOLDIERS[0]} to {_SOLDIERS[-1]} %)"
        raise ModelError(f"the {name} percentile is {percentile:g} %", where="percentiles", allowed=allowed, fix=fix)
    return normal_deviate(percentile / 100)


def _between(value: float, levels: tuple[int, ...], row: Sequence[float], name: str) -> float:
    """Return the measure at a percentile, interpolated linearly in the standard normal deviate."""
    known = levels[: len(row)]
    z = _deviate(value, (known[0], known[-1]), name)
    return float(np.interp(z, [normal_deviate(level / 100) for level in known], row))
