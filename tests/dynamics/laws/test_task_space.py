"""Manipulability, Cartesian mass matrix and null spaces against NumPy's linear algebra."""

import numpy as np
import pytest

import torsor
from refusals import refused

ARM = torsor.library.panda().to(device="casadi")
HAND = ARM.link_names[-1]
Q = np.random.default_rng(0).uniform(-1, 1, ARM.nq)
PARTS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}
POINT = [0.1, 0.2, 0.3]


@pytest.mark.parametrize("rows", PARTS)
def test_all_of_them_are_what_linear_algebra_gives(rows: str) -> None:
    J, M = ARM.jacobian(Q, HAND, "local", POINT)[PARTS[rows]], ARM.mass_matrix(Q)
    singular = np.linalg.svd(J, compute_uv=False)
    np.testing.assert_allclose(ARM.task.manipulability(Q, HAND, rows, POINT), singular.prod(), rtol=1e-12)
    inverse = J @ np.linalg.solve(M, J.T)
    ours = ARM.task.mass_matrix(Q, HAND, rows=rows, point=POINT)
    np.testing.assert_allclose(ours, np.linalg.inv(inverse), rtol=1e-9, atol=1e-9)
    dynamic, kinematic = (ARM.task.null_space(Q, HAND, kind, rows, POINT) for kind in ("dynamic", "kinematic"))
    np.testing.assert_allclose(kinematic, np.eye(ARM.nv) - np.linalg.pinv(J) @ J, rtol=0, atol=1e-12)
    consistent = np.linalg.solve(M, J.T) @ np.linalg.inv(inverse)
    np.testing.assert_allclose(dynamic, np.eye(ARM.nv) - consistent @ J, rtol=0, atol=1e-10)
    np.testing.assert_allclose(J @ np.linalg.solve(M, dynamic.T), 0, atol=1e-9)


def test_the_derivative_of_the_cartesian_mass_matrix_is_that_of_differences() -> None:
    d, h = np.random.default_rng(4).normal(size=ARM.nv), 1e-6
    _, change = ARM.derivatives.jvp("cartesian_mass_matrix", (Q,), (d,), place=HAND, rows="linear")
    up, down = (ARM.task.mass_matrix(Q + s * h * d, HAND, rows="linear") for s in (1, -1))
    np.testing.assert_allclose(change, (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


def test_the_gradient_is_that_of_differences_on_quaternions_too() -> None:
    robot = torsor.library.random_tree(3, 1, ("spherical", "revolute"), 0.0, extras=False).to(device="casadi")
    place, h = robot.link_names[-1], 1e-6
    q = robot.integrate(robot.neutral(), np.random.default_rng(2).normal(size=robot.nv))
    for rows in ("linear", "angular"):
        steps = h * np.eye(robot.nv)
        up, down = (robot.task.manipulability(robot.integrate(q, s * steps), place, rows) for s in (1, -1))
        gradient = robot.task.manipulability_gradient(q, place, rows)
        np.testing.assert_allclose(gradient, (up - down) / (2 * h), rtol=0, atol=1e-8)


WRIST = torsor.library.six_axis_arm().to(device="casadi")  # singular where its fifth angle is 0


@pytest.mark.parametrize("angle", [1e-2, 1e-5, 1e-8])
def test_next_to_a_singularity_the_gradient_is_that_of_differences(angle: float) -> None:
    q, place, h = np.random.default_rng(3).normal(size=6), WRIST.link_names[-1], 1e-3 * angle
    q[4] = angle
    up, down = (WRIST.task.manipulability(q + s * h * np.eye(6), place) for s in (1, -1))
    gradient = WRIST.task.manipulability_gradient(q, place)
    np.testing.assert_allclose(gradient[4], WRIST.task.manipulability(q, place) / np.tan(angle), rtol=1e-7)
    np.testing.assert_allclose(gradient, (up - down) / (2 * h), rtol=0, atol=1e-3 * abs(gradient[4]))


def test_where_the_jacobian_loses_rank_the_gradient_is_finite_and_0() -> None:
    elbow = torsor.library.two_link().to(device="casadi")  # 0.16 m^2 |sin(elbow)|: 0 is between its two slopes
    assert not elbow.task.manipulability_gradient([0.3, 0.0], "link2", "linear").any()
    rng, tree = np.random.default_rng(4), torsor.library.random_tree(6, seed=1)  # few joints move its last link
    for robot in (WRIST, tree.to(device="casadi")):
        q = robot.integrate(robot.neutral(), rng.integers(-2, 3, size=(200, robot.nv)) * np.pi / 2)
        assert (robot.task.manipulability(q, robot.link_names[-1]) < 1e-15).any()
        assert np.isfinite(robot.task.manipulability_gradient(q, robot.link_names[-1])).all()


def test_singular_configurations_have_no_manipulability_and_a_right_null_space() -> None:
    robot = torsor.library.two_link().to(device="casadi")
    assert robot.task.manipulability([0.3, 0.0], "link2", "linear") < 1e-15
    J = robot.jacobian([0.3, 0.0], "link2")[3:]
    for kind in ("dynamic", "kinematic"):
        N = robot.task.null_space([0.3, 0.0], "link2", kind, "linear")
        assert np.linalg.matrix_rank(N, tol=1e-9) == 1
        np.testing.assert_allclose(J @ N, 0, atol=1e-12)
        np.testing.assert_allclose(N @ N, N, atol=1e-12)
        assert not robot.task.null_space([0.3, 0.5], "link2", kind).round(12).any()  # all rows: nothing is left
    assert not np.isfinite(robot.task.mass_matrix([0.3, 0.4], "link2")).all()


def test_wrong_options_and_loops_are_refused_in_words() -> None:
    robot = torsor.library.two_link()
    with refused(argument="rows of manipulability", allowed="'all', 'angular', 'linear'"):
        robot.task.manipulability([0, 0], "link2", "xyz")
    with refused(argument="kind of null_space"):
        robot.task.null_space([0, 0], "link2", "static")
    with refused(what="manipulability would cut"):
        torsor.library.four_bar().task.manipulability(np.zeros(3), 0)
