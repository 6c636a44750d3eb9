"""Rates of forces and reactions are their time derivatives along any motion."""

import casadi as ca
import numpy as np
import pytest

import torsor

TREES = [(7, 0), (7, 1), (9, 2), (9, 3)]


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-links-seed-{p[1]}")
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    return torsor.library.random_tree(*request.param).to(device="casadi")  # each is called a few times only


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def along(robot: torsor.Robot, name: str, order: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A random motion and load with their rates, and the rates of a function of the robot along it, by CasADi."""
    rng, n, L = np.random.default_rng(seed), robot.nv, len(robot.links)
    numbers = [robot.integrate(robot.neutral(), rng.normal(size=n)), *rng.normal(size=(order + 2, n))]
    loads = list(rng.normal(size=(2, L, 6)))
    q, rates = ca.SX.sym("q", robot.nq), [ca.SX.sym(f"x{k}", n) for k in range(order + 2)]
    load, load_rate, t = ca.SX.sym("load", L, 6), ca.SX.sym("load_rate", L, 6), ca.SX.sym("t")
    q_rate = ca.substitute(ca.jacobian(robot.function("integrate")(q, t * rates[0]), t), t, 0)
    values = [ca.vec(robot.function(name, external=True)(q, rates[0], rates[1], load).T)]
    state = ca.vertcat(q, *rates[:-1], ca.vec(load))
    flow = ca.vertcat(q_rate, *rates[1:], ca.vec(load_rate))
    for _ in range(order):
        values.append(ca.jtimes(values[-1], state, flow))
    if order > 1:  # a load with a constant rate in the first, and none in what follows
        values = [ca.substitute(each, load_rate, ca.SX.zeros(L, 6)) for each in values]
        loads[1] = np.zeros((L, 6))
    found = ca.Function("found", [q, *rates, load, load_rate], values)(*numbers, *loads)
    return [*numbers, *loads], [np.asarray(each.full()).ravel() for each in found]


def test_force_rates_are_the_rates_of_the_forces(robot: torsor.Robot) -> None:
    (q, v, a, j, load, load_rate), expected = along(robot, "inverse_dynamics", 1)
    for found, value in zip(robot.force_rate(q, v, a, j, load, load_rate), expected, strict=True):
        assert_close(found, value)


def test_rates_of_higher_order_are_the_rates_of_the_rates() -> None:
    robot = torsor.library.random_tree(7, 1).to(device="casadi")
    (q, v, a, j, s, c, load, _), expected = along(robot, "inverse_dynamics", 3)
    for found, value in zip(robot.force_rate(q, v, a, j, load, higher=[s, c]), expected, strict=True):
        assert_close(found, value, 1e-10)
    assert len(robot.force_rate(q, v, a, j, higher=[s])) == 3


def test_rates_of_reactions_are_the_rates_of_the_reactions(robot: torsor.Robot) -> None:
    (q, v, a, j, load, load_rate), expected = along(robot, "joint_wrenches", 1)
    for found, value in zip(robot.joint_wrench_rates(q, v, a, j, load, load_rate), expected, strict=True):
        assert_close(found.ravel(), value)


def test_a_load_without_a_rate_is_fixed_in_its_link(robot: torsor.Robot) -> None:
    (q, v, a, j, load, load_rate), _ = along(robot, "inverse_dynamics", 1)
    zero = np.zeros_like(load)
    assert np.array_equal(robot.force_rate(q, v, a, j, load), robot.force_rate(q, v, a, j, load, zero))
    assert np.array_equal(
        robot.force_rate(q, v, a, j, external_rate=load_rate), robot.force_rate(q, v, a, j, zero, load_rate)
    )


def test_there_are_rates_of_any_order() -> None:
    robot = torsor.library.random_tree(4, 2).to(device="casadi")
    (q, v, a, j, *higher, load, _), expected = along(robot, "inverse_dynamics", 5)
    for one, other in zip(robot.force_rate(q, v, a, j, load, higher=higher), expected, strict=True):
        assert_close(one, other, 1e-10)
    function = robot.function("force_rate", order=5)
    assert function.name_in() == ["q", "v", "a", "j", "j_1", "j_2", "j_3", "j_4"]
    (q, v, a, j, *higher, load, _), expected = along(robot, "joint_wrenches", 4)
    found = robot.joint_wrench_rates(q, v, a, j, load, higher=higher)
    for one, other in zip(found, expected, strict=True):
        assert_close(one.ravel(), other, 1e-10)


def test_jerks_are_the_rates_of_accelerations(robot: torsor.Robot) -> None:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = torsor.spatial.from_rpy([0.1, -0.7, 0.4]), [0.3, 0.2, -0.1]
    framed = robot.with_frame("camera", robot.link_names[-1], pose)
    (q, v, a, j, *_), _ = along(robot, "inverse_dynamics", 1)
    _, rates = framed.derivatives.jvp("acceleration", (q, v, a), (v, a, j), place="camera")
    twist, acceleration = framed.velocity(q, v, "camera"), framed.acceleration(q, v, a, "camera")
    # In turning axes, the rate of a vector is that of its components plus omega x it.
    rates[:3] += np.cross(twist[:3], acceleration[:3])
    rates[3:] += np.cross(twist[:3], acceleration[3:])
    assert_close(framed.task.jerk(q, v, a, j, "camera"), rates)
    assert_close(framed.task.jerks(q, v, a, j)[-1], framed.task.jerk(q, v, a, j, -1))
    assert not framed.task.jerk(q, v, a, j, framed.base.name).any()


@pytest.mark.parametrize("name", ["stanford", "six_axis_arm", "seven_axis_arm"])
def test_force_rates_take_fewer_operations_than_guarino_lo_bianco_2009(name: str) -> None:
    robot = getattr(torsor.library, name)().without_friction()
    counted, alone = robot.operation_count("force_rate"), robot.operation_count("inverse_dynamics")
    n = robot.nv
    assert counted.multiplications < 309 * n - 162
    assert counted.additions < 268 * n - 138
    assert counted.arithmetic < 2.3 * alone.arithmetic
