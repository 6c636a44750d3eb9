"""The robots of the documents."""

import math
from typing import Any

import numpy as np

from torsor.formats import DHLink, MDHLink
from torsor.model import Robot
from torsor.reading import from_dh, from_mdh

__all__ = ["slide_link", "stanford", "two_link"]


def two_link() -> Robot:
    """Return the two-link arm of document 001, Tables 4.1 and 4.2: horizontal, so without gravity; 10 N m at most.

    Example:
        >>> two_link().effort_limit.tolist()
        [10.0, 10.0]
    """
    arm = DHLink(a=0.4, mass=0.5, com=(-0.2, 0, 0), inertia=0.1 * np.eye(3), effort_limit=10.0)
    return from_dh([arm, arm], gravity=(0, 0, 0), name="two_link")


def slide_link() -> Robot:
    """Return the slide with a swinging link of document 001, Tables 4.3 and 4.4: horizontal, so without gravity.

    The slide moves along z of the base, and the link turns about x of the base in the plane of y and z.

    Example:
        >>> slide_link().mass_matrix([0.0, 0.5]).round(4).tolist()
        [[1.0, -0.0479], [-0.0479, 0.12]]
    """
    quarter = math.pi / 2
    body: dict[str, Any] = {"mass": 0.5, "inertia": 0.1 * np.eye(3), "effort_limit": 10.0}
    slide = DHLink(theta=quarter, d=0.4, alpha=quarter, joint="prismatic", com=(0, -0.2, 0), **body)
    link = DHLink(theta=quarter, a=0.4, com=(-0.2, 0, 0), **body)
    return from_dh([slide, link], gravity=(0, 0, 0), name="slide_link")


def stanford() -> Robot:
    """Return the Stanford arm of document 002 (modified Denavit-Hartenberg), its third joint sliding.

    The printed table has lost a column of inertias. The values here complete it from the published standard-convention
    data of the same arm, turned into the modified frames, which match every number that is printed.

    Example:
        >>> stanford().gravity_force([0, 0, 0, 0, 0, 0]).round(6).tolist()[2]
        63.4707
    """
    quarter = math.pi / 2
    # alpha, theta, r, mass, centre of mass, principal moments
    table = [
        (0.0, 0.0, 0.412, 9.29, (0, -0.1105, -0.0175), (0.276, 0.071, 0.255)),
        (-quarter, 0.0, 0.154, 5.01, (0, 0, -0.1054), (0.108, 0.100, 0.018)),
        (quarter, -quarter, 0.0, 4.25, (0, 0, -0.6447), (2.51, 2.51, 0.006)),
        (0.0, 0.0, 0.0, 1.08, (0, -0.0054, -0.0092), (0.002, 0.001, 0.001)),
        (-quarter, 0.0, 0.0, 0.63, (0, -0.0566, 0), (0.003, 0.0004, 0.003)),
        (quarter, 0.0, 0.263, 0.51, (0, 0, 0.1554), (0.013, 0.013, 0.0003)),
    ]
    rows = [
        MDHLink(
            i - 1,
            alpha=alpha,
            theta=theta,
            r=r,
            joint="prismatic" if i == 2 else "revolute",
            mass=mass,
            com=com,
            inertia=np.diag(moments),
        )
        for i, (alpha, theta, r, mass, com, moments) in enumerate(table)
    ]
    return from_mdh(rows, name="stanford")
