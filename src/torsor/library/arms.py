"""Industrial arms with six and seven axes, and a SCARA robot."""

import math
from typing import Any

import numpy as np

from torsor.formats import DHLink, MDHLink
from torsor.library.shapes import ball, block, cylinder, disc, tube, with_visuals
from torsor.mechanism import Joint, Link, Visual
from torsor.robot.load import build, from_dh, from_mdh
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, make_pose

_QUARTER = math.pi / 2


def ur5() -> Robot:
    """Return the UR5 from Universal Robots: six axes, 0.85 m reach, 18.4 kg with its base, 5 kg payload.

    Values, link names and joint names are those of the manufacturer's ROS description (``ur5_robot.urdf``). The
    inertias of the three wrist links (the first two: 0.11 and 0.22 kg·m² at 1.2 kg) are far too large for bodies of
    that size, since they are those of cylinders with a radius of 0.6 m. They act like rotor inertias and are kept as
    published. The frame "ee_link" is at the flange. Limits are 150 N·m and 3.15 rad/s for the first three joints, and
    28 N·m and 3.2 rad/s for the wrist. The posture "home" is clear of the floor. Visuals are simple solids.

    Example:
        >>> ur5().gravity_force([0.0, -1.5, 1.0, -1.0, -1.5, 0.0]).round(3).tolist()
        [0.0, -17.014, -13.938, -0.174, 0.0, 0.0]
    """
    # name, pitch and position in the previous link, axis, mass, centre of mass along z, moments across and along z,
    # range, velocity, torque
    table = [
        ("shoulder_pan", "shoulder", 0, (0, 0, 0.089159), 2, 3.7, 0, 0.010267495893, 0.00666, 2, 3.15, 150),
        ("shoulder_lift", "upper_arm", _QUARTER, (0, 0.13585, 0), 1, 8.393, 0.28, 0.22689067591, 0.0151074, 2,
         3.15, 150),
        ("elbow", "forearm", 0, (0, -0.1197, 0.425), 1, 2.275, 0.25, 0.049443313556, 0.004095, 1, 3.15, 150),
        ("wrist_1", "wrist_1", _QUARTER, (0, 0, 0.39225), 1, 1.219, 0, 0.111172755531, 0.21942, 2, 3.2, 28),
        ("wrist_2", "wrist_2", 0, (0, 0.093, 0), 2, 1.219, 0, 0.111172755531, 0.21942, 2, 3.2, 28),
        ("wrist_3", "wrist_3", 0, (0, 0, 0.09465), 1, 0.1879, 0, 0.0171364731454, 0.033822, 2, 3.2, 28),
    ]  # fmt: skip
    visuals = _ur5_visuals()
    links, joints = [Link("base_link", visuals=visuals["base"])], []
    for name, link, pitch, place, axis, mass, far, across, along, half_turns, velocity, torque in table:
        pose, half = make_pose(from_rpy([0, pitch, 0]), place), half_turns * math.pi
        limits: Any = {"lower": -half, "upper": half, "velocity_limit": velocity, "effort_limit": torque}
        names = f"{name}_joint", "revolute", links[-1].name, f"{link}_link"
        joints.append(Joint(*names, pose, np.eye(3)[axis], **limits))
        inertia = np.diag([across, across, along])
        links.append(Link(f"{link}_link", mass, np.array([0, 0, far]), inertia, visuals[link]))
    links.append(Link("ee_link"))
    flange = make_pose(from_rpy([0, 0, _QUARTER]), [0, 0.0823, 0])
    joints.append(Joint("ee_fixed_joint", "fixed", "wrist_3_link", "ee_link", flange))
    return build("ur5", links, joints).with_posture("home", [0.0, -1.4, 1.6, -1.2, -1.5, 0.0])


