"""Derivatives of steps and rollouts against differences and against the traced step, on quaternions too."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.mechanism import Link
from torsor.robot.load import build
from torsor.simulation import Contact, rollout, sensitivity, step_derivatives
from torsor.simulation.sensitivities import _differentiated

METHODS = ("rk4", "implicit", "sdirk")


def curved() -> torsor.Robot:
    return torsor.library.random_tree(2, 3, ("spherical", "revolute"), 0.0, extras=False).to(device="casadi")


def state(robot: torsor.Robot) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), *rng.normal(size=(2, robot.nv))


def stepped(
    robot: torsor.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, method: str
) -> list[np.ndarray]:
    run = rollout(robot, q, v, h, controller=tau, step=h, method=method)
    return [run.q[..., -1, :], run.v[..., -1, :]]


def differences(
    robot: torsor.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, method: str
) -> np.ndarray:
    """Return (A, B) side by side by central differences along ``integrate``."""
    n, e = robot.nv, 1e-5
    d_q, d_v, d_tau = np.split(e * np.eye(3 * n), 3, axis=1)
    ends = [stepped(robot, robot.integrate(q, s * d_q), v + s * d_v, tau + s * d_tau, h, method) for s in (1, -1)]
    middle = stepped(robot, q, v, tau, h, method)[0]
    changes = [np.hstack([robot.difference(middle, q_end), v_end]) for q_end, v_end in ends]
    return (changes[0] - changes[1]).T / (2 * e)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_a_step_match_differences(method: str) -> None:
    robot = torsor.library.planar_chain(1).with_spring("joint1", 3.0, damping=0.1).to(device="casadi")
    q, v, tau = state(robot)
    A, B = step_derivatives(robot, q, v, tau, 0.05, method)
    np.testing.assert_allclose(np.hstack([A, B]), differences(robot, q, v, tau, 0.05, method), rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", *(pytest.param(each, marks=pytest.mark.slow) for each in METHODS[1:])])
def test_derivatives_of_a_step_match_differences_on_quaternions(method: str) -> None:
    robot = (
        curved() if method == "rk4" else torsor.library.random_tree(1, 3, ("free",), extras=False).to(device="casadi")
    )
    q, v, tau = state(robot)
    A, B = step_derivatives(robot, q, v, tau, 0.02, method)
    np.testing.assert_allclose(np.hstack([A, B]), differences(robot, q, v, tau, 0.02, method), rtol=0, atol=1e-7)


@pytest.mark.slow
def test_the_chain_rule_through_the_stages_is_the_derivative_of_the_traced_step() -> None:
    robot = curved()
    q, v, tau = state(robot)
    external = np.random.default_rng(1).normal(size=(len(robot.links), 6))
    A, B = step_derivatives(robot, q, v, tau, 0.05, external=external)
    traced = _differentiated(robot, "rk4", True, None)(np.array(0.0), q, v, tau, external, np.array(0.05))
    expected = np.block([[*traced[:3]], [*traced[3:]]])
    np.testing.assert_allclose(np.hstack([A, B]), expected, rtol=0, atol=1e-11)


def test_sensitivities_of_a_rollout_match_differences_and_have_batches() -> None:
    robot = torsor.library.two_link().to(device="casadi")
    rng, e, h = np.random.default_rng(3), 1e-6, 0.05
    q, v, tau = rng.normal(size=(4, 2)), rng.normal(size=2), rng.normal(size=(6, 2))
    run = sensitivity(robot, q, v, tau, h)
    assert run.by_start.shape == (4, 4, 4) and run.by_tau.shape == (4, 6, 4, 2)

    def end(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        found = sensitivity(robot, q, v, tau, h)
        return np.concatenate([found.q[..., -1, :], found.v[..., -1, :]], axis=-1)

    for k in range(2):
        d = e * np.eye(2)[k]
        np.testing.assert_allclose(run.by_start[..., k], (end(q + d, v, tau) - end(q - d, v, tau)) / (2 * e), atol=1e-8)
        change = np.zeros_like(tau)
        change[2, k] = e
        expected = (end(q, v, tau + change) - end(q, v, tau - change)) / (2 * e)
        np.testing.assert_allclose(run.by_tau[..., 2, :, k], expected, atol=1e-8)


def test_no_steps_and_wrong_input_are_handled() -> None:
    robot = torsor.library.two_link().to(device="casadi")
    run = sensitivity(robot, [0, 0], [0, 0], np.zeros((0, 2)), 0.1)
    assert run.q.shape == (1, 2) and run.by_start.tolist() == np.eye(4).tolist()
    for call, words in [
        (lambda: step_derivatives(robot, [0, 0], [0, 0], [0, 0], 0.0), "dt"),
        (lambda: step_derivatives(robot, [0, 0], [0, 0], [0, 0], 0.1, "euler"), "method"),
        (lambda: step_derivatives(robot, [0, 0], [0, np.nan], [0, 0], 0.1), "v"),
        (lambda: step_derivatives(robot, [0, 0, 0], [0, 0], [0, 0], 0.1), "q"),
        (lambda: sensitivity(robot, [0, 0], [0, 0], [0, 0], 0.1), "tau"),
        (
            lambda: sensitivity(robot, [0, 0], [1e200, 0], np.zeros((3, 2)), 0.1),
            "rollout of a sensitivity is not finite",
        ),
        (lambda: sensitivity(robot, [0, 0], [0, 0], np.zeros((3, 2)), 0.1, external=np.zeros((2, 2, 6))), "external"),
        (lambda: step_derivatives(torsor.library.four_bar(), [0] * 3, [0] * 3, [0] * 3, 0.1), "closed loops"),
        (lambda: step_derivatives("robot", [0] * 2, [0] * 2, [0] * 2, 0.1), "robot"),
        (lambda: sensitivity(robot, np.zeros((5, 2)), [0, 0], np.zeros((4, 3, 2)), 0.1), "do not broadcast"),
    ]:
        with refused(words):
            call()


@pytest.mark.parametrize("kind", ["compliant", pytest.param("hard", marks=pytest.mark.slow)])
def test_derivatives_of_a_step_with_contact_are_those_of_differences(kind: str) -> None:
    link = Link("ball", 1.0, np.array([0.01, 0.02, 0.0]), 4e-3 * np.eye(3), shapes=(torsor.Shape("sphere", (0.1,)),))
    robot = build("ball", [link], [], base="floating").to(device="casadi")
    smooth = {"slip": 0.1} if kind == "compliant" else {}
    contact = Contact(kind=kind, stiffness=1e4, friction=0.3, **smooth)
    q, v, tau = robot.neutral(), np.array([0.3, 0.1, 0.2, 1.5, -0.2, -0.5]), np.full(6, 0.1)
    q[2] = 0.0995

    A, B = step_derivatives(robot, q, v, tau, 2e-3, contact=contact)
    x = 1e-6 * np.vstack([np.zeros(18), np.eye(18), -np.eye(18)])
    starts, forces = robot.integrate(q, x[:, :6]), tau + x[:, 12:]
    run = rollout(robot, starts, v + x[:, 6:12], 2e-3, controller=forces, contact=contact, step=2e-3)
    ends = np.hstack([robot.difference(run.q[0, -1], run.q[:, -1]), run.v[:, -1]])
    slopes = (ends[1:19] - ends[19:]).T / 2e-6
    assert np.abs(np.hstack([A, B]) - slopes).max() < 1e-6 * max(1.0, np.abs(slopes).max())
    assert np.abs(A[11, 5]) > 1.0  # the ground pushes
    assert np.array_equal(sensitivity(robot, q, v, np.tile(tau, (3, 1)), 2e-3, contact=contact).A[0], A)


def test_derivatives_of_steps_that_do_not_converge_are_nan() -> None:
    robot = torsor.library.two_link().to(device="casadi")
    A, B = step_derivatives(robot, [0, 0], [1e3, 1e3], [0, 0], 10.0, "implicit")
    assert np.isnan(A).all() and np.isnan(B).all()
