"""Commercial arms, with published parameters, so that no file is needed."""

import math
from typing import Any

import numpy as np

from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import from_rpy, make_pose

_QUARTER = math.pi / 2


def ur5() -> Robot:
    """Return the UR5 of Universal Robots: six axes, 0.85 m reach, 18.4 kg, for 5 kg.

    Numbers are those of the maker's ROS description (``ur5_robot.urdf``), with its names of links and joints. Its
    inertias of the three wrist links are far above those of bodies of their size, and act as rotor inertias; they are
    kept as published. The frame "ee_link" is at the flange. Limits: 150 N m and 3.15 rad/s of the first three joints,
    28 N m and 3.2 rad/s of the wrist.

    Example:
        >>> ur5().gravity_force([0.0, -1.5, 1.0, -1.0, -1.5, 0.0]).round(3).tolist()
        [0.0, -17.014, -13.938, -0.174, 0.0, 0.0]
    """
    # name, pitch and position in the link before, axis, mass, centre of mass along z, moments across and along z,
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
    links, joints = [Link("base_link")], []
    for name, link, pitch, place, axis, mass, far, across, along, half_turns, velocity, torque in table:
        pose, half = make_pose(from_rpy([0, pitch, 0]), place), half_turns * math.pi
        limits: Any = {"lower": -half, "upper": half, "velocity_limit": velocity, "effort_limit": torque}
        names = f"{name}_joint", "revolute", links[-1].name, f"{link}_link"
        joints.append(Joint(*names, pose, np.eye(3)[axis], **limits))
        links.append(Link(f"{link}_link", mass, np.array([0, 0, far]), np.diag([across, across, along])))
    links.append(Link("ee_link"))
    flange = make_pose(from_rpy([0, 0, _QUARTER]), [0, 0.0823, 0])
    joints.append(Joint("ee_fixed_joint", "fixed", "wrist_3_link", "ee_link", flange))
    return build("ur5", links, joints)


def panda(hand: bool = True) -> Robot:
    """Return the Panda of Franka Emika: seven axes, 0.855 m reach, 18 kg, for 3 kg.

    Numbers are those of the maker's ROS description (``panda.urdf``), with its names of links and joints: the inertias
    that it took over from an identification (Gaz, Cognetti, Oliva, Robuffo Giordano and De Luca, "Dynamic
    identification of the Franka Emika Panda robot", 2019), some of which are not physically consistent, and a viscous
    friction of 0.003 N m s. The ``hand`` (0.73 kg) is fixed to the flange, its fingers (15 g each) are left out;
    ``hand=False`` leaves it all out. Frames are "panda_link8" at the flange, and "panda_hand" and "panda_hand_tcp".

    Other limits of the maker, for which a Robot has no fields: torques change by at most 1000 N m/s,
    accelerations stay within (15, 7.5, 10, 12.5, 15, 20, 20) rad/s^2 and jerks within (7500, 3750, 5000, 6250, 7500,
    10000, 10000) rad/s^3.

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
    links, joints = [Link("panda_link0")], []
    for k, (roll, place, mass, com, moments, (xy, xz, yz), (lower, upper), velocity, torque) in enumerate(table, 1):
        inertia = np.array([[moments[0], xy, xz], [xy, moments[1], yz], [xz, yz, moments[2]]])
        pose = make_pose(from_rpy([roll, 0, 0]), place)
        limits: Any = {"lower": lower, "upper": upper, "velocity_limit": velocity, "effort_limit": torque}
        names = f"panda_joint{k}", "revolute", links[-1].name, f"panda_link{k}"
        joints.append(Joint(*names, pose, **limits, viscous=0.003))
        links.append(Link(f"panda_link{k}", mass, np.array(com), inertia, strict=False))
    links.append(Link("panda_link8"))
    joints.append(Joint("panda_joint8", "fixed", "panda_link7", "panda_link8", make_pose(p=[0, 0, 0.107])))
    if hand:
        links.append(Link("panda_hand", 0.73, np.array([-0.01, 0, 0.03]), np.diag([0.001, 0.0025, 0.0017])))
        links.append(Link("panda_hand_tcp"))
        turned = make_pose(from_rpy([0, 0, -_QUARTER / 2]))
        joints.append(Joint("panda_hand_joint", "fixed", "panda_link8", "panda_hand", turned))
        tip = make_pose(p=[0, 0, 0.1034])
        joints.append(Joint("panda_hand_tcp_joint", "fixed", "panda_hand", "panda_hand_tcp", tip))
    return build("panda", links, joints)