def _ur5_visuals() -> dict[str, tuple[Visual, ...]]:
    """Return the visuals of the UR5 links: tubes between joint housings with blue end caps."""
    return {
        "base": (disc((0, 0, 0.01), 2, 0.075, 0.02, "silver"), disc((0, 0, 0.035), 2, 0.056, 0.04, "dark")),
        "shoulder": (
            disc((0, 0, 0.007), 2, 0.06, 0.112, "silver"),
            disc((0, 0, 0.069), 2, 0.054, 0.012, "blue"),
            disc((0, 0.04, 0), 1, 0.059, 0.08, "silver"),
        ),
        "upper_arm": (
            *_housing((0, 0.002, 0), 1, 0.06, 0.124),
            tube((0, 0, 0.04), (0, 0, 0.385), 0.043, "silver"),
            *_housing((0, -0.002, 0.425), 1, 0.057, 0.116, caps=(1,)),
        ),
        "forearm": (
            *_housing((0, 0.0, 0), 1, 0.053, 0.12, caps=(-1,)),
            tube((0, 0, 0.03), (0, 0, 0.36), 0.036, "silver"),
            disc((0, 0.0, 0.39225), 1, 0.042, 0.094, "silver"),
            disc((0, -0.052, 0.39225), 1, 0.038, 0.012, "blue"),
        ),
        "wrist_1": (*_housing((0, 0.093, 0), 2, 0.042, 0.096, caps=(-1,)), disc((0, 0.05, 0), 1, 0.038, 0.03, "dark")),
        "wrist_2": (*_housing((0, 0, 0.09465), 1, 0.042, 0.09, caps=(-1,)), disc((0, 0, 0.05), 2, 0.038, 0.03, "dark")),
        "wrist_3": (disc((0, 0.062, 0), 1, 0.036, 0.038, "grey"), disc((0, 0.078, 0), 1, 0.0315, 0.0086, "dark")),
    }


def _housing(
    centre: tuple[float, float, float], axis: int, radius: float, length: float, caps: tuple[int, ...] = (1, -1)
) -> tuple[Visual, ...]:
    """Return a joint housing: a cylinder along ``axis``, with a blue cap at the ends ``caps`` (1, -1)."""
    ends = [np.asarray(centre) + side * (length / 2 + 0.005) * np.eye(3)[axis] for side in caps]
    return (
        disc(centre, axis, radius, length, "silver"),
        *(disc(end, axis, 0.9 * radius, 0.012, "blue") for end in ends),
    )


