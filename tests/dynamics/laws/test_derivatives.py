"""Analytical derivatives agree with derivatives of the traced functions, on random trees and robots."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.accessors import method_of

TREES = [(7, 0), pytest.param((7, 1), marks=pytest.mark.slow), (8, 2), (1, 6)]
METHODS = {
    "inverse_dynamics": "inverse_dynamics_derivatives",
    "forward_dynamics": "forward_dynamics_derivatives",
    "joint_wrenches": "joint_wrench_derivatives",
}


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-links-seed-{p[1]}")
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    return torsor.library.random_tree(*request.param).to(device="casadi")  # each is called a few times only


def random_state(robot: torsor.Robot, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), rng.normal(size=(*batch, robot.nv)))
    external = rng.normal(size=(*batch, len(robot.links), 6))
    return q, rng.normal(size=(*batch, robot.nv)), rng.normal(size=(*batch, robot.nv)), external


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def by_casadi(robot: torsor.Robot, name: str, state: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Return derivatives of the function itself with respect to q (along integrate), v and the third input."""
    q, v, x, external = (
        ca.SX.sym(letter, *size)
        for letter, size in (("q", (robot.nq,)), ("v", (robot.nv,)), ("x", (robot.nv,)), ("e", (len(robot.links), 6)))
    )
    step, function = ca.SX.sym("step", robot.nv), robot.function(name, external=True)

    def value(q: ca.SX) -> ca.SX:
        return ca.vec(function(q, v, x, external).T)

    moved = ca.jacobian(value(robot.function("integrate")(q, step)), step)
    outputs = [ca.substitute(moved, step, 0), ca.jacobian(value(q), v), ca.jacobian(value(q), x)]
    found = ca.Function("found", [q, v, x, external], outputs)(*state)
    shape = (len(robot.links), 6, robot.nv) if name == "joint_wrenches" else (robot.nv, robot.nv)
    return [np.asarray(each.full()).reshape(shape) for each in found]


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_are_those_of_the_function(robot: torsor.Robot, name: str) -> None:
    state = random_state(robot)
    for found, expected in zip(method_of(robot, METHODS[name])(*state), by_casadi(robot, name, state), strict=True):
        assert_close(found, expected, 1e-10)


