"""Industrial arms: six axes, seven axes, and a SCARA."""

import math
from typing import Any

import numpy as np

from torsor.formats import DHLink, MDHLink
from torsor.library.shapes import cylinder
from torsor.robot.load import from_dh, from_mdh
from torsor.robot.robot import Robot

_QUARTER = math.pi / 2


def _limits(reach: float, torque: float) -> dict[str, Any]:
    return {"lower": -reach, "upper": reach, "effort_limit": torque}


def six_axis_arm() -> Robot:
    """Return a six-axis arm with a spherical wrist: a PUMA 560.

    Geometry, inertias and rotor inertias after Armstrong, Khatib and Burdick, "The explicit dynamic model and inertial
    parameters of the PUMA 560 arm", 1986; for the first link only the moment about its joint is known, which is the
    only one with an effect. The moments were measured one by one, and those of the third link are not quite physically
    consistent. Friction has the right order of magnitude.

    Example:
        >>> six_axis_arm().gravity_force(np.zeros(6)).round(2).tolist()
        [0.0, 37.48, 0.25, 0.0, -0.0, 0.0]
    """
    # alpha, a, d, mass, centre of mass, principal moments, rotor inertia, viscous, Coulomb, range, torque
    table: list[tuple[Any, ...]] = [
        (_QUARTER, 0, 0, 0, (0, 0, 0), (0.175, 0.35, 0.175), 1.14, 5.8, 24.7, 160, 97.6),
        (0, 0.4318, 0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), 4.71, 9.5, 13.6, 110, 186.4),
        (-_QUARTER, 0.0203, 0.15005, 4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.086, 0.0125), 0.83, 4.0, 7.1, 135, 89.4),
        (_QUARTER, 0, 0.4318, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), 0.2, 0.41, 0.85, 266, 24.2),
        (-_QUARTER, 0, 0, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), 0.179, 0.43, 0.67, 100, 20.1),
        (0, 0, 0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 0.193, 0.22, 0.3, 266, 21.3),
    ]
    rows = []
    for alpha, a, d, mass, com, moments, rotor, viscous, coulomb, reach, torque in table:
        body = {"mass": mass, "com": com, "inertia": np.diag(moments)}
        drive = {"rotor_inertia": rotor, "viscous": viscous, "coulomb": coulomb} | _limits(math.radians(reach), torque)
        rows.append(DHLink(alpha=alpha, a=a, d=d, **body, **drive))
    return from_dh(rows, name="six_axis_arm", strict=False)


def seven_axis_arm() -> Robot:
    """Return a seven-axis arm with shoulder, elbow and wrist in line: a light arm of 0.8 m reach for 14 kg.

    Not a particular product: each link is a solid cylinder along its axis.

    Example:
        >>> seven_axis_arm().nv
        7
    """
    # alpha, r, mass, radius, length, range in degrees, torque
    table = [
        (0.0, 0.36, 5.0, 0.07, 0.30, 170, 320),
        (-_QUARTER, 0.0, 5.0, 0.07, 0.30, 120, 320),
        (_QUARTER, 0.42, 4.0, 0.06, 0.30, 170, 176),
        (_QUARTER, 0.0, 4.0, 0.06, 0.30, 120, 176),
        (-_QUARTER, 0.40, 2.5, 0.05, 0.25, 170, 110),
        (-_QUARTER, 0.0, 2.0, 0.05, 0.15, 120, 40),
        (_QUARTER, 0.126, 0.5, 0.04, 0.06, 175, 40),
    ]
    rows = []
    for i, (alpha, r, mass, radius, length, reach, torque) in enumerate(table):
        # Odd links reach back along their own axis; the others reach on along y towards the next joint.
        along = 2 if i % 2 == 0 else 1
        side = -0.5 if i % 2 == 0 else (-0.5 if alpha < 0 else 0.5)
        com = np.zeros(3)
        com[along] = side * length
        body: dict[str, Any] = {"mass": mass, "com": com, "inertia": cylinder(mass, radius, length, along)}
        rows.append(MDHLink(i - 1, alpha=alpha, r=r, **body, **_limits(math.radians(reach), torque)))
    return from_mdh(rows, name="seven_axis_arm")


def scara() -> Robot:
    """Return a SCARA: two horizontal links, a vertical slide and a turning tool, for 2 kg at 0.6 m.

    Not a particular product. Coordinates: shoulder, elbow (rad), slide (m, upwards), tool (rad).

    Example:
        >>> scara().gravity_force([0.0, 0.0, 0.0, 0.0]).round(3).tolist()
        [0.0, 0.0, 14.715, 0.0]
    """
    # name, r, d, mass, centre of mass along x, radius, length, rotor inertia, range, torque
    table = [
        ("upper_arm", 0.4, 0.0, 6.0, 0.15, 0.06, 0.3, 0.8, 2.4, 120.0),
        ("forearm", 0.0, 0.325, 4.0, 0.12, 0.05, 0.25, 0.4, 2.6, 60.0),
    ]
    rows = []
    for i, (name, r, d, mass, x, radius, length, rotor, reach, torque) in enumerate(table):
        body: dict[str, Any] = {"mass": mass, "com": (x, 0, 0), "inertia": cylinder(mass, radius, length, 0)}
        rows.append(MDHLink(i - 1, r=r, d=d, name=name, **body, rotor_inertia=rotor, **_limits(reach, torque)))
    quill: dict[str, Any] = {"mass": 1.2, "inertia": cylinder(1.2, 0.015, 0.3, 2), "effort_limit": 200.0}
    rows.append(MDHLink(1, d=0.275, joint="prismatic", name="quill", **quill, lower=-0.2, upper=0.0))
    rows.append(MDHLink(2, mass=0.3, inertia=cylinder(0.3, 0.03, 0.04, 2), effort_limit=10.0, name="tool"))
    return from_mdh(rows, name="scara")
