"""Operational space: the error of the frame obeys its linear equation, and null-space damping does not disturb it."""

import casadi as ca
import numpy as np
import pytest

import torsor
from control.closed_loop import random_states, run
from torsor import control
from torsor.spatial import from_rpy, make_pose


def arm() -> torsor.Robot:
    return torsor.library.seven_axis_arm().with_frame(
        "tool", "link7", make_pose(from_rpy([0.3, -0.4, 0.5]), [0.1, 0.05, 0.2])
    )


def circle(t: ca.SX) -> list[ca.SX]:
    return [0.4 + 0.1 * ca.cos(2 * t), 0.1 * ca.sin(2 * t), 0.5]


def turning(t: ca.SX) -> ca.SX:
    s, c = ca.sin(0.7 * t), ca.cos(0.7 * t)
    R = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1)) @ ca.DM(from_rpy([2.8, 0.2, 0.1]))
    return ca.vertcat(ca.horzcat(R, ca.vertcat(*circle(t))), ca.DM([[0, 0, 0, 1]]))


def error(R_d: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return 2 tan(angle / 2) axis of R_d R^T, by its eigenvector and angle."""
    E = R_d @ R.T
    axis = np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])
    angle = np.arctan2(np.linalg.norm(axis), np.trace(E) - 1)
    return 2 * np.tan(angle / 2) * axis / max(np.linalg.norm(axis), 1e-300)


def test_the_position_error_obeys_its_linear_equation() -> None:
    robot = arm()
    law = control.operational_space(robot, "tool", position=circle, kp=[80, 90, 100], kd=[15, 20, 25], null_damping=3.0)
    for t, q, v in random_states(robot, 5):
        x_d, v_d, a_d = law.reference(t)
        T = robot.pose(q, "tool")
        a = robot.forward_dynamics(q, v, law(t, q, v))
        acceleration = T[:3, :3] @ robot.acceleration(q, v, a, "tool")[3:]
        e, e_rate = x_d - T[:3, 3], v_d - T[:3, :3] @ robot.velocity(q, v, "tool")[3:]
        residual = a_d - acceleration + np.array([15, 20, 25]) * e_rate + np.array([80, 90, 100]) * e
        assert np.abs(residual).max() < 1e-9 * max(1, np.abs(a).max())


def test_the_pose_error_obeys_its_linear_equation_for_large_errors() -> None:
    robot = arm()
    law = control.operational_space(robot, "tool", pose=turning, bandwidth=6.0, null_damping=0.02)
    q, v = np.array([0.1, 0.6, -0.2, -1.4, 0.3, 1.2, 0.2]), np.zeros(7)
    wanted = ca.Function("pose", [s := ca.SX.sym("t")], [turning(s)])

    def errors(t: float, q: np.ndarray) -> np.ndarray:
        T_d, T = np.asarray(wanted(t)), robot.pose(q, "tool")
        return np.concatenate([error(T_d[:3, :3], T[:3, :3]), T_d[:3, 3] - T[:3, 3]])

    # The rate at the start, by a central difference, since the robot stands still.
    h = 1e-4
    rate = (errors(h, q) - errors(-h, q)) / (2 * h)
    start = errors(0.0, q)
    assert np.linalg.norm(start[:3]) > 0.5
    for t, at, _ in run(law, q, v, 0.5):
        expected = (start + (rate + 6.0 * start) * t) * np.exp(-6.0 * t)
        np.testing.assert_allclose(errors(t, at), expected, atol=1e-7)


@pytest.mark.parametrize("task", [{"position": circle}, {"pose": turning}])
def test_null_space_damping_causes_no_task_acceleration(task) -> None:
    robot = arm()
    free = control.operational_space(robot, "tool", **task, bandwidth=10.0)
    braked = control.operational_space(robot, "tool", **task, bandwidth=10.0, null_damping=np.arange(1.0, 8.0))
    rows = slice(3, 6) if "position" in task else slice(0, 6)
    for t, q, v in random_states(robot, 5):
        extra = braked(t, q, v) - free(t, q, v)
        acceleration = np.linalg.solve(robot.mass_matrix(q), extra)
        assert np.abs(extra).max() > 1e-3
        assert np.abs(robot.jacobian(q, "tool")[rows] @ acceleration).max() < 1e-10 * max(1, np.abs(acceleration).max())
        assert v @ extra < 0  # it takes energy
