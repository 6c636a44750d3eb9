"""Derivatives, rates, energies and matrices obey the chain rule and the symmetries that bind them to each other."""

import casadi as ca
import numpy as np
import pytest

import torsor

TREES = [
    (7, 0),
    pytest.param((7, 1), marks=pytest.mark.slow),
    (9, 2),
    pytest.param((9, 3), marks=pytest.mark.slow),
    (1, 6),
]


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-links-seed-{p[1]}")
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    return torsor.library.random_tree(*request.param).to(device="casadi")  # each is called a few times only


@pytest.fixture
def motion(robot: torsor.Robot) -> tuple[np.ndarray, ...]:
    return random_motion(robot)


def random_motion(robot: torsor.Robot) -> tuple[np.ndarray, ...]:
    """Return q, v, a, j."""
    rng = np.random.default_rng(13)
    return robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), *rng.normal(size=(3, robot.nv))


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


# Rates are derivatives along the motion


def test_the_rate_of_a_force_is_its_derivatives_along_the_motion(robot, motion) -> None:
    q, v, a, j = motion
    load, load_rate = np.random.default_rng(14).normal(size=(2, len(robot.links), 6))
    dq, dv, da = robot.derivatives.inverse_dynamics(q, v, a, load)
    by_load = sum(robot.jacobian(q, link).T @ x for link, x in zip(robot.link_names, load_rate, strict=True))
    assert_close(robot.force_rate(q, v, a, j, load, load_rate)[1], dq @ v + dv @ a + da @ j - by_load)


def test_the_rate_of_a_reaction_is_its_derivatives_along_the_motion(robot, motion) -> None:
    q, v, a, j = motion
    load = np.random.default_rng(14).normal(size=(len(robot.links), 6))
    dq, dv, da = robot.derivatives.joint_wrenches(q, v, a, load)
    assert_close(robot.joint_wrench_rates(q, v, a, j, load)[1], dq @ v + dv @ a + da @ j)


def test_a_motion_that_its_forces_drive_has_their_jerk(robot, motion) -> None:
    tau, tau_rate = robot.force_rate(*motion)
    q, v, a, j = motion
    dq, dv, dtau = robot.derivatives.forward_dynamics(q, v, tau)
    assert_close(dq @ v + dv @ a + dtau @ tau_rate, j, 1e-9)


def test_the_second_rate_of_energy_is_the_rate_of_power(robot, motion) -> None:
    free = robot.without_friction()
    q, rates = ca.SX.sym("q", free.nq), [ca.SX.sym(letter, free.nv) for letter in "vaj"]
    t = ca.SX.sym("t")
    q_rate = ca.substitute(ca.jacobian(free.function("integrate")(q, t * rates[0]), t), t, 0)
    energy = free.function("kinetic_energy")(q, rates[0]) + free.function("potential_energy")(q)
    for _ in range(2):
        energy = ca.jtimes(energy, ca.vertcat(q, *rates[:2]), ca.vertcat(q_rate, *rates[1:]))
    expected = ca.Function("second", [q, *rates], [energy])(*motion).full().item()
    tau, tau_rate = free.force_rate(*motion)
    _, v, a, _ = motion
    lost = (
        2 * free.friction_force(v) @ a
    )  # the rate of what the dampers of springs take, which are linear and symmetric
    assert_close(tau @ a + tau_rate @ v - lost, expected)


# Symmetries


def test_forces_of_motion_are_quadratic_in_velocity(robot, motion) -> None:
    q, v, a, _ = motion
    free = robot.without_friction()
    dv = free.derivatives.inverse_dynamics(q, v, a)[1]
    assert_close(dv @ v - free.friction_force(v), 2 * free.coriolis_matrix(q, v) @ v)


