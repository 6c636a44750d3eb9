"""Robots from published papers."""

import math
from typing import Any

import numpy as np

from torsor.formats import DHLink, MDHLink
from torsor.library.shapes import BAR_COLOURS, ball, block, disc, plate, tube, with_visuals
from torsor.mechanism import Frame, Joint, Link
from torsor.robot.load import build, from_dh, from_mdh
from torsor.robot.robot import Robot
from torsor.spatial import axis_frame, make_pose


def two_link() -> Robot:
    """Return the horizontal two-link arm of Barman 2020, Tables 4.1 and 4.2: no gravity, torques up to 10 N·m.

    Example:
        >>> two_link().effort_limit.tolist()
        [10.0, 10.0]
    """
    arm = DHLink(a=0.4, mass=0.5, com=(-0.2, 0, 0), inertia=0.1 * np.eye(3), effort_limit=10.0)
    visuals = {f"link{k + 1}": plate((-0.4, 0, 0), (0, 0, 0), 0.07, BAR_COLOURS[k], level=k) for k in range(2)}
    visuals["base"] = [disc((0, 0, -0.035), 2, 0.06, 0.045, "dark")]
    return with_visuals(from_dh([arm, arm], gravity=(0, 0, 0), name="two_link"), visuals)


def slide_link() -> Robot:
    """Return the horizontal slide with a rotating link of Barman 2020, Tables 4.3 and 4.4, without gravity.

    The slide moves along the base z axis. The link turns about the base x axis, in the y-z plane.

    Example:
        >>> slide_link().mass_matrix([0.0, 0.5]).round(4).tolist()
        [[1.0, -0.0479], [-0.0479, 0.12]]
    """
    quarter = math.pi / 2
    body: dict[str, Any] = {"mass": 0.5, "inertia": 0.1 * np.eye(3), "effort_limit": 10.0}
    slide = DHLink(theta=quarter, d=0.4, alpha=quarter, joint="prismatic", com=(0, -0.2, 0), **body)
    link = DHLink(theta=quarter, a=0.4, com=(-0.2, 0, 0), **body)
    visuals = {
        "base": [tube((0, 0, -0.5), (0, 0, 0.9), 0.016, "steel"), block((0, 0, -0.5), (0.1, 0.1, 0.02), "dark")],
        "link1": [block((0, 0, 0), (0.09, 0.09, 0.09), "grey")],
        "link2": plate((-0.4, 0, 0), (0, 0, 0), 0.06, BAR_COLOURS[1], level=3),
    }
    return with_visuals(from_dh([slide, link], gravity=(0, 0, 0), name="slide_link"), visuals)


