"""Units of recorded curves: as the head of a column says them, or as only one of them fits a walking person."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing

G = 9.81  # m/s2


class Scale(NamedTuple):
    """A factor to the unit of comparisons: degrees, N m/kg, W/kg, % of weight; ``absolute``: divide by the mass too."""

    kind: str
    factor: float
    absolute: bool = False


DEGREES, RADIANS = Scale("angle", 1.0), Scale("angle", 180 / math.pi)
# Words of heads, without blanks and in lower case.
WORDS = {
    **dict.fromkeys(("degrees", "degree", "deg", "°"), DEGREES),
    **dict.fromkeys(("radians", "rad"), RADIANS),
    **dict.fromkeys(("nm", "n*m", "n.m"), Scale("moment", 1.0, absolute=True)),
    **dict.fromkeys(("nm/kg", "n*m/kg", "n.m/kg"), Scale("moment", 1.0)),
    **dict.fromkeys(("nmm/kg", "n.mm/kg"), Scale("moment", 0.001)),
    "w": Scale("power", 1.0, absolute=True),
    "w/kg": Scale("power", 1.0),
    "n": Scale("force", 100 / G, absolute=True),
    "n/kg": Scale("force", 100 / G),
    **dict.fromkeys(("bodyweights", "bw"), Scale("force", 100.0)),
    **dict.fromkeys(("%ofweight", "%bw", "%"), Scale("force", 1.0)),
}
# Largest values of walking people in each unit, from a child of 17 kg to a man of 200 kg who hurries.
PEAKS: Mapping[str, tuple[tuple[float, float, Scale], ...]] = {
    "moment": ((0.3, 5.0, WORDS["nm/kg"]), (8.0, 600.0, WORDS["nm"])),
    "power": ((0.3, 15.0, WORDS["w/kg"]), (20.0, 1500.0, WORDS["w"])),
    "force": (
        (0.7, 2.5, WORDS["bw"]),
        (7.0, 25.0, WORDS["n/kg"]),
        (70.0, 200.0, WORDS["%bw"]),
        (200.0, 5000.0, WORDS["n"]),
    ),
}
UNIT_NAMES = {"moment": "N m/kg or N m", "power": "W/kg or W", "force": "body weights, N/kg, % of weight or N"}
SPAN = (15.0, 150.0)  # degrees that a knee or a hip moves through in a stride


def said(word: str, kind: str, where: str) -> Scale:
    """Return the scale of a unit in words.

    Example:
        >>> said("body weights", "force", "walk.csv").factor
        100.0
    """
    found = WORDS.get(word.lower().replace(" ", ""))
    if found is None or found.kind != kind:
        allowed = listing([each for each, scale in WORDS.items() if scale.kind == kind])
        raise ModelError(describe(f"{word!r} as the unit of {kind}s", where=where, allowed=allowed))
    return found


def guessed(values: Array, kind: str, where: str) -> Scale:
    """Return the scale of moments, powers or forces by their largest value: only one unit fits a person.

    Example:
        >>> guessed(np.array([0.0, 800.0]), "force", "walk.mot").absolute
        True
    """
    peak = float(np.nanmax(np.abs(values), initial=0.0))
    for low, high, scale in PEAKS[kind]:
        if low <= peak < high:
            return scale
    found = f"the largest {kind} is {peak:.4g}, which no walking person has in any unit"
    fix = "check the unit, or say it in brackets in the head of a .csv column"
    raise ModelError(describe(found, where=where, allowed=UNIT_NAMES[kind], fix=fix))


def range_of(values: Array) -> float:
    """Return the difference of the largest and the least value, 0 if there are none but NaN."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def checked_angles(values: Array, scale: Scale | None, name: str, where: str) -> Scale:
    """Return the scale of angles; a range of knee or hip that fits the other unit than the stated one is an error.

    Example:
        >>> checked_angles(np.array([0.0, 1.0]), DEGREES, "knee_angle_r", "walk.mot")
        Traceback (most recent call last):
        torsor.ModelError: walk.mot: knee_angle_r moves through 1 degrees; allowed: 15 to 150 degrees; fix: \
these are radians: say inDegrees=no
    """
    span = range_of(values)
    fits = [each for each in (DEGREES, RADIANS) if SPAN[0] <= span * each.factor <= SPAN[1]]
    if scale is not None and (scale in fits or not fits):  # stiff knees stay within a few degrees
        return scale
    if scale is None and fits:
        return fits[0]
    unit = {None: "of an unknown unit", DEGREES: "degrees", RADIANS: "radians"}[scale]
    fix = "say inDegrees=yes or no in the file, and check that the person walks"
    if scale is not None:
        fix = "these are " + ("radians: say inDegrees=no" if scale == DEGREES else "degrees: say inDegrees=yes")
    allowed = f"{SPAN[0]:g} to {SPAN[1]:g} degrees"
    raise ModelError(describe(f"{name} moves through {span:.4g} {unit}", where=where, allowed=allowed, fix=fix))
