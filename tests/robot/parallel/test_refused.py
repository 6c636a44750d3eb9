"""Wrong descriptions and arguments of parallel robots raise errors that name them."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from torsor.robot.parallel import Leg, ParallelRobot
from torsor.spatial import make_pose

from .mechanisms import made

ARM = torsor.library.planar_chain(2, length=0.3).with_frame("tip", "link2", make_pose(p=[0.3, 0, 0]))
PLATE = torsor.Link("platform", 1.0, (0, 0, 0), 0.01 * np.eye(3))


def crooked() -> ParallelRobot:
    robot = made("gough_stewart", legs="SPS")
    bent = robot.legs[0].robot.with_payload("rod", 0.5, (0.1, 0, 0))
    return replace(robot, legs=[replace(robot.legs[0], robot=bent), *robot.legs[1:]])


def soft_arm() -> torsor.Robot:
    return ARM.with_motor("joint2", carrier="link1", inertia=1e-6, ratio=10.0, stiffness=1e3)


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
        (lambda: Leg("a", ARM, "tip", kind="glue"), "kind is 'glue'; allowed: 'weld', 'revolute'"),
        (lambda: Leg("a", ARM, "tip", kind="rod"), "length of a rod is 0.0"),
        (lambda: Leg("a", ARM, "tip", at=np.zeros((4, 4))), "at is not a pose"),
        (lambda: Leg("a", ARM, "tip", home=[0.0]), r"home has shape \(1,\)"),
        (lambda: Leg("a", ARM.with_loop("x", "tip", "base"), "tip"), "the leg has loops of its own"),
        (lambda: ParallelRobot(PLATE, [], np.zeros(3), "planar"), "allowed: a list of one Leg or more"),
        (lambda: replace(made("three_rrr"), legs=[made("three_rrr").legs[0]] * 3), "two legs are named 'leg1'"),
        (lambda: replace(made("three_rrr"), legs=made("three_rrr").legs[:2]), "2 driven coordinates for a platform"),
        (lambda: replace(made("three_rrr"), home=np.array([5.0, 0, 0])), "leg 'leg1': the leg does not reach"),
        (
            lambda: replace(made("three_rrr"), home=np.zeros(7)),
            r"home has shape \(7,\); allowed: \(..., 3\): platform/x",
        ),
        (lambda: replace(made("three_rrr"), home=np.zeros((2, 3))), r"home has shape \(2, 3\); allowed: one pose"),
        (lambda: replace(made("three_rrr"), motion="fixed"), "motion is 'fixed'"),
        (lambda: replace(made("three_rrr"), motion="hover"), "joint type is 'hover'"),
        (
            lambda: replace(made("three_rrr"), motion="free", home=np.array([0, 0, 0, 0, 0, 0, 1.0])),
            "driven coordinates",
        ),
        (lambda: replace(made("three_rrr"), platform=3), "platform is of type int"),
        (crooked, "leg 'leg1': the leg can spin about its line and is not symmetric about it"),
        (loose, "the platform does not constrain 1 motions of the leg, of 'leg1/joint1'"),
        (
            lambda: made("three_rrr").inverse_kinematics([0.5, 0, 0]),
            r"leg 'leg[23]' does not reach .* error of closure 0\.\d+ at",
        ),
        (lambda: made("three_rrr").inverse_kinematics([0.5, 0]), r"pose has shape \(2,\); allowed: \(..., 3\)"),
        (lambda: made("three_rrr").inverse_kinematics(np.zeros(3), guess=[1.0]), r"guess has shape \(1,\)"),
        (
            lambda: made("three_rrr").inverse_kinematics(make_pose(p=[0, 0, 1.0])),
            "pose differs by 1 from the possible poses of a planar",
        ),
        (
            lambda: made("gough_stewart").inverse_kinematics(np.zeros(7)),
            r"pose is \[0.0, .*allowed: finite numbers, and a rotation",
        ),
        (lambda: made("three_rrr").forward_kinematics([9.0, 0, 0]), "no pose with the driven coordinates"),
        (lambda: made("three_rrr").forward_kinematics([9.0]), r"q_driven has shape \(1,\)"),
        (lambda: made("three_rrr").grid(z=[0.0]), "no range 'z'; allowed: x, y, angle"),
        (
            lambda: made("three_rrr").workspace(np.zeros(3), length=0.0),
            "length is 0.0; allowed: a finite number, above 0",
        ),
        (lambda: made("three_rrr").workspace(np.zeros(3)).plot(), "allowed: a grid with two axes"),
        (lambda: made("three_rrr").function("fly"), "no algorithm 'fly'"),
        (lambda: made("three_rrr").function("mass_matrix", external=True), "takes no external wrench"),
        (lambda: torsor.library.gough_stewart(legs="RRR"), "allowed: 'UPS' or 'SPS'"),
        (lambda: torsor.library.gough_stewart(height=-0.8), "height is -0.8; allowed: a finite number, above 0"),
        (lambda: torsor.library.delta(arm=2.0, rods=0.5), "arms of 2.0 m and rods of 0.5 m do not meet"),
        (lambda: torsor.library.three_rrr(upper=0.1, lower=0.1), "bars of 0.1 m and 0.1 m do not reach over 0.4 m"),
        (lambda: replace(made("three_rrr"), legs=None), "legs are none, or not in a list"),
        (lambda: replace(made("three_rrr"), motion=5), "motion is 5"),
        (lambda: Leg("a", soft_arm(), "tip"), "leg 'a': the leg has elastic motors, which are not constrained"),
        (lambda: Leg("a", ARM, "tip", driven=3), "driven is 3; allowed: names of its coordinates"),
        (lambda: Leg("a", ARM, "tip", at="x"), "leg 'a': at is 'x'; allowed: real numbers"),
        (lambda: made("three_rrr").inverse_kinematics([[1, 2], [3]]), r"pose is \[\[1, 2\], \[3\]\]; allowed: real"),
        (lambda: made("three_rrr").inverse_kinematics(np.zeros(3) + 1j), "allowed: real numbers"),
        (lambda: made("three_rrr").inverse_kinematics([np.inf, 0, 0]), r"pose is \[inf, .*allowed: finite numbers"),
        (lambda: made("three_rrr").inverse_kinematics([1e3, 0, 0]), "leg 'leg1' does not reach the platform"),
        (
            lambda: made("three_rrr").inverse_kinematics(np.zeros((2, 3)), guess=np.zeros((3, 6))),
            r"leading axes do not broadcast: pose \(2,\), guess \(3,\)",
        ),
        (lambda: made("three_rrr").inverse_dynamics(np.zeros(3), "x", np.zeros(3)), "u must be an array of real"),
        (lambda: made("three_rrr").inverse_dynamics(np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3)), "not broadcast"),
        (lambda: made("gough_stewart").mass_matrix([0, 0, 0.8, 0, 0, 0, 0]), "allowed: finite numbers, and a rotation"),
        (lambda: made("gough_stewart").potential_energy(np.full(7, np.nan)), "allowed: finite numbers, and a rotation"),
        (
            lambda: made("three_rrr").mass_matrix(np.zeros(3), q=made("three_rrr").leg_home + 0.1),
            r"q does not close the legs: error of closure 0\.\d+; fix: q = robot.inverse_kinematics",
        ),
        (
            lambda: made("three_rrr").inverse_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), share=[1, 0, 1]),
            "share is not positive",
        ),
        (lambda: made("three_rrr").grid(x="a"), "range 'x' is 'a'; allowed: real numbers"),
        (
            lambda: made("three_rrr").workspace(made("three_rrr").grid(x=[0, 0.1], y=[0, 0.1])).plot(axes=(0, 7)),
            r"axes are \(0, 7\); allowed: two of 0 to 2: x \(m\), y \(m\), angle \(rad\)",
        ),
        (lambda: torsor.simulate(made("three_rrr")), r"fix: robot.as_robot\(\)"),
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
