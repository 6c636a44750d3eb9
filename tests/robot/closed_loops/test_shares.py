"""Redundant drives distribute the load by their weights, the argument ``share``."""

import numpy as np
import pytest

import torsor
from refusals import refused

from .loaded import close, fewest, indices, mechanism, state, used
from .mechanisms import closed_chain


def spread(robot: torsor.Robot, q: np.ndarray, needed: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The least tau^T share^-1 tau with G_a^T tau = needed, by Lagrange's rule."""
    _, G = robot.closed.derivatives.velocities(q, np.zeros(len(robot.active)))
    G = G[indices(robot)][:, used(robot)]
    n, m = G.shape
    system = np.block([[np.linalg.inv(share), -G], [G.T, np.zeros((m, m))]])
    return np.linalg.solve(system, np.r_[np.zeros(n), needed])[:n]


def overdriven() -> tuple[torsor.Robot, np.ndarray]:
    """Four freedoms, all seven joints driven."""
    robot, q = closed_chain("spherical")
    return robot.with_active(robot.coordinate_names).to(device="casadi"), q


@pytest.mark.parametrize("make", [lambda: mechanism("redundant"), overdriven])
def test_forces_are_the_least_in_any_metric(make) -> None:
    robot, q = make()
    _, _, x, x_rate, external = state(robot, q)
    count, rng = len(robot.active), np.random.default_rng(4)
    root = rng.normal(size=(count, count))
    matrix = root @ root.T + np.eye(count)
    plain = robot.closed.inverse_dynamics(q, x, x_rate, external)
    _, G = robot.closed.derivatives.velocities(q, x)
    needed = G[indices(robot)][:, used(robot)].T @ plain
    for share in (np.eye(count), np.diag(rng.uniform(0.5, 2.0, count)), matrix):
        given = np.diag(share) if share is not matrix else share
        tau = robot.closed.inverse_dynamics(q, x, x_rate, external, share=given)
        close(tau, spread(robot, q, needed, share), 1e-9)
        a = robot.closed.forward_dynamics(q, x, tau, external)
        close(a, x_rate, 1e-9)  # they cause the motion


def test_a_matrix_of_shares_is_felt_by_loops_and_derivatives() -> None:
    robot, q = overdriven()
    v, a, x, x_rate, _ = state(robot, q)
    root = np.random.default_rng(6).normal(size=(7, 7))
    share = root @ root.T + np.eye(7)
    tau = robot.closed.inverse_dynamics(q, x, x_rate, share=share)
    passed = robot.closed.jacobian(q).T @ robot.closed.loop_forces(q, x, x_rate, share=share)
    close(tau + passed, robot.inverse_dynamics(q, v, a, loops="open"))
    dq, _, _ = robot.closed.derivatives.inverse_dynamics(q, x, x_rate, share=share)
    function, h, move = robot.closed.inverse_dynamics, 1e-4, robot.closed.velocities(q, x)

    def there(step: float) -> np.ndarray:
        at = robot.integrate(q, step * move)
        for _ in range(4):
            rest = [k for k in range(7) if k not in robot.closed.closure.driven_choice.independent]
            back = np.zeros(7)
            back[rest] = -np.linalg.solve(robot.closed.jacobian(at)[:, rest], robot.closed.error(at))
            at = robot.integrate(at, back)
        v, a = fewest(robot).closed.accelerations(at, x[used(robot)], x_rate[used(robot)])
        return function(at, v[indices(robot)], a[indices(robot)], share=share)

    expected = (8 * (there(h) - there(-h)) - (there(2 * h) - there(-2 * h))) / (12 * h)
    close(dq @ x, expected, 1e-8)


def test_shares_of_many_states() -> None:
    robot, q = mechanism("redundant")
    _, _, x, x_rate, _ = state(robot, q)
    rows = np.array([[1.0, 1.0], [1.0, 3.0], [2.0, 1.0]])
    many = robot.closed.inverse_dynamics(np.tile(q, (3, 1)), x, x_rate, share=rows)
    same = robot.closed.inverse_dynamics(np.tile(q, (3, 1)), x, x_rate, share=rows[:, None] * np.eye(2))
    close(many, same)
    with refused(argument="share"):
        robot.closed.inverse_dynamics(np.tile(q, (2, 1)), x, x_rate, share=rows[:2])


@pytest.mark.parametrize(
    "share, message",
    [
        ([1.0, 0.0], "share"),
        ([1.0, np.nan], "share"),
        ([1.0], "share"),
        ([[1.0, 0.5], [0.2, 1.0]], "share"),
        ([[1.0, 2.0], [2.0, 1.0]], "share"),
    ],
)
def test_shares_that_are_none_are_refused(share: list, message: str) -> None:
    robot, q = mechanism("redundant")
    _, _, x, x_rate, _ = state(robot, q)
    with refused(message):
        robot.closed.loop_forces(q, x, x_rate, share=share)