def in_world(robot: torsor.Robot, name: str, state: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
    """The derivative by q where couples, and forces at points of the links, keep their direction in the world."""
    q, v, x, load = state
    step, function = ca.SX.sym("step", robot.nv), robot.function(name, external=True)
    moved = robot.function("integrate")(q, step)
    poses, there = robot.poses(q), robot.function("poses")(moved)
    rows = []
    for i, T in enumerate(poses):
        R = there[4 * i : 4 * i + 3, :3].T @ T[:3, :3]
        couple, force = load[i, :3] - np.cross(points[i], load[i, 3:]), R @ load[i, 3:]
        rows.append(ca.horzcat((R @ couple + ca.cross(ca.SX(points[i]), force)).T, force.T))
    value = ca.vec(function(moved, v, x, ca.vertcat(*rows)).T)
    found = ca.Function("found", [step], [ca.jacobian(value, step)])(0).full()
    shape = (len(robot.links), 6, robot.nv) if name == "joint_wrenches" else (robot.nv, robot.nv)
    return np.asarray(found).reshape(shape)


@pytest.mark.parametrize("name", METHODS)
def test_loads_may_be_fixed_in_the_world(name: str) -> None:
    robot = torsor.library.random_tree(6, 1).to(device="casadi")
    state = random_state(robot)
    dq, dv, dx = method_of(robot, METHODS[name])(*state, fixed_in="world")
    assert_close(dq, in_world(robot, name, state, np.zeros((len(robot.links), 3))), 1e-10)
    points = np.random.default_rng(4).normal(size=(len(robot.links), 3))
    at_points, same_v, same_x = method_of(robot, METHODS[name])(*state, fixed_in="world", points=points)
    assert_close(at_points, in_world(robot, name, state, points), 1e-10)
    assert_close(same_v, dv)
    assert_close(same_x, dx)
    for found, same in zip((dv, dx), method_of(robot, METHODS[name])(*state)[1:], strict=True):
        assert_close(found, same)
    with refused(argument="fixed_in", allowed="'link', 'world'"):
        method_of(robot, METHODS[name])(*state, fixed_in="base")


def test_the_derivative_by_acceleration_is_the_mass_matrix(robot: torsor.Robot) -> None:
    q, v, a, _ = random_state(robot)
    assert_close(robot.derivatives.inverse_dynamics(q, v, a)[2], robot.mass_matrix(q))


def test_the_derivative_by_velocity_at_rest_is_that_of_friction(robot: torsor.Robot) -> None:
    q, _, a, _ = random_state(robot)
    dv = robot.without_friction().derivatives.inverse_dynamics(q, np.zeros(robot.nv), a)[1]
    springs = robot.without_friction()  # dampers of springs stay
    columns = [springs.friction_force(e) for e in np.eye(robot.nv)]
    assert_close(dv, np.array(columns).T)


def test_forces_do_not_depend_on_other_branches() -> None:
    robot = torsor.library.quadruped()
    q, v, a, _ = random_state(robot)
    for d in robot.derivatives.inverse_dynamics(q, v, a):
        legs = [slice(6 + 3 * k, 9 + 3 * k) for k in range(4)]
        for i, row in enumerate(legs):
            for j, column in enumerate(legs):
                assert (i == j) == bool(d[row, column].any())


def test_batches_agree_with_single_states() -> None:
    robot = torsor.library.random_tree(7, 1)
    q, v, a, external = random_state(robot, (4, 1))
    batch = robot.derivatives.inverse_dynamics(q, v[:, 0], a, external)
    assert [d.shape for d in batch] == [(4, 4, robot.nv, robot.nv)] * 3
    one = robot.derivatives.inverse_dynamics(q[2, 0], v[1, 0], a[2, 0], external[2, 0])
    for many, single in zip(batch, one, strict=True):
        assert_close(many[2, 1], single)


@pytest.mark.parametrize(("name", "inverse", "direct"), [("six_axis_arm", 1600, 3200), ("quadruped", 5200, 22500)])
def test_derivatives_take_few_operations(name: str, inverse: int, direct: int) -> None:
    robot = getattr(torsor.library, name)()
    assert robot.operation_count("inverse_dynamics_derivatives").arithmetic < inverse
    assert robot.operation_count("forward_dynamics_derivatives").arithmetic < direct


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_derivatives_of_hybrid_dynamics_are_those_of_the_function(robot: torsor.Robot, share: float) -> None:
    rng = np.random.default_rng(5)
    chosen = rng.permutation(robot.nv)[: round(share * robot.nv)]
    forced = [robot.coordinate_names[k] for k in chosen]
    is_forced = np.isin(np.arange(robot.nv), chosen)
    q, v, given, external = random_state(robot)
    symbols = [ca.SX.sym(letter, robot.nv) for letter in ("step", "v", "given")]
    step, v_sym, given_sym = symbols
    moved = robot.function("integrate")(q, step)
    a, tau = robot.function("hybrid_dynamics", external=True, forced=forced)(
        moved, v_sym, given_sym, given_sym, external
    )
    wanted = ca.if_else(ca.DM(is_forced.astype(float)), a, tau)
    jacobians = ca.Function("found", symbols, [ca.jacobian(wanted, each) for each in symbols])(0, v, given)
    found = robot.derivatives.hybrid_dynamics(q, v, given, given, forced, external)
    for one, other in zip(found, jacobians, strict=True):
        assert_close(one, np.asarray(other.full()), 1e-10)
    if share == 0:
        for one, other in zip(found, robot.derivatives.inverse_dynamics(q, v, given, external), strict=True):
            assert_close(one, other)


def test_points_without_loads_in_the_world_are_refused() -> None:
    robot, zero = torsor.library.two_link(), np.zeros(2)
    for options in ({"points": np.zeros((2, 3))}, {"points": np.zeros((2, 3)), "external": np.zeros((2, 6))}):
        with refused(argument="points", fix="pass external"):
            robot.derivatives.inverse_dynamics(zero, zero, zero, **options)
