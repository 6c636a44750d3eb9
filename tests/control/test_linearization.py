"""Feedback linearisation of elastic joints: errors are chains of four integrators with the given poles."""

import numpy as np
import pytest

import torsor
from control.closed_loop import Flow, run, sines
from torsor import control


def elastic(robot: torsor.Robot, carrier: str = "base") -> torsor.Robot:
    for k, name in enumerate(robot.joint_names):
        robot = robot.with_motor(name, 1e-3, ratio=20.0 + 5 * k, carrier=carrier, stiffness=150.0 + 50 * k)
    return robot


@pytest.mark.parametrize("poles", [12.0, (5.0, 8.0, 12.0, 20.0)])
def test_the_error_follows_the_linear_equation(poles: float | tuple[float, ...]) -> None:
    robot = elastic(torsor.library.planar_chain(2, length=0.5))
    robot = robot.with_friction("joint1", viscous=0.3).with_friction(
        "joint2/motor", viscous=0.2, coulomb=0.1, smooth=0.1
    )
    law = control.feedback_linearization(robot, sines(2), poles)
    flow = Flow(law)
    chain = [law.reference.function(flow.t) - flow.q[:2]]
    for _ in range(3):
        chain.append(flow.rate(chain[-1]))
    errors = flow.function(*chain)
    coefficients = np.poly(-np.broadcast_to(poles, 4))
    companion = np.diag(np.ones(3), 1)
    companion[3] = -coefficients[:0:-1]
    q, v = np.array([0.1, -0.2, 0.1, -0.2]), np.zeros(4)
    q[2:] += robot.gravity_force(q)[:2] / [150.0, 200.0]  # the springs carry the weight
    step = 1e-3
    forward = np.eye(4)
    for k in range(12, 0, -1):  # the exponential of one step, by its series
        forward = np.eye(4) + companion * step / k @ forward
    expected = np.array([np.asarray(each).ravel() for each in errors(0.0, q, v)])
    for t, at, _ in run(law, q, v, 1.0, step):
        expected = forward @ expected
        np.testing.assert_allclose(law.reference(t)[0] - at[:2], expected[0], atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*the motor replaces its rotor_inertia")
def test_the_fourth_derivative_is_the_commanded_one() -> None:
    robot = elastic(torsor.library.six_axis_arm().without_friction())
    law = control.feedback_linearization(robot, sines(6), 10.0)
    flow = Flow(law)
    chain = [law.reference.function(flow.t) - flow.q[:6]]
    for _ in range(4):
        chain.append(flow.rate(chain[-1]))
    rng = np.random.default_rng(2)
    q = rng.normal(size=6) * 0.5
    q = np.concatenate([q, q + 0.01 * rng.normal(size=6)])
    values = [np.asarray(each).ravel() for each in flow.function(*chain)(0.3, q, rng.normal(size=12))]
    terms = [c * value for c, value in zip(np.poly([-10.0] * 4)[::-1], values, strict=True)]
    assert np.abs(sum(terms)).max() < 1e-9 * max(np.abs(term).max() for term in terms)
