"""The momentum observer is a first-order filter of the forces that are not in the model."""

import numpy as np
import pytest

import torsor
from torsor import control


def trajectory(robot: torsor.Robot, tau: np.ndarray, seconds: float, h: float):
    """Yield q and v after each step of the explicit midpoint rule, which integrates quaternions too."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    for _ in range(round(seconds / h)):
        a = robot.forward_dynamics(q, v, tau)
        middle = v + h / 2 * a
        a = robot.forward_dynamics(robot.integrate(q, h / 2 * v), middle, tau)
        q, v = robot.integrate(q, h * middle), v + h * a
        yield q, v


def arm() -> torsor.Robot:
    return (
        torsor.library.six_axis_arm().without_friction().with_friction("joint1", coulomb=1.0, viscous=2.0, smooth=0.1)
    )


def floating() -> torsor.Robot:
    return torsor.library.random_tree(4, 5, ("free", "spherical", "revolute", "prismatic"), extras=False)


@pytest.mark.parametrize("make", [arm, torsor.library.elastic_arm, pytest.param(floating, marks=pytest.mark.slow)])
def test_it_filters_a_constant_force(make) -> None:
    robot = make()
    gain = np.linspace(20.0, 60.0, robot.nv)
    known, unknown = np.linspace(-1.0, 1.0, robot.nv), np.linspace(0.5, 1.5, robot.nv)
    worst = []
    for h in (1e-3, 5e-4):
        observer = control.MomentumObserver(robot, gain)
        observer.start(robot.neutral(), np.zeros(robot.nv))
        errors = []
        for k, (q, v) in enumerate(trajectory(robot, known + unknown, 0.25, h)):
            r = observer.step(q, v, known, h)
            errors.append(r - unknown * (1 - np.exp(-gain * (k + 1) * h)))
        worst.append(np.abs(errors).max())
    assert worst[1] < 2e-3
    assert worst[1] < worst[0] / 3  # of second order in the step


def test_it_estimates_the_generalised_force_of_a_wrench() -> None:
    robot = torsor.library.six_axis_arm()
    q = np.array([0.1, 0.5, -0.4, 0.2, 0.3, 0.1])
    wrench = np.array([0.1, -0.2, 0.3, 4.0, 5.0, -6.0])
    external = np.zeros((6, 6))
    external[5] = wrench
    held = robot.inverse_dynamics(q, np.zeros(6), np.zeros(6), external)
    observer = control.MomentumObserver(robot, 100.0)
    observer.start(q, np.zeros(6))
    for _ in range(300):
        r = observer.step(q, np.zeros(6), held, 1e-3)
    np.testing.assert_allclose(r, robot.jacobian(q, "link6").T @ wrench, rtol=1e-9)


def test_the_step_is_pure_and_takes_batches() -> None:
    robot = torsor.library.two_link()
    observer = control.MomentumObserver(robot, 30.0)
    q = np.random.default_rng(0).normal(size=(5, 2))
    observer.start(q, np.zeros((5, 2)))
    r = observer.step(q, np.full((5, 2), 0.01), np.zeros(2), 1e-3)
    for k in range(5):
        state = observer.start_function(q[k], np.zeros(2))
        pure = observer.function(state, q[k], np.full(2, 0.01), np.zeros(2), 1e-3)[1]
        np.testing.assert_allclose(np.asarray(pure).ravel(), r[k], rtol=1e-12)
