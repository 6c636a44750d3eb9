"""Wrong descriptions and arguments of parallel robots raise errors that name them."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
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
        (lambda: Leg("a", PLATE, "tip"), "robot is of type Link"),
        (lambda: Leg("a", ARM, "hand"), "hand"),
        (lambda: Leg("a", ARM, "tip", driven=("joint9",)), "driven"),
        (lambda: Leg("a", ARM, "tip", driven=("joint1", "joint1")), "driven"),
        (lambda: Leg("a", ARM, "tip", kind="glue"), "kind"),
        (lambda: Leg("a", ARM, "tip", kind="rod"), "length"),
        (lambda: Leg("a", ARM, "tip", at=np.zeros((4, 4))), "at"),
        (lambda: Leg("a", ARM, "tip", home=[0.0]), "home"),
        (lambda: Leg("a", ARM.with_loop("x", "tip", "base"), "tip"), "the leg itself has loops"),
        (lambda: ParallelRobot(PLATE, [], np.zeros(3), "planar"), "legs"),
        (lambda: replace(made("three_rrr"), legs=[made("three_rrr").legs[0]] * 3), "leg1"),
        (lambda: replace(made("three_rrr"), legs=made("three_rrr").legs[:2]), "2 driven coordinates for a platform"),
        (lambda: replace(made("three_rrr"), home=np.array([5.0, 0, 0])), "the leg does not reach"),
        (
            lambda: replace(made("three_rrr"), home=np.zeros(7)),
            "home",
        ),
        (lambda: replace(made("three_rrr"), home=np.zeros((2, 3))), "home"),
        (lambda: replace(made("three_rrr"), motion="fixed"), "motion"),
        (lambda: replace(made("three_rrr"), motion="hover"), "joint type"),
        (
            lambda: replace(made("three_rrr"), motion="free", home=np.array([0, 0, 0, 0, 0, 0, 1.0])),
            "driven coordinates",
        ),
        (lambda: replace(made("three_rrr"), platform=3), "platform"),
        (crooked, "the leg can spin about its line and is not symmetric about it"),
        (loose, "the platform does not constrain 1 motions of the leg ('leg1/joint1'"),
        (
            lambda: made("three_rrr").inverse_kinematics([0.5, 0, 0]),
            "leg2",
        ),
        (lambda: made("three_rrr").inverse_kinematics([0.5, 0]), "pose"),
        (lambda: made("three_rrr").inverse_kinematics(np.zeros(3), guess=[1.0]), "guess"),
        (
            lambda: made("three_rrr").inverse_kinematics(make_pose(p=[0, 0, 1.0])),
            "pose differs by 1 from the possible poses of a planar",
        ),
        (
            lambda: made("gough_stewart").inverse_kinematics(np.zeros(7)),
            "pose",
        ),
        (lambda: made("three_rrr").forward_kinematics([9.0, 0, 0]), "no pose with the driven coordinates"),
        (lambda: made("three_rrr").forward_kinematics([9.0]), "q_driven"),
        (lambda: made("three_rrr").grid(z=[0.0]), "no range 'z'"),
        (
            lambda: made("three_rrr").workspace(np.zeros(3), length=0.0),
            "length",
        ),
        (lambda: made("three_rrr").workspace(np.zeros(3)).plot(), "poses"),
        (lambda: made("three_rrr").function("fly"), "fly"),
        (lambda: made("three_rrr").function("mass_matrix", external=True), "takes no external wrench"),
        (lambda: torsor.library.gough_stewart(legs="RRR"), "legs"),
        (lambda: torsor.library.gough_stewart(height=-0.8), "height"),
        (lambda: torsor.library.delta(arm=2.0, rods=0.5), "arms of 2.0 m and rods of 0.5 m do not meet"),
        (lambda: torsor.library.three_rrr(upper=0.1, lower=0.1), "bars of 0.1 m and 0.1 m do not reach over 0.4 m"),
        (lambda: replace(made("three_rrr"), legs=None), "legs"),
        (lambda: replace(made("three_rrr"), motion=5), "motion"),
        (lambda: Leg("a", soft_arm(), "tip"), "the leg has elastic motors, which are not constrained"),
        (lambda: Leg("a", ARM, "tip", driven=3), "driven"),
        (lambda: Leg("a", ARM, "tip", at="x"), "at"),
        (lambda: made("three_rrr").inverse_kinematics([[1, 2], [3]]), "pose"),
        (lambda: made("three_rrr").inverse_kinematics(np.zeros(3) + 1j), "pose"),
        (lambda: made("three_rrr").inverse_kinematics([np.inf, 0, 0]), "pose"),
        (lambda: made("three_rrr").inverse_kinematics([1e3, 0, 0]), "leg1"),
        (
            lambda: made("three_rrr").inverse_kinematics(np.zeros((2, 3)), guess=np.zeros((3, 6))),
            "leading axes do not broadcast: pose (2,), guess (3,)",
        ),
        (lambda: made("three_rrr").inverse_dynamics(np.zeros(3), "x", np.zeros(3)), "u"),
        (lambda: made("three_rrr").inverse_dynamics(np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3)), "not broadcast"),
        (lambda: made("gough_stewart").mass_matrix([0, 0, 0.8, 0, 0, 0, 0]), "pose"),
        (lambda: made("gough_stewart").potential_energy(np.full(7, np.nan)), "pose"),
        (
            lambda: made("three_rrr").mass_matrix(np.zeros(3), q=made("three_rrr").leg_home + 0.1),
            "q",
        ),
        (
            lambda: made("three_rrr").inverse_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), share=[1, 0, 1]),
            "share",
        ),
        (lambda: made("three_rrr").grid(x="a"), "range 'x'"),
        (
            lambda: made("three_rrr").workspace(made("three_rrr").grid(x=[0, 0.1], y=[0, 0.1])).plot(axes=(0, 7)),
            "axes",
        ),
        (lambda: torsor.simulate(made("three_rrr")), "robot.as_robot()"),
    ],
)
def test_mistakes_are_named(make, message: str) -> None:
    with refused(message):
        make()


def test_legs_that_hold_too_much_are_refused() -> None:
    flat = made("three_rrr")
    six = [replace(leg, driven=("shoulder", "elbow")) for leg in flat.legs]
    with refused(where="leg 'leg1'", what="the leg blocks motions that the platform's joint has"):
        replace(flat, legs=six, motion="free", home=np.array([0.0, 0, 0, 0, 0, 0, 1]))