def panda(hand: bool = True) -> Robot:
    """Return the Panda from Franka Emika: seven axes, 0.855 m reach, 18 kg with its base, 3 kg payload.

    Values, link names and joint names are those of the manufacturer's ROS description (``panda.urdf``). The inertias
    are identified values (Gaz, Cognetti, Oliva, Robuffo Giordano and De Luca, "Dynamic identification of the Franka
    Emika Panda robot", 2019), some of which are not physically consistent. Viscous friction is 0.003 N·m·s. The
    ``hand`` (0.73 kg) is fixed to the flange, without the mass of its fingers (15 g each); ``hand=False`` omits it. The
    frames are "panda_link8" at the flange, "panda_hand" and "panda_hand_tcp". The posture "home" is the manufacturer's
    ready posture. Visuals are simple solids.

    The manufacturer also specifies limits for which a Robot has no fields: torque rates up to 1000 N·m/s, accelerations
    up to (15, 7.5, 10, 12.5, 15, 20, 20) rad/s^2, and jerks up to (7500, 3750, 5000, 6250, 7500, 10000, 10000) rad/s^3.

    Example:
        >>> panda().effort_limit.tolist()
        [87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0]
    """
    # roll, position, mass, centre of mass, moments (xx, yy, zz) and products (xy, xz, yz), range, velocity, torque
    table = [
        (0, (0, 0, 0.333), 4.970684, (0.003875, 0.002081, -0.04762),
         (0.70337, 0.70661, 0.009117), (-0.000139, 0.006772, 0.019169), (-2.8973, 2.8973), 2.175, 87),
        (-_QUARTER, (0, 0, 0), 0.646926, (-0.003141, -0.02872, 0.003495),
         (0.007962, 0.02811, 0.025995), (-0.003925, 0.010254, 0.000704), (-1.7628, 1.7628), 2.175, 87),
        (_QUARTER, (0, -0.316, 0), 3.228604, (0.027518, 0.039252, -0.066502),
         (0.037242, 0.036155, 0.01083), (-0.004761, -0.011396, -0.012805), (-2.8973, 2.8973), 2.175, 87),
        (_QUARTER, (0.0825, 0, 0), 3.587895, (-0.05317, 0.104419, 0.027454),
         (0.025853, 0.019552, 0.028323), (0.007796, -0.001332, 0.008641), (-3.0718, -0.0698), 2.175, 87),
        (-_QUARTER, (-0.0825, 0.384, 0), 1.225946, (-0.011953, 0.041065, -0.038437),
         (0.035549, 0.029474, 0.008627), (-0.002117, -0.004037, 0.000229), (-2.8973, 2.8973), 2.61, 12),
        (_QUARTER, (0, 0, 0), 1.666555, (0.060149, -0.014117, -0.010517),
         (0.001964, 0.004354, 0.005433), (0.000109, -0.001158, 0.000341), (-0.0175, 3.7525), 2.61, 12),
        (_QUARTER, (0.088, 0, 0), 0.735522, (0.010517, -0.004252, 0.061597),
         (0.012516, 0.010027, 0.004815), (-0.000428, -0.001196, -0.000741), (-2.8973, 2.8973), 2.61, 12),
    ]  # fmt: skip
    visuals = _panda_visuals()
    links, joints = [Link("panda_link0", visuals=visuals[0])], []
    for k, (roll, place, mass, com, moments, (xy, xz, yz), (lower, upper), velocity, torque) in enumerate(table, 1):
        inertia = np.array([[moments[0], xy, xz], [xy, moments[1], yz], [xz, yz, moments[2]]])
        pose = make_pose(from_rpy([roll, 0, 0]), place)
        limits: Any = {"lower": lower, "upper": upper, "velocity_limit": velocity, "effort_limit": torque}
        names = f"panda_joint{k}", "revolute", links[-1].name, f"panda_link{k}"
        joints.append(Joint(*names, pose, **limits, viscous=0.003))
        links.append(Link(f"panda_link{k}", mass, np.array(com), inertia, visuals[k], strict=False))
    links.append(Link("panda_link8"))
    joints.append(Joint("panda_joint8", "fixed", "panda_link7", "panda_link8", make_pose(p=[0, 0, 0.107])))
    if hand:
        gripper = block((0, 0, 0.035), (0.06, 0.2, 0.065), "white"), block((0, 0, 0.012), (0.064, 0.12, 0.03), "dark")
        fingers = (block((0, side * 0.03, 0.088), (0.02, 0.016, 0.05), "dark") for side in (-1, 1))
        inertia = np.diag([0.001, 0.0025, 0.0017])
        links.append(Link("panda_hand", 0.73, np.array([-0.01, 0, 0.03]), inertia, (*gripper, *fingers)))
        links.append(Link("panda_hand_tcp"))
        turned = make_pose(from_rpy([0, 0, -_QUARTER / 2]))
        joints.append(Joint("panda_hand_joint", "fixed", "panda_link8", "panda_hand", turned))
        tip = make_pose(p=[0, 0, 0.1034])
        joints.append(Joint("panda_hand_tcp_joint", "fixed", "panda_hand", "panda_hand_tcp", tip))
    home = [0.0, -_QUARTER / 2, 0.0, -1.5 * _QUARTER, 0.0, _QUARTER, _QUARTER / 2]
    return build("panda", links, joints).with_posture("home", home)


