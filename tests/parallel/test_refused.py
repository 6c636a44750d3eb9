"""What no parallel robot can be, or do, is refused by its name."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from torsor.parallel import Leg, ParallelRobot
from torsor.spatial import make_pose

from .mechanisms import made

ARM = torsor.library.planar_chain(2, length=0.3).with_frame("tip", "link2", make_pose(p=[0.3, 0, 0]))
PLATE = torsor.Link("platform", 1.0, (0, 0, 0), 0.01 * np.eye(3))


def crooked() -> ParallelRobot:
    robot = made("gough_stewart", legs="SPS")
    bent = robot.legs[0].robot.with_payload("rod", 0.5, (0.1, 0, 0))
    return replace(robot, legs=[replace(robot.legs[0], robot=bent), *robot.legs[1:]])


def loose() -> ParallelRobot:
    robot = made("three_rrr")
    arm = torsor.library.planar_chain(3, length=0.2).with_frame("tip", "link3", make_pose(p=[0.2, 0, 0]))
    leg = replace(robot.legs[0], robot=arm, driven=("joint1",), home=[0.5, -0.5, -0.5])
    return replace(robot, legs=[leg, *robot.legs[1:]])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Leg("a", PLATE, "tip"), "leg 'a': robot is of type Link; allowed: a Robot"),
        (lambda: Leg("a", ARM, "hand"), "no link or frame 'hand'"),
        (lambda: Leg("a", ARM, "tip", driven=("joint9",)), "driven names 'joint9', which is no coordinate of its own"),
        (lambda: Leg("a", ARM, "tip", driven=("joint1", "joint1")), "allowed: each coordinate once"),
        (lambda: Leg("a", ARM, "tip", kind="glue"), "kind is 'glue'; allowed: weld, revolute"),
        (lambda: Leg("a", ARM, "tip", kind="rod"), "length of a rod is 0.0"),
        (lambda: Leg("a", ARM, "tip", at=np.zeros((4, 4))), "at is not a pose"),
        (lambda: Leg("a", ARM, "tip", home=[0.0]), r"home has shape \(1,\)"),
        (lambda: Leg("a", ARM.with_loop("x", "tip", "base"), "tip"), "the leg has loops of its own"),
        (lambda: ParallelRobot(PLATE, [], np.zeros(3), "planar"), "allowed: one Leg or more"),
        (lambda: replace(made("three_rrr"), legs=[made("three_rrr").legs[0]] * 3), "two legs are named 'leg1'"),
        (lambda: replace(made("three_rrr"), legs=made("three_rrr").legs[:2]), "2 driven coordinates for a platform"),
        (lambda: replace(made("three_rrr"), home=np.array([5.0, 0, 0])), "leg 'leg1': the leg does not reach"),
        (
            lambda: replace(made("three_rrr"), home=np.zeros(7)),
            r"home has shape \(7,\); allowed: \(..., 3\): platform/x",
        ),
        (lambda: replace(made("three_rrr"), home=np.zeros((2, 3))), r"home has shape \(2, 3\); allowed: one pose"),
        (lambda: replace(made("three_rrr"), motion="fixed"), "motion is 'fixed'"),
        (lambda: replace(made("three_rrr"), motion="hover"), "unknown joint type 'hover'"),
        (
            lambda: replace(made("three_rrr"), motion="free", home=np.array([0, 0, 0, 0, 0, 0, 1.0])),
            "driven coordinates",
        ),
        (lambda: replace(made("three_rrr"), platform=3), "platform is of type int"),
        (crooked, "leg 'leg1': the leg can spin about its line and is not the same all round it"),
        (loose, "1 motions of the leg are not held by the platform, of 'leg1/joint1'"),
        (
            lambda: made("three_rrr").inverse_kinematics([0.5, 0, 0]),
            r"leg 'leg[23]' does not reach .* open by 0\.\d+ at",
        ),
        (lambda: made("three_rrr").inverse_kinematics([0.5, 0]), r"pose has shape \(2,\); allowed: \(..., 3\)"),
        (lambda: made("three_rrr").inverse_kinematics(np.zeros(3), guess=[1.0]), r"guess has shape \(1,\)"),
        (lambda: made("three_rrr").inverse_kinematics(make_pose(p=[0, 0, 1.0])), "pose is off by 1 from what a planar"),
        (
            lambda: made("gough_stewart").inverse_kinematics(np.zeros(7)),
            r"pose is \[0.0, .*allowed: finite numbers, and a rotation",
        ),
        (lambda: made("three_rrr").forward_kinematics([9.0, 0, 0]), "no pose with the driven coordinates"),
        (lambda: made("three_rrr").forward_kinematics([9.0]), r"q_driven has shape \(1,\)"),
        (lambda: made("three_rrr").grid(z=[0.0]), "no range 'z'; allowed: x, y, angle"),
        (lambda: made("three_rrr").workspace(np.zeros(3), length=0.0), "length is 0.0; allowed: a number above 0"),
        (lambda: made("three_rrr").workspace(np.zeros(3)).plot(), "allowed: a grid with two axes"),
        (lambda: made("three_rrr").function("fly"), "no algorithm 'fly'"),
        (lambda: made("three_rrr").function("mass_matrix", external=True), "takes no external wrench"),
        (lambda: torsor.library.gough_stewart(legs="RRR"), "allowed: 'UPS' or 'SPS'"),
    ],
)
def test_mistakes_are_named(make, message: str) -> None:
    with pytest.raises(torsor.ModelError, match=message):
        make()


def test_legs_that_hold_too_much_are_refused() -> None:
    flat = made("three_rrr")
    six = [replace(leg, driven=("shoulder", "elbow")) for leg in flat.legs]
    with pytest.raises(torsor.ModelError, match="leg 'leg1': the leg blocks motions that the platform's joint has"):
        replace(flat, legs=six, motion="free", home=np.array([0.0, 0, 0, 0, 0, 0, 1]))
