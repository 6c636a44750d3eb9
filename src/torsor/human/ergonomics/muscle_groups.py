"""Muscle groups of a leg: largest forces and lever arms of Geyer and Herr (2010) and Song and Geyer (2015).

Eleven groups act on hip (flexion and adduction), knee and ankle. Lever arms that change with the included angle phi of
the joint are r(phi) = r_max cos(s (phi - phi_max)) with s such that r(phi_min) = r_min. The knee is straight at 180
degrees, the foot is square to the shank at 90. The set is that of a man of 80 kg and 1.80 m: forces are scaled by mass,
lever arms by height. Its hip levers (0.08 m) are longer than those of anatomical models (0.03 to 0.07 m), so that it
needs less force there.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.person import Person

MASS, HEIGHT = 80.0, 1.80  # kg and m of the person of the table
MOMENTS = ("hip_flexion", "hip_adduction", "knee_flexion", "ankle_flexion")  # coordinates without their side
ACROSS = {"hip": ("hip_flexion", "hip_adduction"), "knee": ("knee_flexion",), "ankle": ("ankle_flexion",)}


class Lever(NamedTuple):
    """A lever arm (m) about a coordinate, positive for flexion and adduction; it may change with the included angle.

    ``largest`` is at the included angle ``at`` (degrees), ``least`` at ``least_at``; without these it is constant.
    """

    coordinate: str
    largest: float
    at: float = 0.0
    least: float = 0.0
    least_at: float = 0.0

    def of(self, included: Array) -> Array:
        """Return the lever arm at included angles (degrees)."""
        if not self.least:
            return np.full(np.shape(included), self.largest)
        rate = np.arccos(self.least / abs(self.largest)) / np.radians(self.least_at - self.at)
        turned = np.clip(rate * np.radians(included - self.at), -1.4, 1.4)  # the law is not meant for larger turns
        return np.asarray(self.largest * np.cos(turned))


class Group(NamedTuple):
    """A muscle group: its ``name``, largest ``force`` (N), and lever arms."""

    name: str
    force: float
    levers: tuple[Lever, ...]


_KNEE, _CALF = (165.0, 0.04, 45.0), (100.0, 0.02, 180.0)  # where levers are largest; least lever, and where it is
GROUPS = (
    Group("hip flexors", 2000.0, (Lever("hip_flexion", 0.08),)),
    Group("glutei", 1500.0, (Lever("hip_flexion", -0.08),)),
    Group("abductors", 3000.0, (Lever("hip_adduction", -0.06),)),
    Group("adductors", 4500.0, (Lever("hip_adduction", 0.03),)),
    Group("hamstrings", 3000.0, (Lever("hip_flexion", -0.08), Lever("knee_flexion", 0.05))),
    Group("rectus femoris", 1200.0, (Lever("hip_flexion", 0.08), Lever("knee_flexion", -0.06, *_KNEE))),
    Group("vasti", 6000.0, (Lever("knee_flexion", -0.06, *_KNEE),)),
    Group("short biceps", 350.0, (Lever("knee_flexion", 0.04),)),
    Group(
        "gastrocnemius",
        1500.0,
        (Lever("knee_flexion", 0.05, 140.0, 0.02, 45.0), Lever("ankle_flexion", -0.06, *_CALF)),
    ),
    Group("soleus", 4000.0, (Lever("ankle_flexion", -0.06, *_CALF),)),
    Group("tibialis anterior", 800.0, (Lever("ankle_flexion", 0.04, 80.0, 0.01, 180.0),)),
)
NAMES = tuple(group.name for group in GROUPS)


def largest_forces(person: Person) -> Array:
    """Return the largest forces (11,) (N) of a person.

    Example:
        >>> largest_forces(Person(1.8, 80.0, "male"))[:3].tolist()
        [2000.0, 1500.0, 3000.0]
    """
    return np.array([group.force for group in GROUPS]) * person.mass / MASS


def lever_arms(person: Person, flexions: Array) -> Array:
    """Return lever arms (K, 4, 11) (m) about ``MOMENTS`` at angles (K, 4) (rad), positive for flexion and adduction.

    Example:
        >>> arms = lever_arms(Person(1.8, 80.0, "male"), np.zeros((1, 4)))
        >>> [round(float(arms[0, 2, NAMES.index(name)]), 3) for name in ("vasti", "hamstrings")]
        [-0.06, 0.05]
    """
    degrees, scale = np.degrees(flexions), person.height / HEIGHT
    found = np.zeros((len(flexions), len(MOMENTS), len(GROUPS)))
    for k, group in enumerate(GROUPS):
        for lever in group.levers:
            row = MOMENTS.index(lever.coordinate)
            straight = 90.0 if lever.coordinate == "ankle_flexion" else 180.0
            found[:, row, k] = scale * lever.of(straight - degrees[:, row])
    return found


def crosses(joint: str) -> Array:
    """Return which groups cross a joint, "hip", "knee" or "ankle" (11,), as 0 and 1.

    Example:
        >>> [name for name, own in zip(NAMES, crosses("ankle"), strict=True) if own]
        ['gastrocnemius', 'soleus', 'tibialis anterior']
    """
    return np.array([float(any(lever.coordinate in ACROSS[joint] for lever in group.levers)) for group in GROUPS])
