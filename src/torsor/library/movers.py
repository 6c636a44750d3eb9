"""Robots with elastic joints or a floating base: a light arm, a free-flying arm, an eel and a quadruped."""

from dataclasses import replace
from typing import Any

import numpy as np

from torsor.library.arms import seven_axis_arm
from torsor.library.shapes import ball, block, cylinder, disc, tube
from torsor.mechanism import Frame, Joint, Link, Shape
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

ELASTIC_HOME = [0.0, 0.5, 0.0, -1.4, 0.0, 1.24, 0.0]  # rad: the last link is vertical


def elastic_seven_axis_arm(stiffness: float = 1e4) -> Robot:
    """Return the seven-axis arm with elastic joints: springs between motors and links, as in lightweight arms.

    Each motor is on its joint's parent link, spins about the joint axis, and has a gear ratio of 100. The first four
    joints have the given ``stiffness`` (N·m/rad), and the wrist joints half that value. Spring damping is 1 N·m·s/rad.
    In the posture "home", the elbow is bent and the hand points down in front of the base.

    Example:
        >>> arm = elastic_seven_axis_arm()
        >>> arm.nv, arm.coordinate_names[7]
        (14, 'joint1/motor')
        >>> bool(np.linalg.svd(arm.jacobian(arm.postures["home"], "link7"))[1][-1] > 0.2)
        True
    """
    arm = seven_axis_arm()
    for i, joint in enumerate(arm.joints):
        inertia, K = (3e-4, stiffness) if i < 4 else (1e-4, stiffness / 2)
        along = joint.placement[:3, :3] @ joint.axis
        arm = arm.with_motor(joint.name, inertia, 100.0, joint.parent, along, stiffness=K, damping=1.0)
    home = np.tile(ELASTIC_HOME, 2)  # of links and motors: the springs are relaxed
    return replace(arm, name="elastic_seven_axis_arm").with_posture("home", home)


def free_flying_arm() -> Robot:
    """Return a 200 kg satellite with the seven-axis arm on its deck, a floating base and no gravity.

    Example:
        >>> robot = free_flying_arm()
        >>> robot.nq, robot.nv, robot.joint_names[:2]
        (14, 13, ('root', 'joint1'))
    """
    panels = []
    for side in (-1, 1):
        panels.append(tube((0, 0.5 * side, 0), (0, 0.7 * side, 0), 0.03, "steel"))
        panels.append(block((0, 1.5 * side, 0), (0.8, 1.6, 0.03), (0.13, 0.2, 0.42)))
        panels.append(block((0, 1.5 * side, 0), (0.03, 1.62, 0.045), "silver"))
    bus_box = block((0, 0, 0), (1.0, 1.0, 0.96), "yellow"), block((0, 0, 0.48), (0.9, 0.9, 0.04), "silver")
    satellite = Link("satellite", 200.0, np.zeros(3), np.diag([40.0, 35.0, 30.0]), (*bus_box, *panels))
    deck = Frame("deck", "satellite", make_pose(p=[0.0, 0.0, 0.5]))
    bus = build("free_flying_arm", [satellite], [], [deck], gravity=(0.0, 0.0, 0.0), base="floating")
    return bus.attach(seven_axis_arm(), at="deck")


def eel(links: int = 12, length: float = 0.1, radius: float = 0.03, density: float = 1000.0) -> Robot:
    """Return an eel: a chain of links that bends sideways, with a floating base and the density of water.

    Each link is a cylinder of ``length`` and ``radius`` (m) and ``density`` (kg/m^3) along the x axis of its frame,
    which is at its front end. The head swims towards -x. Gravity and buoyancy cancel, so gravity is zero. Pass fluid
    forces (drag, added mass) as ``external``.

    Example:
        >>> robot = eel()
        >>> len(robot.links), robot.nv, round(robot.mass, 2)
        (12, 17, 3.39)
    """
    mass = density * np.pi * radius**2 * length
    body = mass, np.array([length / 2, 0.0, 0.0]), cylinder(mass, radius, length, 0)
    made, joints = list[Link](), list[Joint]()
    for i in range(links):
        shade = 0.16 + 0.05 * (i % 2), 0.36 + 0.06 * (i % 2), 0.38
        skin = tube((0, 0, 0), (length, 0, 0), radius * (1 - 0.5 * i / links), shade, "capsule")
        made.append(Link(f"link{i + 1}", *body, (skin,)))
        if i:
            joints.append(Joint(f"joint{i}", "revolute", f"link{i}", f"link{i + 1}", make_pose(p=[length, 0.0, 0.0])))
    return build("eel", made, joints, gravity=(0.0, 0.0, 0.0), base="floating")


