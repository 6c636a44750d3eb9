"""Centroidal momentum, composite inertia and the motion of the centre of mass, on trees with every kind of joint."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import warned

CURVED = ("spherical", "free", "planar", "helical")
ROBOTS = {
    "curved": lambda: torsor.library.random_tree(4, 4, CURVED),
    "every kind": lambda: torsor.library.random_tree(7, 9, branching=0.1),
    "motors": torsor.library.bevel_elastic_arm,
    "floating": torsor.library.free_flying_arm,
}


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def rate_of(robot: torsor.Robot, name: str, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the rate of a function of q at the velocities v, by forward mode along ``integrate``."""
    t = ca.SX.sym("t")
    result = robot.function(name)(robot.function("integrate")(q, t * v))
    found = ca.Function("rate", [t], [ca.reshape(ca.jacobian(ca.vec(result), t), result.shape)])(0.0).full()
    return found if found.shape[1] > 1 else found[:, 0]


@pytest.mark.parametrize(
    "kind", [pytest.param(each, marks=pytest.mark.slow if "every" in each else ()) for each in ROBOTS]
)
def test_matrices_give_momentum_and_rates_are_rates(kind: str) -> None:
    robot = ROBOTS[kind]().to(device="casadi")
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    v, a = rng.normal(size=(2, robot.nv))
    A, A_rate = robot.centroidal.momentum_matrix(q), robot.centroidal.momentum_matrix_rate(q, v)
    close(A @ v, robot.momentum(q, v))
    close(A_rate, rate_of(robot, "centroidal_momentum_matrix", q, v))
    close(robot.centroidal.momentum_bias(q, v), A_rate @ v)
    J, J_rate = robot.centroidal.jacobian(q), robot.centroidal.jacobian_rate(q, v)
    close(J @ v, rate_of(robot, "center_of_mass", q, v))
    close(J_rate, rate_of(robot, "center_of_mass_jacobian", q, v))
    close(robot.centroidal.velocity(q, v), J @ v)
    close(robot.centroidal.acceleration(q, v, a), J @ a + J_rate @ v)


def test_the_momentum_of_a_locked_robot_is_its_composite_inertia_times_the_twist() -> None:
    robot = torsor.library.free_flying_arm().to(device="casadi")
    q = robot.integrate(robot.neutral(), np.random.default_rng(1).normal(size=robot.nv))
    v = np.zeros(robot.nv)
    v[:6] = [0.3, -0.2, 0.5, 1.0, 2.0, -1.0]
    twist = robot.velocity(q, v, 0, "aligned")
    arm = robot.center_of_mass(q) - robot.pose(q, 0)[:3, 3]
    twist[3:] += np.cross(twist[:3], arm)  # of the centre of mass
    close(robot.centroidal.inertia(q) @ twist, robot.momentum(q, v))


def test_flexible_links_have_rates_too() -> None:
    robot = torsor.library.flexible_arm().to(device="casadi")
    q, v = 0.1 * np.random.default_rng(2).normal(size=(2, robot.nv))
    close(robot.centroidal.momentum_matrix(q) @ v, robot.momentum(q, v))
    rate = robot.centroidal.momentum_matrix_rate(q, v)
    close(rate, rate_of(robot, "centroidal_momentum_matrix", q, v))
    close(robot.centroidal.momentum_bias(q, v), rate @ v)


def test_without_mass_the_centre_is_not_a_number_and_momentum_is_zero() -> None:
    with warned(what="has no inertia"):
        arm = torsor.from_mdh([torsor.MDHLink(-1)]).to(device="casadi")
    assert np.isnan(arm.centroidal.jacobian([0.3])).all()
    assert not arm.centroidal.momentum_matrix([0.3]).any()
