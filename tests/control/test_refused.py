"""Errors of controllers name the robot, the mistake and the fix."""

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import control

TWO = torsor.library.two_link()
ARM = torsor.library.elastic_arm()
FLOATING = torsor.library.random_tree(3, 1, ("free", "revolute", "prismatic"), extras=False)
ELASTIC = TWO.with_motor("joint1", 1e-3, stiffness=100.0).with_motor("joint2", 1e-3, carrier="link1", stiffness=100.0)
DAMPED = TWO.with_motor("joint2", 1e-3, stiffness=100.0, damping=0.1)
HARDENING = TWO.with_motor("joint2", 1e-3, stiffness="100 + x**2")
BEAM = torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=20.0, modes=(1, 0))
BENT = torsor.mechanism.flexible_links.with_beam(TWO, "link2", BEAM)
HERE = [0.0, 0.0]
STRANGER = ca.SX.sym("stranger")

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: control.computed_torque(TWO, HERE), "kp and kd, or bandwidth"),
    (lambda: control.computed_torque(TWO, HERE, 1.0, 2.0, bandwidth=3.0), "the given gains are: kp, kd, bandwidth"),
    (lambda: control.computed_torque(TWO, HERE, -1.0, 2.0), "kp"),
    (lambda: control.computed_torque(TWO, HERE, [1.0, 2.0, 3.0], 2.0), "kp"),
    (lambda: control.computed_torque(TWO, HERE, [[1.0], [2.0, 3.0]], 2.0), "kp"),
    (lambda: control.computed_torque(TWO, HERE, np.inf, 2.0), "kp"),
    (lambda: control.computed_torque(TWO, HERE, "high", 2.0), "kp"),
    (lambda: control.computed_torque(TWO, HERE, bandwidth=1.0, damping=0.0), "damping"),
    (lambda: control.computed_torque(TWO, [0.0], bandwidth=1.0), "a constant law"),
    (lambda: control.computed_torque(TWO, [0.0, np.nan], bandwidth=1.0), "a constant law"),
    (lambda: control.computed_torque(TWO, lambda t: [t], bandwidth=1.0), "returns a 1 x 1 matrix"),
    (lambda: control.computed_torque(TWO, lambda t: "north", bandwidth=1.0), "returns 'north'"),
    (
        lambda: control.computed_torque(TWO, lambda t: [t, STRANGER], bandwidth=1.0),
        "symbols stranger in addition to time",
    ),
    (lambda: control.computed_torque(ARM, [0.0] * 3, bandwidth=1.0), "elastic joints 'joint3'"),
    (lambda: control.computed_torque(FLOATING, [0.0] * 8, bandwidth=1.0), "gravity_pd"),
    (lambda: control.gravity_pd(TWO, HERE, 0.0, 1.0), "kp"),
    (lambda: control.gravity_pd(FLOATING, lambda t: 9 * [t], 1.0, 1.0), "must be constant"),
    (lambda: control.gravity_pd(HARDENING, HERE, 1.0, 1.0), "stiffness of 'joint2' is the expression"),
    (
        lambda: control.gravity_pd(BENT, [0.0] * 3, 1.0, 1.0),
        "does not support the flexible links 'beam'",
    ),
    (lambda: control.gravity_compensation(BENT), "gravity_compensation does not support the flexible links"),
    (
        lambda: control.computed_torque(BENT, [0.0] * 3, bandwidth=1.0),
        "computed_torque does not support the flexible links",
    ),
    (lambda: control.mixed(ARM, [0.0] * 3, 1.0, 1.0), "K_D_motor or Lambda_motor is missing"),
    (lambda: control.mixed(ARM, [0.0] * 4, 1.0, 1.0, 1.0, 1.0), "a constant law"),
    (lambda: control.mixed(ARM, [0.0] * 3, 1.0, 1.0, [1.0, 1.0], 1.0), "K_D_motor"),
    (lambda: control.mixed(ARM, [0.0] * 3, 1.0, 1.0, 1.0, -1.0), "Lambda_motor"),
    (lambda: control.mixed(DAMPED, HERE, 1.0, 1.0, 1.0, 1.0), "spring of 'joint2' has damping 0.1"),
    (lambda: control.mixed(HARDENING, HERE, 1.0, 1.0, 1.0, 1.0), "stiffness of 'joint2' is the expression"),
    (lambda: control.mixed(FLOATING, [0.0] * 9, 1.0, 1.0), "whose positions are quaternions"),
    (
        lambda: control.feedback_linearization(ARM, [0.0] * 3, 10.0),
        "coordinates 'joint1', 'joint2' are rigid",
    ),
    (lambda: control.feedback_linearization(TWO, HERE, 10.0), "control.computed_torque if no joint is elastic"),
    (lambda: control.feedback_linearization(ELASTIC, HERE, 10.0), "rotors of 'joint2' are carried about their axes"),
    (
        lambda: control.feedback_linearization(ELASTIC.without_motor("joint2"), HERE, -3.0),
        "coordinates 'joint2' are rigid",
    ),
    (lambda: control.operational_space(TWO, "hand", [0, 0, 0], bandwidth=1.0), "hand"),
    (lambda: control.operational_space(TWO, "link2", bandwidth=1.0), "neither position nor pose"),
    (
        lambda: control.operational_space(TWO, "link2", HERE, bandwidth=1.0),
        "a constant law",
    ),
    (lambda: control.operational_space(TWO, "link2", [0, 0, 0], np.eye(4), bandwidth=1.0), "both position and pose"),
    (lambda: control.operational_space(TWO, "link2", pose=np.eye(3), bandwidth=1.0), "a constant law"),
    (lambda: control.operational_space(TWO, "link2", pose=2 * np.eye(4), bandwidth=1.0), "pose at t = 0"),
    (lambda: control.operational_space(ARM, "tip", [0, 0, 0], bandwidth=1.0), "elastic joints 'joint3'"),
    (
        lambda: control.operational_space(TWO, "link2", [0, 0, 0], bandwidth=1.0, null_damping=-1.0),
        "null_damping",
    ),
    (lambda: control.MomentumObserver(TWO, [1.0, 0.0]), "gain"),
    (lambda: control.MomentumObserver(TWO, 1.0).step(HERE, HERE, HERE, 1e-3), "step was called before start"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()


def test_negative_poles_raise_an_error() -> None:
    robot = TWO
    for name in robot.joint_names:
        robot = robot.with_motor(name, 1e-3, carrier="base", stiffness=100.0)
    for poles, message in ((-3.0, "poles"), ([1.0, 2.0], "poles")):
        with refused(message):
            control.feedback_linearization(robot, HERE, poles)


@pytest.mark.parametrize("make", [control.gravity_pd, control.computed_torque, control.mixed])
def test_anything_but_a_robot_raises_an_error(make) -> None:
    with refused(allowed="a torsor.Robot"):
        make(None, [0.0], 1.0, 1.0)


def test_a_law_that_needs_numbers_raises_an_error() -> None:
    with refused(fix="casadi.if_else"):
        control.reference(torsor.library.planar_chain(1), lambda t: [1.0 if t > 1 else 0.0])


def test_a_quaternion_of_zeros_raises_an_error() -> None:
    robot = torsor.library.quadruped()
    with refused(argument="the reference"):
        control.gravity_pd(robot, np.zeros(robot.nq), 1.0, 1.0)


def test_a_step_of_zero_time_raises_an_error() -> None:
    observer = control.MomentumObserver(torsor.library.planar_chain(1), 10.0)
    observer.start([0.0], [0.0])
    with refused(argument="h", allowed="positive numbers of seconds"):
        observer.step([0.0], [0.0], [0.0], 0.0)