FOOT_RADIUS = 0.02  # m
STANDING_LEG = (0.0, 0.7, -1.4)  # rad: abduct, hip and knee; the feet are below the hips


def quadruped() -> Robot:
    """Return a 12 kg quadruped: a floating-base trunk and four legs with three joints each.

    x points forward, y to the left and z up. With all joints at zero, the legs, which are 0.4 m long, hang straight
    down. The legs are fl, fr, hl and hr. Each has the joints abduct (about x), hip and knee (about y), such as
    "fl_hip", and a frame such as "fl_foot". The collision shape of a foot is a ball with a radius of 0.02 m around the
    origin of this frame. In the posture "home", the robot stands on the floor z = 0; simulations start there by
    default.

    Example:
        >>> robot = quadruped()
        >>> robot.nv, round(robot.mass, 2), robot.pose(robot.neutral(), "fl_foot")[:3, 3].round(2).tolist()
        (18, 12.0, [0.2, 0.13, -0.4])
        >>> robot.pose(robot.postures["home"], "fl_foot")[:3, 3].round(3).tolist()
        [0.2, 0.13, 0.02]
    """
    trunk = (
        block((0, 0, 0.01), (0.46, 0.13, 0.1), "grey"),
        block((0, 0, 0.07), (0.3, 0.1, 0.03), "dark"),
        block((0.27, 0, 0.02), (0.09, 0.11, 0.09), "dark"),
        block((0.316, 0, 0.025), (0.006, 0.08, 0.03), "blue"),
    )
    links = [Link("trunk", 6.0, np.zeros(3), np.diag([0.03, 0.09, 0.1]), trunk)]
    joints, frames = [], []
    for leg in ("fl", "fr", "hl", "hr"):
        ahead, side = (1.0 if leg[0] == "f" else -1.0), (1.0 if leg[1] == "l" else -1.0)
        shoulder = disc((0, 0, 0), 0, 0.042, 0.08, "dark"), disc((0, 0.03 * side, 0), 1, 0.046, 0.05, "grey")
        thigh = (
            disc((0, 0.012 * side, 0), 1, 0.047, 0.04, "orange"),
            tube((0, 0, 0), (0, 0, -0.2), 0.03, "grey", "capsule"),
        )
        shin = tube((0, 0, 0), (0, 0, -0.195), 0.014, "dark", "capsule")
        shank = disc((0, 0, 0), 1, 0.026, 0.062, "dark"), shin, ball((0, 0, -0.2), FOOT_RADIUS, "steel")
        links += [
            Link(f"{leg}_shoulder", 0.5, np.array([0.0, 0.02 * side, 0.0]), cylinder(0.5, 0.04, 0.05, 1), shoulder),
            Link(f"{leg}_thigh", 0.8, np.array([0.0, 0.0, -0.06]), cylinder(0.8, 0.03, 0.2, 2), thigh),
            Link(f"{leg}_shank", 0.2, np.array([0.0, 0.0, -0.1]), cylinder(0.2, 0.01, 0.2, 2), shank),
        ]
        places = ([0.2 * ahead, 0.07 * side, 0.0], [0.0, 0.06 * side, 0.0], [0.0, 0.0, -0.2])
        axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0))
        ends = ["trunk", *(link.name for link in links[-3:])]
        drive: Any = {"rotor_inertia": 0.01, "effort_limit": 25}
        for k, name in enumerate(("abduct", "hip", "knee")):
            place = make_pose(p=places[k]), np.array(axes[k])
            joints.append(Joint(f"{leg}_{name}", "revolute", ends[k], ends[k + 1], *place, **drive))
        frames.append(Frame(f"{leg}_foot", f"{leg}_shank", make_pose(p=[0.0, 0.0, -0.2])))
    robot = build("quadruped", links, joints, frames, base="floating")
    for frame in frames:
        robot = robot.with_shapes(frame.name, [Shape("sphere", (FOOT_RADIUS,))])
    home = robot.neutral()
    home[7:] = np.tile(STANDING_LEG, 4)
    home[2] = FOOT_RADIUS + 0.2 * (np.cos(STANDING_LEG[1]) + np.cos(sum(STANDING_LEG)))  # equal thighs and shanks
    return robot.with_posture("home", home).with_posture("default", home)  # simulations start in "default"