def stanford() -> Robot:
    """Return the Stanford arm of Guarino Lo Bianco 2009 (modified Denavit-Hartenberg), with a prismatic third joint.

    The printed table lacks a column of inertias. It is completed from published data for the same arm in the standard
    convention. After transformation to the modified frames, these data match every printed number.

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
    rows = []
    for i, (alpha, theta, r, mass, com, moments) in enumerate(table):
        body: dict[str, Any] = {"mass": mass, "com": com, "inertia": np.diag(moments)}
        joint = "prismatic" if i == 2 else "revolute"
        rows.append(MDHLink(i - 1, alpha=alpha, theta=theta, r=r, joint=joint, **body))
    visuals = {
        "base": [disc((0, 0, 0.01), 2, 0.16, 0.02, "dark"), disc((0, 0, 0.16), 2, 0.09, 0.3, "silver")],
        "link1": [
            disc((0, 0, -0.09), 2, 0.075, 0.03, "dark"),
            tube((0, 0, -0.075), (0, 0, 0.02), 0.07, "silver"),
            disc((0, 0.03, 0), 1, 0.07, 0.14, "silver"),
        ],
        "link2": [disc((0, 0, -0.03), 2, 0.06, 0.04, "dark"), block((0, 0, 0), (0.11, 0.14, 0.11), "orange")],
        "link3": [block((0, 0, -0.42), (0.05, 0.05, 0.78), "steel"), block((0, 0, -0.81), (0.08, 0.08, 0.03), "dark")],
        "link4": [disc((0, 0, -0.02), 2, 0.032, 0.04, "dark")],
        "link5": [ball((0, 0, 0), 0.034, "grey"), tube((0, 0, 0), (0, -0.09, 0), 0.024, "silver")],
        "link6": [tube((0, 0, -0.17), (0, 0, -0.03), 0.018, "silver"), disc((0, 0, -0.015), 2, 0.035, 0.03, "dark")],
    }
    return with_visuals(from_mdh(rows, name="stanford"), visuals)


def elastic_arm() -> Robot:
    """Return the arm of Hua et al. 2022: a rotating column, two parallel joints, and a spring in the last joint.

    Masses and inertias are from Table I. The paper contains no other data, so the model makes assumptions: joint 1 is
    vertical, and joints 2 and 3 are horizontal; the links are 0.3, 0.3 and 0.25 m long with centred masses; motor 1 is
    in the base, and motors 2 and 3 are on link 1 at joint 2, all with a gear ratio of 10. The x axis is along the link
    (y for the column). Links 2 and 3 have the printed inertias, which are not physically consistent. The frame "tip" is
    at the end of the last link.

    Example:
        >>> arm = elastic_arm()
        >>> arm.coordinate_names
        ('joint1', 'joint2', 'joint3', 'joint3/motor')
        >>> arm.mass_matrix(np.zeros(4)).round(4).tolist()[3]  # the rotor spins 10 times as fast: 0.004 * 10**2
        [0.0, 0.0, 0.0, 0.4]
    """
    return _arm_of_hua("elastic_arm").with_motor("joint3", carrier="link1", place=(0.0, 0.3, 0.0), **_SOFT_MOTOR)


def bevel_elastic_arm() -> Robot:
    """Return the arm of Hua et al. 2022 with motor 3 along link 2, where it drives joint 3 through bevel gears.

    Joints 1 and 2 rotate the rotor of the elastic joint about axes other than its spin axis. Unlike in ``elastic_arm``,
    the rotor-link couplings in the paper's eq. 30 are therefore not zero: with H = Iz eta = 0.04 kg m^2,
    S = (H sin q2, 0, 0), C1 theta' = H cos q2 theta' (q2', -q1', 0), C2 q' = H cos q2 q1' q2'.

    Example:
        >>> arm = bevel_elastic_arm()
        >>> arm.mass_matrix([0.0, np.pi / 2, 0.0, 0.0]).round(4).tolist()[3]  # S and the reflected inertia
        [0.04, 0.0, 0.0, 0.4]
        >>> arm.links[1].mass  # link 2 and its motor
        2.5
    """
    frame = make_pose(axis_frame([1.0, 0.0, 0.0]), [0.15, 0.0, 0.0])  # motor frame: z along the link
    return _arm_of_hua("bevel_elastic_arm").with_motor("joint3", carrier="link2", place=frame, **_SOFT_MOTOR)


_MOTOR: dict[str, Any] = {"inertia": 0.004, "ratio": 10.0, "mass": 1.0, "moments": (0.006, 0.006, 0.004)}
_SOFT_MOTOR = _MOTOR | {"stiffness": 100.0}


def _arm_of_hua(name: str) -> Robot:
    """Return the arm of Hua et al. 2022 without the motor of its elastic joint."""
    second = np.array([[0.35, 0.15, 0.1], [0.15, 0.4, 0.2], [0.1, 0.2, 0.3]])
    third = np.array([[0.3, 0.15, 0.13], [0.15, 0.25, 0.2], [0.13, 0.2, 0.25]])
    column = tube((0, 0.065, 0), (0, 0.3, 0), 0.035, "silver"), disc((0, 0.3, 0), 2, 0.045, 0.09, "dark")
    inner = tube((0, 0, 0), (0.3, 0, 0), 0.028, BAR_COLOURS[0]), disc((0.3, 0, 0), 2, 0.036, 0.075, "dark")
    outer = tube((0, 0, 0), (0.25, 0, 0), 0.022, BAR_COLOURS[1]), ball((0.25, 0, 0), 0.03, "white")
    links = [
        Link("base", visuals=(disc((0, 0, 0.01), 2, 0.1, 0.02, "dark"), disc((0, 0, 0.04), 2, 0.05, 0.05, "grey"))),
        Link("link1", 2.5, np.array([0.0, 0.15, 0.0]), np.diag([0.4, 0.5, 0.4]), column),
        Link("link2", 1.5, np.array([0.15, 0.0, 0.0]), second, inner, strict=False),
        Link("link3", 1.0, np.array([0.125, 0.0, 0.0]), third, outer, strict=False),
    ]
    upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # y up
    joints = [
        Joint("joint1", "revolute", "base", "link1", make_pose(upright), np.array([0.0, 1.0, 0.0])),
        Joint("joint2", "revolute", "link1", "link2", make_pose(p=[0.0, 0.3, 0.0])),
        Joint("joint3", "revolute", "link2", "link3", make_pose(p=[0.3, 0.0, 0.0])),
    ]
    robot = build(name, links, joints, [Frame("tip", "link3", make_pose(p=[0.25, 0.0, 0.0]))])
    robot = robot.with_motor("joint1", carrier="base", **_MOTOR)
    return robot.with_motor("joint2", carrier="link1", place=(0.0, 0.3, 0.0), **_MOTOR)