def _panda_visuals() -> list[tuple[Visual, ...]]:
    """Return the visuals of Panda links 0 to 7: white shells with black rings at the joints."""

    def shell(start: tuple[float, ...], end: tuple[float, ...], radius: float) -> Visual:
        return tube(start, end, radius, "white", "capsule")

    return [
        (
            block((-0.04, 0, 0.03), (0.2, 0.17, 0.06), "white"),
            shell((-0.06, 0, 0.06), (0.0, 0, 0.07), 0.06),
            disc((0, 0, 0.1), 2, 0.062, 0.09, "white"),
            disc((0, 0, 0.147), 2, 0.058, 0.014, "dark"),
        ),
        (shell((0, 0, -0.125), (0, 0, -0.06), 0.06), shell((0, -0.04, 0), (0, 0.04, 0), 0.062)),
        (disc((0, 0, 0), 2, 0.055, 0.215, "dark"), shell((0, -0.04, 0), (0, -0.125, 0), 0.06)),
        (
            disc((0, 0, -0.128), 2, 0.055, 0.014, "dark"),
            shell((0, 0, -0.075), (0.04, 0, -0.03), 0.058),
            shell((0.0825, -0.035, 0), (0.0825, 0.035, 0), 0.056),
        ),
        (
            disc((0, 0, 0), 2, 0.05, 0.19, "dark"),
            shell((-0.02, 0.02, 0), (-0.0825, 0.075, 0), 0.056),
            disc((-0.0825, 0.128, 0), 1, 0.052, 0.014, "dark"),
        ),
        (
            shell((0, 0, -0.2), (0, 0.02, -0.17), 0.056),
            shell((0, 0.045, -0.16), (0, 0.055, -0.03), 0.036),
            shell((0, -0.015, 0), (0, 0.04, 0), 0.05),
        ),
        (disc((0, 0, 0), 2, 0.045, 0.15, "dark"), shell((0.02, 0, 0), (0.088, 0, 0), 0.05)),
        (disc((0, 0, 0.07), 2, 0.048, 0.06, "white"), disc((0, 0, 0.1), 2, 0.04, 0.014, "dark")),
    ]


def _limits(reach: float, torque: float) -> dict[str, Any]:
    return {"lower": -reach, "upper": reach, "effort_limit": torque}


def six_axis_arm() -> Robot:
    """Return a six-axis arm with a spherical wrist: a PUMA 560.

    Geometry, inertias and rotor inertias are from Armstrong, Khatib and Burdick, "The explicit dynamic model and
    inertial parameters of the PUMA 560 arm", 1986. For the first link, only the moment of inertia about its joint is
    known; the other moments have no effect. The moments of inertia were measured one by one, and those of the third
    link are not quite physically consistent. Friction coefficients are correct only to within an order of magnitude.

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
    visuals = {
        "base": [
            disc((0, 0, -0.655), 2, 0.19, 0.02, "dark"),
            disc((0, 0, -0.39), 2, 0.09, 0.52, "grey"),
            disc((0, 0, -0.02), 2, 0.105, 0.22, "white"),
        ],
        "link1": [disc((0, 0, 0.06), 2, 0.1, 0.26, "white"), disc((0, 0, -0.075), 2, 0.085, 0.02, "dark")],
        "link2": [
            disc((-0.4318, 0, 0.235), 2, 0.115, 0.09, "white"),
            block((-0.2, 0, 0.235), (0.44, 0.17, 0.085), "white"),
            disc((0, 0, 0.235), 2, 0.085, 0.09, "white"),
            disc((-0.4318, 0, 0.284), 2, 0.06, 0.012, "dark"),
            block((-0.62, 0, 0.235), (0.18, 0.13, 0.085), "grey"),
        ],
        "link3": [
            disc((-0.0203, -0.02, 0), 1, 0.075, 0.11, "white"),
            block((-0.01, 0, 0.14), (0.11, 0.1, 0.28), "white"),
            block((-0.005, 0, 0.32), (0.085, 0.085, 0.12), "white"),
            block((-0.02, 0, -0.08), (0.1, 0.09, 0.08), "grey"),
        ],
        "link4": [disc((0, -0.035, 0), 1, 0.042, 0.05, "dark"), disc((0, 0, 0), 2, 0.04, 0.08, "white")],
        "link5": [ball((0, 0, 0), 0.034, "grey"), disc((0, 0, 0.03), 2, 0.028, 0.03, "white")],
        "link6": [disc((0, 0, 0.052), 2, 0.032, 0.012, "dark")],
    }
    return with_visuals(from_dh(rows, name="six_axis_arm", strict=False), visuals)


def seven_axis_arm() -> Robot:
    """Return a light seven-axis arm with collinear shoulder, elbow and wrist: 0.8 m reach, 14 kg payload.

    It does not represent a particular product. Each link has the inertia of a solid cylinder along its axis.

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
        # Odd links extend backwards along their own axis; the others extend along y towards the next joint.
        along = 2 if i % 2 == 0 else 1
        side = -0.5 if i % 2 == 0 else (-0.5 if alpha < 0 else 0.5)
        com = np.zeros(3)
        com[along] = side * length
        body: dict[str, Any] = {"mass": mass, "com": com, "inertia": cylinder(mass, radius, length, along)}
        rows.append(MDHLink(i - 1, alpha=alpha, r=r, **body, **_limits(math.radians(reach), torque)))
    visuals = {
        "base": [disc((0, 0, 0.015), 2, 0.1, 0.03, "dark"), disc((0, 0, 0.09), 2, 0.08, 0.13, "silver")],
        "link1": [disc((0, 0, -0.195), 2, 0.072, 0.02, "orange"), tube((0, 0, -0.185), (0, 0, 0), 0.07, "silver"),
                  ball((0, 0, 0), 0.078, "silver")],
        "link2": [*_hinge(0.066, 0.17), tube((0, 0, 0), (0, -0.21, 0), 0.066, "silver")],
        "link3": [disc((0, 0, -0.2), 2, 0.064, 0.02, "orange"), tube((0, 0, -0.19), (0, 0, 0), 0.062, "silver"),
                  ball((0, 0, 0), 0.07, "silver")],
        "link4": [*_hinge(0.058, 0.155), tube((0, 0, 0), (0, 0.2, 0), 0.058, "silver")],
        "link5": [disc((0, 0, -0.19), 2, 0.056, 0.02, "orange"), tube((0, 0, -0.18), (0, 0, 0), 0.053, "silver"),
                  ball((0, 0, 0), 0.06, "silver")],
        "link6": [*_hinge(0.05, 0.13), tube((0, 0, 0), (0, -0.07, 0), 0.05, "silver")],
        "link7": [disc((0, 0, -0.045), 2, 0.047, 0.02, "orange"), disc((0, 0, -0.018), 2, 0.04, 0.036, "dark")],
    }  # fmt: skip
    return with_visuals(from_mdh(rows, name="seven_axis_arm"), visuals)