def test_the_derivative_of_the_inertia_force_has_the_power_of_the_coriolis_force(robot, motion) -> None:
    """Along the motion v' M' v = 2 v' C v, with M' x from the derivatives of forces at rest."""
    q, v, _, _ = motion
    rest = np.zeros(robot.nv)
    by_q = robot.derivatives.inverse_dynamics(q, rest, v)[0] - robot.derivatives.inverse_dynamics(q, rest, rest)[0]
    assert_close(v @ by_q @ v, 2 * v @ robot.coriolis_matrix(q, v) @ v)


def test_the_rate_of_mass_matrix_minus_twice_coriolis_stays_skew_in_every_direction(robot, motion) -> None:
    q, v, x, y = motion
    s, step = ca.SX.sym("s"), robot.function("integrate")
    moved, speed = step(ca.DM(q), s * ca.DM(x)), ca.DM(v) + s * ca.DM(y)
    t = ca.SX.sym("t")
    M = ca.densify(robot.function("mass_matrix")(step(moved, t * speed)))
    M_rate = ca.substitute(ca.reshape(ca.jacobian(ca.vec(M), t), M.shape), t, 0)
    N = ca.vec(M_rate - 2 * robot.function("coriolis_matrix")(moved, speed))
    n = robot.nv
    found = ca.Function("along", [s], [ca.reshape(ca.jacobian(N, s), n, n)])(0).full()
    assert np.abs(found).max() > 1e-3 or n == 1
    assert_close(found, -found.T)


@pytest.mark.parametrize("name", ["six_axis_arm", "stanford", "elastic_seven_axis_arm"])
def test_the_stiffness_of_gravity_and_springs_is_symmetric(name: str) -> None:
    """It is the second derivative of an energy; angles and lengths can be exchanged in it, unlike turns in space."""
    robot = getattr(torsor.library, name)()
    q, *_ = random_motion(robot)
    dq = robot.derivatives.inverse_dynamics(q, *np.zeros((2, robot.nv)))[0]
    assert_close(dq, dq.T)


# What cannot matter is structurally zero: no operation is spent on it


def related(robot: torsor.Robot) -> np.ndarray:
    """Whether link i is on one branch with the joint of coordinate j: (L, nv)."""
    index = {joint.child: k for k, joint in enumerate(robot.joints)}
    above = []
    for joint in robot.joints:
        parent = index.get(joint.parent)
        above.append({index[joint.child]} | (set() if parent is None else above[parent]))
    found = np.zeros((len(robot.links), robot.nv), bool)
    for j, at in enumerate(robot.coordinates):
        for i in range(len(robot.links)):
            found[i, at.v] = i in above[j] or j in above[i]
    return found


@pytest.mark.parametrize("name", ["quadruped", "free_flying_arm", "eel"])
def test_sensitivities_are_structurally_zero_off_the_branch(name: str) -> None:
    robot = getattr(torsor.library, name)()
    allowed = related(robot)
    owner = np.concatenate([np.full(at.v.stop - at.v.start, k) for k, at in enumerate(robot.coordinates)])
    for method, rows in (
        ("inverse_dynamics_derivatives", allowed[owner]),
        ("joint_wrench_derivatives", np.repeat(allowed, 6, axis=0)),
    ):
        function = robot.function(method)
        for k in range(3):
            pattern = np.array(ca.DM(function.sparsity_out(k), 1).full(), bool)
            assert not (pattern & ~rows).any()


def test_where_a_floating_base_is_does_not_matter() -> None:
    robot = torsor.library.quadruped()
    q, v, a, _ = random_motion(robot)
    by_place = robot.derivatives.inverse_dynamics(q, v, a)[0][:, 3:6]
    assert not by_place.any()
    assert not robot.derivatives.joint_wrenches(q, v, a)[0][:, :, 3:6].any()


def test_a_turn_about_the_vertical_does_not_matter() -> None:
    for robot in (torsor.library.stanford(), torsor.library.six_axis_arm()):
        q, v, a, _ = random_motion(robot)
        assert_close(robot.derivatives.inverse_dynamics(q, v, a)[0][:, 0], np.zeros(robot.nv))
        assert_close(robot.derivatives.joint_wrenches(q, v, a)[0][..., 0], np.zeros((robot.nv, 6)))
