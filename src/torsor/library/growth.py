"""Masses of body segments of children: how the fractions of the body mass change with age (Jensen 1986, 1989).

Jensen measured boys of 4 to 20 years by photographs. His segments are cut elsewhere than those of de Leva (1996), so
that his fractions are not used themselves but their growth: the fraction of a segment at an age is that of de Leva's
adults times Jensen's fraction at that age divided by his at 18 years; all are then scaled to a sum of 1. Between the
rows growth is linear, below 6 years the fractions are those at 6. The row of Jensen's linear fit of 1986 at 15 years,
the end of its range, is left out: it contradicts the fit of 1989 (heads of 6.7 % at 15 and 7.0 % at 18 years). Girls
have the growth of boys: he measured none.
"""

from collections.abc import Mapping

import numpy as np

from torsor.base.checks import number

YOUNGEST, OLDEST = 4.0, 110.0  # years
AGES = (6.0, 12.0, 18.0)  # years: Jensen 1989, 1986, 1989
# Mass of each segment (% of the body mass) at these ages; limbs are those of one side.
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
    """Return the mass fraction of a segment at an age (years), divided by that of adults; 1 from 18 years or for None.

    Example:
        >>> round(growth_factor("head", 6.0), 2), round(growth_factor("thigh", 9.0), 3), growth_factor("thigh", 30)
        (2.6, 0.855, 1.0)
    """
    if age is None:
        return 1.0
    row = JENSEN[segment if segment in JENSEN else "trunk"]
    return float(np.interp(number(age, "human", "age (years)", least=YOUNGEST, most=OLDEST), AGES, row)) / row[-1]