def _hinge(radius: float, length: float) -> list[Visual]:
    """Return a joint housing along z with dark ends."""
    return [disc((0, 0, 0), 2, radius, length, "silver"), disc((0, 0, 0), 2, 0.8 * radius, length + 0.012, "dark")]


def scara() -> Robot:
    """Return a SCARA robot with two horizontal links, a vertical slide and a rotating tool: 0.6 m reach, 2 kg payload.

    It does not represent a particular product. The coordinates are shoulder and elbow (rad), slide (m, upwards) and
    tool (rad).

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
    visuals = {
        "base": [
            block((0, 0, 0.015), (0.24, 0.24, 0.03), "dark"),
            disc((0, 0, 0.19), 2, 0.085, 0.34, "white"),
            disc((0, 0, 0.355), 2, 0.075, 0.02, "dark"),
        ],
        "upper_arm": [
            disc((0, 0, 0), 2, 0.09, 0.07, "white"),
            block((0.1625, 0, 0), (0.325, 0.13, 0.07), "white"),
            disc((0.325, 0, 0), 2, 0.075, 0.07, "white"),
            disc((0.325, 0, 0.042), 2, 0.06, 0.02, "dark"),
        ],
        "forearm": [
            disc((0, 0, 0.09), 2, 0.075, 0.08, "white"),
            block((0.1375, 0, 0.09), (0.275, 0.11, 0.08), "white"),
            disc((0.275, 0, 0.09), 2, 0.06, 0.08, "white"),
            block((0.1, 0, 0.18), (0.16, 0.09, 0.12), "orange"),
        ],
        "quill": [tube((0, 0, -0.15), (0, 0, 0.35), 0.014, "steel")],
        "tool": [disc((0, 0, -0.15), 2, 0.03, 0.02, "dark"), block((0, 0, -0.172), (0.05, 0.02, 0.03), "grey")],
    }
    return with_visuals(from_mdh(rows, name="scara"), visuals)
